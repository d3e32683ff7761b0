//! A life's transcript in words.

use countersign_agent::domain::{Inbound, InboundBody};
use countersign_agent::model::{ChatReply, ModelError};
use countersign_gateway::store::{OutboxOp, OutboxRow};

use super::replica::News;

pub fn event(inbound: &Inbound) -> String {
    let what = match &inbound.body {
        InboundBody::Message(message) => format!("{:?} in reply to {:?}", message.text, message.replies_to),
        InboundBody::Click(click) => format!("{:?} on {:?}, card {:?}", click.verb, click.target, click.card),
        InboundBody::Recalled { message_id } => format!("recalls {message_id}"),
        InboundBody::Edited { message_id, .. } => format!("edits {message_id}"),
        InboundBody::Reaction(reaction) => format!(
            "reacts to {}: {:?}, taken away: {}",
            reaction.message_id, reaction.thumb, reaction.taken_away
        ),
        InboundBody::TryAgain { turn, .. } => format!("has {turn} tried again"),
        InboundBody::Again { review, .. } => format!("asks for the plan of {review} again"),
        InboundBody::Joined | InboundBody::Left => inbound.body.name().to_owned(),
    };
    format!("{} of {}: {what}", inbound.event_key, inbound.sender)
}

pub fn news(news: &News) -> String {
    match news {
        News::Delivered(row, receipt) => format!("has taken note of {}: {receipt:?}", self::row(row)),
        other => format!("{other:?}"),
    }
}

pub fn reply(reply: &Result<ChatReply, ModelError>) -> String {
    match reply {
        Ok(reply) => {
            let calls = reply
                .calls
                .iter()
                .map(|call| format!(" {} {}{}", call.id, call.name, call.arguments));
            format!("{:?}{}", reply.text, calls.collect::<String>())
        }
        Err(error) => error.to_string(),
    }
}

pub fn row(row: &OutboxRow) -> String {
    let (op, content) = match &row.new.op {
        OutboxOp::Post { content, .. } => ("post", Some(content)),
        OutboxOp::Patch { content, .. } => ("patch", Some(content)),
        OutboxOp::React { .. } => ("mark", None),
        OutboxOp::Session { .. } => ("session", None),
    };
    let shows = serde_json::to_value(content).unwrap_or_default();
    let turn = row
        .new
        .turn_id
        .as_ref()
        .map_or("", |turn| turn.as_str().trim_start_matches("turn_").trim_start_matches('0'));
    format!("{op} {} of turn {turn}", shows["shows"].as_str().unwrap_or_default())
}
