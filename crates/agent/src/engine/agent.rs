//! The agent for programs of your own: a model, tools and rules, without gateway, chat or database.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::JournalError;
use super::drive::{CallSetup, Engine, RunEnd};
use super::journal::Journal;
use super::notebook::{Notebook, NotebookPage, RestoreError};
use super::observers::{Observer, Observers};
use super::task::Task;
use super::{ModelHealth, Timings};
use crate::domain::{CallDraft, Clock, EffectClass, Failpoint, Ids, Mode, Policy, Rule};
use crate::model::ChatModel;
use crate::reducer::{self, Beginning, Turn};
use crate::template::{TemplateError, Templates};
#[cfg(feature = "mcp")]
use crate::tools::Servers;
use crate::tools::{Tool, Toolbox};

/// Why an agent cannot be built. For the person who writes the program.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// Two tools have the same name, or a tool has the name of one of the agent's own (`plan`, `clarify`, …).
    #[error("there is already a tool `{0}`: the model could not tell them apart")]
    Taken(String),
    /// Providers take 1 to 64 letters, digits, `_` and `-`.
    #[error("`{0}` is no name for a tool: use 1 to 64 letters, digits, `_` and `-`")]
    Name(String),
    /// Only the agent's own tools change its state.
    #[error("the effect class of `{0}` is `state`: say read, write or destructive")]
    Effect(String),
    /// The arguments of a call are an object.
    #[error("the parameters of `{0}` are no JSON Schema of an object (`\"type\": \"object\"`)")]
    Parameters(String),
    /// The prompts do not load.
    #[error(transparent)]
    Prompts(#[from] TemplateError),
}

/// A model with tools and rules. Cheap to clone; one agent runs any number of tasks at a time.
#[derive(Clone)]
pub struct Agent {
    engine: Engine,
    policy: Policy,
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent").field("engine", &self.engine).finish_non_exhaustive()
    }
}

impl Agent {
    /// Begins with a model, no tools, and the rules of [`Policy::default`].
    #[must_use]
    pub fn builder(model: impl ChatModel + 'static) -> AgentBuilder {
        AgentBuilder {
            model: Arc::new(model),
            tools: Vec::new(),
            #[cfg(feature = "mcp")]
            servers: Servers::default(),
            policy: Policy::default(),
            rules: Vec::new(),
            system_prompt: String::new(),
            parallel_tool_calls: true,
            patience: Duration::ZERO,
            clock: Clock::system(),
            ids: Ids::random(),
            timings: Timings::default(),
            observers: Vec::new(),
        }
    }

    /// A task that has not begun; [`Task::execute`] carries it out.
    #[must_use]
    pub fn task(&self, goal: &str) -> Task {
        let notebook = Notebook::new(NotebookPage::of(self.begin(goal, "user")), self.engine.clock.clone());
        Task::new(notebook, Some(self.engine.clone()))
    }

    /// A task that [`Task::serialize`] gave, to be gone on with: steps that are done stay done, an open gate stays open.
    ///
    /// # Errors
    /// [`RestoreError::VersionMismatch`] when a newer version wrote it; [`RestoreError::Damaged`].
    pub fn restore(&self, stored: &str) -> Result<Task, RestoreError> {
        Ok(self.attach(Task::deserialize(stored)?))
    }

    /// Gives a task that was only deserialized what it needs to run.
    #[must_use]
    pub fn attach(&self, task: Task) -> Task {
        let notebook = task.notebook();
        notebook.set_clock(self.engine.clock.clone());
        // What was shown after this copy was made may have had ids of the old seed: no new gate must pass for one of those.
        let seed = self.engine.ids.token();
        notebook.prepare(|page| page.state.seed = seed);
        Task::new(notebook, Some(self.engine.clone()))
    }

    /// A waiting call of `tool` with these arguments, one JSON object, for [`Notebook::approve_edited`].
    ///
    /// # Errors
    /// What is to be mended in the arguments.
    pub async fn draft(&self, tool: &str, arguments: &str) -> Result<CallDraft, String> {
        self.engine.draft(tool, arguments, "").await
    }

    /// A turn that has not begun, for a [`Journal`] of your own.
    #[must_use]
    pub fn begin(&self, goal: &str, requester: &str) -> Turn {
        reducer::begin(Beginning {
            turn_id: self.engine.ids.turn().to_string(),
            seed: self.engine.ids.token(),
            task: goal.to_owned(),
            requester: requester.to_owned(),
            group: false,
            policy: self.policy.clone(),
            demo: (self.engine.call_setup)(&self.policy).model.is_demo(),
        })
    }

    /// Takes `turn` on over `journal` until it waits or ends, or `stop` asks to leave it at the next step. On an error
    /// `turn` is as it was last committed, as far as is known here: read it from your memory before you go on.
    ///
    /// # Errors
    /// Those of the journal.
    pub async fn run(&self, turn: &mut Turn, journal: &dyn Journal, stop: &CancellationToken) -> Result<RunEnd, JournalError> {
        self.engine.drive_settled(journal, turn, stop).await
    }
}

/// Puts an [`Agent`] together.
#[derive(Clone)]
pub struct AgentBuilder {
    model: Arc<dyn ChatModel>,
    tools: Vec<Arc<dyn Tool>>,
    #[cfg(feature = "mcp")]
    servers: Servers,
    policy: Policy,
    rules: Vec<Rule>,
    system_prompt: String,
    parallel_tool_calls: bool,
    patience: Duration,
    clock: Clock,
    ids: Ids,
    timings: Timings,
    observers: Vec<Arc<dyn Observer>>,
}

impl fmt::Debug for AgentBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentBuilder").field("tools", &self.tools).finish_non_exhaustive()
    }
}

impl AgentBuilder {
    /// Adds a tool. Its effect class says whether a call of it asks a person: reads never do, writes unless an approved plan grants
    /// them, destructive ones always.
    #[must_use]
    pub fn tool(self, tool: impl Tool + 'static) -> Self {
        self.tools([Arc::new(tool) as Arc<dyn Tool>])
    }

    /// Adds tools, as [`crate::tools::file_tools`] gives them.
    #[must_use]
    pub fn tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Adds what these MCP servers offer, under `SERVER__TOOL`.
    #[cfg(feature = "mcp")]
    #[must_use]
    pub fn servers(mut self, servers: Servers) -> Self {
        self.servers = servers;
        self
    }

    /// Rules about calls ([`Rule`]). They outrank what an approved plan covers, and an approval of people too.
    #[must_use]
    pub fn rules(mut self, rules: Vec<Rule>) -> Self {
        self.rules = rules;
        self
    }

    /// The rules of every task: reviews, approvals, limits.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Carries tasks out step by step: plan, then for each step act and reflect, then conclude.
    #[must_use]
    pub fn plan_mode(mut self) -> Self {
        self.policy.mode = Mode::Plan;
        self
    }

    /// Are plans shown, to be countersigned before anything but reads runs? They are unless this says otherwise.
    #[must_use]
    pub fn review_plans(mut self, review: bool) -> Self {
        self.policy.review_enabled = review;
        self
    }

    /// Added to the base prompt.
    #[must_use]
    pub fn system_prompt(mut self, words: &str) -> Self {
        words.clone_into(&mut self.system_prompt);
        self
    }

    /// May the model ask for several calls at once? It may unless this says otherwise.
    #[must_use]
    pub fn parallel_tool_calls(mut self, may: bool) -> Self {
        self.parallel_tool_calls = may;
        self
    }

    /// How long a model whose server is away ([`ModelError::Away`](crate::model::ModelError::Away)) is asked again; half a minute at least. A task
    /// that waits so is carried on by [`Task::execute`]; [`Agent::run`] says when it is to be called again.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Adds somebody who watches every task, and may object; they are asked in the order in which they are added.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observers.push(observer);
        self
    }

    /// Time for tests: gates lapse by this clock.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Where ids come from; [`Ids::counted`] makes a run repeatable.
    #[must_use]
    pub fn ids(mut self, ids: Ids) -> Self {
        self.ids = ids;
        self
    }

    /// How long a tool may run and how long a stop waits for it.
    #[must_use]
    pub fn timings(mut self, timings: Timings) -> Self {
        self.timings = timings;
        self
    }

    /// The agent.
    ///
    /// # Errors
    /// [`BuildError`]: a tool that no model could be offered.
    pub fn build(self) -> Result<Agent, BuildError> {
        let mut names: Vec<String> = reducer::own_tools().iter().map(|spec| spec.name.clone()).collect();
        for tool in &self.tools {
            let spec = tool.spec();
            let word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            if spec.name.is_empty() || spec.name.len() > 64 || !spec.name.chars().all(word) {
                return Err(BuildError::Name(spec.name));
            }
            if names.contains(&spec.name) {
                return Err(BuildError::Taken(spec.name));
            }
            if spec.effect == EffectClass::State {
                return Err(BuildError::Effect(spec.name));
            }
            if spec.parameters["type"] != "object" {
                return Err(BuildError::Parameters(spec.name));
            }
            names.push(spec.name);
        }
        let call_setup = CallSetup {
            model: self.model,
            system_prompt: self.system_prompt,
            parallel_tool_calls: self.parallel_tool_calls,
            vision: true,
            patience: self.patience,
        };
        let tools = Toolbox::new(self.tools, &BTreeMap::new());
        #[cfg(feature = "mcp")]
        let tools = tools.with_servers(self.servers);
        let rules: Arc<[Rule]> = self.rules.into();
        let engine = Engine {
            rules: Arc::new(move || Arc::clone(&rules)),
            call_setup: Arc::new(move |_| call_setup.clone()),
            clock: self.clock,
            ids: self.ids,
            templates: Arc::new(Templates::load(None)?),
            tools: Arc::new(tools),
            timings: self.timings,
            failpoint: Failpoint::default(),
            observers: Observers::new(self.observers),
            health: Arc::new(Mutex::new(ModelHealth::default())),
        };
        Ok(Agent {
            engine,
            policy: self.policy,
        })
    }
}
