//! A person is away, and somebody else decides in their place.

use serde::{Deserialize, Serialize};

use super::Millis;

/// What a person said with `/away`. It gives the deputy the person's own rights, and never those that the person has as somebody's deputy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Absence {
    /// Who is away. They may still decide themselves.
    pub person: String,
    /// Who decides in their place.
    pub deputy: String,
    /// When they said so.
    pub since: Millis,
    /// The last moment of it.
    pub until: Millis,
    /// The organisations that the platform named beside the person when they said so. Their right counts as long as they are heard here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub teams: Vec<String>,
}

impl Absence {
    /// Most people whose absence a card names.
    pub const MOST_ON_A_CARD: usize = 5;
}
