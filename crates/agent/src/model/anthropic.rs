//! Anthropic's messages. Pure: our messages into a body, an answer into ours.
//!
//! Protocol: <https://docs.anthropic.com/en/api/messages>, <https://docs.anthropic.com/en/api/messages-streaming>.

mod assembly;
mod log;

pub(super) use assembly::AnthropicAssembly;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::model::answer::{AnswerEnd, CallCollector, end, refusal_reply};
use crate::model::manner::{AnswerForm, Asking};
use crate::model::retry::Failure;
use crate::model::{ChatReply, ChatRequest};

/// The protocol wants a limit. A model that writes less says so, and is asked for that.
const MAX_TOKENS: u64 = 32_000;

/// The request's body. No sampling setting is ever sent.
pub(in crate::model) fn body(asking: Asking<'_>, request: &ChatRequest) -> Value {
    let (system, messages) = log::messages(&request.messages, asking);
    let mut body = json!({"model": asking.model, "max_tokens": limit(asking), "messages": messages});
    if !system.is_empty() {
        body["system"] = json!(system);
    }
    if asking.manner.delivery != AnswerForm::Whole {
        body["stream"] = json!(true);
    }
    let tools = asking.manner.offered(&request.tools);
    if tools.is_empty() {
        // Calls in the log must be of known tools, even where the model may call none any more.
        let called: BTreeSet<&str> = request
            .messages
            .iter()
            .flat_map(|message| &message.calls)
            .map(|call| call.name.as_str())
            .collect();
        if !called.is_empty() {
            let stub = |name: &&str| json!({"name": name, "input_schema": {"type": "object"}});
            body["tools"] = called.iter().map(stub).collect();
            if !asking.manner.no_choice {
                body["tool_choice"] = json!({"type": "none"});
            }
        }
        return body;
    }
    body["tools"] = tools
        .iter()
        .map(|tool| json!({"name": tool.name, "description": tool.description, "input_schema": tool.parameters}))
        .collect();
    body["tool_choice"] = if request.parallel_tool_calls {
        json!({"type": "auto"})
    } else {
        json!({"type": "auto", "disable_parallel_tool_use": true})
    };
    body
}

/// Reads the answer to `request`.
///
/// # Errors
/// Why it is no answer, without a word of the server's.
pub(in crate::model) fn reply(answer: &Value, request: &ChatRequest) -> Result<ChatReply, Failure> {
    let Some(blocks) = answer.get("content").and_then(Value::as_array) else {
        return Err(Failure::nonsense("no content"));
    };
    let end = end(answer.get("stop_reason"))?;
    let texts = blocks.iter().filter(|block| kind(block) == "text");
    let text: String = texts.filter_map(|block| block.get("text")?.as_str()).collect();
    let tokens = tokens(answer.get("usage"));
    match end {
        AnswerEnd::Filtered => return Err(Failure::Filtered),
        AnswerEnd::Refused => return refusal_reply(request, text, tokens),
        AnswerEnd::Whole | AnswerEnd::Cut => {}
    }
    let mut calls = CallCollector::new(request, end == AnswerEnd::Cut);
    for call in blocks.iter().filter(|block| kind(block) == "tool_use") {
        let text = |name: &str| call.get(name).and_then(Value::as_str);
        calls.push(text("id"), text("name"), call.get("input"))?;
    }
    // Text is seen to be cut; an object is as empty as the server left it when it had to stop.
    let object = |last: &Value| kind(last) == "tool_use" && !last.get("input").is_some_and(Value::is_string);
    if end == AnswerEnd::Cut && blocks.last().is_some_and(object) {
        calls.cut_last();
    }
    calls.finish(text, log::raw(blocks), tokens)
}

/// The limit of one answer, in tokens.
pub(in crate::model) fn limit(asking: Asking<'_>) -> u64 {
    let configured = if asking.limit > 0 { asking.limit } else { MAX_TOKENS };
    asking.manner.limit(configured)
}

fn kind(block: &Value) -> &str {
    block.get("type").and_then(Value::as_str).unwrap_or_default()
}

/// Everything that was read, from a cache too, and everything that was written.
fn tokens(usage: Option<&Value>) -> u64 {
    let count = |name: &str| usage.and_then(|usage| usage.get(name)?.as_u64()).unwrap_or(0);
    [
        "input_tokens",
        "cache_creation_input_tokens",
        "cache_read_input_tokens",
        "output_tokens",
    ]
    .iter()
    .fold(0_u64, |sum, name| sum.saturating_add(count(name)))
}
