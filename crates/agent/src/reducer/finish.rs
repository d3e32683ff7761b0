//! The end of a turn: status, last words, what stays open.

use serde_json::json;

use crate::domain::{
    ActionStatus, Answer, Complexity, DeclaredCall, Event, Notice, Outbound, Plan, StepStatus, TurnId, TurnReason, TurnStatus,
};

use super::capsule;
use super::compose;
use super::step::Reducer;
use super::{Effect, Next, TurnState, WriteRecord};
use crate::domain::foreign::one_line;

/// Characters of a step where it is only named.
const STEP_CAP: usize = 300;
/// Characters of a request where it stands for a goal.
const TASK_CAP: usize = 60;

/// Steps of a complex plan that are not done, as people read them; those that failed are marked. A simple plan has no ceremony,
/// except in plan mode, where its steps are carried out one by one.
#[must_use]
pub fn open_steps(state: &TurnState) -> Vec<String> {
    list_steps(state, |status| !status.is_settled())
}

/// What the last word names: the open steps, and those that were left out.
fn unfinished(state: &TurnState) -> Vec<String> {
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

/// What ran under the approval of the plan, or under `standing` grants, in order; calls that did the same are counted.
fn granted(state: &TurnState, standing: bool) -> Vec<DeclaredCall> {
    let mut told: Vec<DeclaredCall> = Vec::new();
    let known = |write: &&WriteRecord| !write.unknown && write.standing == standing;
    for write in state.calls.writes.iter().filter(known) {
        let Some(call) = &write.granted else { continue };
        let same = |other: &&mut DeclaredCall| (&other.tool, &other.arguments) == (&call.tool, &call.arguments);
        match told.iter_mut().find(same) {
            Some(same) => same.times += 1,
            None => told.push(call.clone()),
        }
    }
    told
}

/// Where the plan stands, in signs instead of words: for a limit that no model could comment on.
pub(super) fn plan_standing(state: &TurnState) -> String {
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

/// How a turn ends, and what people are told of it.
pub(super) struct End {
    status: TurnStatus,
    reason: TurnReason,
    text: String,
    problem: Option<Notice>,
    incident: Option<String>,
    /// What expired is the review of a plan.
    reviewed: bool,
}

impl End {
    fn new(status: TurnStatus, reason: TurnReason) -> Self {
        Self {
            status,
            reason,
            text: String::new(),
            problem: None,
            incident: None,
            reviewed: false,
        }
    }

    /// Nobody answered the review of a plan in time.
    pub(super) fn unreviewed() -> Self {
        Self {
            reviewed: true,
            ..Self::cancelled(TurnReason::Expired)
        }
    }

    pub(super) fn completed(reason: TurnReason, text: &str) -> Self {
        Self::new(TurnStatus::Completed, reason).text(text)
    }

    pub(super) fn failed(reason: TurnReason) -> Self {
        Self::new(TurnStatus::Failed, reason)
    }

    pub(super) fn cancelled(reason: TurnReason) -> Self {
        Self::new(TurnStatus::Cancelled, reason)
    }

    /// The model's last words.
    pub(super) fn text(self, text: &str) -> Self {
        Self {
            text: text.to_owned(),
            ..self
        }
    }

    /// Our words about what went wrong.
    pub(super) fn problem(self, notice: impl Into<Option<Notice>>) -> Self {
        Self {
            problem: notice.into(),
            ..self
        }
    }

    /// The incident's id, which the log carries too.
    pub(super) fn incident(self, incident: Option<String>) -> Self {
        Self { incident, ..self }
    }
}

impl Reducer<'_> {
    /// Ends the turn. Calls that are still open are answered, so that the log can be read on by a model.
    pub(super) fn finish(&mut self, end: End) {
        let End { status, reason, .. } = end;
        let ours = self.ours();
        for call in &mut self.turn.state.calls.open {
            if call.answer.is_none() {
                let lost = call.lost || call.status == ActionStatus::Unknown;
                let key = if lost { "call.ended_unknown" } else { "call.ended" };
                let words = ours.answer(key, json!({"reason": reason.as_str()}));
                call.answer = Some(compose::not_run(&call.call.name, &words));
            }
        }
        self.expire_approved();
        self.close_batch(false);
        let state = &mut self.turn.state;
        state.status = status;
        state.reason = Some(reason);
        state.next = Next::Nothing;
        state.gate = None;
        state.answer = Some(end.text.clone()).filter(|text| !text.is_empty());
        state.capsule = Some(capsule::capsule(state));
        let (event, words) = match status {
            TurnStatus::Completed => (Event::TurnCompleted { reason }, "Turn completed"),
            TurnStatus::Cancelled => (Event::TurnCancelled { reason }, "Turn cancelled"),
            TurnStatus::Failed | TurnStatus::Queued | TurnStatus::Running | TurnStatus::Paused => {
                (Event::TurnFailed { reason }, "Turn failed")
            }
        };
        self.emit(event, &format!("{words}: {}", reason.as_str()));
        self.repaint_plan();
        if let Some(last) = self.final_message(end) {
            self.effect(Effect::Say(Box::new(last)));
        }
        self.effect(Effect::Finish);
    }

    /// What people hear: an answer, or one of our own notices; nothing when something newer took over.
    fn final_message(&self, end: End) -> Option<Outbound> {
        let state = &self.turn.state;
        let goal = || state.plan.as_ref().map_or(&state.task, |plan| &plan.goal).clone();
        match (end.status, end.reason) {
            (TurnStatus::Cancelled, TurnReason::Superseded) => None,
            (TurnStatus::Cancelled, TurnReason::Expired) => {
                let (goal, again) = (goal(), end.reviewed);
                Some(Outbound::Notice(Notice::ReviewExpired { goal, again }))
            }
            (TurnStatus::Cancelled, _) => Some(Outbound::Notice(Notice::Stopped {
                goal: state
                    .plan
                    .as_ref()
                    .map_or_else(|| one_line(&state.task, TASK_CAP), |plan| plan.goal.clone()),
                done: state.calls.written(),
                // What waits is known to the journal alone.
                next: None,
            })),
            (_, reason) => Some(Outbound::Answer(Answer {
                text: end.text,
                requester: state.requester.clone(),
                reason,
                open_steps: unfinished(state),
                granted: granted(state, false),
                standing: granted(state, true),
                undone: state.calls.undone.iter().map(|known| known.told.clone()).collect(),
                problem: end.problem,
                incident: end.incident,
                group: state.group,
                demo: state.demo,
                feedback: None,
                again: (reason == TurnReason::ModelError && state.outage.is_some()).then(|| TurnId::new(&state.turn_id)),
                at: self.env.now,
            })),
        }
    }
}
