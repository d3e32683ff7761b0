//! Status of a turn and why it ended.

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
