//! Language models behind one trait: a request in, one reply out.

#[cfg(feature = "http-models")]
mod remote;
#[cfg(feature = "http-models")]
mod dialect;
#[cfg(feature = "http-models")]
mod openai;
#[cfg(feature = "http-models")]
mod anthropic;
#[cfg(feature = "http-models")]
mod dialogue;
#[cfg(feature = "http-models")]
mod manner;
#[cfg(feature = "http-models")]
mod answer;
#[cfg(feature = "http-models")]
mod arguments;
#[cfg(feature = "http-models")]
mod refusal;
#[cfg(feature = "http-models")]
mod retry;
#[cfg(feature = "http-models")]
mod told_wait;
#[cfg(feature = "http-models")]
mod advice;

#[cfg(feature = "http-models")]
pub use dialect::{ModelLive, Provider};
pub use futures_util::future::BoxFuture;
#[cfg(feature = "http-models")]
pub use remote::Remote;

use std::fmt;
use std::time::Duration;

use serde_json::Value;

use crate::domain::{Message, ToolCall, ToolSpec};

/// Calls of one answer. The agent runs fewer and tells the model so; an answer past this one makes no sense.
const MAX_CALLS: usize = 64;
/// Text and calls of one answer together.
const MAX_OUTPUT_BYTES: usize = 256 << 10;
/// The JSON that we keep of one answer without reading it: thoughts, signatures, members that only the server knows.
const MAX_KEPT_BYTES: usize = 512 << 10;
/// A value of an answer is nested so deep at most. It is stored inside other JSON, and 128 levels are all that is read back.
const MAX_DEPTH: usize = 64;

/// What a model is asked.
#[derive(Clone, Debug)]
pub struct ChatRequest {
    /// System prompt first, once; then the log.
    pub messages: Vec<Message>,
    /// Tools on offer; empty: the model must answer in words.
    pub tools: Vec<ToolSpec>,
    /// May it ask for several calls at once?
    pub parallel_tool_calls: bool,
    /// Whole time for this call.
    pub deadline: Duration,
}

/// What a model answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChatReply {
    /// Text, possibly empty.
    pub text: String,
    /// Calls in order.
    pub calls: Vec<ToolCall>,
    /// Provider fields that must go back with this message.
    pub raw: Option<Value>,
    /// Tokens in and out. Estimated from the size when the provider does not tell; 0 for the demo.
    pub tokens: u64,
    /// The output limit cut a call: one whose arguments are no JSON, else the last. No call of this answer may run.
    pub cut_call: bool,
}

/// Why there is no answer, for an admin: with the provider's own words (300 characters) and what to mend. Carries no key and no URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// The server is away: no connection, one that broke off, or a status that passes (408, 425, 429, 5xx). Nothing came of the request, and it is
    /// worth sending again.
    #[error("the model's server cannot be reached: {why}")]
    Away {
        /// What failed.
        why: String,
        /// How long the server asks us to wait.
        wait: Option<Duration>,
    },
    /// Not reachable, and it never will be with these settings.
    #[error("the model's server cannot be reached: {0}")]
    Unreachable(String),
    /// Key or request refused (4xx).
    #[error("the model's server refused the request: {reason}")]
    Refused {
        /// HTTP status.
        status: u16,
        /// Status, the provider's words, what to mend.
        reason: String,
    },
    /// No answer in time.
    #[error("the model did not answer in time")]
    Timeout,
    /// The prompt is longer than the model reads: a shorter one may do.
    #[error("the prompt is longer than the model reads")]
    TooLong,
    /// The provider's content filter took the answer away.
    #[error("the provider's content filter took the answer away")]
    Filtered,
    /// 200 with something that is no answer.
    #[error("the model's server sent something that is no answer: {0}")]
    Nonsense(String),
    /// Answers that ended with this word, which is no good end, or with an error: nothing of them is taken.
    #[error("the model's server ended its answer with `{0}`")]
    OddEnd(String),
}

/// A chat model. The engine asks again, later, when the model says [`ModelError::Away`]; what else is worth another try is an implementation's
/// business, inside `deadline`.
pub trait ChatModel: Send + Sync + fmt::Debug {
    /// Asks once. Dropping the future cancels the request.
    fn chat<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Result<ChatReply, ModelError>>;

    /// True for the built-in demo: everything it says is labelled.
    fn is_demo(&self) -> bool {
        false
    }

    /// Names of the tools that its server refuses, and that are not offered to it any more.
    fn refused_tools(&self) -> Vec<String> {
        Vec::new()
    }
}

impl ChatReply {
    /// The answer, unless it is larger than one may be.
    pub(crate) fn bounded(self) -> Result<Self, ModelError> {
        match self.excess() {
            Some(what) => Err(ModelError::Nonsense(what)),
            None => Ok(self),
        }
    }

    /// The first limit that the answer passes, in words.
    fn excess(&self) -> Option<String> {
        if self.calls.len() > MAX_CALLS {
            return Some(too_many_calls());
        }
        let calls = self.calls.iter().map(|call| call.id.len() + call.name.len() + call.arguments.len());
        if self.text.len() + calls.sum::<usize>() > MAX_OUTPUT_BYTES {
            return Some(format!("more than {} KiB of text", MAX_OUTPUT_BYTES >> 10));
        }
        let kept = self.raw.as_ref().map_or(0, |raw| raw.to_string().len());
        if kept > MAX_KEPT_BYTES {
            return Some(format!("more than {} KiB beside the text", MAX_KEPT_BYTES >> 10));
        }
        // Arguments that are no JSON, nested too deep for it among them, are kept as text and refused as such.
        let arguments = self.calls.iter().filter_map(|call| serde_json::from_str(&call.arguments).ok());
        let deep = arguments
            .map(|value| depth(&value))
            .chain(self.raw.as_ref().map(depth))
            .any(|depth| depth > MAX_DEPTH);
        deep.then(|| format!("a value nested more than {MAX_DEPTH} deep"))
    }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

fn too_many_calls() -> String {
    format!("more than {MAX_CALLS} tool calls")
}
