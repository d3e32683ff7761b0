//! What we say as a Slack message: the fallback text and the Block Kit blocks.
//!
//! One file a family: `plan`, `approval`, `ask` (question and budget), `report` (progress and answer). Our lines and
//! foreign text alike stand in rich text, which interprets nothing; only small print is mrkdwn. JSON is made by serde.

mod approval;
mod ask;
mod painter;
mod parts;
mod plan;
mod report;

use countersign_agent::domain::{Locale, Outbound};
use countersign_agent::template::Templates;
use serde_json::Value;

use super::escape::units;
use super::fallback::fallback;
use painter::{CAPS, Caps, Painter};

/// Blocks of one message.
const MAX_BLOCKS: usize = 50;
/// Characters over all blocks of a message, in UTF-16 units: `msg_blocks_too_long` was seen a little above.
const MAX_WEIGHT: usize = 12_000;

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
pub fn slack_message(templates: &Templates, locale: Locale, content: &Outbound) -> Option<SlackMessage> {
    let mut blocks = Vec::new();
    // The first that fits, else the smallest.
    let overflows = content.overflows();
    for caps in CAPS {
        let whole = caps.whole && !overflows;
        let caps = Caps { whole, ..caps };
        let painter = Painter { templates, locale, caps };
        blocks = match content {
            Outbound::PlanCard(card) => painter.plan(card),
            Outbound::ApprovalCard(card) => painter.approval(card),
            Outbound::QuestionCard(card) => painter.question(card),
            Outbound::BudgetCard(card) => painter.budget(card),
            Outbound::Progress(view) => painter.progress(view),
            Outbound::Answer(answer) => painter.answer(answer),
            Outbound::Text { text } => painter.model_words("text", text, caps.answer),
            Outbound::Notice(_) => Vec::new(),
            Outbound::Reaction(_) => return None,
        };
        if blocks.len() <= MAX_BLOCKS && weight(&blocks) <= MAX_WEIGHT {
            break;
        }
    }
    parts::stamp(&mut blocks);
    Some(SlackMessage {
        text: fallback(templates, locale, content),
        blocks,
    })
}

/// What a person reads in `blocks`, in UTF-16 units.
fn weight(blocks: &[Value]) -> usize {
    blocks.iter().map(text_of).sum()
}

fn text_of(node: &Value) -> usize {
    match node {
        Value::Object(map) => map
            .iter()
            .map(|(key, inner)| match inner {
                Value::String(text) if matches!(key.as_str(), "text" | "url" | "title") => units(text),
                inner => text_of(inner),
            })
            .sum(),
        Value::Array(list) => list.iter().map(text_of).sum(),
        _ => 0,
    }
}
