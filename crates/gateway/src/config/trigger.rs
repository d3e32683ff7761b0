//! Which messages of a group are said to the bot.

use serde::Deserialize;

/// The values of `group_trigger`.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum GroupTrigger {
    /// Those that mention it, or reply to what it said.
    Mention,
    /// Those, and what a person says in a thread that holds a task of theirs.
    Thread,
    All,
}
