//! What Lark takes as the content of a message.

use serde_json::Value;

use crate::check_card;

/// Content as the platform takes it: a JSON string that is a text message or a card of version 2.0. Else what is wrong with it.
pub(super) fn read_content(kind: &str, content: &Value) -> Result<Value, String> {
    let parsed = content
        .as_str()
        .and_then(|text| serde_json::from_str::<Value>(text).ok())
        .ok_or_else(|| String::from("content is not a JSON string"))?;
    match kind {
        "text" => match parsed.get("text").and_then(Value::as_str) {
            None => Err(String::from("a text message without text")),
            Some(text) if calls_everybody(text) => Err(String::from("a text message that calls everybody")),
            Some(text) if text.len() > 150 * 1024 => Err(String::from("a text message over 150 KB")),
            Some(_) => Ok(parsed),
        },
        "interactive" => check_card(&parsed).map(|()| parsed),
        other => Err(format!("msg_type {other}")),
    }
}

/// Does a text message hold an active mention of everybody?
fn calls_everybody(text: &str) -> bool {
    text.split("<at")
        .skip(1)
        .any(|tag| tag.split('>').next().is_some_and(|inside| inside.contains("all")))
}
