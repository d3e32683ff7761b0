//! Carries the agent's effects out: journal first, then act, then feed the result back as the next input.
//!
//! A [`Runner`] handles one leased lane at a time, until the lane has nothing to do. Everything it writes
//! carries the lease's fence; when the lease is lost it stops without another effect.

mod commit;
mod drive;
mod ears;
mod execute;
mod inspect;
mod leases;
mod model_call;
mod news;
mod preview;
mod split;

pub use inspect::Details;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use self::ears::Ears;
use self::leases::Leases;
use crate::config::Settings;
use crate::domain::{Clock, Failpoint, Ids, Millis, ServerHealth};
use crate::model::ChatModel;
use crate::store::{Ledger, StoreError};
use crate::template::Templates;
use crate::tools::Toolbox;

/// Gives the model of the settings in force; asked anew for every call.
pub type ModelSource = Arc<dyn Fn() -> Arc<dyn ChatModel> + Send + Sync>;

/// Lengths of leases and polls. Fixed in production; process tests shorten them.
#[derive(Clone, Copy, Debug)]
pub struct Timings {
    /// How long a lane is leased, or a row of the outbox held.
    pub lease: Duration,
    /// How often workers look for work that no bell announced.
    pub poll: Duration,
    /// How often a running call looks for `/stop`.
    pub interrupt_poll: Duration,
    /// How long a write call that was already sent is waited for after it was told to end.
    pub stop_grace: Duration,
    /// Longest run of one tool call; then it is told to end.
    pub tool_timeout: Duration,
    /// How often a reader of events is pinged; one who has not answered by the next time is gone.
    pub socket_ping: Duration,
    /// How long a reader of events may take to read one.
    pub socket_patience: Duration,
}

impl Default for Timings {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(30),
            poll: Duration::from_secs(1),
            interrupt_poll: Duration::from_millis(250),
            stop_grace: Duration::from_secs(10),
            tool_timeout: Duration::from_secs(120),
            socket_ping: Duration::from_secs(30),
            socket_patience: Duration::from_secs(10),
        }
    }
}

/// Why work on a lane stopped before it was done.
#[derive(Debug, thiserror::Error)]
pub enum WorkError {
    /// The store failed; a lost lease is one of these.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The turn was written by a newer version or is damaged: left for somebody who can read it.
    #[error("turn {turn_id} cannot be read here: {reason}")]
    Unreadable {
        /// The turn.
        turn_id: String,
        /// Why.
        reason: String,
    },
}

/// How the last model call went; shown in `/readyz`.
#[derive(Clone, Debug)]
pub struct ModelHealth {
    /// None: not called yet.
    pub last: Option<(Millis, Result<(), String>)>,
}

/// What a runner is made of.
#[derive(Clone)]
pub struct Runner {
    ledger: Ledger,
    settings: Settings,
    clock: Clock,
    ids: Ids,
    templates: Arc<Templates>,
    tools: Arc<Toolbox>,
    models: ModelSource,
    timings: Timings,
    failpoint: Failpoint,
    health: Arc<Mutex<ModelHealth>>,
    ears: Arc<Ears>,
    leases: Arc<Leases>,
}

impl fmt::Debug for Runner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runner").field("tools", &self.tools).finish_non_exhaustive()
    }
}

/// The parts that the composition root picks.
#[derive(Clone)]
pub struct RunnerParts {
    /// Store.
    pub ledger: Ledger,
    /// Settings in force.
    pub settings: Settings,
    /// Wall clock.
    pub clock: Clock,
    /// Random ids.
    pub ids: Ids,
    /// Prompts.
    pub templates: Arc<Templates>,
    /// Action tools.
    pub tools: Arc<Toolbox>,
    /// Model of the settings in force.
    pub models: ModelSource,
    /// Lengths.
    pub timings: Timings,
    /// Where a test lets the process die.
    pub failpoint: Failpoint,
}

impl fmt::Debug for RunnerParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunnerParts").finish_non_exhaustive()
    }
}

impl Runner {
    /// Puts a runner together.
    #[must_use]
    pub fn new(parts: RunnerParts) -> Self {
        let RunnerParts {
            ledger,
            settings,
            clock,
            ids,
            templates,
            tools,
            models,
            timings,
            failpoint,
        } = parts;
        let health = Arc::new(Mutex::new(ModelHealth { last: None }));
        Self {
            ledger,
            settings,
            clock,
            ids,
            templates,
            tools,
            models,
            timings,
            failpoint,
            health,
            ears: Arc::default(),
            leases: Arc::default(),
        }
    }

    /// How the MCP servers stand.
    #[must_use]
    pub fn server_health(&self) -> Vec<ServerHealth> {
        self.tools.servers().health()
    }

    /// How the last model call went.
    #[must_use]
    pub fn model_health(&self) -> ModelHealth {
        self.health.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
