//! What we remember: the ledger (SQL, never loses anything), and Redis beside it (a look-up that may be lost, and wake-ups).
//!
//! A read-only connection ([`Ledger::read`]) is a [`Read`], and its methods are the verbs that read. A write transaction
//! ([`Ledger::begin`]) is a [`Tx`]: it has these as well, and those that write. Rows that a turn owns are written under its lane's fence:
//! a writer that lost its lease gets [`StoreError::Stale`] and stops.

mod coordination;
mod hold;
mod keys;
mod ledger;

pub use coordination::{CoordinationHealth, try_redis};
pub use hold::Hold;
pub(crate) use ledger::MAX_CRASHES;
pub use ledger::{
    ActionRecord, AuditCheck, AuditEntry, AuditHead, Backlog, ChatEntry, Cursor, DamagedRow, EventPlace, EventRow, EventSpan, FeedbackRow,
    GateRecord, InboxRow, InboxState, InvalidAuditHead, InvalidCursor, Lease, Ledger, Line, LineKind, ListQuery, NewOutbox, OutboxRow,
    OutgoingFile, Page, PostState, PruneCounts, Read, Renewal, SchemaState, SealPart, Signal, SimulatedCommit, SimulatedOrder,
    SimulatedTurn, Tail, TurnRow, Tx, card_key, event_id, outbox_key, reminder_keys,
};

pub use countersign_agent::domain::OutboxOp;

/// What a caller can act on.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The lease was lost: somebody else owns the lane now. Stop without another effect.
    #[error("the lane's lease is lost")]
    Stale,
    /// Nothing was written; worth another try (locked, full, too slow, shutting down).
    #[error("the ledger cannot write now: {0}")]
    Unavailable(String),
    /// Another process holds the database file.
    #[error("the database `{path}` is in use by process {pid}")]
    Held {
        /// File.
        path: String,
        /// Holder.
        pid: String,
    },
    /// The database cannot be used as it is: newer schema, damaged, wrong URL.
    #[error("the database cannot be used: {0}")]
    Unusable(String),
    /// A stored value does not read back.
    #[error("a stored value does not read back: {0}")]
    Corrupt(String),
}
