//! What the servers of `tools.mcp_servers` offer, against what of it is confirmed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::EffectClass;

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
    /// In a sentence for the admin, without secrets and without words of the server.
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
    use super::*;

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
