//! `plan()`: the plan as the model sends it, and what its acceptance changes.

mod card;
mod left_out;
pub(super) mod parse;
pub(super) mod renewed;
mod review;
pub(super) mod steps;
pub(super) mod todos;

use serde_json::{Value, json};

use crate::domain::{Change, Complexity, CoverageGap, Event, Notice, Plan, Step, StepStatus, ToolSpec, TurnReason, always_asks};

use super::end::TurnEnd;
use super::prompt::specs::{self, plan_schema};
use super::prompt::words::Words;
use super::reply::arguments::{own_arguments, text_member};
use super::writer::Reducer;
use super::{ReviewOutcome, Showing, TurnState, compose};
use crate::domain::foreign::{clean, one_line};
use card::Announcement;
pub(super) use card::announced;
use renewed::{changes, check_fits_card, merge_by_id, merge_by_words};

pub use card::{plan_end, progress};
pub use steps::open_steps;

/// Bytes of `internal_plan`.
const PLAN_CAP: usize = 32 * 1024;

/// Bytes of the names of tools in an answer.
const NAMES_CAP: usize = 400;
/// Declared calls of which an answer tells why they are not covered.
const GAPS: usize = 10;

/// A plan as the model sent it, understood.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PlanDraft {
    goal: String,
    complexity: Complexity,
    steps: Vec<Step>,
    internal_plan: String,
}

impl PlanDraft {
    pub(super) fn read(arguments_text: &str) -> Result<Self, String> {
        let map = own_arguments(arguments_text, &plan_schema())?;
        let goal = text_member(&map, "overall_goal_ui")
            .map(|goal| clean(&goal))
            .ok_or("`overall_goal_ui` is blank")?;
        let simple = map.get("complexity").and_then(Value::as_str) == Some("simple");
        if simple && goal.contains('\n') {
            return Err(String::from("`overall_goal_ui` of a simple plan is one line"));
        }
        let plan = map.get("internal_plan").cloned().unwrap_or_default();
        let internal_plan = plan.to_string();
        if internal_plan.len() > PLAN_CAP {
            return Err(format!(
                "`internal_plan` has {} bytes, at most {PLAN_CAP} are allowed",
                internal_plan.len()
            ));
        }
        Ok(Self {
            steps: parse::steps(&plan, &goal)?,
            complexity: if simple { Complexity::Simple } else { Complexity::Complex },
            goal,
            internal_plan,
        })
    }
}

impl Reducer<'_> {
    /// Accepts a plan.
    pub(super) fn accept_plan(&mut self, draft: PlanDraft) {
        let before = self.turn.state.plan.clone();
        let plan = self.next_version(draft, before.as_ref());
        let announced = announced(&self.turn.state.policy, &plan, self.env.tools);
        if let Err(problem) = check_fits_card(&plan, &announced.grants) {
            return self.refuse(vec![format!("invalid arguments: {problem}")]);
        }
        if !self.may_plan_again() {
            return;
        }
        let (version, steps) = (plan.version, plan.steps.len());
        let words = if version == 1 {
            format!("{steps} steps")
        } else {
            format!("{steps} steps, version {version}")
        };
        self.emit(Event::PlanCreated { version, steps }, &words);
        let changes = self.adopt(before.as_ref(), plan);
        if before.is_some() {
            self.tell_changes(changes);
        }
        let answer = accepted(&self.turn.state, self.env.tools, &announced, self.ours());
        if let Some(open) = self.turn.state.calls.open.first_mut() {
            open.answer = Some(answer);
        }
        // No reminder here: the plan has just been said.
        self.close_batch(false);
        // A card that showed the plan before comes to its end.
        self.repaint_plan();
        if self.turn.state.review_pending() {
            let note = self.words_beside_calls();
            return self.open_review(note);
        }
        self.begin_work();
        self.ask_model();
    }

    /// The next version of the plan, and what stays of the one before.
    fn next_version(&self, draft: PlanDraft, before: Option<&Plan>) -> Plan {
        let wrote = draft.steps.clone();
        let steps = match (before, &self.turn.state.run) {
            (Some(before), Some(_)) => merge_by_words(draft.steps, before, &self.logs()),
            (Some(before), None) => merge_by_id(draft.steps, before),
            (None, _) => draft.steps,
        };
        let same = |kept: &Step, told: &Step| {
            (&kept.id, &kept.content, &kept.intent, &kept.tools, &kept.calls)
                == (&told.id, &told.content, &told.intent, &told.tools, &told.calls)
        };
        let as_told = steps.len() == wrote.len() && steps.iter().zip(&wrote).all(|(kept, told)| same(kept, told));
        Plan {
            version: before.map_or(0, |plan| plan.version) + 1,
            revision: before.map_or(0, |plan| plan.revision) + 1,
            goal: draft.goal,
            complexity: draft.complexity,
            internal_plan: if as_told { draft.internal_plan } else { parse::as_json(&steps) },
            steps,
            done: false,
        }
    }

    /// Makes `plan` the plan. Unless its digest is the approved one, that voids the approval and the grants; the approved card goes on
    /// showing what was approved. Gives what is different.
    pub(super) fn adopt(&mut self, before: Option<&Plan>, plan: Plan) -> Vec<Change> {
        let digest = plan.digest();
        let state = &mut self.turn.state;
        state.budget.nudges.used = 0;
        let approval = state.review.outcome.approval();
        if approval.is_none_or(|approval| approval.digest != digest) {
            if let (Some(_), Some(card)) = (approval, &mut state.review.approved_card) {
                card.replaced_plan = before.cloned();
            }
            state.review.outcome = ReviewOutcome::Undecided;
        }
        let showing = card::showing(&state.policy, &plan, self.env.tools);
        // A card that informs is in the chat already, and comes to its end with what it informs of.
        if showing != Showing::Nothing || !state.review.progress_posted {
            state.review.showing = showing;
        }
        let announced = announced(&state.policy, &plan, self.env.tools);
        (state.review.card_grants, state.review.card_asks) = (announced.grants, announced.asks);
        state.review.left_out = None;
        let changes = changes(before, &plan);
        state.plan = Some(plan);
        changes
    }

    pub(super) fn tell_changes(&mut self, changes: Vec<Change>) {
        let words = format!("{} changes", changes.len());
        self.emit(Event::PlanUpdated { changes }, &words);
    }

    /// Counts a plan that the model made by itself. Past the limit the turn ends: a model that plans again and
    /// again would reset its own nudges for ever.
    fn may_plan_again(&mut self) -> bool {
        let too_many = compose::state_error(&self.our_answer("rule.too_many_plans"));
        let state = &mut self.turn.state;
        if state.plan.is_none() || state.review.outcome == ReviewOutcome::Revised {
            return true;
        }
        if state.budget.replans.used < state.budget.replans.limit {
            state.budget.replans.used += 1;
            return true;
        }
        if let Some(open) = state.calls.open.first_mut() {
            open.answer = Some(too_many);
        }
        self.finish(TurnEnd::failed(TurnReason::Rounds).problem(Notice::TooManyRounds {}));
        false
    }
}

/// Names in the steps' `tools` that no tool has. The plan stands all the same: such a name allows nothing, and models that make names up
/// would do so again.
fn unknown_tools<'a>(plan: &'a Plan, tools: &[ToolSpec]) -> Vec<&'a str> {
    let known = |name: &str| specs::is_state_tool(name) || tools.iter().any(|spec| spec.name == name);
    let mut unknown: Vec<&str> = Vec::new();
    for name in plan.steps.iter().flat_map(|step| &step.tools).filter(|name| !known(name)) {
        if !unknown.contains(&name.as_str()) {
            unknown.push(name);
        }
    }
    unknown
}

/// What `plan()` answers the model.
fn accepted(state: &TurnState, tools: &[ToolSpec], announced: &Announcement, ours: Words<'_>) -> String {
    let Some(plan) = &state.plan else { return String::new() };
    let approved = state.approval().is_some();
    let named = |step: &Step| match step.status {
        StepStatus::Completed => format!("{} (completed)", step.id),
        StepStatus::Pending | StepStatus::InProgress | StepStatus::Failed | StepStatus::Skipped => step.id.clone(),
    };
    let ids: Vec<_> = plan.steps.iter().map(named).collect();
    let then = match (state.review.showing, plan.complexity) {
        (Showing::Review, _) if !approved => "plan.review",
        _ if state.run.is_some() => "plan.carried_out",
        (_, Complexity::Complex) => "plan.clarify",
        (_, Complexity::Simple) => "plan.go_ahead",
    };
    let values = json!({"version": plan.version, "ids": ids.join(", "), "then": ours.answer(then, json!({}))});
    let mut words = ours.answer("plan.recorded", values);
    let unknown = unknown_tools(plan, tools);
    if !unknown.is_empty() {
        let names = one_line(&unknown.join(", "), NAMES_CAP);
        words.push(' ');
        words.push_str(&ours.answer("plan.unknown_tools", json!({"names": names})));
    }
    if state.review.showing == Showing::Review {
        for told in [undeclared(announced, tools, ours), gaps(announced, ours)].into_iter().flatten() {
            words.push(' ');
            words.push_str(&told);
        }
    }
    crate::domain::foreign::plain(&words)
}

/// The tools that ask a person each time, because no step declares a call that an approval covers.
fn undeclared(announced: &Announcement, tools: &[ToolSpec], ours: Words<'_>) -> Option<String> {
    if announced.asks.is_empty() {
        return None;
    }
    let always = |name: &String| tools.iter().any(|spec| spec.name == *name && always_asks(spec));
    let (always, declarable): (Vec<_>, Vec<_>) = announced.asks.iter().cloned().partition(always);
    let told = |key: &str, names: Vec<String>| {
        (!names.is_empty()).then(|| ours.answer(key, json!({"names": one_line(&names.join(", "), NAMES_CAP)})))
    };
    let told = [told("plan.asks", declarable), told("plan.asks_always", always)];
    Some(told.into_iter().flatten().collect::<Vec<_>>().join(" "))
}

/// Why declared calls are not covered.
fn gaps(announced: &Announcement, ours: Words<'_>) -> Option<String> {
    let told = |(step, tool, gap): &(usize, String, CoverageGap)| {
        let (why, argument) = match gap {
            // Said of the tool as a whole.
            CoverageGap::AlwaysAsks => return None,
            CoverageGap::NoSuchArgument(name) => ("no_such_argument", name),
            CoverageGap::NotDeclared(name) => ("not_declared", name),
            CoverageGap::NeverMatches(name) => ("never_matches", name),
        };
        let values = json!({"step": step, "tool": tool, "why": why, "argument": one_line(argument, 80)});
        Some(ours.answer("plan.gap", values))
    };
    let lines: Vec<String> = announced.gaps.iter().filter_map(told).take(GAPS).collect();
    (!lines.is_empty()).then(|| lines.join(" "))
}

#[cfg(test)]
mod tests {
    use super::PlanDraft;

    /// S0-13: required, unknown and ignored parameters of `plan`; a simple goal is one line.
    #[test]
    fn holds_plan_to_its_schema() {
        let told = |text: &str| PlanDraft::read(text).unwrap_err();
        assert!(told("{}").contains("`overall_goal_ui` is required"));
        assert!(told("{}").contains("`complexity` is required"));
        assert!(told(r#"{"overall_goal_ui": " ", "complexity": "simple"}"#).contains("blank"));
        assert!(told(r#"{"overall_goal_ui": "g", "complexity": "hard"}"#).contains("one of"));
        assert!(told(r#"{"overall_goal_ui": "g", "complexity": "simple", "colour": 1}"#).contains("unknown parameter `colour`"));
        assert!(told(r#"{"overall_goal_ui": "a\nb", "complexity": "simple"}"#).contains("one line"));
        assert!(
            told(&format!(
                r#"{{"overall_goal_ui": "g", "complexity": "complex", "internal_plan": "{}"}}"#,
                "x".repeat(33_000)
            ))
            .contains("bytes")
        );
        let fine = r#"{"overall_goal_ui": "a\nb", "complexity": "complex", "run_id": "forged", "session_title": null}"#;
        assert_eq!(PlanDraft::read(fine).unwrap().steps.len(), 1);
    }
}
