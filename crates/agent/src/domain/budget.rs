//! Limits of a turn, counted separately and saved with it.

use serde::{Deserialize, Serialize};

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
