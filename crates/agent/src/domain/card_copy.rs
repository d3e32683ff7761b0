//! The copy of a gate's card that one person has in the direct chat with the bot.

use serde::{Deserialize, Serialize};

use super::Millis;

/// Why a person has a copy of a card in the direct chat with the bot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CardCopy {
    /// The person.
    pub person: String,
    /// The group that the card itself is in. `None` means that it is in a direct chat.
    pub chat: Option<String>,
    /// Since when it waits.
    pub since: Millis,
    /// When it lapses. The copy is younger than the card, so a span of minutes would be read from the wrong moment.
    #[serde(default)]
    pub until: Option<Millis>,
}
