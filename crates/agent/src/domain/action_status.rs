//! Where a proposed tool call stands.

use serde::{Deserialize, Serialize};

/// Where an action stands. `pending` asks a person; a granted call starts as `approved`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionStatus {
    /// Waits for a person.
    Pending,
    /// May run; journaled as intent.
    Approved,
    /// A person said no.
    Rejected,
    /// Its time was over before it ran, and it never will: no answer came, or a limit or the end of the task came before an approved
    /// call was sent. A verdict of its own: it was not refused.
    Expired,
    /// Sent; the outcome is not journaled yet.
    Running,
    /// Ran and answered.
    Executed,
    /// Ran and reported an error.
    Failed,
    /// Sent before a crash; it may or may not have run.
    Unknown,
}

impl ActionStatus {
    /// Waits for a person: proposed, or of unknown outcome and asked about again.
    #[must_use]
    pub fn waits(self) -> bool {
        matches!(self, Self::Pending | Self::Unknown)
    }

    /// Lower-case name as in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::Expired => "expired",
            Self::Running => "running",
            Self::Executed => "executed",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
        }
    }
}
