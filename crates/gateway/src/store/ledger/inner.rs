//! What the handles, connections and tasks of one open ledger share.

use countersign_agent::domain::Clock;
use parking_lot::Mutex;

use super::damage::Damage;
use super::file::FileLock;
use super::ids::Sequence;
use super::pool::Pool;
use super::simulation::Simulation;
use super::wakeups::Wakeups;
use super::write_queue::{ChatLocks, WriteQueue};

/// What all handles and connections of a ledger share.
#[derive(Debug)]
pub(super) struct Inner {
    pub(super) clock: Clock,
    pub(super) sequence: Sequence,
    pub(super) pools: Pools,
    /// The queue of writers on SQLite, which has one at a time. `None` on PostgreSQL.
    pub(super) write_queue: Option<WriteQueue>,
    /// Used on PostgreSQL, which has many writers.
    pub(super) chat_locks: ChatLocks,
    pub(super) wakeups: Wakeups,
    pub(super) simulation: Simulation,
    pub(super) damage: Damage,
    /// Held as long as the ledger is open.
    pub(super) file_lock: Mutex<Option<FileLock>>,
}

impl Inner {
    /// Is the database shared with other processes?
    pub(super) fn is_shared(&self) -> bool {
        self.write_queue.is_none()
    }
}

/// The connections of a ledger, by what they are for.
#[derive(Debug)]
pub(super) struct Pools {
    /// The writers of all but the inbox. `None` means opened read-only.
    pub(super) journal: Option<Pool>,
    pub(super) read: Pool,
}

impl Pools {
    pub(super) async fn close(&self) {
        self.read.close().await;
        if let Some(journal) = &self.journal {
            journal.close().await;
        }
    }
}
