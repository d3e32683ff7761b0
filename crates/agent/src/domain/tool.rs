//! What a tool is to the agent: a name, a schema and an effect class; and what MCP servers offer, against what of it is confirmed.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{ArgumentSense, digest128};

/// Tools of one request to a model at most, the agent's own included: as many as the large providers take.
pub const MOST_TOOLS: usize = 128;
/// The tool whose argument is a command. A command does whatever it likes, so no pattern says what it may do.
pub const COMMAND_TOOL: &str = "run_bash";

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
    /// Which arguments say where the effect lands.
    pub scope: Scope,
}

/// The arguments of a tool that say where its effect lands. An approval covers a call only if it names all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Every top-level argument of the call, as text.
    #[default]
    Every,
    /// These.
    Listed(Vec<ScopeArgument>),
}

/// One argument of a [`Scope`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScopeArgument {
    /// Its name in the schema.
    pub name: String,
    /// How the tool uses it.
    pub sense: ArgumentSense,
}

impl Scope {
    /// One argument.
    #[must_use]
    pub fn argument(name: &str, sense: ArgumentSense) -> Self {
        Self::Listed(vec![ScopeArgument {
            name: name.to_owned(),
            sense,
        }])
    }

    /// These arguments, used as text.
    #[must_use]
    pub fn texts(names: &[String]) -> Self {
        let argument = |name: &String| ScopeArgument {
            name: name.clone(),
            sense: ArgumentSense::Text,
        };
        Self::Listed(names.iter().map(argument).collect())
    }

    /// How the tool uses the argument `name`.
    #[must_use]
    pub fn sense_of(&self, name: &str) -> ArgumentSense {
        match self {
            Self::Every => ArgumentSense::Text,
            Self::Listed(arguments) => {
                let listed = arguments.iter().find(|argument| argument.name == name);
                listed.map_or(ArgumentSense::Text, |argument| argument.sense)
            }
        }
    }
}

impl ToolSpec {
    /// With the class that `effects` names for it, if any.
    #[must_use]
    pub fn overridden(mut self, effects: &BTreeMap<String, EffectClass>) -> Self {
        if let Some(class) = effects.get(&self.name) {
            self.effect = *class;
        }
        self
    }

    /// What stands for all of this: 32 hex digits. Another name, description, schema or effect class is another one.
    #[must_use]
    pub fn digest(&self) -> String {
        let parameters = self.parameters.to_string();
        hex::encode(digest128(&[&self.name, &self.description, &parameters, self.effect.as_str()]))
    }
}

/// A tool's definition as its server gives it: what tells a changed one, and what an admin reads before confirming it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Definition {
    /// SHA-256 in hex over name, description, schema and what the server says of its effect.
    pub digest: String,
    /// What it does, as the model would see it.
    pub description: String,
    /// JSON Schema of the arguments, as the model would see it.
    pub parameters: Value,
    /// What calls of it would count as. One that an older version noted, which did not say it, counts as the worst until it is noted anew.
    #[serde(default = "unsaid")]
    pub effect: EffectClass,
}

fn unsaid() -> EffectClass {
    EffectClass::Destructive
}

/// Definitions by the server's own names of its tools.
pub type Definitions = BTreeMap<String, Definition>;

/// What stands for exactly these definitions and their effect classes when an admin confirms them: 16 hex digits.
#[must_use]
pub fn confirmation_of(definitions: &Definitions) -> String {
    let mut hash = Sha256::new();
    for (name, definition) in definitions {
        for part in [name, &definition.digest, definition.effect.as_str()] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part.as_bytes());
        }
    }
    hex::encode(&hash.finalize()[..8])
}

/// How a server of `tools.mcp_servers` stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerHealth {
    /// Its configured name.
    pub name: String,
    /// In one word.
    pub standing: ServerStanding,
    /// In a sentence for the admin, without secrets. Of the server's words only names of its tools and what it wrote last before it ended, made
    /// harmless and short.
    pub message: Option<String>,
}

/// See [`ServerHealth`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerStanding {
    /// Connected, and everything that it offers can be used.
    Good,
    /// Connected, and something that it offers cannot be used; or not connected yet.
    Partly,
    /// Not connected.
    Lost,
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
            scope: Scope::Every,
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

    fn definition(digest: &str) -> Definition {
        Definition {
            digest: digest.to_owned(),
            description: String::new(),
            parameters: Value::Null,
            effect: EffectClass::Write,
        }
    }

    /// design: issue E part D, a confirmation stands for exactly these definitions: another name, digest, effect class or number of them is
    /// another one. What an older version noted without a class counts as destructive.
    #[test]
    fn a_confirmation_names_the_definitions() {
        let of = |pairs: &[(&str, &str)]| {
            let definitions = pairs.iter().map(|(name, digest)| ((*name).to_owned(), definition(digest)));
            confirmation_of(&definitions.collect())
        };
        let one = of(&[("a", "x"), ("b", "y")]);
        assert_eq!(one.len(), 16);
        assert_eq!(one, of(&[("b", "y"), ("a", "x")]));
        for other in [
            &[("a", "x")][..],
            &[("a", "y"), ("b", "y")],
            &[("ab", "x"), ("b", "y")],
            &[("a", "xb"), ("b", "y")],
        ] {
            assert_ne!(one, of(other), "{other:?}");
        }
        let worse = Definition {
            effect: EffectClass::Destructive,
            ..definition("x")
        };
        let changed = [(String::from("a"), worse), (String::from("b"), definition("y"))];
        assert_ne!(one, confirmation_of(&changed.into()));
        let old: Definition = serde_json::from_str(r#"{"digest": "x", "description": "", "parameters": {}}"#).unwrap();
        assert_eq!(old.effect, EffectClass::Destructive);
    }
}
