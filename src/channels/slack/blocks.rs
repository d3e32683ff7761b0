//! What we say as a Slack message: the fallback text and the Block Kit blocks.

use serde_json::Value;

use super::rich_text::blocks;
use crate::domain::{Locale, Outbound};
use crate::template::Templates;

/// One message: `text` is the notification and what a screen reader says, `blocks` is what is seen.
#[derive(Clone, Debug, PartialEq)]
pub struct SlackMessage {
    /// Escaped mrkdwn.
    pub text: String,
    /// Block Kit; empty: the text alone.
    pub blocks: Vec<Value>,
}

/// `content` for Slack; none for a reaction.
#[must_use]
pub fn slack_message(_templates: &Templates, _locale: Locale, content: &Outbound) -> Option<SlackMessage> {
    match content {
        Outbound::Text { text } => Some(SlackMessage {
            text: text.clone(),
            blocks: blocks(text),
        }),
        _ => None,
    }
}
