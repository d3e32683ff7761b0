//! A slash command: what was typed behind it is said to the bot.

use countersign_agent::domain::{Inbound, InboundBody, InboundMessage, Millis};

use super::events::{chat_type, place};
use super::fields::Fields;
use super::text::Words;
use super::webhook::SlackReceived;
use super::wire::{UNREADABLE, first_id, id};
use crate::channels::Refusal;

/// Our own commands, which people type behind Slack's without a slash: `/countersign help`. Longer ones would read like tasks.
const BARE: [&str; 3] = ["help", "status", "stop"];

/// What was typed, in the form in which it is said elsewhere.
fn typed(text: &str) -> String {
    let bare = BARE.iter().any(|name| text.trim().eq_ignore_ascii_case(name));
    if bare { format!("/{}", text.trim()) } else { text.to_owned() }
}

/// Reads the form of a command whose signature is right. Commands come without a thread and without a message in the chat.
pub(super) fn read(mut fields: Fields, signed_at: Millis) -> Result<SlackReceived, Refusal> {
    let team = first_id([fields.take("team_id"), fields.take("enterprise_id")])?;
    let chat = id(fields.take("channel_id").ok_or(UNREADABLE)?)?;
    let sender = id(fields.take("user_id").ok_or(UNREADABLE)?)?;
    let event_key = id(fields.take("trigger_id").ok_or(UNREADABLE)?)?;
    let name = fields.take("channel_name");
    let kind = name.filter(|name| name == "directmessage").map(|_| "im");
    let words = Words::read(&typed(&fields.take("text").unwrap_or_default()));
    if words.is_empty() {
        return Ok(SlackReceived::EmptyCommand);
    }
    let chat_type = chat_type(kind, &chat);
    let message = InboundMessage {
        to_bot: true,
        ..words.into_message(None, chat_type, Vec::new())
    };
    Ok(SlackReceived::Command(Inbound {
        event_key,
        message_key: None,
        conversation: place(team, chat, String::new()),
        sender,
        // A command can only be typed in a workspace where the app is installed.
        sender_teams: Vec::new(),
        at: signed_at,
        body: InboundBody::Message(message),
    }))
}
