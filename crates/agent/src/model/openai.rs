//! OpenAI's chat completions, as many servers speak them. Pure: messages into a body, an answer into ours.
//!
//! Protocol: <https://platform.openai.com/docs/api-reference/chat/create>. What other servers do
//! differently is noted where it is handled.

mod assembly;

pub(super) use assembly::Assembly;

use serde_json::{Map, Value, json};

use crate::domain::{Message, Role};
use crate::model::answer::{Calls, Delivery, object};
use crate::model::retry::Failure;
use crate::model::{ChatReply, ChatRequest};

/// Under this name a message's `raw` holds what belongs to this protocol, so that a turn that outlives a
/// change of provider never sends one provider's fields to another.
const RAW: &str = "openai";

/// Members of an assistant message that are understood here, or that servers add to answers but refuse in
/// requests. Everything else (`reasoning_content`, `reasoning_details`, signatures …) goes back as it came.
const OWN_MEMBERS: [&str; 7] = ["role", "content", "tool_calls", "refusal", "annotations", "audio", "function_call"];

/// The request's body. No sampling setting is ever sent: a server's defaults fit its model.
pub(in crate::model) fn body(model: &str, request: &ChatRequest, delivery: Delivery) -> Value {
    let mut body = json!({
        "model": model,
        "messages": request.messages.iter().map(message).collect::<Vec<_>>(),
    });
    if delivery != Delivery::Whole {
        body["stream"] = json!(true);
    }
    if delivery == Delivery::Counted {
        body["stream_options"] = json!({"include_usage": true});
    }
    if let (Some(members), false) = (body.as_object_mut(), request.tools.is_empty()) {
        let tools = request.tools.iter().map(|tool| {
            json!({"type": "function", "function": {
                "name": tool.name, "description": tool.description, "parameters": tool.parameters,
            }})
        });
        members.insert("tools".to_owned(), tools.collect());
        members.insert("tool_choice".to_owned(), json!("auto"));
        // Several at once is the protocol's default, and there are models that refuse to hear of it.
        if !request.parallel_tool_calls {
            members.insert("parallel_tool_calls".to_owned(), json!(false));
        }
    }
    body
}

fn message(message: &Message) -> Value {
    match message.role {
        Role::System => json!({"role": "system", "content": message.content}),
        Role::User => json!({"role": "user", "content": said(message)}),
        Role::Tool => json!({
            "role": "tool",
            "tool_call_id": message.call_id.as_deref().unwrap_or_default(),
            "content": message.content,
        }),
        Role::Assistant => assistant(message),
    }
}

/// The words of a person, with the pictures beside them as parts.
fn said(message: &Message) -> Value {
    if message.pictures.is_empty() {
        return json!(message.content);
    }
    let words = json!({"type": "text", "text": message.content});
    let pictures = message.pictures.iter().map(|picture| {
        let url = format!("data:{};base64,{}", picture.media_type, picture.data);
        json!({"type": "image_url", "image_url": {"url": url}})
    });
    std::iter::once(words).chain(pictures).collect()
}

fn assistant(message: &Message) -> Value {
    let kept = message.raw.as_ref().and_then(|raw| raw.get(RAW));
    let mut members = members_of(kept.and_then(|kept| kept.get("message")));
    members.insert("role".to_owned(), json!("assistant"));
    let silent = message.content.is_empty() && !message.calls.is_empty();
    members.insert("content".to_owned(), if silent { Value::Null } else { json!(message.content) });
    if !message.calls.is_empty() {
        let calls = message.calls.iter().enumerate().map(|(at, call)| {
            let mut members = members_of(kept.and_then(|kept| kept.get("calls")?.get(at)));
            members.insert("id".to_owned(), json!(call.id));
            members.insert("type".to_owned(), json!("function"));
            members.insert(
                "function".to_owned(),
                json!({"name": call.name, "arguments": if object(&call.arguments).is_some() { &call.arguments } else { "{}" }}),
            );
            Value::Object(members)
        });
        members.insert("tool_calls".to_owned(), calls.collect());
    }
    Value::Object(members)
}

/// Reads the answer to `request`.
///
/// # Errors
/// Why it is no answer, without a word of the server's.
pub(in crate::model) fn reply(answer: &Value, request: &ChatRequest) -> Result<ChatReply, Failure> {
    let choice = answer.pointer("/choices/0").ok_or_else(|| Failure::nonsense("no choices"))?;
    let Some(Value::Object(message)) = choice.get("message") else {
        return Err(Failure::nonsense("a choice without a message"));
    };
    let finish = choice.get("finish_reason").and_then(Value::as_str).unwrap_or_default();
    if finish == "content_filter" {
        // What came with it is a fragment that the provider did not want to be seen.
        return Err(Failure::Filtered);
    }
    let tokens = tokens(answer.get("usage"));
    let mut read = Calls::new(request, finish == "length");
    if let Some(refusal) = message.get("refusal").and_then(Value::as_str).filter(|text| !text.is_empty()) {
        // A refusal is the model's answer; calls beside it would act on what it refused.
        return read.finish(refusal.to_owned(), None, tokens);
    }
    let calls = match message.get("tool_calls") {
        None | Some(Value::Null) => &[],
        Some(Value::Array(calls)) => calls.as_slice(),
        Some(_) => return Err(Failure::nonsense("tool calls that are no list")),
    };
    for call in calls {
        read.push(
            call.get("id").and_then(Value::as_str),
            call.pointer("/function/name").and_then(Value::as_str),
            call.pointer("/function/arguments"),
        )?;
    }
    read.finish(text(message.get("content"))?, raw(message, calls), tokens)
}

/// Content is a string, null, or (some servers) a list of parts, of which the text parts count.
fn text(content: Option<&Value>) -> Result<String, Failure> {
    match content {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Array(parts)) => Ok(parts.iter().filter_map(|part| part.get("text")?.as_str()).collect()),
        Some(_) => Err(Failure::nonsense("content that is no text")),
    }
}

fn tokens(usage: Option<&Value>) -> u64 {
    let count = |name| usage.and_then(|usage| usage.get(name)?.as_u64());
    count("total_tokens").unwrap_or_else(|| {
        count("prompt_tokens")
            .unwrap_or(0)
            .saturating_add(count("completion_tokens").unwrap_or(0))
    })
}

/// What must go back with this message: unknown members of it and of each of its calls (Gemini hangs its
/// thought signatures there).
fn raw(message: &Map<String, Value>, calls: &[Value]) -> Option<Value> {
    let unknown = |members: &Map<String, Value>, own: &[&str]| -> Map<String, Value> {
        members
            .iter()
            .filter(|(name, value)| !own.contains(&name.as_str()) && !value.is_null())
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    };
    let message = unknown(message, &OWN_MEMBERS);
    let calls: Vec<_> = calls
        .iter()
        .map(|call| {
            call.as_object()
                .map(|call| unknown(call, &["id", "type", "function", "index"]))
                .unwrap_or_default()
        })
        .collect();
    if message.is_empty() && calls.iter().all(Map::is_empty) {
        return None;
    }
    Some(json!({RAW: {"message": message, "calls": calls}}))
}

fn members_of(value: Option<&Value>) -> Map<String, Value> {
    value.and_then(Value::as_object).cloned().unwrap_or_default()
}
