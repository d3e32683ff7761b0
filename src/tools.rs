//! Action tools: the trait, and the box that holds those that the configuration switches on.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use serde_json::Value;

use crate::domain::ToolSpec;

/// A boxed future, for the traits that are used as `dyn`.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What a tool answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolOutput {
    /// Output as the model sees it (the `[tool_result:NAME]` head is added elsewhere).
    pub text: String,
    /// Exit code of a command.
    pub exit_code: Option<i32>,
    /// End the turn with this text once the batch is answered.
    pub exit: Option<String>,
}

/// Why a tool did not answer.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// The model can do something about it: wrong arguments, no such file.
    #[error("{0}")]
    TellModel(String),
    /// The turn cannot go on.
    #[error("{0}")]
    Fatal(String),
}

/// An action tool.
pub trait Tool: Send + Sync + fmt::Debug {
    /// Name, schema, effect class.
    fn spec(&self) -> ToolSpec;

    /// Runs it with arguments that are a JSON object.
    ///
    /// # Errors
    /// [`ToolError::TellModel`] for everything the model can mend.
    fn run<'a>(&'a self, arguments: &'a Value) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;
}
