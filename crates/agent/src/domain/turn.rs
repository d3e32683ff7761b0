//! Status of a turn, why it ended, and its limits, which are counted separately and saved with it.

use serde::{Deserialize, Serialize};

/// Where a turn stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnStatus {
    /// In its lane, not begun.
    Queued,
    /// Somebody works on it.
    Running,
    /// Waits at a gate; holds no worker.
    Paused,
    /// Ended with an answer.
    Completed,
    /// Ended without.
    Failed,
    /// Stopped by a person, by expiry or by something newer.
    Cancelled,
}

impl TurnStatus {
    /// Name as in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// No more happens.
    #[must_use]
    pub fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

/// Why a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnReason {
    /// The model answered.
    FinalAnswer,
    /// Steps, time or tokens ran out.
    BudgetExhausted,
    /// A gate lapsed.
    Expired,
    /// A person stopped it.
    Cancelled,
    /// A newer task took its place.
    Superseded,
    /// The model could not be reached or made no sense.
    ModelError,
    /// The card could not be delivered.
    Undeliverable,
    /// Too many rounds of changes.
    Rounds,
    /// A hook of the embedding program failed.
    Hook,
    /// Process after process died while it worked on the turn.
    Crashed,
}

impl TurnReason {
    /// Name as in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::FinalAnswer => "final_answer",
            Self::BudgetExhausted => "budget_exhausted",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
            Self::Superseded => "superseded",
            Self::ModelError => "model_error",
            Self::Undeliverable => "undeliverable",
            Self::Rounds => "rounds",
            Self::Hook => "hook",
            Self::Crashed => "crashed",
        }
    }
}

/// Kinds of signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignalKind {
    /// Stop the turn.
    Cancel,
    /// A newer task takes its place.
    Supersede,
    /// More words for the running turn.
    Steer,
    /// The request was edited.
    Edited,
}

/// Used against allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meter {
    /// Spent so far.
    pub used: u64,
    /// Allowed; 0 = no limit.
    pub limit: u64,
}

impl Meter {
    /// A fresh meter.
    #[must_use]
    pub fn up_to(limit: u64) -> Self {
        Self { used: 0, limit }
    }

    /// Nothing is left.
    #[must_use]
    pub fn spent(&self) -> bool {
        self.limit > 0 && self.used >= self.limit
    }
}

/// A limit of the work itself; past one nothing more is begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Model calls.
    Steps,
    /// Working time.
    Time,
    /// Tokens.
    Tokens,
}

/// All limits of a turn. Pausing never gives anything back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// Model calls.
    pub steps: Meter,
    /// Nudges since the last `plan()`.
    pub nudges: Meter,
    /// Plans after the first that the model made of its own accord.
    pub replans: Meter,
    /// Consecutive iterations of bookkeeping only.
    pub planner_only: Meter,
    /// Working time in milliseconds; waiting for people is free.
    pub millis: Meter,
    /// Tokens; limit 0 = none.
    pub tokens: Meter,
    /// Rounds of changes asked for by people.
    pub rounds: Meter,
    /// How often a person granted the original limit again.
    pub top_ups: Meter,
}

impl Budget {
    /// The limits of the work that are reached.
    #[must_use]
    pub fn reached(&self) -> Vec<Limit> {
        let limits = [(Limit::Steps, self.steps), (Limit::Time, self.millis), (Limit::Tokens, self.tokens)];
        let reached = limits.into_iter().filter(|(_, meter)| meter.spent());
        reached.map(|(limit, _)| limit).collect()
    }
}
