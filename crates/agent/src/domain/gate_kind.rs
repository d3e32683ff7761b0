//! The reasons to wait for a person.

use serde::{Deserialize, Serialize};

/// Why a turn waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateKind {
    /// A plan must be countersigned.
    PlanReview,
    /// Tool calls must be countersigned.
    ToolApproval,
    /// The agent asked something.
    Question,
    /// A limit is reached; may it go on?
    Budget,
}

impl GateKind {
    /// Name as in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PlanReview => "plan_review",
            Self::ToolApproval => "tool_approval",
            Self::Question => "question",
            Self::Budget => "budget",
        }
    }

    /// The kind named by `text`, if any.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::PlanReview, Self::ToolApproval, Self::Question, Self::Budget]
            .into_iter()
            .find(|kind| kind.as_str() == text)
    }
}
