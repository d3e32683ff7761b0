//! Carries the agent's effects out: journal first, then act, then feed the result back as the next input.
//!
//! The engine takes a turn on over a [`Journal`] and knows no more of it. A [`Runner`] does so for the lanes of the ledger, as
//! the gateway's workers want it.

mod journal;
mod engine;
mod model_call;
mod execute;
mod observers;
mod preview;
mod state;
mod ledger;
mod worker;
mod agent;
mod task;
mod notebook;
mod leases;
mod inspect;

pub use agent::{Agent, AgentBuilder, BuildError};
pub use engine::Left;
pub use inspect::Details;
pub use journal::{Entry, Journal, News, Sending, left, left_behind, verdicts};
pub use notebook::{FORMAT, Happened, Heard, Keeper, Notebook, OpenGate, RestoreError, Verdict, VerdictError};
pub use observers::{HookError, Observer};
pub use task::{Ending, Outcome, Task, TaskError};
pub use worker::{Runner, RunnerParts};

use std::sync::Arc;
use std::time::Duration;

use crate::domain::Millis;
use crate::model::ChatModel;
use crate::store::StoreError;

/// Gives the model of the settings in force; asked anew for every call.
pub type ModelSource = Arc<dyn Fn() -> Arc<dyn ChatModel> + Send + Sync>;

/// Lengths of leases and polls. Fixed in production; process tests shorten them.
#[derive(Clone, Copy, Debug)]
pub struct Timings {
    /// How long a lane is leased, or a row of the outbox held.
    pub lease: Duration,
    /// How often workers look for work that no wake-up announced.
    pub poll: Duration,
    /// How often a running call looks for `/stop`.
    pub interrupt_poll: Duration,
    /// How long a write call that was already sent is waited for after it was told to end.
    pub stop_grace: Duration,
    /// Longest run of one tool call; then it is told to end.
    pub tool_timeout: Duration,
    /// How often a reader of events is pinged; a reader that has not answered by the next ping is disconnected.
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
    /// `None` before the first call.
    pub last: Option<(Millis, Result<(), String>)>,
}
