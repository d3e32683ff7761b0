//! Action tools: the trait, and the box that holds those that the configuration switches on.

mod files;
mod sample;
mod workspace;

pub use sample::unpack_sample;

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::Value;

use crate::config::Boot;
use crate::domain::{EffectClass, Ids, ToolSpec};

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

    /// What [`Tool::run`] would change if it ran now, for the person who is asked: files as a unified diff. It changes nothing
    /// itself. None: the arguments say it all.
    fn preview<'a>(&'a self, _arguments: &'a Value) -> BoxFuture<'a, Option<String>> {
        Box::pin(std::future::ready(None))
    }
}

/// The action tools that are switched on, in the order in which the model sees them.
#[derive(Clone, Debug, Default)]
pub struct Toolbox {
    tools: Vec<Arc<dyn Tool>>,
    effects: BTreeMap<String, EffectClass>,
}

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
}

impl Toolbox {
    /// These tools; `effects` overrides the effect class that a tool gives itself.
    #[must_use]
    pub fn new(tools: Vec<Arc<dyn Tool>>, effects: BTreeMap<String, EffectClass>) -> Self {
        Self { tools, effects }
    }

    /// What the configuration switches on: the file tools, when there is a workspace.
    ///
    /// # Errors
    /// The workspace is no folder or cannot be opened; an override that would take a tool out of review.
    pub fn from_config(boot: &Boot) -> Result<Self, ToolboxError> {
        if let Some((name, _)) = boot.effects.iter().find(|(_, class)| **class == EffectClass::State) {
            return Err(ToolboxError::Effect(name.clone()));
        }
        let tools = match &boot.workspace {
            Some(folder) => files::tools(folder, &Ids::random())?,
            None => Vec::new(),
        };
        Ok(Self::new(tools, boot.effects.clone()))
    }

    /// What is offered, with effect classes after overrides.
    #[must_use]
    pub fn specs(&self) -> Vec<ToolSpec> {
        self.tools.iter().map(|tool| self.overridden(tool.spec())).collect()
    }

    /// The tool of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Arc<dyn Tool>> {
        self.tools.iter().find(|tool| tool.spec().name == name).cloned()
    }

    fn overridden(&self, mut spec: ToolSpec) -> ToolSpec {
        if let Some(class) = self.effects.get(&spec.name) {
            spec.effect = *class;
        }
        spec
    }
}
