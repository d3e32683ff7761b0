//! The end of a turn: its last words, and the answers of calls that are still open.

use serde_json::json;

use crate::domain::{ActionStatus, Answer, DeclaredCall, Event, Notice, Outbound, TurnId, TurnReason, TurnStatus};

use super::compose;
use super::end::TurnEnd;
use super::memory;
use super::plan::steps::unfinished;
use super::writer::Reducer;
use super::{Effect, Next, TurnState, WriteRecord};
use crate::domain::foreign::one_line;

/// Characters of a request where it stands for a goal.
const TASK_CAP: usize = 60;

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

impl Reducer<'_> {
    /// Ends the turn. Calls that are still open are answered, so that the log can be read on by a model.
    pub(super) fn finish(&mut self, end: TurnEnd) {
        let TurnEnd { status, reason, .. } = end;
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
        state.capsule = Some(memory::capsule(state));
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
    fn final_message(&self, end: TurnEnd) -> Option<Outbound> {
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
