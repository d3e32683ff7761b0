//! The SQL database.

use std::ops::{Deref, DerefMut};

use secrecy::SecretString;

use super::{
    Accepted, ActionRecord, AuditEntry, EventRow, GateRecord, InboxRow, InboxState, Lease, ListQuery, NewOutbox, OutboxRow, Page, Said,
    Signal, SignalKind, StoreError, TurnRow,
};
use crate::domain::{
    Action, ActionId, ActionStatus, Clock, Conversation, Decision, Gate, GateId, Inbound, LaneId, Message, Millis, ToolResult, TurnId, Vote,
};

/// The database: one writer at a time on SQLite, any number of readers.
#[derive(Clone, Debug)]
pub struct Ledger {}

/// A write transaction; dropped without [`Tx::commit`] it is rolled back.
#[derive(Debug)]
pub struct Tx {
    session: Session,
}

/// A connection with all verbs.
#[derive(Debug)]
pub struct Session {}

impl Deref for Tx {
    type Target = Session;
    fn deref(&self) -> &Session {
        &self.session
    }
}

impl DerefMut for Tx {
    fn deref_mut(&mut self) -> &mut Session {
        &mut self.session
    }
}

type Result<T> = std::result::Result<T, StoreError>;

impl Ledger {
    /// Opens (and creates) the database, takes the file's lock, migrates if asked, voids all leases on SQLite.
    pub async fn open(_url: &SecretString, _clock: Clock, _migrate: bool) -> Result<Self> {
        unimplemented!()
    }
    /// Stores one verified event. Concurrent calls share one commit; returns after it. 900 ms at most, then `Unavailable`.
    pub async fn accept(&self, _inbound: &Inbound) -> Result<Accepted> {
        unimplemented!()
    }
    /// A write transaction (waits behind webhook batches).
    pub async fn begin(&self) -> Result<Tx> {
        unimplemented!()
    }
    /// A read-only connection.
    pub async fn read(&self) -> Result<Session> {
        unimplemented!()
    }
    /// Cheap liveness check for `/readyz`.
    pub async fn ping(&self) -> Result<()> {
        unimplemented!()
    }
    /// Flushes the writer task and closes.
    pub async fn close(&self) {
        unimplemented!()
    }
}

impl Tx {
    /// Makes everything durable.
    pub async fn commit(self) -> Result<()> {
        unimplemented!()
    }
}

/// Inbox.
impl Session {
    /// Inserts an inbox row in this transaction (clicks, API); none: it is a duplicate.
    pub async fn insert_inbox(&mut self, _inbound: &Inbound, _state: InboxState) -> Result<Option<i64>> {
        unimplemented!()
    }
    /// The row with this event key.
    pub async fn inbox_by_event(&mut self, _inbound: &Inbound) -> Result<Option<InboxRow>> {
        unimplemented!()
    }
    /// Rows that nobody looked at, oldest first, skipping those in `held` (waiting for the bot's identity is the caller's reason).
    pub async fn untriaged(&mut self, _limit: i64) -> Result<Vec<InboxRow>> {
        unimplemented!()
    }
    /// `new` → `done`; false: somebody else handled it.
    pub async fn triaged(&mut self, _id: i64, _outcome: &str) -> Result<bool> {
        unimplemented!()
    }
    /// `new` → `laned`, creating and waking the lane; false: somebody else handled it.
    pub async fn assign(&mut self, _row: &InboxRow, _lane: &LaneId) -> Result<bool> {
        unimplemented!()
    }
    /// Oldest task of the lane, unless an older untriaged row of the same sender and chat exists.
    pub async fn next_task(&mut self, _lease: &Lease) -> Result<Option<InboxRow>> {
        unimplemented!()
    }
    /// `laned` → `done`.
    pub async fn finish_task(&mut self, _id: i64, _outcome: &str) -> Result<bool> {
        unimplemented!()
    }
    /// Tasks waiting in a lane.
    pub async fn queued(&mut self, _lane: &LaneId) -> Result<Vec<InboxRow>> {
        unimplemented!()
    }
    /// The task (untriaged or laned) whose message id is this one, so that a recall can drop it.
    pub async fn waiting_message(&mut self, _conversation: &Conversation, _message_id: &str) -> Result<Option<InboxRow>> {
        unimplemented!()
    }
}

/// Lanes.
impl Session {
    /// Takes the lane that has waited longest; at most `per_chat` leased lanes of one chat at a time.
    pub async fn claim_lane(&mut self, _owner: &str, _lease_ms: i64, _per_chat: i64) -> Result<Option<Lease>> {
        unimplemented!()
    }
    /// Prolongs a lease.
    pub async fn renew(&mut self, _lease: &Lease, _lease_ms: i64) -> Result<()> {
        unimplemented!()
    }
    /// Gives the lane back, to be looked at again at `ready_at`; false: it was woken meanwhile, so look again now.
    pub async fn release(&mut self, _lease: &Lease, _ready_at: Millis) -> Result<bool> {
        unimplemented!()
    }
    /// Re-reads `wakes` and `turn_id` under the fence (after a refused release).
    pub async fn refresh(&mut self, _lease: &Lease) -> Result<Lease> {
        unimplemented!()
    }
    /// Makes a lane ready now.
    pub async fn wake_lane(&mut self, _lane: &LaneId) -> Result<()> {
        unimplemented!()
    }
    /// The moment the next lane or outbox row is due.
    pub async fn next_due(&mut self) -> Result<Option<Millis>> {
        unimplemented!()
    }
    /// The unfinished turn of a lane.
    pub async fn turn_of_lane(&mut self, _lane: &LaneId) -> Result<Option<TurnId>> {
        unimplemented!()
    }
}

/// Turns and their messages. Writes check the fence.
impl Session {
    /// A new turn; becomes its lane's turn.
    pub async fn create_turn(&mut self, _lease: &Lease, _turn: &TurnRow) -> Result<()> {
        unimplemented!()
    }
    /// Saves state, status, reason, counters and times; a final status frees the lane.
    pub async fn save_turn(&mut self, _lease: &Lease, _turn: &TurnRow) -> Result<()> {
        unimplemented!()
    }
    /// One turn.
    pub async fn turn(&mut self, _id: &TurnId) -> Result<Option<TurnRow>> {
        unimplemented!()
    }
    /// Appends to the log at `from` (0-based).
    pub async fn append_messages(&mut self, _lease: &Lease, _turn: &TurnId, _from: i64, _messages: &[Message]) -> Result<()> {
        unimplemented!()
    }
    /// The whole log.
    pub async fn messages(&mut self, _turn: &TurnId) -> Result<Vec<Message>> {
        unimplemented!()
    }
    /// Unfinished turns of a chat (recall, leave, `/stop` look here), oldest first.
    pub async fn open_turns(&mut self, _conversation: &Conversation) -> Result<Vec<TurnRow>> {
        unimplemented!()
    }
    /// Finished turns of the conversation, newest first (shared sessions).
    pub async fn earlier_turns(&mut self, _conversation: &Conversation, _limit: i64) -> Result<Vec<TurnRow>> {
        unimplemented!()
    }
    /// Turns for the API.
    pub async fn list_turns(&mut self, _query: &ListQuery) -> Result<Page<TurnRow>> {
        unimplemented!()
    }
}

/// Actions.
impl Session {
    /// Records a proposed or granted call (`intent`).
    pub async fn insert_action(&mut self, _lease: &Lease, _action: &Action) -> Result<()> {
        unimplemented!()
    }
    /// One action.
    pub async fn action(&mut self, _id: &ActionId) -> Result<Option<ActionRecord>> {
        unimplemented!()
    }
    /// The actions of a gate, by position.
    pub async fn actions_of_gate(&mut self, _gate: &GateId) -> Result<Vec<Action>> {
        unimplemented!()
    }
    /// The actions of a turn.
    pub async fn actions_of_turn(&mut self, _turn: &TurnId) -> Result<Vec<Action>> {
        unimplemented!()
    }
    /// Settles a waiting row (`pending` or `unknown`); false: already settled.
    pub async fn decide_action(&mut self, _id: &ActionId, _status: ActionStatus, _decision: &Decision) -> Result<bool> {
        unimplemented!()
    }
    /// Moves a row under the fence (`approved` → `running` is the `sent` mark; `unknown` and its new gate).
    pub async fn move_action(&mut self, _lease: &Lease, _id: &ActionId, _status: ActionStatus, _gate: Option<&GateId>) -> Result<()> {
        unimplemented!()
    }
    /// Stores the result (`done`).
    pub async fn finish_action(&mut self, _lease: &Lease, _id: &ActionId, _status: ActionStatus, _result: &ToolResult) -> Result<()> {
        unimplemented!()
    }
    /// Actions for the API.
    pub async fn list_actions(&mut self, _query: &ListQuery) -> Result<Page<ActionRecord>> {
        unimplemented!()
    }
}

/// Gates, votes, decisions, signals.
impl Session {
    /// Opens a gate.
    pub async fn open_gate(&mut self, _lease: &Lease, _gate: &Gate) -> Result<()> {
        unimplemented!()
    }
    /// One gate with votes and decision.
    pub async fn gate(&mut self, _id: &GateId) -> Result<Option<GateRecord>> {
        unimplemented!()
    }
    /// The open gate of a lane.
    pub async fn open_gate_of_lane(&mut self, _lane: &LaneId) -> Result<Option<Gate>> {
        unimplemented!()
    }
    /// Open gates of a chat (all threads), oldest first.
    pub async fn open_gates(&mut self, _conversation: &Conversation) -> Result<Vec<Gate>> {
        unimplemented!()
    }
    /// The gate (newest first, open or closed) whose card, request or any post of whose turn has one of these message ids.
    pub async fn gate_by_message(&mut self, _conversation: &Conversation, _message_ids: &[String]) -> Result<Option<GateRecord>> {
        unimplemented!()
    }
    /// The turn one of whose posts or whose request has one of these message ids.
    pub async fn turn_by_message(&mut self, _conversation: &Conversation, _message_ids: &[String]) -> Result<Option<TurnRow>> {
        unimplemented!()
    }
    /// Something in this chat (any thread) is unfinished: an open gate or turn. The cheap look before everything else
    /// for messages that nobody addressed to us.
    pub async fn anything_open(&mut self, _conversation: &Conversation) -> Result<bool> {
        unimplemented!()
    }
    /// The requester's most recently closed gate in this chat, if closed after `since`.
    pub async fn last_closed_gate(&mut self, _conversation: &Conversation, _user: &str, _since: Millis) -> Result<Option<GateRecord>> {
        unimplemented!()
    }
    /// The card reached the chat: id, platform time; the TTL starts.
    pub async fn gate_delivered(&mut self, _id: &GateId, _message_id: Option<&str>, _card_at: Option<Millis>) -> Result<()> {
        unimplemented!()
    }
    /// The card could not be carried; the lane is woken to end the turn.
    pub async fn gate_undeliverable(&mut self, _id: &GateId) -> Result<()> {
        unimplemented!()
    }
    /// True when [`Session::gate_undeliverable`] was called for it.
    pub async fn is_undeliverable(&mut self, _id: &GateId) -> Result<bool> {
        unimplemented!()
    }
    /// Adds a vote (once per person) and gives the number of different people.
    pub async fn vote(&mut self, _gate: &GateId, _vote: &Vote) -> Result<u32> {
        unimplemented!()
    }
    /// Settles a gate once and wakes its lane; false: it was settled before.
    pub async fn decide(&mut self, _gate: &Gate, _decision: &Decision) -> Result<bool> {
        unimplemented!()
    }
    /// Plan reviews for the API.
    pub async fn list_reviews(&mut self, _query: &ListQuery) -> Result<Page<GateRecord>> {
        unimplemented!()
    }
    /// Leaves a signal for a turn and wakes its lane.
    pub async fn signal(&mut self, _turn: &TurnRow, _kind: SignalKind, _text: Option<&str>, _by: Option<&str>) -> Result<()> {
        unimplemented!()
    }
    /// Unread signals, oldest first.
    pub async fn signals(&mut self, _turn: &TurnId) -> Result<Vec<Signal>> {
        unimplemented!()
    }
    /// Marks signals as read, under the fence.
    pub async fn consume(&mut self, _lease: &Lease, _ids: &[i64]) -> Result<()> {
        unimplemented!()
    }
}

/// Timeline, outbox, audit, small facts.
impl Session {
    /// Appends timeline entries; `seq` is given by the caller.
    pub async fn append_events(&mut self, _lease: &Lease, _events: &[EventRow]) -> Result<()> {
        unimplemented!()
    }
    /// The timeline after `after`, oldest first.
    pub async fn events(&mut self, _turn: &TurnId, _after: i64, _limit: i64) -> Result<Vec<EventRow>> {
        unimplemented!()
    }
    /// Enqueues; same key = no second row. A patch drops waiting older patches of the same target.
    pub async fn enqueue(&mut self, _new: &NewOutbox) -> Result<()> {
        unimplemented!()
    }
    /// Takes up to `limit` due heads of their queues. A patch whose target is not sent yet waits behind it.
    pub async fn claim_outbox(&mut self, _owner: &str, _hold_ms: i64, _limit: i64) -> Result<Vec<OutboxRow>> {
        unimplemented!()
    }
    /// It was carried.
    pub async fn outbox_sent(&mut self, _id: i64, _message_id: Option<&str>, _at: Option<Millis>) -> Result<()> {
        unimplemented!()
    }
    /// Try again at `at`; `plain`: as text from now on.
    pub async fn outbox_retry(&mut self, _id: i64, _at: Millis, _error: &str, _plain: bool) -> Result<()> {
        unimplemented!()
    }
    /// Given up.
    pub async fn outbox_failed(&mut self, _id: i64, _error: &str) -> Result<()> {
        unimplemented!()
    }
    /// What was said in a console chat, oldest first.
    pub async fn said(&mut self, _chat: &str, _limit: i64) -> Result<Vec<Said>> {
        unimplemented!()
    }
    /// Adds to the approval trail.
    pub async fn audit(&mut self, _entry: &AuditEntry) -> Result<()> {
        unimplemented!()
    }
    /// A small fact (the bot's identity, …).
    pub async fn fact(&mut self, _key: &str) -> Result<Option<String>> {
        unimplemented!()
    }
    /// Stores a small fact.
    pub async fn set_fact(&mut self, _key: &str, _value: &str) -> Result<()> {
        unimplemented!()
    }
}
