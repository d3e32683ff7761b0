//! Carries the reducer's effects out: journal first, then act, then feed the result back as the next input.
//!
//! The engine takes a turn on over a [`Journal`] and knows no more of it: the gateway's is a ledger in SQL, that of a program of yours
//! a [`Notebook`].

mod journal;
mod drive;
mod model_call;
mod execute;
mod observers;
mod preview;
mod edit;
mod agent;
mod task;
mod notebook;

pub use agent::{Agent, AgentBuilder, BuildError};
pub use drive::{CallSetup, Engine, RETRY, RuleSource, RunEnd};
pub use journal::{Journal, JournalError, OutsideInput, Sending, StepRecord, row_verdicts, status_at_end, unread_outcomes};
pub use notebook::{FORMAT, Keeper, Notebook, OpenGate, RestoreError, TaskError, TimelineEntry, Verdict, VerdictEffect, VerdictError};
pub use observers::{HookError, Observer, Observers};
pub use task::{Ending, Outcome, Task, TaskFailed};

use std::collections::BTreeSet;
use std::time::Duration;

use crate::domain::Millis;

/// Lengths of calls.
#[derive(Clone, Copy, Debug)]
pub struct Timings {
    /// How often a running call looks for a stop.
    pub interrupt_poll: Duration,
    /// How long a write call that was already sent is waited for after it was told to end.
    pub stop_grace: Duration,
    /// Longest run of one tool call; then it is told to end.
    pub tool_timeout: Duration,
}

impl Default for Timings {
    fn default() -> Self {
        Self {
            interrupt_poll: Duration::from_millis(250),
            stop_grace: Duration::from_secs(10),
            tool_timeout: Duration::from_secs(120),
        }
    }
}

/// How the last model call went; shown in `/readyz`.
#[derive(Clone, Debug, Default)]
pub struct ModelHealth {
    /// `None` before the first call.
    pub last: Option<(Millis, Result<(), String>)>,
    /// Tools for which requests had no room, since the start: each is told to the log once.
    pub left_out: BTreeSet<String>,
}
