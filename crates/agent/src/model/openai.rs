//! OpenAI's chat completions, as many servers speak them. Pure: messages into a body, an answer into ours.
//!
//! Protocol: <https://platform.openai.com/docs/api-reference/chat/create>. What other servers do
//! differently is noted where it is handled.

mod assembly;

pub(super) use assembly::OpenAiAssembly;

use serde_json::{Map, Value, json};

use crate::domain::Message;
use crate::model::answer::{AnswerEnd, CallCollector, choice_error, end, object, refusal_reply};
use crate::model::dialogue::{Side, joined, sides};
use crate::model::manner::{AnswerForm, Asking};
use crate::model::retry::Failure;
use crate::model::{ChatReply, ChatRequest};

/// Under this name a message's `raw` holds what belongs to this protocol, so that a turn that outlives a
/// change of provider never sends one provider's fields to another.
const RAW: &str = "openai";

/// Members of an assistant message that are understood here, or that servers add to answers but refuse in
/// requests. Everything else (`reasoning_content`, `reasoning_details`, signatures …) goes back as it came.
const OWN_MEMBERS: [&str; 7] = ["role", "content", "tool_calls", "refusal", "annotations", "audio", "function_call"];

/// The request's body. No sampling setting is ever sent: a server's defaults fit its model.
pub(in crate::model) fn body(asking: Asking<'_>, request: &ChatRequest) -> Value {
    let delivery = asking.manner.delivery;
    let mut body = json!({
        "model": asking.model,
        "messages": messages(&request.messages, asking),
    });
    if delivery != AnswerForm::Whole {
        body["stream"] = json!(true);
    }
    if delivery == AnswerForm::Counted {
        body["stream_options"] = json!({"include_usage": true});
    }
    if asking.limit() > 0 {
        let name = if asking.manner.limit_of_completion {
            "max_completion_tokens"
        } else {
            "max_tokens"
        };
        body[name] = json!(asking.limit());
    }
    let tools = asking.manner.offered(&request.tools);
    if let (Some(members), false) = (body.as_object_mut(), tools.is_empty()) {
        let tools = tools.iter().map(|tool| {
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

/// The log as messages. The roles alternate, and the one system message comes first.
fn messages(log: &[Message], asking: Asking<'_>) -> Vec<Value> {
    let (system, sides) = sides(log);
    let mut messages = Vec::new();
    if !system.is_empty() && !asking.manner.no_system {
        messages.push(json!({"role": "system", "content": system}));
    }
    for side in &sides {
        match side {
            Side::User { results, words } => user_side(results, words, asking, &mut messages),
            Side::Assistant(said) => messages.push(assistant(said, asking)),
        }
    }
    if asking.manner.no_system {
        before(system, &mut messages);
    }
    messages
}

/// Puts the system prompt before the first words of the user's side.
fn before(system: &str, messages: &mut Vec<Value>) {
    let first = messages.first_mut().filter(|first| first["role"] == "user");
    match first.map(|first| &mut first["content"]) {
        Some(Value::Array(parts)) => parts.insert(0, json!({"type": "text", "text": system})),
        Some(content) => *content = json!(joined([system, content.as_str().unwrap_or_default()])),
        None => messages.insert(0, json!({"role": "user", "content": system})),
    }
}

/// Results, each a message of its own, then the words as one, or at the end of the last result.
fn user_side(results: &[&Message], words: &[&Message], asking: Asking<'_>, messages: &mut Vec<Value>) {
    let last = results.len().saturating_sub(1);
    let beside = asking.manner.words_in_results && !results.is_empty();
    for (at, result) in results.iter().enumerate() {
        let words = words.iter().filter(|_| beside && at == last);
        let content = joined([result].into_iter().chain(words).map(|message| message.content.as_str()));
        messages.push(json!({
            "role": "tool",
            "tool_call_id": asking.id(result.call_id.as_deref().unwrap_or_default()),
            "content": content,
        }));
    }
    if !words.is_empty() && !beside {
        messages.push(json!({"role": "user", "content": said(words)}));
    }
}

/// The words of one side as one text; with pictures as parts, in order.
fn said(words: &[&Message]) -> Value {
    let mut parts: Vec<Value> = Vec::new();
    let mut texts: Vec<&str> = Vec::new();
    for message in words {
        texts.push(&message.content);
        for picture in &message.pictures {
            parts.extend(text_part(&mut texts));
            let url = format!("data:{};base64,{}", picture.media_type, picture.data);
            parts.push(json!({"type": "image_url", "image_url": {"url": url}}));
        }
    }
    if parts.is_empty() {
        return json!(joined(texts));
    }
    parts.extend(text_part(&mut texts));
    Value::Array(parts)
}

fn text_part(texts: &mut Vec<&str>) -> Option<Value> {
    let text = joined(std::mem::take(texts));
    (!text.is_empty()).then(|| json!({"type": "text", "text": text}))
}

fn assistant(said: &[&Message], asking: Asking<'_>) -> Value {
    let mut members = Map::new();
    let mut calls = Vec::new();
    for message in said {
        let kept = asking.kept(message, RAW);
        members.extend(members_of(kept.and_then(|kept| kept.get("message"))));
        calls.extend(calls_of(message, kept, asking));
    }
    let text = joined(said.iter().map(|message| message.content.as_str()));
    members.insert("role".to_owned(), json!("assistant"));
    let silent = text.is_empty() && !calls.is_empty();
    members.insert("content".to_owned(), if silent { Value::Null } else { json!(text) });
    if !calls.is_empty() {
        members.insert("tool_calls".to_owned(), json!(calls));
    }
    Value::Object(members)
}

fn calls_of(message: &Message, kept: Option<&Value>, asking: Asking<'_>) -> Vec<Value> {
    let calls = message.calls.iter().enumerate().map(|(at, call)| {
        let mut members = members_of(kept.and_then(|kept| kept.get("calls")?.get(at)));
        members.insert("id".to_owned(), json!(asking.id(&call.id)));
        members.insert("type".to_owned(), json!("function"));
        members.insert(
            "function".to_owned(),
            json!({"name": call.name, "arguments": if object(&call.arguments).is_some() { &call.arguments } else { "{}" }}),
        );
        Value::Object(members)
    });
    calls.collect()
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
    if let Some(failure) = choice_error(choice) {
        return Err(failure);
    }
    let end = end(choice.get("finish_reason"))?;
    let tokens = tokens(answer.get("usage"));
    let refusal = message.get("refusal").and_then(Value::as_str).filter(|text| !text.is_empty());
    if end == AnswerEnd::Filtered {
        // What came with it is a fragment that the provider did not want to be seen.
        return Err(Failure::Filtered);
    }
    if refusal.is_some() || end == AnswerEnd::Refused {
        let said = refusal.map_or_else(|| text(message.get("content")), |said| Ok(said.to_owned()))?;
        return refusal_reply(request, said, tokens);
    }
    let mut read = CallCollector::new(request, end == AnswerEnd::Cut);
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
