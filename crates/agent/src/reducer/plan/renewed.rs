//! The next version of a plan: what of the one before stays, what is different, and whether people could see all of it.
//!
//! In plan mode a step is known by its words, because models number the same steps anew. Elsewhere the model names steps by its own ids, and
//! a step is known by id and words. Other words under an id that has a log are another step, so that a log belongs to one step for good.

use std::collections::HashSet;

use crate::domain::{Change, ChangeKind, Grant, Plan, Step, StepStatus, plan_fits};

use super::card;
use super::parse::{self, MAX_STEPS};

/// A plan that no card shows whole cannot be countersigned, so none is taken; the words say what to mend.
pub(in crate::reducer) fn check_fits_card(plan: &Plan, grants: &[Grant]) -> Result<(), String> {
    if plan.steps.len() > MAX_STEPS {
        return Err(format!(
            "the plan has {} steps with those that are done, at most {MAX_STEPS} are allowed",
            plan.steps.len()
        ));
    }
    plan_fits(&plan.goal, &card::steps(plan), grants).map_err(|percent| {
        format!(
            "the plan is too long: people countersign all of it on one card, and it takes {percent} % of that card's room. Shorten the \
             goal, the steps, their intents and the arguments of their calls, or plan fewer steps"
        )
    })
}

/// Where the model carries the plan out itself: a finished step that is told again in the same words keeps what came of it; one that
/// failed or was left out waits anew, for why else would it be told again.
pub(in crate::reducer) fn merge_by_id(told: Vec<Step>, before: &Plan) -> Vec<Step> {
    let again = |step: Step| {
        let same = before.steps.iter().find(|old| old.id == step.id && old.content == step.content);
        match same.filter(|old| old.status == StepStatus::Completed) {
            Some(old) => Step {
                status: old.status,
                result: old.result.clone(),
                error: old.error.clone(),
                ..step
            },
            None => step,
        }
    };
    told.into_iter().map(again).collect()
}

/// Where each step is carried out in a log of its own: a step is known by its words, whatever place or id the model gives it now, and
/// keeps its id. Finished ones stay as they are, told again or not. Other words under an id that is taken, or that has a log (`logs`),
/// are another step and get another id, so that no step reads or writes the log of another.
pub(in crate::reducer) fn merge_by_words(told: Vec<Step>, before: &Plan, logs: &HashSet<String>) -> Vec<Step> {
    let finished = |old: &Step| old.status == StepStatus::Completed;
    let mut taken = vec![false; before.steps.len()];
    let mut known = |step: &Step| {
        let same = before
            .steps
            .iter()
            .enumerate()
            .filter(|(at, old)| !taken[*at] && same_words(old, step));
        // The first of them, but rather the one that has the id, too.
        let (at, old) = same.min_by_key(|(_, old)| old.id != step.id)?;
        taken[at] = true;
        Some(old)
    };
    let told: Vec<(Step, Option<&Step>)> = told
        .into_iter()
        .map(|step| {
            let old = known(&step);
            (step, old)
        })
        .collect();
    let unnamed = before.steps.iter().zip(&taken).filter(|(old, taken)| finished(old) && !**taken);
    let mut steps: Vec<Step> = unnamed.map(|(old, _)| old.clone()).collect();
    let olds = told.iter().filter_map(|(_, old)| old.map(|old| &old.id));
    let mut ids: HashSet<String> = steps.iter().map(|step| &step.id).chain(olds).cloned().collect();
    for (step, old) in told {
        steps.push(match old {
            Some(old) if finished(old) => old.clone(),
            Some(old) => Step {
                id: old.id.clone(),
                ..step
            },
            None => {
                let id = parse::unused(&step.id, |id| ids.contains(id) || logs.contains(id));
                ids.insert(id.clone());
                Step { id, ..step }
            }
        });
    }
    steps
}

fn same_words(one: &Step, other: &Step) -> bool {
    one.content.split_whitespace().eq(other.content.split_whitespace())
}

/// What is different, in words, tools, intent or calls; statuses are no difference.
pub(in crate::reducer) fn changes(before: Option<&Plan>, after: &Plan) -> Vec<Change> {
    let old = before.map_or(&[][..], |plan| &plan.steps);
    let find = |steps: &[Step], id: &str| steps.iter().find(|step| step.id == id).cloned();
    let told = after.steps.iter().filter_map(|step| match find(old, &step.id) {
        Some(old) if (&old.content, &old.tools, &old.intent, &old.calls) == (&step.content, &step.tools, &step.intent, &step.calls) => None,
        Some(old) => Some((ChangeKind::Updated, step.id.clone(), Some(old.content), Some(step.content.clone()))),
        None => Some((ChangeKind::Added, step.id.clone(), None, Some(step.content.clone()))),
    });
    let gone = old.iter().filter(|step| find(&after.steps, &step.id).is_none());
    let gone = gone.map(|step| (ChangeKind::Removed, step.id.clone(), Some(step.content.clone()), None));
    told.chain(gone).map(|(kind, id, old, new)| Change { kind, id, old, new }).collect()
}

#[cfg(test)]
mod tests;
