//! Turns that take up what another one left: the plan of an expired review is asked for again, without a call of the model; a task that ended
//! because the model's server was away goes on where it was.

use crate::domain::{Event, Policy, TurnStatus};

use super::writer::Reducer;
use super::{Beginning, Calls, Next, Showing, Turn, TurnState, begin};

/// A turn that takes up what `expired` left: its request, log, plan and lists. Settings and limits are new, but the mode stays: the log
/// is written for it. [`Input::Start`](super::Input::Start) opens the review.
#[must_use]
pub fn begin_again(expired: Turn, turn_id: String, seed: String, policy: Policy, demo: bool) -> Turn {
    let Turn { state: old, log } = expired;
    let fresh = begin(Beginning {
        turn_id,
        seed,
        task: old.task,
        requester: old.requester,
        group: old.group,
        policy: Policy {
            mode: old.policy.mode,
            ..policy
        },
        demo,
    });
    // What an earlier approval let run stays known: so a call of unknown outcome asks here as well. The answer lists what runs under its own.
    let mut calls = Calls {
        open: Vec::new(),
        undone: Vec::new(),
        ..old.calls
    };
    for write in &mut calls.writes {
        write.granted = None;
    }
    let state = TurnState {
        plan: old.plan,
        clarified_version: old.clarified_version,
        todos: old.todos,
        calls,
        mailbox: old.mailbox,
        request_edited: old.request_edited,
        ..fresh.state
    };
    Turn { state, log }
}

/// A turn that goes on where `failed` ended, because the model's server was away: with its request, log, plan, approval and what was used of
/// it. Settings and limits are new, but the mode stays: the log is written for it.
#[must_use]
pub fn go_on(failed: Turn, turn_id: String, seed: String, policy: Policy, demo: bool) -> Turn {
    let Turn { state: old, log } = failed;
    let fresh = begin(Beginning {
        turn_id,
        seed,
        task: old.task.clone(),
        requester: old.requester.clone(),
        group: old.group,
        policy: Policy {
            mode: old.policy.mode,
            ..policy
        },
        demo,
    });
    let TurnState { budget, policy, .. } = fresh.state;
    let state = TurnState {
        schema_version: fresh.state.schema_version,
        turn_id: fresh.state.turn_id,
        seed: fresh.state.seed,
        minted: 0,
        policy,
        demo,
        status: fresh.state.status,
        reason: None,
        next: Next::GoOn,
        budget,
        pauses: 0,
        outage: None,
        error: None,
        answer: None,
        capsule: None,
        ..old
    };
    Turn { state, log }
}

impl Reducer<'_> {
    /// Goes on where the earlier turn ended: the model is asked what it did not answer.
    pub(super) fn go_on(&mut self) {
        self.turn.state.status = TurnStatus::Running;
        self.emit(Event::TurnStarted {}, "Turn started, goes on from an earlier one");
        self.repaint_plan();
        self.ask_model();
    }

    /// Opens the review of the plan that the turn begins with. A person asked for it, so there is one, whatever the settings say by now.
    pub(super) fn review_again(&mut self) {
        let Some(plan) = self.turn.state.plan.take() else { return };
        let (version, steps) = (plan.version, plan.steps.len());
        self.emit(Event::PlanCreated { version, steps }, &format!("{steps} steps, asked for again"));
        self.adopt(None, plan);
        self.turn.state.review.showing = Showing::Review;
        let note = self.words_beside_calls();
        self.open_review(note);
    }
}
