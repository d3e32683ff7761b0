//! What the workers of two processes do, each step of which may come after anything else.

use countersign_agent::domain::DecisionKind;

use super::{Card, Fault, Machine, News, Outcome, State, Worker};

impl Machine {
    /// The next step of a worker. `None` means it has nothing to do.
    pub(super) fn worked(&self, state: &State, at: usize) -> Option<State> {
        let mut next = state.clone();
        match state.workers[at] {
            Worker::Idle => {
                let held = matches!(
                    state.workers[1 - at],
                    Worker::Holds { stale: false } | Worker::Read { stale: false, .. }
                );
                // Woken by whatever was written, or by time.
                let due = state.outcome == Outcome::Waits && self.news(&mut next) != News::Nothing;
                if held || !due {
                    return None;
                }
                next = state.clone();
                next.workers[at] = Worker::Holds { stale: false };
            }
            Worker::Holds { stale } => {
                let news = if state.outcome == Outcome::Waits {
                    self.news(&mut next)
                } else {
                    News::Nothing
                };
                next.workers[at] = Worker::Read { stale, news };
            }
            Worker::Read { stale, news } => {
                next.workers[at] = Worker::Idle;
                // The fence: what was read under a lease that is lost is written nowhere.
                if (!stale || self.has(Fault::NoFence)) && news != News::Nothing {
                    next.went += 1;
                    next.outcome = match news {
                        News::Stop => Outcome::Stopped,
                        News::Undeliverable => Outcome::Undeliverable,
                        News::Decided(kind, rows) => Outcome::Went(kind, rows),
                        News::Nothing => next.outcome,
                    };
                    // Nothing stays open behind a turn that is over.
                    if matches!(next.outcome, Outcome::Stopped | Outcome::Undeliverable) {
                        self.decide(&mut next, DecisionKind::Cancel, None);
                    }
                }
            }
        }
        Some(next)
    }

    /// As `Runner::news` reads it: a stop first, then the card that never came, then the decision, then time.
    fn news(&self, state: &mut State) -> News {
        if state.stop {
            return News::Stop;
        }
        if state.decision.is_none() && state.card == Card::Never {
            return News::Undeliverable;
        }
        if !self.has(Fault::LapseUnread) {
            self.lapse(state);
        }
        state.decision.map_or(News::Nothing, |(kind, _)| News::Decided(kind, state.rows))
    }
}
