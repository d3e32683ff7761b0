//! A proposed tool call: from the model's wish to its recorded result.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ActionId, Approvers, CoveredBy, Decision, EffectClass, GateId, Millis, TurnId};

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

/// What a tool answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// Output, capped.
    pub text: String,
    /// Exit code of a command.
    pub exit_code: Option<i32>,
    /// How long it took.
    pub seconds: f64,
    /// The output was cut at the cap.
    pub truncated: bool,
    /// False when the tool reported an error to the model.
    pub ok: bool,
    /// The tool asked to end the turn with this text once the batch is answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<String>,
}

/// One row of `actions`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Action {
    /// `act_…`.
    pub id: ActionId,
    /// Its turn.
    pub turn_id: TurnId,
    /// The gate that asks for it; none for a granted call.
    pub gate_id: Option<GateId>,
    /// The model's call id.
    pub call_id: String,
    /// Tool name.
    pub tool: String,
    /// Write or destructive.
    pub effect: EffectClass,
    /// Parsed arguments.
    pub arguments: Value,
    /// One line for people: what this call does.
    pub justification: String,
    /// What the call would change, as its tool foresaw it when people were asked, capped; none for a granted call.
    pub preview: Option<String>,
    /// Different people needed to approve it; its gate may ask for more. 0 in older rows.
    #[serde(default)]
    pub quorum: u32,
    /// Who may approve it. `None` means the people of the channel's setting.
    #[serde(default)]
    pub approvers: Option<Approvers>,
    /// Where it stands.
    pub status: ActionStatus,
    /// Order within the batch.
    pub position: u32,
    /// When it was proposed.
    pub created_at: Millis,
    /// When the question lapses; none for a granted call.
    pub expires_at: Option<Millis>,
    /// Who decided, how.
    pub decision: Option<Decision>,
    /// What let it run without asking; none when a person was asked, or when the settings ask nobody.
    #[serde(default)]
    pub covered_by: Option<CoveredBy>,
    /// What came of it.
    pub result: Option<ToolResult>,
}
