//! A request in Anthropic's form: what it must keep, and the same request as chat completions would have it.

use std::collections::HashSet;

use serde_json::{Value, json};

/// Everything that is wrong with the form of a messages request. What all protocols share is checked on [`as_chat`].
pub(crate) fn violations(body: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    if body["max_tokens"].as_u64().is_none_or(|limit| limit == 0) {
        wrong.push("no max_tokens".to_owned());
    }
    let messages = body["messages"].as_array().cloned().unwrap_or_default();
    let mut open: Vec<String> = Vec::new();
    let mut called = false;
    for (at, message) in messages.iter().enumerate() {
        let expected = if at % 2 == 0 { "user" } else { "assistant" };
        if message["role"] != expected {
            wrong.push(format!("message {at}: {} where {expected} speaks", message["role"]));
        }
        let blocks = message["content"].as_array().cloned().unwrap_or_default();
        if blocks.is_empty() {
            wrong.push(format!("message {at}: no blocks"));
        }
        if blocks
            .iter()
            .any(|block| block["type"] == "text" && block["text"].as_str().is_none_or(|text| text.trim().is_empty()))
        {
            wrong.push(format!("message {at}: a blank text"));
        }
        let first = blocks.iter().take_while(|block| block["type"] == "tool_result");
        let mut answered: Vec<String> = first
            .map(|block| block["tool_use_id"].as_str().unwrap_or_default().to_owned())
            .collect();
        answered.sort();
        open.sort();
        if answered != open {
            wrong.push(format!("message {at}: begins with the results of {answered:?}, open are {open:?}"));
        }
        let uses = blocks.iter().filter(|block| block["type"] == "tool_use");
        open = uses.map(|block| block["id"].as_str().unwrap_or_default().to_owned()).collect();
        called |= !open.is_empty();
        if open
            .iter()
            .any(|id| !id.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c)))
        {
            wrong.push(format!("message {at}: an id that the server refuses"));
        }
        if blocks
            .iter()
            .any(|block| block["type"] == "tool_use" && !block["input"].is_object())
        {
            wrong.push(format!("message {at}: an input that is no object"));
        }
    }
    let tools = body["tools"].as_array();
    if called && tools.is_none() {
        wrong.push("calls in the log, and no tools".to_owned());
    }
    if tools.into_iter().flatten().any(|tool| tool["input_schema"]["type"] != "object") {
        wrong.push("a tool without a schema".to_owned());
    }
    wrong
}

/// The request as chat completions: scripts and the common checks know that form.
pub(crate) fn as_chat(body: &Value) -> Value {
    let mut messages = vec![json!({"role": "system", "content": body["system"]})];
    for message in body["messages"].as_array().into_iter().flatten() {
        let blocks: Vec<&Value> = message["content"].as_array().into_iter().flatten().collect();
        if message["role"] == "assistant" {
            messages.push(assistant(&blocks));
            continue;
        }
        for block in blocks {
            messages.push(match block["type"].as_str() {
                Some("tool_result") => json!({"role": "tool", "tool_call_id": block["tool_use_id"], "content": block["content"]}),
                _ => json!({"role": speaker(block["text"].as_str().unwrap_or_default()), "content": block["text"]}),
            });
        }
    }
    let mut chat = json!({"model": body["model"], "messages": messages, "stream": body["stream"]});
    if body["tool_choice"]["type"] == "auto" {
        let tools = body["tools"].as_array().into_iter().flatten();
        chat["tools"] = tools
            .map(|tool| json!({"type": "function", "function": {"name": tool["name"], "description": tool["description"], "parameters": tool["input_schema"]}}))
            .collect();
        chat["tool_choice"] = json!("auto");
    }
    chat
}

/// What must have come back with each call: the blocks that are neither text nor calls, by the id of the call.
pub(crate) fn foreign_of(body: &Value) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    for message in body["messages"].as_array().into_iter().flatten() {
        let blocks: Vec<&Value> = message["content"].as_array().into_iter().flatten().collect();
        let usual = HashSet::from(["text", "tool_use", "tool_result"]);
        let foreign: Vec<&Value> = blocks
            .iter()
            .copied()
            .filter(|block| !usual.contains(block["type"].as_str().unwrap_or_default()))
            .collect();
        let foreign = if foreign.is_empty() { Value::Null } else { json!(foreign) };
        for call in blocks.iter().filter(|block| block["type"] == "tool_use") {
            found.push((call["id"].as_str().unwrap_or_default().to_owned(), foreign.clone()));
        }
    }
    found
}

fn assistant(blocks: &[&Value]) -> Value {
    let texts = blocks.iter().filter(|block| block["type"] == "text");
    let text: String = texts.filter_map(|block| block["text"].as_str()).collect();
    let mut message = json!({"role": "assistant", "content": text});
    let calls: Vec<Value> = blocks
        .iter()
        .filter(|block| block["type"] == "tool_use")
        .map(|block| json!({"id": block["id"], "type": "function", "function": {"name": block["name"], "arguments": block["input"].to_string()}}))
        .collect();
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    message
}

/// What the gateway itself says in the middle of a dialogue stands on the user's side.
fn speaker(text: &str) -> &'static str {
    let ours = [
        "<plan-continuation>",
        "<plan_review_pending>",
        "<turn-limit>",
        "<turn-continuation>",
    ];
    if ours.iter().any(|tag| text.starts_with(tag)) {
        "system"
    } else {
        "user"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// design: the fake model's checks of Anthropic's form find what they are for.
    #[test]
    fn broken_dialogues_are_found() {
        let text = |text: &str| json!({"type": "text", "text": text});
        let used = json!({"type": "tool_use", "id": "a", "name": "f", "input": {}});
        let result = json!({"type": "tool_result", "tool_use_id": "a", "content": "x"});
        let says = |role: &str, blocks: Value| json!({"role": role, "content": blocks});
        let wrong = |messages: Value| {
            violations(&json!({"max_tokens": 1, "tools": [{"input_schema": {"type": "object"}}], "messages": messages})).len()
        };
        let hi = says("user", json!([text("hi")]));
        assert_eq!(
            wrong(json!([
                hi,
                says("assistant", json!([used])),
                says("user", json!([result, text("more")]))
            ])),
            0
        );
        for broken in [
            json!([hi, hi]),
            json!([says("assistant", json!([text("hi")]))]),
            json!([hi, says("assistant", json!([]))]),
            json!([says("user", json!([text(" ")]))]),
            json!([hi, says("assistant", json!([used])), says("user", json!([text("first"), result]))]),
            json!([hi, says("assistant", json!([text("x")])), says("user", json!([result]))]),
        ] {
            assert_ne!(wrong(broken.clone()), 0, "{broken}");
        }
        assert_eq!(violations(&json!({"messages": [hi, says("assistant", json!([used]))]})).len(), 2);
    }
}
