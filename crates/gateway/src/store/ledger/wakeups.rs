//! What follows a commit, never before it: wake-ups for the work it made, here and in other processes, what Redis shall know of it,
//! and counts of what it settled.

use std::sync::Arc;
use std::time::Duration;

use countersign_agent::domain::{ChannelKind, DecisionKind, FeedbackValue, GateKind, TurnReason, TurnStatus, Via};
use metrics::{counter, histogram};
use tokio::sync::{Notify, watch};

use crate::store::coordination::{Ready, Redis, ReviewChange};

/// One signal for each kind of work. A wake-up without a waiter is kept for the next one, so that a worker
/// that looks, finds nothing and then waits misses nothing.
#[derive(Debug, Default)]
pub(super) struct Wakeups {
    pub(super) inbox: Arc<Notify>,
    pub(super) lanes: Arc<Notify>,
    pub(super) outbox: Arc<Notify>,
    /// Counts commits, for those who only look: any number of them, and none takes another's wake-up.
    pub(super) commits: watch::Sender<u64>,
    /// Other processes, and what follows in Redis.
    pub(super) redis: Option<Arc<Redis>>,
}

/// What a transaction made ready, and what it settled.
#[derive(Debug, Default)]
pub(super) struct Effects {
    pub(super) inbox: bool,
    pub(super) lanes: bool,
    pub(super) outbox: bool,
    pub(super) events: bool,
    pub(super) ends: Vec<CountedEnd>,
    /// What Redis shall know of pending reviews.
    pub(super) reviews: Vec<ReviewChange>,
}

/// Something that was settled, for the metrics.
#[derive(Debug)]
pub(super) enum CountedEnd {
    Gate {
        gate: GateKind,
        kind: DecisionKind,
        via: Via,
        waited: Duration,
    },
    Turn {
        channel: ChannelKind,
        status: TurnStatus,
        reason: Option<TurnReason>,
    },
    Feedback {
        channel: ChannelKind,
        value: FeedbackValue,
    },
}

impl CountedEnd {
    fn count(self) {
        match self {
            Self::Gate { gate, kind, via, waited } => {
                let (gate, kind, via) = (gate.as_str(), kind.as_str(), via.as_str());
                counter!("countersign_decisions_total", "gate" => gate, "kind" => kind, "via" => via).increment(1);
                histogram!("countersign_gate_wait_seconds", "gate" => gate).record(waited.as_secs_f64());
            }
            Self::Turn { channel, status, reason } => {
                let reason = reason.map_or("", TurnReason::as_str);
                counter!("countersign_turns_total", "channel" => channel.as_str(), "status" => status.as_str(), "reason" => reason)
                    .increment(1);
            }
            Self::Feedback { channel, value } => {
                counter!("countersign_feedback_total", "value" => value.as_str(), "channel" => channel.as_str()).increment(1);
            }
        }
    }
}

impl Wakeups {
    pub(super) fn of(redis: Option<Arc<Redis>>) -> Self {
        Self { redis, ..Self::default() }
    }

    /// After a commit of ours.
    pub(super) fn after_commit(&self, effects: Effects) {
        let ready = Ready {
            inbox: effects.inbox,
            lanes: effects.lanes,
            outbox: effects.outbox,
            commit: true,
        };
        self.wake_here(ready);
        if let Some(redis) = &self.redis {
            redis.wakes.wake(ready);
            for change in effects.reviews {
                redis.write(change);
            }
        }
        for end in effects.ends {
            end.count();
        }
    }

    /// In this process only: after a commit, ours or another process'.
    pub(super) fn wake_here(&self, ready: Ready) {
        if ready.commit {
            self.commits.send_modify(|count| *count = count.wrapping_add(1));
        }
        for (yes, wakeup) in [(ready.inbox, &self.inbox), (ready.lanes, &self.lanes), (ready.outbox, &self.outbox)] {
            if yes {
                wakeup.notify_one();
            }
        }
    }
}
