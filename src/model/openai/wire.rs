//! The wire format of chat completions: our messages into theirs, their answer into ours. Pure.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use crate::domain::{Message, Role, ToolCall};
use crate::model::{ChatReply, ChatRequest};

/// Text and arguments of one answer together.
const MAX_OUTPUT_BYTES: usize = 256 << 10;

/// Under this name a message's `raw` holds what belongs to this protocol, so that a turn that outlives a
/// change of provider never sends one provider's fields to another.
const RAW: &str = "openai";

/// Members of an assistant message that are understood here, or that servers add to answers but refuse in
/// requests. Everything else (`reasoning_content`, `reasoning_details`, signatures …) goes back as it came.
const OWN_MEMBERS: [&str; 7] = ["role", "content", "tool_calls", "refusal", "annotations", "audio", "function_call"];

/// The request's body. No sampling setting is ever sent: a server's defaults fit its model.
pub(super) fn body(model: &str, request: &ChatRequest) -> Value {
    let mut body = json!({
        "model": model,
        "messages": request.messages.iter().map(message).collect::<Vec<_>>(),
    });
    if let (Some(members), false) = (body.as_object_mut(), request.tools.is_empty()) {
        let tools = request.tools.iter().map(|tool| {
            json!({"type": "function", "function": {
                "name": tool.name, "description": tool.description, "parameters": tool.parameters,
            }})
        });
        members.insert("tools".to_owned(), tools.collect());
        members.insert("tool_choice".to_owned(), json!("auto"));
        members.insert("parallel_tool_calls".to_owned(), json!(request.parallel_tool_calls));
    }
    body
}

fn message(message: &Message) -> Value {
    match message.role {
        Role::System => json!({"role": "system", "content": message.content}),
        Role::User => json!({"role": "user", "content": message.content}),
        Role::Tool => json!({
            "role": "tool",
            "tool_call_id": message.call_id.as_deref().unwrap_or_default(),
            "content": message.content,
        }),
        Role::Assistant => assistant(message),
    }
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
                json!({"name": call.name, "arguments": sendable(&call.arguments)}),
            );
            Value::Object(members)
        });
        members.insert("tool_calls".to_owned(), calls.collect());
    }
    Value::Object(members)
}

/// Several servers (Ollama, chat templates of vLLM) parse the arguments of past calls and refuse the whole
/// request when they are malformed; the error answer of that call tells the model what was wrong.
fn sendable(arguments: &str) -> &str {
    match serde_json::from_str(arguments) {
        Ok(Value::Object(_)) => arguments,
        _ => "{}",
    }
}

/// Reads the answer to `request`.
///
/// # Errors
/// Why it is no answer, without a word of the server's.
pub(super) fn reply(body: &[u8], request: &ChatRequest) -> Result<ChatReply, String> {
    let answer: Value = serde_json::from_slice(body).map_err(|_| {
        let markup = body.trim_ascii_start().starts_with(b"<");
        if markup { "a web page" } else { "no JSON" }.to_owned()
    })?;
    let Some(choice) = answer.pointer("/choices/0") else {
        return Err(match error_code(body) {
            Some(code) => format!("an error ({code}) under a success status"),
            None => "no choices".to_owned(),
        });
    };
    let Some(Value::Object(message)) = choice.get("message") else {
        return Err("a choice without a message".to_owned());
    };
    let finish = choice.get("finish_reason").and_then(Value::as_str).unwrap_or_default();
    let mut reply = ChatReply {
        text: text(message.get("content"))?,
        tokens: tokens(answer.get("usage")),
        ..ChatReply::default()
    };
    if let Some(refusal) = message.get("refusal").and_then(Value::as_str).filter(|text| !text.is_empty()) {
        // A refusal is the model's answer; calls beside it would act on what it refused.
        refusal.clone_into(&mut reply.text);
        return within_limits(reply);
    }
    if finish == "content_filter" {
        // What came with it is a fragment: shown as such, and never acted on.
        reply.text = format!("{}\n[content filter / 内容过滤]", reply.text).trim_start().to_owned();
        return within_limits(reply);
    }
    let calls = match message.get("tool_calls") {
        None | Some(Value::Null) => &[],
        Some(Value::Array(calls)) => calls.as_slice(),
        Some(_) => return Err("tool calls that are no list".to_owned()),
    };
    reply.calls = read_calls(calls, request, finish == "length")?;
    if finish == "length" && reply.calls.is_empty() && !reply.text.is_empty() {
        reply.text.push_str(" […]");
    }
    reply.raw = raw(message, calls);
    within_limits(reply)
}

fn within_limits(reply: ChatReply) -> Result<ChatReply, String> {
    let size = reply.text.len() + reply.calls.iter().map(|call| call.arguments.len()).sum::<usize>();
    if size > MAX_OUTPUT_BYTES {
        return Err(format!("more than {} KiB of text", MAX_OUTPUT_BYTES >> 10));
    }
    Ok(reply)
}

/// Content is a string, null, or (some servers) a list of parts, of which the text parts count.
fn text(content: Option<&Value>) -> Result<String, String> {
    match content {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Array(parts)) => Ok(parts.iter().filter_map(|part| part.get("text")?.as_str()).collect()),
        Some(_) => Err("content that is no text".to_owned()),
    }
}

fn read_calls(calls: &[Value], request: &ChatRequest, cut: bool) -> Result<Vec<ToolCall>, String> {
    let mut used: HashSet<String> = request
        .messages
        .iter()
        .flat_map(|message| message.calls.iter().map(|call| call.id.clone()))
        .collect();
    let mut read = Vec::with_capacity(calls.len());
    for call in calls {
        let Some(name) = call
            .pointer("/function/name")
            .and_then(Value::as_str)
            .filter(|name| !name.is_empty())
        else {
            return Err("a tool call without a name".to_owned());
        };
        let arguments = match call.pointer("/function/arguments") {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            // Some servers send the object itself.
            Some(other) => other.to_string(),
        };
        // A call cut short by the length limit must never run with what happened to be there.
        if cut && serde_json::from_str::<Value>(&arguments).is_err() {
            return Err("a tool call that was cut off by the length limit".to_owned());
        }
        read.push(ToolCall {
            id: unique(call.get("id").and_then(Value::as_str), &mut used),
            name: name.to_owned(),
            // A call without parameters may come with empty arguments.
            arguments: if arguments.trim().is_empty() { "{}".to_owned() } else { arguments },
        });
    }
    Ok(read)
}

/// The server's id when it is one; some servers send none, or the same for every call.
fn unique(id: Option<&str>, used: &mut HashSet<String>) -> String {
    let given = id.filter(|id| !id.is_empty()).map(str::to_owned);
    let id = given
        .filter(|id| !used.contains(id))
        .or_else(|| (used.len() + 1..).map(|n| format!("call_{n}")).find(|id| !used.contains(id)))
        .unwrap_or_default();
    used.insert(id.clone());
    id
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

/// The short code of an error body, if it is one that cannot carry anything else: lower-case letters,
/// digits and underscores, 40 at most.
pub(super) fn error_code(body: &[u8]) -> Option<String> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let error = body.get("error").unwrap_or(&body);
    ["code", "type"].iter().find_map(|name| {
        let code = match error.get(name)? {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => return None,
        };
        let harmless = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        (!code.is_empty() && code.len() <= 40 && code.chars().all(harmless)).then_some(code)
    })
}
