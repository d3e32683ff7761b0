//! A call of the latest reply, until all calls of that reply are answered.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::domain::{ActionStatus, CallEdit, ToolCall};

/// A call of the current batch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenCall {
    /// The model's call.
    pub call: ToolCall,
    /// [`ToolSpec::digest`](crate::domain::ToolSpec::digest) of its tool as the model was shown it, and people after it: under another one the call does not run. `None` means no such
    /// tool, or a turn of an older version.
    #[serde(default)]
    pub definition: Option<String>,
    /// Row in `actions`, for write and destructive calls.
    pub action: Option<String>,
    /// Its status.
    pub status: ActionStatus,
    /// Answer to the model, once there is one (already in its `[tool_result:NAME]` form).
    pub answer: Option<String>,
    /// The tool asked to end the turn with this text.
    pub exit: Option<String>,
    /// It was sent once and its outcome is unknown, until a result comes.
    #[serde(default)]
    pub lost: bool,
    /// Digest of what the call replaces ([`Tool::base`](crate::tools::Tool::base)), taken with the preview. If the digest differs when the call
    /// is sent, the person is asked again. `None` when no person was asked, or the tool replaces nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// The arguments with paths as they were behind links when the call came ([`Tool::behind_links`](crate::tools::Tool::behind_links)).
    /// `None` when no link was on the way: the call follows none then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behind_links: Option<Value>,
    /// The grant of the approved plan that it runs under, by its position: one use of it is taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<usize>,
    /// The standing grant that it runs under.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standing: Option<String>,
    /// A rule of the administrator forbids it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub denied: bool,
    /// A person's change of the arguments. `call` has theirs then; the log keeps what the model sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited: Option<CallEdit>,
}

impl OpenCall {
    /// A person allowed it, and has to be asked once more: its outcome was lost, or what it would change is another thing now. (Between two
    /// gates nothing else waits that has a row.)
    pub(super) fn asks_again(&self) -> bool {
        self.status == ActionStatus::Unknown || (self.status == ActionStatus::Pending && self.action.is_some())
    }
}
