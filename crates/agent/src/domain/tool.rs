//! What a tool is to the agent: a name, a schema and an effect class.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::digest128;

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

impl EffectClass {
    /// Lower-case name as in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::State => "state",
            Self::Read => "read",
            Self::Write => "write",
            Self::Destructive => "destructive",
        }
    }
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

impl ToolSpec {
    /// What stands for all of this: 32 hex digits. Another name, description, schema or effect class is another one.
    #[must_use]
    pub fn digest(&self) -> String {
        let parameters = self.parameters.to_string();
        hex::encode(digest128(&[&self.name, &self.description, &parameters, self.effect.as_str()]))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// design: a call is made under a definition: whatever of it changes makes another digest.
    #[test]
    fn the_digest_is_over_everything() {
        let spec = ToolSpec {
            name: String::from("a"),
            description: String::from("b"),
            parameters: json!({"type": "object"}).into(),
            effect: EffectClass::Write,
        };
        for other in [
            ToolSpec {
                name: String::from("b"),
                ..spec.clone()
            },
            ToolSpec {
                description: String::new(),
                ..spec.clone()
            },
            ToolSpec {
                parameters: json!({}).into(),
                ..spec.clone()
            },
            ToolSpec {
                effect: EffectClass::Destructive,
                ..spec.clone()
            },
        ] {
            assert_ne!(spec.digest(), other.digest(), "{other:?}");
        }
        assert_eq!(spec.digest(), spec.clone().digest());
    }
}
