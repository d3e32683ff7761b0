//! What the answers of all providers have in common: ends, ids, limits, calls that were cut off. Pure.
//!
//! All that a model sends is stored and sent back with every later request of the turn, so all of it has a limit, and an answer past
//! one is refused before it is put together.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::retry::Failure;
use super::{ChatReply, ChatRequest, MAX_CALLS, arguments, too_many_calls};
use crate::domain::ToolCall;
use crate::domain::foreign_json;
use crate::domain::json_size::{MAX_VALUES, most_values};

/// Stands behind a text that the length limit cut.
const CUT: &str = " […]";

/// Letters of an odd end that are told.
const MAX_WORD: usize = 40;

/// How a whole answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AnswerEnd {
    /// The model was done.
    Whole,
    /// At the output limit.
    Cut,
    /// The provider's filter took the answer away.
    Filtered,
    /// The model refuses.
    Refused,
}

/// Reads the reason of an end, as all protocols spell it. A body that gives none is whole.
///
/// # Errors
/// Any other word: what came with it is a part of an answer, or none.
pub(super) fn end(reason: Option<&Value>) -> Result<AnswerEnd, Failure> {
    let reason = match reason {
        None | Some(Value::Null) => return Ok(AnswerEnd::Whole),
        Some(Value::String(word)) => word.trim().to_lowercase(),
        Some(other) => other.to_string(),
    };
    match reason.as_str() {
        "" | "null" | "stop" | "end_turn" | "tool_calls" | "tool_use" | "function_call" | "eos" | "stop_sequence" => Ok(AnswerEnd::Whole),
        // Anthropic's word for an answer that filled the rest of the window.
        "length" | "max_tokens" | "model_context_window_exceeded" => Ok(AnswerEnd::Cut),
        "content_filter" => Ok(AnswerEnd::Filtered),
        "refusal" => Ok(AnswerEnd::Refused),
        odd => Err(odd_end(odd)),
    }
}

/// The failure that a choice tells of itself.
pub(super) fn choice_error(choice: &Value) -> Option<Failure> {
    let error = choice.get("error").filter(|error| match error {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        _ => true,
    })?;
    let code = ["code", "type"].iter().find_map(|name| match error.get(name)? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    });
    Some(odd_end(&format!("error {}", code.unwrap_or_default())))
}

/// `word` is the server's: nothing but letters of it are told.
fn odd_end(word: &str) -> Failure {
    let harmless = |c: char| if c.is_ascii_alphanumeric() || "_-.".contains(c) { c } else { ' ' };
    let word: String = word.chars().take(MAX_WORD).map(harmless).collect();
    Failure::Odd(word.trim().to_owned())
}

/// The answer of a model that refuses: its words. Calls beside them would act on what it refused.
pub(super) fn refusal_reply(request: &ChatRequest, words: String, tokens: u64) -> Result<ChatReply, Failure> {
    if words.trim().is_empty() {
        return Err(Failure::Filtered);
    }
    CallCollector::new(request, false).finish(words, None, tokens)
}

/// Collects the calls of one answer.
pub(super) struct CallCollector {
    used: HashSet<String>,
    cut: bool,
    cut_call: bool,
    read: Vec<ToolCall>,
}

impl CallCollector {
    /// For the answer to `request`; `cut`: it ended at the length limit.
    pub(super) fn new(request: &ChatRequest, cut: bool) -> Self {
        let earlier = request.messages.iter().flat_map(|message| &message.calls);
        Self {
            used: earlier.map(|call| call.id.clone()).collect(),
            cut,
            cut_call: false,
            read: Vec::new(),
        }
    }

    /// The output limit cut the last call, although that does not show.
    pub(super) fn cut_last(&mut self) {
        self.cut_call = true;
    }

    /// The next call. Arguments are text, or (some servers) the value itself.
    pub(super) fn push(&mut self, id: Option<&str>, name: Option<&str>, arguments: Option<&Value>) -> Result<(), Failure> {
        if self.read.len() >= MAX_CALLS {
            return Err(Failure::Nonsense(too_many_calls()));
        }
        let name = name.unwrap_or_default();
        if name.is_empty() && !self.cut {
            return Err(Failure::nonsense("a tool call without a name"));
        }
        let arguments = match arguments {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => arguments::mended(text),
            Some(other) => other.to_string(),
        };
        // A call cut short by the length limit must never run with what happened to be there.
        self.cut_call |= self.cut && (name.is_empty() || serde_json::from_str::<Value>(&arguments).is_err());
        let id = self.unique(id);
        self.read.push(ToolCall {
            id,
            name: if name.is_empty() { "unnamed" } else { name }.to_owned(),
            // A call without parameters may come with empty arguments.
            arguments: if arguments.trim().is_empty() && !self.cut {
                "{}".to_owned()
            } else {
                arguments
            },
        });
        Ok(())
    }

    /// The server's id when it is one; some servers send none, or the same for every call.
    fn unique(&mut self, id: Option<&str>) -> String {
        let used = &mut self.used;
        let given = id.filter(|id| !id.is_empty()).map(str::to_owned);
        let id = given
            .filter(|id| !used.contains(id))
            .or_else(|| (used.len() + 1..).map(|n| format!("call_{n}")).find(|id| !used.contains(id)))
            .unwrap_or_default();
        used.insert(id.clone());
        id
    }

    /// Puts the answer together.
    pub(super) fn finish(self, mut text: String, raw: Option<Value>, tokens: u64) -> Result<ChatReply, Failure> {
        if self.cut && self.read.is_empty() && !text.is_empty() {
            text.push_str(CUT);
        }
        let reply = ChatReply {
            text,
            calls: self.read,
            raw,
            tokens,
            cut_call: self.cut_call,
        };
        match reply.excess() {
            Some(what) => Err(Failure::Nonsense(what)),
            None => Ok(reply),
        }
    }
}

/// What of an answer that comes in pieces is held until it is whole.
#[derive(Debug, Default)]
pub(super) struct PartialAnswer {
    calls: usize,
    values: usize,
}

impl PartialAnswer {
    /// Another call has begun.
    pub(super) fn call(&mut self) -> Result<(), Failure> {
        self.calls += 1;
        if self.calls > MAX_CALLS {
            Err(Failure::Nonsense(too_many_calls()))
        } else {
            Ok(())
        }
    }

    /// `value` is added to what is there. Pieces of text need not be told: the bytes on the wire have a limit.
    pub(super) fn value(&mut self, value: &Value) -> Result<(), Failure> {
        self.values += count(value);
        if self.values > MAX_VALUES { Err(too_many_values()) } else { Ok(()) }
    }

    /// `value` comes in the place of `before`. Some servers repeat a plain value in every piece: that adds nothing.
    pub(super) fn instead(&mut self, before: Option<&Value>, value: &Value) -> Result<(), Failure> {
        let tree = value.is_array() || value.is_object();
        if tree || before.is_none() { self.value(value) } else { Ok(()) }
    }

    /// Sets a member.
    pub(super) fn put(&mut self, members: &mut Map<String, Value>, name: &str, value: &Value) -> Result<(), Failure> {
        self.instead(members.get(name), value)?;
        members.insert(name.to_owned(), value.clone());
        Ok(())
    }
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(members) => members.values().map(count).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// Reads a JSON text of a server, leniently, unless it holds so many values that they would take too much memory.
///
/// # Errors
/// `Nonsense`; `what` names a text that is no JSON.
pub(super) fn parse(json: &[u8], what: &str) -> Result<Value, Failure> {
    few_values(json)?;
    foreign_json::read(json).map_err(|_| Failure::nonsense(what))
}

/// [`parse`] for a piece of an answer, in which halves of characters stay until the whole is there.
pub(super) fn parse_piece(json: &[u8], what: &str) -> Result<foreign_json::Piece, Failure> {
    few_values(json)?;
    foreign_json::Piece::read(json).map_err(|_| Failure::nonsense(what))
}

fn few_values(json: &[u8]) -> Result<(), Failure> {
    if most_values(json) > MAX_VALUES {
        Err(too_many_values())
    } else {
        Ok(())
    }
}

fn too_many_values() -> Failure {
    Failure::Nonsense(format!("more than {MAX_VALUES} values"))
}

/// Arguments of an earlier call as an object: several servers (Ollama, chat templates of vLLM) parse them and refuse the
/// whole request when they are malformed; the error answer of that call tells the model what was wrong.
pub(super) fn object(arguments: &str) -> Option<Map<String, Value>> {
    match serde_json::from_str(arguments) {
        Ok(Value::Object(members)) => Some(members),
        _ => None,
    }
}
