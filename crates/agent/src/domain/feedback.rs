//! What people think of an answer.

use serde::{Deserialize, Serialize};

/// The two words that a person can say about an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FeedbackValue {
    /// It helped.
    Up,
    /// It did not help.
    Down,
}

impl FeedbackValue {
    /// Lower-case name as in the ledger, the API and the metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
        }
    }
}
