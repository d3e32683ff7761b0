//! What we remember: the ledger (SQL, never loses anything), and Redis beside it (a look-up that may be lost, and wake-ups).
//!
//! A read-only connection ([`Ledger::read`]) is a [`Read`], and its methods are the verbs that read. A write transaction
//! ([`Ledger::begin`]) is a [`Tx`]: it has these as well, and those that write. Rows that a turn owns are written under its lane's fence:
//! a writer that lost its lease gets [`StoreError::Stale`] and stops.

mod coordination;
mod hold;
mod keys;
mod ledger;

pub use coordination::{Standing, look_at_redis};
pub use hold::Hold;
pub use ledger::{
    AuditCheck, AuditHead, Cursor, Depth, Fate, Leave, Ledger, Looked, NoAuditHead, NoCursor, Pace, Pruned, Read, SealPart, Tail, Tx,
};

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use countersign_agent::domain::{
    Action, ActionId, ChannelKind, Conversation, Decision, Event, Gate, GateId, Inbound, LaneId, Millis, Outbound, SignalKind, TurnId,
    TurnReason, TurnStatus,
};

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

/// One row of the inbox.
#[derive(Clone, Debug, PartialEq)]
pub struct InboxRow {
    /// Process-made, monotone: `ms << 20 | sequence`.
    pub id: i64,
    /// What came in.
    pub inbound: Inbound,
    /// When it was committed.
    pub received_at: Millis,
    /// `new`, `laned`, `done`.
    pub state: InboxState,
    /// Of a `new` row: one of the same event was handled before this look.
    pub is_copy: bool,
}

/// Where an inbox row stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InboxState {
    /// Committed, not triaged yet.
    New,
    /// A task waiting in its sender's lane.
    Laned,
    /// Handled.
    Done,
}

/// A lease on a lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The lane.
    pub lane_id: LaneId,
    /// Its conversation.
    pub conversation: Conversation,
    /// Its requester.
    pub user: String,
    /// Rises with every claim; every write of the turn carries it.
    pub fence: i64,
    /// Wake-ups seen when it was claimed; a later one forbids going to sleep.
    pub wakes: i64,
    /// The unfinished turn, if there is one.
    pub turn_id: Option<TurnId>,
    /// So many processes died while they worked on that turn, with no step journaled since. It was counted when the lane was claimed.
    pub crashes: i64,
}

impl Lease {
    /// So many processes died of the turn that it is not to be read again.
    #[must_use]
    pub fn is_given_up(&self) -> bool {
        self.crashes >= MAX_CRASHES
    }
}

/// A turn with which so many processes have died, with no step journaled since, has failed.
pub(crate) const MAX_CRASHES: i64 = 3;

/// What came of the wish to prolong a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// It begins anew.
    Prolonged,
    /// It is still held, and somebody writes to the lane at this moment: ask again.
    Busy,
    /// This worker does not have the lane (any more).
    Lost,
}

/// A turn as stored.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnRow {
    /// `turn_…`.
    pub id: TurnId,
    /// Its lane.
    pub lane_id: LaneId,
    /// Where it was asked.
    pub conversation: Conversation,
    /// The person who asked.
    pub user: String,
    /// What was asked.
    pub text: String,
    /// The request's message id.
    pub request_message: Option<String>,
    /// Inbox row it came from; `/stop` and `/new` act on turns with a smaller one.
    pub inbox_id: i64,
    /// Status, for lists.
    pub status: TurnStatus,
    /// Why it ended.
    pub reason: Option<TurnReason>,
    /// Reducer state, as JSON text: a turn that waits holds it, and as a tree it would be five times as large.
    pub state: String,
    /// Messages journaled so far.
    pub messages: i64,
    /// Events journaled so far (`seq` of the last one).
    pub events: i64,
    /// Outbox rows made so far.
    pub said: i64,
    /// Times.
    pub created_at: Millis,
    /// First work.
    pub started_at: Option<Millis>,
    /// End.
    pub finished_at: Option<Millis>,
}

/// Something a person did to a turn from outside its lane's lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signal {
    /// Row id.
    pub id: i64,
    /// What.
    pub kind: SignalKind,
    /// Steering text.
    pub text: Option<String>,
    /// Who; none for ourselves.
    pub by: Option<String>,
}

/// A timeline entry as stored and as the API gives it.
#[derive(Clone, Debug, PartialEq)]
pub struct EventRow {
    /// 1.. per turn without gaps.
    pub seq: i64,
    /// `ev_…`.
    pub id: String,
    /// Its turn.
    pub turn_id: TurnId,
    /// The chat.
    pub chat: String,
    /// When.
    pub at: Millis,
    /// What.
    pub event: Event,
    /// One line.
    pub summary: String,
    /// Iteration.
    pub iteration: u64,
}

/// The id of a turn's event.
#[must_use]
pub fn event_id(turn: &TurnId, seq: i64) -> String {
    format!("ev_{}_{seq}", turn.as_str().trim_start_matches("turn_"))
}

/// Where an event stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventPlace {
    /// When it was.
    pub at: Millis,
    /// Its turn.
    pub turn_id: TurnId,
    /// Its place there.
    pub seq: i64,
}

/// Events of one turn that follow one another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventSpan {
    /// The turn.
    pub turn_id: TurnId,
    /// `seq` of the first.
    pub first: i64,
    /// `seq` of the last.
    pub last: i64,
}

/// What an outbox row does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum OutboxOp {
    /// A new message.
    Post {
        /// Message to answer.
        reply_to: Option<String>,
        /// What.
        content: Outbound,
    },
    /// Repaint the card posted by the row with key `target`; newer ones replace waiting older ones.
    Patch {
        /// Key of the row that posted the card.
        target: String,
        /// What it shows now.
        content: Outbound,
    },
    /// A mark on a message.
    React {
        /// Whose message.
        message_id: String,
        /// Which mark.
        content: Outbound,
    },
}

/// The idempotency key of an outbox row: `o_` and 32 hex digits over its parts. The card of a gate has the
/// parts `["gate", gate id]`, the progress card of a turn `["progress", turn id]`.
#[must_use]
pub fn outbox_key(parts: &[&str]) -> String {
    format!("o_{}", hex::encode(countersign_agent::domain::digest128(parts)))
}

/// A row to enqueue.
#[derive(Clone, Debug, PartialEq)]
pub struct NewOutbox {
    /// Idempotency key; a second row with the same key is dropped.
    pub key: String,
    /// FIFO among rows of the same queue (turn id or inbox id); repaints are FIFO among those of their card instead.
    pub queue: String,
    /// The gate whose TTL starts when this is delivered.
    pub gate_id: Option<GateId>,
    /// Turn, if any.
    pub turn_id: Option<TurnId>,
    /// Where to.
    pub conversation: Conversation,
    /// What.
    pub op: OutboxOp,
}

/// A row to send.
#[derive(Clone, Debug, PartialEq)]
pub struct OutboxRow {
    /// Monotone id.
    pub id: i64,
    /// As enqueued.
    pub new: NewOutbox,
    /// For patches: message id of the target, once known.
    pub target_message: Option<String>,
    /// Tries so far, those of unknown outcome included.
    pub tries: i64,
    /// One of these tries may have arrived.
    pub uncertain: bool,
    /// Cards were refused: say it as text.
    pub plain: bool,
    /// When it was made.
    pub created_at: Millis,
    /// After this it is given up.
    pub give_up_at: Millis,
}

/// What a platform rations together, how many deliveries of it are worth taking within what time, by all processes, and what this process
/// has places for. Posts are counted chat by chat, repaints and marks over all chats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// The platform.
    pub channel: ChannelKind,
    /// Posts, repaints or marks.
    pub kind: LineKind,
    /// So many at most are held of those that were taken [within](Line::within) this time.
    pub most: usize,
    /// A row that was claimed longer ago than this counts no more: its process hangs or is gone.
    pub within: Duration,
    /// So many of the platform's rows may be taken now, of all its lines together.
    pub free: usize,
}

/// See [`Line`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind {
    /// New messages.
    Posts,
    /// Repaints of cards.
    Repaints,
    /// Marks on messages.
    Marks,
}

/// Filters and page of a list; `None` = any.
#[derive(Clone, Debug, Default)]
pub struct ListQuery {
    /// Status name as in the API.
    pub status: Option<String>,
    /// Chat id.
    pub chat: Option<String>,
    /// Requester.
    pub user: Option<String>,
    /// Turn id.
    pub turn: Option<String>,
    /// 1 to 200.
    pub limit: i64,
    /// Where the last page ended.
    pub cursor: Option<Cursor>,
}

/// A page, newest first.
#[derive(Clone, Debug, PartialEq)]
pub struct Page<T> {
    /// The rows.
    pub items: Vec<T>,
    /// Cursor of the next page.
    pub next: Option<Cursor>,
}

/// What was said in a console chat.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// By a person.
    User(InboxRow),
    /// By the bot: the post, with the newest patch applied.
    Bot {
        /// Outbox id.
        id: i64,
        /// Key of the row.
        key: String,
        /// Thread.
        thread: String,
        /// What.
        content: Outbound,
        /// Platform message id.
        message_id: Option<String>,
        /// When.
        at: Millis,
    },
}

/// A gate with its votes and decision.
#[derive(Clone, Debug, PartialEq)]
pub struct GateRecord {
    /// The gate.
    pub gate: Gate,
    /// Approvals so far.
    pub votes: Vec<countersign_agent::domain::Vote>,
    /// The decision, if there is one.
    pub decision: Option<Decision>,
}

/// An action with what lists show of its turn.
#[derive(Clone, Debug, PartialEq)]
pub struct ActionRecord {
    /// The action.
    pub action: Action,
    /// Channel of its turn.
    pub channel: ChannelKind,
    /// Chat of its turn.
    pub chat: String,
    /// Requester of its turn.
    pub user: String,
}

/// One line of the approval trail.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditEntry {
    /// What happened: `gate_opened`, `vote`, `decision`, `action_decision`, `action_executed`, `refused`, …
    pub kind: &'static str,
    /// Turn.
    pub turn_id: Option<TurnId>,
    /// Gate.
    pub gate_id: Option<GateId>,
    /// Action.
    pub action_id: Option<ActionId>,
    /// Who.
    pub principal: Option<String>,
    /// Details; no secrets.
    pub details: Value,
}
