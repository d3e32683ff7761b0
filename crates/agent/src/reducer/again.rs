//! A plan whose review expired is asked for again: a turn of its own goes on from there, without a call of the model.

use crate::domain::{Event, Policy};

use super::step::Reducer;
use super::{Beginning, Calls, Showing, Turn, TurnState, begin};

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

impl Reducer<'_> {
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
