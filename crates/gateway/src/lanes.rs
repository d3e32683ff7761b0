//! Works on the lanes of the ledger: leases, the ledger as the engine's journal, and what others may see of a stored turn.

mod state;
mod ledger;
mod runner;
mod chat_tools;
mod send_file;
mod begin;
mod leases;
mod inspect;
mod left_out;
mod surroundings;

pub use chat_tools::{ChatTools, ToolsOfChat};
pub use inspect::{Details, ended_by_outage, plan_of, undone_of, waits_for_model};
pub use left_out::left_out;
pub use runner::{ModelSource, Runner, RunnerParts};
pub use send_file::{FileSender, SEND_FILE, send_file_spec};
pub use surroundings::{Request, Surroundings};

use std::time::Duration;

use countersign_agent::engine::{JournalError, Timings};

use crate::store::StoreError;

/// Lengths of leases, polls and calls. Fixed in production; process tests shorten them.
#[derive(Clone, Copy, Debug)]
pub struct Intervals {
    /// How long a lane is leased, or a row of the outbox held.
    pub lease: Duration,
    /// How often workers look for work that no wake-up announced.
    pub poll: Duration,
    /// How often a reader of events is pinged; a reader that has not answered by the next ping is disconnected.
    pub socket_ping: Duration,
    /// How long a reader of events may take to read one.
    pub socket_timeout: Duration,
    /// A platform that allows an app no more connections is asked again after so long at most. Further pauses are longer.
    pub crowded: Duration,
    /// How long the answer to a press waits for the decision. Platforms show an error of their own after three seconds.
    pub click: Duration,
    /// Time limits of tool calls, and how often a running call looks for a stop.
    pub calls: Timings,
}

impl Default for Intervals {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(30),
            poll: Duration::from_secs(1),
            socket_ping: Duration::from_secs(30),
            socket_timeout: Duration::from_secs(10),
            crowded: Duration::from_secs(60),
            click: Duration::from_secs(2),
            calls: Timings::default(),
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
    Unreadable { turn_id: String, reason: String },
}

impl From<JournalError> for WorkError {
    fn from(error: JournalError) -> Self {
        Self::Store(error.into())
    }
}
