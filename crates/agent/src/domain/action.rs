//! A proposed tool call: from the model's wish to its recorded result.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ActionId, ActionStatus, Approvers, Attachment, Cover, Decision, Demand, EffectClass, GateId, Millis, TurnId};

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
    /// The file that it has sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attachment: Option<Attachment>,
}

/// What a person changed about a call before they approved it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallEdit {
    /// Who; as in a [`Decision`].
    pub by: Option<String>,
    /// By the API, in that person's name.
    pub through_api: bool,
    /// When.
    pub at: Millis,
    /// The arguments that the model sent.
    pub original: Value,
    /// Digest of what the changed call replaces, when they approved it ([`Tool::base`](crate::tools::Tool::base)).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
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
    /// Parsed arguments; those of a person, if one edited them.
    pub arguments: Value,
    /// A person's change of the arguments.
    #[serde(default)]
    pub edited: Option<CallEdit>,
    /// One line for people: what this call does.
    pub justification: String,
    /// What the call would change, as its tool foresaw it when people were asked, at most 256 KiB; none for a granted call.
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
    pub covered_by: Option<Cover>,
    /// What came of it.
    pub result: Option<ToolResult>,
}

impl Action {
    /// Has the row ask these people from now on.
    pub fn ask(&mut self, demand: Demand) {
        self.quorum = demand.quorum.unwrap_or(1);
        self.approvers = demand.approvers;
    }
}

/// A call with a person's arguments, as it will run once they approve it.
#[derive(Clone, Debug, PartialEq)]
pub struct CallDraft {
    /// The arguments.
    pub arguments: Value,
    /// One line for people: what this call does.
    pub justification: String,
    /// What it would change, as its tool foresees it now.
    pub preview: Option<String>,
    /// Digest of what it would replace.
    pub base: Option<String>,
    /// People needed for a call with these arguments, as a rule of the administrator asks now.
    pub quorum: u32,
    /// Who may approve such a call, if a rule says so.
    pub approvers: Option<Approvers>,
}

/// Why a draft cannot take the place of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotEditable {
    /// Run again, it must be the same call.
    #[error("it is not known whether this call ran: approve it as it is, or reject it")]
    OutcomeLost,
    /// The others would approve, or have approved, what they did not see.
    #[error("several people approve this call, so nobody changes it alone: approve it as it is, or reject it with the reason")]
    SeveralPeople,
    /// A rule asks other or more people about the changed call.
    #[error(
        "a rule of the administrator asks other people about a call with these arguments: reject it with the reason, so that the agent asks for the other one"
    )]
    OtherPeople,
}

impl CallDraft {
    /// May the draft take the place of the call of `row`? `quorum`: people that its gate asks for. `voted`: somebody has approved the call.
    ///
    /// # Errors
    /// [`NotEditable`].
    pub fn check(&self, row: &Action, quorum: u32, voted: bool) -> Result<(), NotEditable> {
        let needed = row.quorum.max(quorum);
        match row.status {
            ActionStatus::Unknown => Err(NotEditable::OutcomeLost),
            _ if needed > 1 || voted => Err(NotEditable::SeveralPeople),
            _ if self.quorum > 1 || (self.approvers.is_some() && self.approvers != row.approvers) => Err(NotEditable::OtherPeople),
            _ => Ok(()),
        }
    }

    /// Puts the draft into the place of the call of `row`, as part of `approval`. [`CallDraft::check`] said that it may.
    pub fn put_into(self, row: &mut Action, approval: &Decision) {
        let before = row.edited.take().map(|edit| edit.original);
        row.edited = Some(CallEdit {
            by: approval.by.clone(),
            through_api: approval.through_api,
            at: approval.at,
            original: before.unwrap_or_else(|| row.arguments.clone()),
            base: self.base,
        });
        (row.arguments, row.justification, row.preview) = (self.arguments, self.justification, self.preview);
    }
}
