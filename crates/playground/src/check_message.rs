//! The rules of Block Kit that the platform enforces, as a checker: for tests and for the Slack that we play.
//!
//! It shares no code with the product: what it checks must not be what it was checked with. It knows the blocks that we use and the properties the platform documents for them; everything else is a fault.
//! It is stricter than the platform where text could call people: no broadcast, and no mention that is not a user's.

mod blocks;
mod faults;
mod rich;

use serde_json::Value;

use blocks::check_blocks;
use faults::{Faults, mrkdwn};

/// Blocks of one message.
const MAX_BLOCKS: usize = 50;

/// Characters over all blocks of a message, in UTF-16 units: `msg_blocks_too_long` was seen a little above.
const MAX_WEIGHT: usize = 12_000;

/// Bytes of a view: `view_too_large`.
const MAX_VIEW: usize = 250_000;

/// Characters of `text`; above, the platform cuts it or refuses an update.
const MAX_TEXT: usize = 4_000;

/// What is wrong with the arguments of `chat.postMessage`, `chat.update`, `chat.postEphemeral` or with the `view` of
/// `views.open` or `views.publish`, one line each; empty: nothing.
pub fn check_message(message: &Value) -> Vec<String> {
    let mut faults = Faults::default();
    if message["type"] == "modal" {
        check_view(&mut faults, message);
    } else if message["type"] == "home" {
        check_home(&mut faults, message);
    } else {
        check_arguments(&mut faults, message);
    }
    faults.into_lines()
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

/// Length as Slack may count it: UTF-16 units, never less than characters.
fn units(text: &str) -> usize {
    text.encode_utf16().count()
}

fn is_user(id: &str) -> bool {
    id.starts_with(['U', 'W']) && (2..=32).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
}

fn check_arguments(faults: &mut Faults, message: &Value) {
    // Neither `parse` nor `link_names`: they would bring mentions in plain words to life.
    const KNOWN: [&str; 10] = [
        "channel",
        "ts",
        "user",
        "thread_ts",
        "text",
        "blocks",
        "metadata",
        "unfurl_links",
        "unfurl_media",
        "mrkdwn",
    ];
    if !faults.known("message", message, &KNOWN) {
        return;
    }
    match message["text"].as_str() {
        Some(text) if !text.trim().is_empty() => {
            faults.at_most("text", units(text), MAX_TEXT);
            mrkdwn(faults, "text", text);
        }
        _ => faults.add("text", "missing: it is what notifications say"),
    }
    for name in ["ts", "thread_ts"] {
        if message.get(name).is_some_and(|ts| !ts.as_str().is_some_and(is_ts)) {
            faults.add(name, "is no message's time");
        }
    }
    match &message["blocks"] {
        Value::Null => {}
        Value::Array(blocks) => {
            faults.at_most("blocks", blocks.len(), MAX_BLOCKS);
            faults.at_most("characters of all blocks", weight(blocks), MAX_WEIGHT);
            check_blocks(faults, blocks, false);
        }
        _ => faults.add("blocks", "is no list"),
    }
    if !message["metadata"].is_null() {
        metadata(faults, &message["metadata"]);
    }
}

/// The modal of `views.open`.
fn check_view(faults: &mut Faults, view: &Value) {
    const KNOWN: [&str; 10] = [
        "type",
        "callback_id",
        "private_metadata",
        "title",
        "submit",
        "close",
        "notify_on_close",
        "clear_on_close",
        "external_id",
        "blocks",
    ];
    faults.known("view", view, &KNOWN);
    for name in ["title", "submit", "close"] {
        // A view with inputs needs a submit button.
        if name != "close" || !view[name].is_null() {
            faults.plain(&format!("view.{name}"), &view[name], 24);
        }
    }
    faults.string("view", view, "callback_id", 255);
    if !view["private_metadata"].is_null() {
        faults.string("view", view, "private_metadata", 3000);
    }
    let blocks = faults.list("view", view, "blocks", 100);
    check_blocks(faults, blocks, true);
}

/// The Home tab of `views.publish`.
fn check_home(faults: &mut Faults, view: &Value) {
    faults.known("view", view, &["type", "callback_id", "private_metadata", "external_id", "blocks"]);
    let blocks = faults.list("view", view, "blocks", 100);
    check_blocks(faults, blocks, true);
    faults.at_most("bytes of the view", view.to_string().len(), MAX_VIEW);
}

/// `event_type` in the platform's letters, and a payload of single values.
fn metadata(faults: &mut Faults, metadata: &Value) {
    if !faults.known("metadata", metadata, &["event_type", "event_payload"]) {
        return;
    }
    let name = metadata["event_type"].as_str().unwrap_or_default();
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        faults.add("metadata.event_type", "is no name");
    }
    match metadata["event_payload"].as_object() {
        Some(payload)
            if payload
                .values()
                .all(|value| !value.is_array() && !value.is_object() && !value.is_null()) => {}
        _ => faults.add("metadata.event_payload", "is not an object of single values"),
    }
}

/// `seconds.micros`, which names a message in its channel.
pub(crate) fn is_ts(text: &str) -> bool {
    let digits =
        |text: &str, range: std::ops::RangeInclusive<usize>| range.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    text.split_once('.')
        .is_some_and(|(seconds, micros)| digits(seconds, 1..=12) && digits(micros, 1..=6))
}
