//! The turn's messages as the model sees them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Picture;

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Ours: instructions, marker, nudges.
    System,
    /// The person, or a block that stands for one.
    User,
    /// The model.
    Assistant,
    /// The answer to one tool call.
    Tool,
}

/// A call that the model asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The provider's call id, unique within the turn.
    pub id: String,
    /// Tool name.
    pub name: String,
    /// Arguments exactly as the model wrote them (JSON text, possibly malformed).
    pub arguments: String,
}

/// One message of the log. The log only grows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// The text; may be empty when there are calls.
    pub content: String,
    /// Pictures of a user's message. A model that does not see is sent the text alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pictures: Vec<Picture>,
    /// Calls of an assistant message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ToolCall>,
    /// For a tool message: the call it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// Provider fields that must go back as they came (reasoning signatures and the like).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Value>,
    /// Plan mode: the step to whose log it belongs. `None` means the turn's (the planner's) own. No model sees this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
}

impl Message {
    /// A message of `role` with nothing but text.
    #[must_use]
    pub fn text(role: Role, content: impl Into<String>) -> Self {
        Self {
            role,
            content: content.into(),
            pictures: Vec::new(),
            calls: Vec::new(),
            call_id: None,
            raw: None,
            step: None,
        }
    }

    /// The answer to call `id`.
    #[must_use]
    pub fn tool(id: &str, content: impl Into<String>) -> Self {
        Self {
            call_id: Some(id.to_owned()),
            ..Self::text(Role::Tool, content)
        }
    }
}
