//! A model's server that is away: when it is asked again, when people are told, when the turn gives up.
//!
//! The moments are in the state, so a turn that waits holds nothing, and a restart goes on with it.

use std::time::Duration;

use super::writer::Reducer;
use super::{Effect, FailedTry, Outage, TurnState};
use crate::domain::{Event, Millis, Notice, Outbound, digest128};

/// Pauses before the next try, one after the other; then [`LATER`].
const PAUSES: [Duration; 6] = [
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
    Duration::from_secs(15),
    Duration::from_secs(30),
];
const LATER: Duration = Duration::from_secs(60);
/// So long is every server tried: a restart of one takes no longer.
const LEAST: Duration = Duration::from_secs(30);
/// After this time the chat is told.
const TOLD_AFTER: Duration = Duration::from_secs(10);

/// What a turn that asks the model does now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutageStep {
    /// Ask the model.
    Try,
    /// Feed [`Input::Tick`](super::Input::Tick).
    Tick,
    /// Nothing before this moment.
    WaitUntil(Millis),
}

impl TurnState {
    /// What this turn, which asks the model, does at the moment `now`.
    #[must_use]
    pub fn outage_step(&self, now: Millis) -> OutageStep {
        let Some(outage) = &self.outage else { return OutageStep::Try };
        let tell_at = outage.since.plus(TOLD_AFTER);
        if !outage.told && now >= tell_at {
            return OutageStep::Tick;
        }
        if now >= outage.next_try {
            return OutageStep::Try;
        }
        OutageStep::WaitUntil(if outage.told {
            outage.next_try
        } else {
            outage.next_try.min(tell_at)
        })
    }
}

impl Reducer<'_> {
    /// A try failed: the turn waits for the next one, or the time is used up. Only what was spent before is charged, and no step.
    pub(super) fn model_away(&mut self, last: bool, failed: FailedTry) {
        let budget = &mut self.turn.state.budget;
        budget.millis.used = budget.millis.used.saturating_add(failed.millis);
        budget.tokens.used = budget.tokens.used.saturating_add(failed.tokens);
        // The flagged last call has little time of its own: it is not waited for longer than any server is.
        let patience = if last { LEAST } else { failed.patience.max(LEAST) };
        if !self.wait_for_model(patience, failed.wait) {
            if last {
                // The turn may go on, and a later call begins with time of its own.
                self.turn.state.outage = None;
                self.repaint_plan();
            }
            self.model_failed(last, Notice::ModelUnreachable {}, failed.error, failed.incident);
        }
    }

    /// Notes a failed try; `wait`: the server's own wish. `false` means that the time is used up.
    fn wait_for_model(&mut self, patience: Duration, wait: Option<Duration>) -> bool {
        let now = self.env.now;
        let state = &mut self.turn.state;
        let before = state.outage.as_ref();
        let (since, tries) = before.map_or((now, 1), |outage| (outage.since, outage.tries.saturating_add(1)));
        let until = since.plus(patience);
        // A server that asks for no wait at all gets a short one: it is away all the same.
        let pause = wait.map_or_else(|| pause(&state.seed, tries), |wait| wait.max(PAUSES[0]));
        let told = before.is_some_and(|outage| outage.told);
        let moved = before.is_some_and(|outage| outage.until != until);
        state.outage = Some(Outage {
            since,
            tries,
            // The last try is at the end.
            next_try: now.plus(pause).min(until),
            until,
            told,
        });
        if told && moved {
            self.repaint_plan();
        }
        now < until
    }

    /// People are told once, when the server has been away for a while.
    pub(super) fn tell_of_outage(&mut self) {
        let now = self.env.now;
        let Some(outage) = &mut self.turn.state.outage else { return };
        if outage.told || now < outage.since.plus(TOLD_AFTER) {
            return;
        }
        outage.told = true;
        let (since, until) = (outage.since.rfc3339(), outage.until.rfc3339());
        let notice = Notice::ModelAway { until: until.clone() };
        self.emit(Event::ModelAway { since, until }, "The model's server is away");
        self.effect(Effect::Say(Box::new(Outbound::Notice(notice))));
        self.repaint_plan();
    }

    /// The server took the request and gave no answer in time. It may have done, and billed, nearly all of the work, so it is not asked again by
    /// itself. Then the turn ends like one whose server stayed away, and people may have it tried again.
    pub(super) fn no_answer_in_time(&mut self) {
        let now = self.env.now;
        self.turn.state.outage = Some(Outage {
            since: now,
            tries: 1,
            next_try: now,
            until: now,
            told: false,
        });
    }

    /// The server answers.
    pub(super) fn end_outage(&mut self) {
        let over = self.turn.state.outage.take();
        if over.is_some_and(|outage| outage.told) {
            self.emit(Event::ModelBack {}, "The model's server is back");
            self.repaint_plan();
        }
    }
}

/// The pause after so many failed tries, spread by a tenth: turns that lost the server at one moment do not come back at one moment.
fn pause(seed: &str, tries: u32) -> Duration {
    let at = usize::try_from(tries.saturating_sub(1)).unwrap_or(usize::MAX);
    let whole = PAUSES.get(at).copied().unwrap_or(LATER);
    let [first, second, ..] = digest128(&[seed, "pause", &tries.to_string()]);
    let thousandths = 900 + u32::from(u16::from_be_bytes([first, second])) % 201;
    whole.saturating_mul(thousandths) / 1000
}
