//! How the fake model spells its answers: chat completions or messages, in one piece or as a stream.
//!
//! Scripts and computed answers know one form only, an assistant message of chat completions; beside `content`, `tool_calls`
//! and `refusal` it may hold members of servers' own, and `thinking`: blocks that Anthropic's form carries.

use serde_json::{Map, Value, json};

/// Whose protocol a request speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wire {
    OpenAi,
    Anthropic,
}

/// Members of a message that are no server's own.
const USUAL: [&str; 6] = ["role", "content", "tool_calls", "refusal", "annotations", "thinking"];

impl Wire {
    /// What a client must send back with the message, verbatim; null when there is nothing.
    pub(crate) fn foreign(self, message: &Value) -> Value {
        let found: Value = match self {
            Self::OpenAi => {
                let members = message.as_object().into_iter().flatten();
                let own = members.filter(|(name, value)| !USUAL.contains(&name.as_str()) && !value.is_null());
                own.map(|(name, value)| (name.clone(), value.clone())).collect::<Map<_, _>>().into()
            }
            Self::Anthropic => message["thinking"].as_array().cloned().unwrap_or_default().into(),
        };
        let nothing = found.as_object().is_some_and(Map::is_empty) || found.as_array().is_some_and(Vec::is_empty);
        if nothing { Value::Null } else { found }
    }

    /// The whole answer in one piece.
    pub(crate) fn whole(self, message: &Value, finish: &str) -> Vec<u8> {
        let answer = match self {
            Self::OpenAi => {
                let mut message = message.clone();
                message.as_object_mut().unwrap().remove("thinking");
                json!({
                    "id": "chatcmpl-fake", "object": "chat.completion", "created": 1, "model": "fake",
                    "choices": [{"index": 0, "message": message, "finish_reason": finish}], "usage": usage(),
                })
            }
            Self::Anthropic => json!({
                "id": "msg_fake", "type": "message", "role": "assistant", "model": "fake", "stop_sequence": null,
                "content": blocks(message), "stop_reason": stop_reason(message, finish), "usage": {"input_tokens": 11, "output_tokens": 7},
            }),
        };
        answer.to_string().into_bytes()
    }

    /// The answer as a stream's events. `counted`: chat completions were asked for the usage.
    pub(crate) fn events(self, message: &Value, finish: &str, counted: bool) -> Vec<String> {
        match self {
            Self::OpenAi => completion_events(message, finish, counted),
            Self::Anthropic => message_events(message, finish),
        }
    }
}

/// The bytes of a stream in odd pieces.
pub(crate) fn chopped(events: &[String], sizes: &[usize]) -> Vec<Vec<u8>> {
    let stream = events.concat().into_bytes();
    let mut pieces = Vec::new();
    let mut rest = stream.as_slice();
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, after) = rest.split_at((*size).clamp(1, rest.len()));
        pieces.push(piece.to_vec());
        rest = after;
    }
    pieces
}

fn usage() -> Value {
    json!({"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18})
}

/// A text in pieces of three characters; an empty text is one empty piece.
fn pieces(text: &str) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    match letters.as_slice() {
        [] => vec![String::new()],
        letters => letters.chunks(3).map(|piece| piece.iter().collect()).collect(),
    }
}

fn completion_events(message: &Value, finish: &str, counted: bool) -> Vec<String> {
    let mut deltas = vec![json!({"role": "assistant", "content": ""})];
    for (name, value) in message.as_object().unwrap() {
        match (name.as_str(), value) {
            ("role" | "thinking" | "tool_calls", _) | (_, Value::Null) => {}
            (_, Value::String(text)) => deltas.extend(pieces(text).iter().map(|piece| json!({ name.as_str(): piece }))),
            _ => deltas.push(json!({ name.as_str(): value })),
        }
    }
    for (index, call) in message["tool_calls"].as_array().into_iter().flatten().enumerate() {
        let mut head = call.clone();
        head["index"] = json!(index);
        let arguments = head["function"]["arguments"].as_str().unwrap_or_default().to_owned();
        head["function"]["arguments"] = json!("");
        deltas.push(json!({"tool_calls": [head]}));
        let tail = pieces(&arguments);
        deltas.extend(
            tail.iter()
                .map(|piece| json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})),
        );
    }
    let chunk = |choices: Value| json!({"id": "chatcmpl-fake", "object": "chat.completion.chunk", "created": 1, "model": "fake", "choices": choices, "usage": null});
    let mut chunks: Vec<Value> = deltas
        .into_iter()
        .map(|delta| chunk(json!([{"index": 0, "delta": delta, "finish_reason": null}])))
        .collect();
    chunks.push(chunk(json!([{"index": 0, "delta": {}, "finish_reason": finish}])));
    if counted {
        let mut last = chunk(json!([]));
        last["usage"] = usage();
        chunks.push(last);
    }
    let mut events = vec![": keep-alive\n\n".to_owned()];
    events.extend(chunks.iter().map(|chunk| format!("data: {chunk}\n\n")));
    events.push("data: [DONE]\n\n".to_owned());
    events
}

fn stop_reason(message: &Value, finish: &str) -> String {
    let reason = match finish {
        _ if message["refusal"].is_string() => "refusal",
        "stop" => "end_turn",
        "tool_calls" => "tool_use",
        "length" => "max_tokens",
        "content_filter" => "refusal",
        other => other,
    };
    reason.to_owned()
}

/// A message's content in Anthropic's form.
fn blocks(message: &Value) -> Vec<Value> {
    let mut blocks = message["thinking"].as_array().cloned().unwrap_or_default();
    for text in ["refusal", "content"].iter().filter_map(|name| message[*name].as_str()) {
        blocks.push(json!({"type": "text", "text": text}));
    }
    for call in message["tool_calls"].as_array().into_iter().flatten() {
        let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
        // What is no JSON stays text: only a stream could carry it.
        let input = serde_json::from_str(arguments).unwrap_or_else(|_| json!(arguments));
        blocks.push(json!({"type": "tool_use", "id": call["id"], "name": call["function"]["name"], "input": input}));
    }
    blocks
}

fn message_events(message: &Value, finish: &str) -> Vec<String> {
    let start = json!({"id": "msg_fake", "type": "message", "role": "assistant", "model": "fake", "content": [],
        "stop_reason": null, "usage": {"input_tokens": 11, "output_tokens": 1}});
    let mut events = vec![json!({"type": "message_start", "message": start}), json!({"type": "ping"})];
    for (index, block) in blocks(message).into_iter().enumerate() {
        let mut empty = block.clone();
        let mut deltas = Vec::new();
        match block["type"].as_str().unwrap() {
            "text" => {
                empty["text"] = json!("");
                deltas.extend(
                    pieces(block["text"].as_str().unwrap())
                        .iter()
                        .map(|piece| json!({"type": "text_delta", "text": piece})),
                );
            }
            "thinking" => {
                (empty["thinking"], empty["signature"]) = (json!(""), json!(""));
                let thoughts = pieces(block["thinking"].as_str().unwrap());
                deltas.extend(thoughts.iter().map(|piece| json!({"type": "thinking_delta", "thinking": piece})));
                deltas.push(json!({"type": "signature_delta", "signature": block["signature"]}));
            }
            "tool_use" => {
                empty["input"] = json!({});
                let input = match &block["input"] {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                deltas.extend(
                    pieces(&input)
                        .iter()
                        .map(|piece| json!({"type": "input_json_delta", "partial_json": piece})),
                );
            }
            _ => {}
        }
        events.push(json!({"type": "content_block_start", "index": index, "content_block": empty}));
        events.extend(
            deltas
                .into_iter()
                .map(|delta| json!({"type": "content_block_delta", "index": index, "delta": delta})),
        );
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    let stop = stop_reason(message, finish);
    events.push(json!({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": null}, "usage": {"output_tokens": 7}}));
    events.push(json!({"type": "message_stop"}));
    let named = events
        .iter()
        .map(|event| format!("event: {}\r\ndata: {event}\r\n\r\n", event["type"].as_str().unwrap()));
    named.collect()
}
