//! What the bot reads back: people, threads, channels.

use serde_json::{Value, json};

use super::Shared;
use super::chat::seen;
use super::handlers::{Answer, Refusal, text};

/// `users.info`.
pub(super) fn user(arguments: &Value) -> Answer {
    let id = text(arguments, "user")?;
    Ok(json!({ "user": { "id": id, "name": id.to_lowercase(), "real_name": id, "is_bot": false } }))
}

/// `conversations.replies`: the root first, then its replies, oldest first.
pub(super) fn replies(shared: &Shared, arguments: &Value) -> Answer {
    let (channel, root) = (text(arguments, "channel")?, text(arguments, "ts")?);
    if !shared.workspace.knows(channel, root) {
        return Err(Refusal::fair("thread_not_found"));
    }
    let mut messages = ours(shared, channel, arguments, |thread| thread == Some(root));
    messages.insert(0, json!({ "type": "message", "ts": root, "thread_ts": root }));
    page(messages, arguments)
}

/// `conversations.history`: what stands in the channel itself, newest first.
pub(super) fn history(shared: &Shared, arguments: &Value) -> Answer {
    let channel = text(arguments, "channel")?;
    let mut messages = ours(shared, channel, arguments, |thread| thread.is_none());
    messages.reverse();
    page(messages, arguments)
}

/// The bot's messages of a channel that are later than `oldest`, with their metadata if that is asked for.
fn ours(shared: &Shared, channel: &str, arguments: &Value, wanted: impl Fn(Option<&str>) -> bool) -> Vec<Value> {
    let flag = |name: &str| ["true", "1"].contains(&arguments[name].as_str().unwrap_or_default());
    let oldest = micros(arguments["oldest"].as_str().unwrap_or("0"));
    let memory = shared.stage.lock();
    let messages = memory.in_channel(channel).filter(|message| wanted(message.reply_to.as_deref()));
    messages
        .filter(|message| micros(&message.id) > oldest || (flag("inclusive") && micros(&message.id) == oldest))
        .map(|message| {
            let key = flag("include_all_metadata").then_some(message.uuid.as_str());
            seen(&message.id, message.reply_to.as_deref(), &message.content, key)
        })
        .collect()
}

fn page(mut messages: Vec<Value>, arguments: &Value) -> Answer {
    let number = |name: &str, default: usize| arguments[name].as_str().and_then(|text| text.parse().ok()).unwrap_or(default);
    let (from, limit) = (number("cursor", 0), number("limit", 100).clamp(1, 1000));
    let end = messages.len().min(from + limit);
    let more = end < messages.len();
    messages.truncate(end);
    messages.drain(..from.min(end));
    let next = if more { end.to_string() } else { String::new() };
    Ok(json!({ "messages": messages, "has_more": more, "response_metadata": { "next_cursor": next } }))
}

fn micros(ts: &str) -> i64 {
    let (seconds, fraction) = ts.split_once('.').unwrap_or((ts, ""));
    let fraction: String = fraction.chars().chain(std::iter::repeat('0')).take(6).collect();
    seconds.parse::<i64>().unwrap_or(0) * 1_000_000 + fraction.parse::<i64>().unwrap_or(0)
}
