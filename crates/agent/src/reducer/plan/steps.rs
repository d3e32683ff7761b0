//! How far the plan is: `plan_progress`, and every change of a step's status.

use serde_json::{Value, json};

use crate::domain::foreign::{one_line, plain};
use crate::domain::{Complexity, Event, Plan, Step, StepResult, StepStatus};
use crate::reducer::prompt::specs::progress_schema;
use crate::reducer::prompt::words::Words;
use crate::reducer::reply::arguments::{own_arguments, text_member};
use crate::reducer::writer::Reducer;
use crate::reducer::{Showing, TurnState, compose};

/// Characters of a step where it is only named.
const STEP_CAP: usize = 300;

/// `plan_progress`, with the steps found in the plan (by position).
#[derive(Clone, Debug, PartialEq)]
pub(in crate::reducer) struct ProgressReport {
    /// The step that ended.
    pub(in crate::reducer) step: Option<usize>,
    /// How it ended.
    pub(in crate::reducer) status: StepStatus,
    pub(in crate::reducer) summary: Option<String>,
    next: Option<usize>,
    /// The whole plan is done.
    pub(in crate::reducer) all: bool,
}

impl ProgressReport {
    /// `present`: the step that is carried out, by its position (plan mode).
    pub(in crate::reducer) fn read(arguments_text: &str, plan: Option<&Plan>, present: Option<usize>) -> Result<Self, String> {
        let map = own_arguments(arguments_text, &progress_schema())?;
        let steps = plan.map_or(&[][..], |plan| &plan.steps);
        // By its id or its words. Who carries out one step is told its number and no ids, so there the number comes first.
        let find = |wanted: &str| {
            let numbered = present.filter(|at| wanted == (at + 1).to_string());
            let known = numbered.or_else(|| steps.iter().position(|step| step.id == wanted));
            known.or_else(|| steps.iter().position(|step| step.content == wanted))
        };
        let step_id = text_member(&map, "step_id");
        let step = step_id.as_deref().and_then(find);
        if let (Some(id), None, Some(_)) = (&step_id, step, plan) {
            let known: Vec<_> = steps.iter().map(|step| step.id.as_str()).collect();
            if let Some(at) = present {
                return Err(format!("there is no step `{}`; you carry out step {}", one_line(id, 80), at + 1));
            }
            return Err(format!("there is no step `{}`; steps: {}", one_line(id, 80), known.join(", ")));
        }
        let status = match map.get("step_status").and_then(Value::as_str) {
            Some("failed") => StepStatus::Failed,
            Some("skipped") => StepStatus::Skipped,
            Some(_) | None => StepStatus::Completed,
        };
        Ok(Self {
            step,
            status,
            summary: text_member(&map, "step_summary"),
            next: text_member(&map, "next_step").as_deref().and_then(find),
            all: map.contains_key("plan_status"),
        })
    }
}

impl Reducer<'_> {
    pub(in crate::reducer) fn plan_progress(&mut self, report: &ProgressReport) {
        if self.executing().is_some() {
            return self.step_reported(report);
        }
        let Some(before) = self.turn.state.plan.clone() else {
            return self.answer_only(String::new());
        };
        if let Some(at) = report.step {
            self.set_step(at, report.status, report.summary.as_deref());
        }
        if report.all {
            self.complete_plan();
        } else {
            self.begin_step(report.next);
        }
        self.note_done();
        if self.turn.state.plan.as_ref() != Some(&before) {
            self.repaint_plan();
        }
        let words = self
            .turn
            .state
            .plan
            .as_ref()
            .map(|plan| acknowledgement(plan, report, self.ours()))
            .unwrap_or_default();
        self.answer_only(words);
    }

    /// The model's word that everything is done counts for every step that is not known to have failed.
    fn complete_plan(&mut self) {
        let steps = self.turn.state.plan.as_ref().map_or(0, |plan| plan.steps.len());
        for at in 0..steps {
            let status = self
                .turn
                .state
                .plan
                .as_ref()
                .and_then(|plan| plan.steps.get(at))
                .map(|step| step.status);
            if matches!(status, Some(StepStatus::Pending | StepStatus::InProgress)) {
                self.set_step(at, StepStatus::Completed, None);
            }
        }
        if let Some(plan) = &mut self.turn.state.plan {
            plan.done = true;
            plan.revision += 1;
            let event = Event::PlanProgress {
                step_id: None,
                status: StepStatus::Completed,
            };
            self.emit(event, "Plan completed");
        }
    }

    /// The plan is in force: its first step begins and its card, if it has one, shows that.
    pub(in crate::reducer) fn begin_work(&mut self) {
        if self.turn.state.review.showing != Showing::Nothing && self.turn.state.run.is_none() {
            self.begin_step(None);
        }
        self.repaint_plan();
    }

    /// Changes one step's status, if it is another one; `words`: what came of it, or what went wrong.
    pub(in crate::reducer) fn set_step(&mut self, at: usize, status: StepStatus, words: Option<&str>) {
        let now = self.env.now;
        let Some(plan) = &mut self.turn.state.plan else { return };
        let Some(step) = plan.steps.get_mut(at) else { return };
        match words {
            Some(words) if status == StepStatus::Failed => step.error = Some(words.to_owned()),
            Some(words) => step.result = Some(StepResult::said(words, now)),
            None => {}
        }
        if step.status == status {
            return;
        }
        step.status = status;
        plan.revision += 1;
        let words = format!("{} {}: {}", step.id, compose::status_word(status), step.content);
        let step_id = Some(step.id.clone());
        self.emit(Event::PlanProgress { step_id, status }, &words);
    }

    /// Marks the step that is worked on now: `wanted`, else the first that waits, unless one is under way.
    pub(in crate::reducer) fn begin_step(&mut self, wanted: Option<usize>) {
        let Some(plan) = &self.turn.state.plan else { return };
        let waits = |step: &Step| step.status == StepStatus::Pending;
        let under_way = plan.steps.iter().any(|step| step.status == StepStatus::InProgress);
        let next = match wanted {
            Some(at) => plan.steps.get(at).filter(|step| waits(step)).map(|_| at),
            None if under_way => None,
            None => plan.steps.iter().position(waits),
        };
        if let Some(at) = next {
            self.set_step(at, StepStatus::InProgress, None);
        }
    }

    /// A plan is done when every step is completed or skipped by tool.
    pub(in crate::reducer) fn note_done(&mut self) {
        if let Some(plan) = &mut self.turn.state.plan
            && !plan.done
            && plan.steps.iter().all(|step| step.status.is_settled())
        {
            plan.done = true;
            plan.revision += 1;
        }
    }
}

/// Steps of a complex plan that are not done, as people read them; those that failed are marked. A simple plan has no ceremony,
/// except in plan mode, where its steps are carried out one by one.
#[must_use]
pub fn open_steps(state: &TurnState) -> Vec<String> {
    list_steps(state, |status| !status.is_settled())
}

/// What the last word names: the open steps, and those that were left out.
pub(in crate::reducer) fn unfinished(state: &TurnState) -> Vec<String> {
    list_steps(state, |status| status != StepStatus::Completed)
}

fn list_steps(state: &TurnState, which: impl Fn(StepStatus) -> bool) -> Vec<String> {
    let by_steps = |plan: &&Plan| plan.complexity == Complexity::Complex || state.run.is_some();
    let plan = state.plan.as_ref().filter(by_steps);
    let numbered = plan.into_iter().flat_map(|plan| (1..).zip(&plan.steps));
    numbered
        .filter(|(_, step)| which(step.status))
        .map(|(number, step): (usize, _)| {
            let sign = match step.status {
                StepStatus::Failed => "✗ ",
                StepStatus::Skipped => "– ",
                StepStatus::Pending | StepStatus::InProgress | StepStatus::Completed => "",
            };
            format!("{sign}{number}. {}", step.content)
        })
        .collect()
}

/// Where the plan stands, in signs instead of words: for a limit that no model could comment on.
pub(in crate::reducer) fn plan_standing(state: &TurnState) -> String {
    let steps = state.plan.iter().flat_map(|plan| (1..).zip(&plan.steps));
    let lines = steps.map(|(number, step): (usize, _)| {
        let sign = match step.status {
            StepStatus::Completed => "✓",
            StepStatus::Skipped => "–",
            StepStatus::Failed => "✗",
            StepStatus::Pending | StepStatus::InProgress => "○",
        };
        format!("{sign} {number}. {}", one_line(&step.content, STEP_CAP))
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Where the model stands, in one or two sentences.
fn acknowledgement(plan: &Plan, report: &ProgressReport, ours: Words<'_>) -> String {
    let next = [StepStatus::InProgress, StepStatus::Pending]
        .into_iter()
        .find_map(|status| plan.steps.iter().find(|step| step.status == status));
    let then = match next {
        _ if plan.done => ours.answer("progress.completed", json!({})),
        Some(step) => ours.answer("progress.next", json!({"id": step.id, "content": one_line(&step.content, 200)})),
        None => ours.answer("progress.nothing_left", json!({})),
    };
    let Some(step) = report.step.and_then(|at| plan.steps.get(at)) else {
        return plain(&then);
    };
    let done = plan.steps.iter().filter(|step| step.status.is_settled()).count();
    let status = compose::status_word(step.status);
    let values = json!({"id": step.id, "status": status, "done": done, "count": plan.steps.len(), "then": then});
    plain(&ours.answer("progress.recorded", values))
}
