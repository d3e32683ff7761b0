//! Language models behind one trait: a request in, one reply out.

#[cfg(feature = "http-models")]
mod settings;
#[cfg(feature = "http-models")]
mod remote;
#[cfg(feature = "http-models")]
mod dialect;
#[cfg(feature = "http-models")]
mod openai;
#[cfg(feature = "http-models")]
mod anthropic;
mod limits;
#[cfg(feature = "http-models")]
mod answer;
#[cfg(feature = "http-models")]
mod sse;
#[cfg(feature = "http-models")]
mod refusal;
#[cfg(feature = "http-models")]
mod retry;
#[cfg(feature = "http-models")]
mod advice;

pub use futures_util::future::BoxFuture;
#[cfg(feature = "http-models")]
pub use remote::Remote;
#[cfg(feature = "http-models")]
pub use settings::{ModelLive, Provider};

use std::fmt;
use std::time::Duration;

use crate::domain::{Message, ToolCall, ToolSpec};

/// What a model is asked.
#[derive(Clone, Debug)]
pub struct ChatRequest {
    /// System prompt first, once; then the log.
    pub messages: Vec<Message>,
    /// Tools on offer; empty: the model must answer in words.
    pub tools: Vec<ToolSpec>,
    /// May it ask for several calls at once?
    pub parallel_tool_calls: bool,
    /// Whole time for this call, retries included.
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
    pub raw: Option<serde_json::Value>,
    /// Tokens in and out. Estimated from the size when the provider does not tell; 0 for the demo.
    pub tokens: u64,
}

/// Why there is no answer, for an admin: with the provider's own words (300 characters) and what to mend. Carries no key and no URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// Not reachable, or 5xx/429 after all retries.
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
}

/// A chat model. Implementations retry what is worth retrying inside `deadline`.
pub trait ChatModel: Send + Sync + fmt::Debug {
    /// Asks once. Dropping the future cancels the request.
    fn chat<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Result<ChatReply, ModelError>>;

    /// True for the built-in demo: everything it says is labelled.
    fn is_demo(&self) -> bool {
        false
    }
}
