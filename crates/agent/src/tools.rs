//! Action tools: the trait, and what every tool is given and gives.

mod attachments;
mod files;
#[cfg(any(feature = "bash", feature = "mcp"))]
mod group;
#[cfg(feature = "mcp")]
mod mcp;
#[cfg(feature = "bash")]
mod run_bash;
mod toolbox;
#[cfg(feature = "web")]
mod web_fetch;
mod workspace;

pub use attachments::{Attachments, NewAttachment};
pub use files::{file_tools, unpack_sample};
pub use futures_util::future::BoxFuture;
#[cfg(feature = "mcp")]
pub use mcp::{FirstSight, McpReach, McpServer, Pins, SEEN_WITHIN, Servers, try_server};
#[cfg(feature = "bash")]
pub use run_bash::tool as bash_tool;
pub use toolbox::Toolbox;
#[cfg(feature = "web")]
pub use web_fetch::{Reach, tool as web_tool};
pub use workspace::{TakenFile, Workspace};

use std::fmt;
use std::sync::{Arc, OnceLock};

use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::domain::{ActionId, Attachment, ToolSpec};

/// Longest output of a tool that is kept, in bytes.
pub const MAX_OUTPUT_BYTES: usize = 64 << 10;

/// What a tool answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolOutput {
    /// Output as the model sees it (the `[tool_result:NAME]` head is added elsewhere).
    pub text: String,
    /// Exit code of a command.
    pub exit_code: Option<i32>,
    /// There was more than `text` holds.
    pub truncated: bool,
    /// End the turn with this text once the batch is answered.
    pub exit: Option<String>,
    /// The file that was sent, for the timeline.
    pub attachment: Option<Attachment>,
}

/// Why a tool did not answer.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// The model can do something about it: wrong arguments, no such file.
    #[error("{0}")]
    TellModel(String),
    /// It was sent and not answered: whether it was carried out is unknown. A person is asked about a write call.
    #[error("{0}")]
    Unknown(String),
    /// Something is wrong with the tool itself: the model is told, and it is written to the log as an error.
    #[error("{0}")]
    Fatal(String),
}

/// An action tool.
pub trait Tool: Send + Sync + fmt::Debug {
    /// Name, schema, effect class.
    fn spec(&self) -> ToolSpec;

    /// Runs it with arguments that are a JSON object. Once [`CallHandle::halt`] is told, a tool that can end early does, and answers with
    /// what was done until then. Whatever it has begun ends when the future is dropped.
    ///
    /// # Errors
    /// [`ToolError::TellModel`] for everything the model can mend.
    fn run<'a>(&'a self, arguments: &'a Value, call: &'a CallHandle) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;

    /// What [`Tool::run`] would change if it ran now, for the person who is asked: files as a unified diff. It changes nothing
    /// itself. `None` means the arguments say it all.
    fn preview<'a>(&'a self, _arguments: &'a Value) -> BoxFuture<'a, Option<String>> {
        Box::pin(std::future::ready(None))
    }

    /// What stands for the thing that [`Tool::run`] would replace, as it is now: a digest of the file, say. A call that a person approved is
    /// sent only while this is what it was when they were asked; else they are asked again, with a new [`Tool::preview`]. `None` means nothing
    /// is replaced, or it cannot be known.
    fn base<'a>(&'a self, _arguments: &'a Value) -> BoxFuture<'a, Option<String>> {
        Box::pin(std::future::ready(None))
    }

    /// The arguments with every path as it is behind links, if that is another one. Rules look at both, and the stricter counts. [`Tool::run`] is
    /// given these then, and follows no link any more ([`CallHandle::links_resolved`]).
    fn behind_links<'a>(&'a self, _arguments: &'a Value) -> BoxFuture<'a, Option<Value>> {
        Box::pin(std::future::ready(None))
    }

    /// Does it recognise a call that it was running when its process died ([`CallHandle::action`]), so that it goes on where it was? Such a call
    /// is run again after a crash. Of the others nobody knows whether they ran, and a person is asked.
    fn resumes(&self) -> bool {
        false
    }
}

/// One call, as its tool sees it: which one it is, and when it should end.
#[derive(Clone, Debug, Default)]
pub struct CallHandle {
    /// The row of a call that changes something: the same whenever this call is run again. Reads have none.
    pub action: Option<ActionId>,
    /// What [`Tool::base`] said when the call was let through by a person. `None` when nobody was asked, or nothing is replaced.
    pub base: Option<String>,
    /// Rules have looked at the paths in the arguments as they are behind links. A link that is met now was put there later, and is refused.
    pub links_resolved: bool,
    /// Tells the call to end.
    pub halt: Halt,
}

/// What [`Tool::base`] of a file tool says when the file holds exactly what the call would write.
pub const AS_ASKED: &str = "as asked";

/// Why the configured tools cannot be offered. For the person who wrote the configuration.
#[derive(Debug, thiserror::Error)]
pub enum ToolboxError {
    /// `tools.workspace` cannot be used.
    #[error("tools.workspace: `{folder}` {why}")]
    Workspace {
        /// As configured.
        folder: String,
        /// What is wrong with it.
        why: String,
    },
    /// `tools.effects` gives a tool a class that only the agent's own tools may have.
    #[error("tools.effects.{0}: found state, allowed read, write, destructive")]
    Effect(String),
    /// `tools.effects` calls a tool a read that other people hear of.
    #[error("tools.effects.{0}: found read, allowed write, destructive: other people hear of it")]
    ReadEffect(String),
    /// `tools.run_bash` without bash.
    #[error("tools.run_bash: there is no bash on this machine")]
    NoBash,
    /// `tools.web_fetch` without a client: TLS roots of this machine.
    #[error("tools.web_fetch: cannot set up the HTTP client: {0}")]
    Http(String),
}

/// Why a call should end before it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HaltReason {
    /// A person stopped the turn.
    ByPerson,
    /// Its time is up.
    ByTime,
}

/// Tells a running call to end. The runner does so once; a tool that can end early does so and answers with what it has done
/// until then, which is then the call's true result. A tool that does not listen is given up after a while;
/// what became of its call is unknown then.
#[derive(Clone, Debug, Default)]
pub struct Halt {
    why: Arc<OnceLock<HaltReason>>,
    told: CancellationToken,
}

impl Halt {
    /// Asks the call to end. The first reason stays.
    pub fn tell(&self, why: HaltReason) {
        let _ = self.why.set(why);
        self.told.cancel();
    }

    /// Comes back once the call should end.
    pub async fn told(&self) -> HaltReason {
        self.told.cancelled().await;
        self.why.get().copied().unwrap_or(HaltReason::ByPerson)
    }
}

/// The arguments as the tool wants them.
///
/// # Errors
/// [`ToolError::TellModel`] says what is wrong with them.
pub fn read_arguments<T: DeserializeOwned>(arguments: &Value) -> Result<T, ToolError> {
    T::deserialize(arguments).map_err(|error| ToolError::TellModel(format!("wrong arguments: {error}")))
}
