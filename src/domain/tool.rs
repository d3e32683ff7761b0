//! What a tool is to the agent: a name, a schema and an effect class.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What calling a tool may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffectClass {
    /// The turn's own bookkeeping (`plan`, `clarify`, `request_user`, `plan_progress`, `write_todos`).
    State,
    /// Changes nothing outside.
    Read,
    /// Changes something; an approved plan may grant it.
    Write,
    /// Always asks a person.
    Destructive,
}

/// A tool as it is offered to the model.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// Name the model calls.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// JSON Schema of the arguments (an object schema). Shared: every turn that waits for a model holds all of them.
    pub parameters: Arc<Value>,
    /// Effect class after overrides of `tools.effects`.
    pub effect: EffectClass,
}
