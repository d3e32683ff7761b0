//! What a turn is written to, and where people's words come from: all that the engine needs of a memory.
//!
//! The gateway's ledger is one implementation (`crates/gateway/src/lanes/ledger.rs`), a `Notebook` in memory the other: the library needs no SQL and has no
//! second engine.

use crate::domain::SignalKind;
use crate::domain::{Action, ActionId, ActionStatus, Message, Millis, Policy, StandingGrants, ToolResult};
use crate::model::BoxFuture;
use crate::reducer::{CallOutcome, Effect, Input, RowVerdict, Turn, TurnState};

/// Why a turn could not be read or written, as far as a caller can act on it.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The turn is somebody else's now. The engine stops without another effect.
    #[error("the turn is worked on elsewhere")]
    Stale,
    /// Nothing was written; worth another try.
    #[error("the journal cannot write now: {0}")]
    Unavailable(String),
    /// A stored value does not read back.
    #[error("a stored value does not read back: {0}")]
    Corrupt(String),
}

/// What one step of the reducer changes: written whole or not at all.
#[derive(Debug)]
pub struct StepRecord<'a> {
    /// The state before it.
    pub before: &'a TurnState,
    /// The turn after it.
    pub turn: &'a Turn,
    /// The messages at the end of its log that the step added.
    pub fresh: &'a [Message],
    /// What the step wants done, in order. All of it is a matter of writing: [`Effect::Say`] is written down to be said.
    pub effects: Vec<Effect>,
    /// Words that the step has used up, as [`OutsideInput`] named them.
    pub heard: &'a [i64],
}

/// What became known of a turn from outside since its last step.
#[derive(Debug)]
pub struct OutsideInput {
    /// What the reducer is told.
    pub input: Input,
    /// The words that it uses up.
    pub heard: Vec<i64>,
}

/// Whether a write call may be sent now, and what is known of it if not.
#[derive(Clone, Debug, PartialEq)]
pub enum Sending {
    /// The journal says from now on that it was sent: send it.
    Now,
    /// It was sent before and answered.
    Answered(ToolResult),
    /// It was sent before, and its result was not written down.
    Unknown,
    /// It was not sent, and must not be now.
    Not,
}

impl Sending {
    /// What the row of the action says, for a [`Journal::sending`]. At [`Sending::Now`] the row has to be marked `running`, in the same
    /// transaction, before this is told.
    ///
    /// # Errors
    /// `Corrupt` when the call was not allowed.
    pub fn of(action: &Action, begins: bool) -> Result<Self, JournalError> {
        match action.status {
            ActionStatus::Executed | ActionStatus::Failed => Ok(action.result.clone().map_or(Self::Unknown, Self::Answered)),
            ActionStatus::Running => Ok(Self::Unknown),
            ActionStatus::Approved if begins => Ok(Self::Now),
            ActionStatus::Approved => Ok(Self::Not),
            ActionStatus::Pending | ActionStatus::Rejected | ActionStatus::Expired | ActionStatus::Unknown => {
                let reason = format!("action {} must not run: it is {}", action.id, action.status.as_str());
                Err(JournalError::Corrupt(reason))
            }
        }
    }
}

/// Outcomes of calls that were sent and that the turn has not read, for [`Input::Cancel`]: a process died in between, or the call did
/// not end when it was told to. They are read from the rows, so that every process finds the same.
#[must_use]
pub fn unread_outcomes(state: &TurnState, rows: &[Action]) -> Vec<CallOutcome> {
    let open = state.calls.open.iter().filter(|call| call.answer.is_none());
    let rows = open.filter_map(|call| rows.iter().find(|row| Some(row.id.as_str()) == call.action.as_deref()));
    let sent = rows.filter(|row| matches!(row.status, ActionStatus::Running | ActionStatus::Executed | ActionStatus::Failed));
    sent.map(|row| CallOutcome {
        call_id: row.call_id.clone(),
        result: row.result.clone(),
    })
    .collect()
}

/// The status of a call once its turn is over. `before` is the state before the last step. A call that was sent and not answered is
/// `unknown`; an approved one that was never sent is `expired`; one that was not decided is `rejected`.
#[must_use]
pub fn status_at_end(row: &Action, before: &TurnState) -> ActionStatus {
    let open = before
        .calls
        .open
        .iter()
        .find(|call| call.action.as_deref() == Some(row.id.as_str()));
    let lost = open.is_some_and(|call| call.lost || call.status == ActionStatus::Unknown);
    match row.status {
        ActionStatus::Running => ActionStatus::Unknown,
        ActionStatus::Approved if lost => ActionStatus::Unknown,
        ActionStatus::Approved => ActionStatus::Expired,
        ActionStatus::Pending => ActionStatus::Rejected,
        status => status,
    }
}

/// What a gate of tool calls has decided of each of its rows, for [`Input::Decided`]. A row without a verdict counts as rejected.
#[must_use]
pub fn row_verdicts(rows: Vec<Action>) -> Vec<RowVerdict> {
    let verdict = |row: Action| RowVerdict {
        action: row.id.to_string(),
        // A gate may be settled as a whole before its last row is written only by a bug; fail closed.
        status: match row.status {
            ActionStatus::Approved | ActionStatus::Expired => row.status,
            _ => ActionStatus::Rejected,
        },
        reason: row.decision.and_then(|decision| decision.text),
        edited: row.edited.map(|edit| (row.arguments, edit)),
    };
    rows.into_iter().map(verdict).collect()
}

/// The memory of one turn. The engine asks nothing else of it: no SQL, no chat.
///
/// The ledger of the gateway is one such memory, [`super::Notebook`] another. A third implementation keeps these promises:
///
/// - What [`Journal::commit`], [`Journal::sending`] and [`Journal::done`] have returned `Ok` for is still there after a crash, and each
///   of them happens whole or not at all.
/// - [`Journal::news`] only looks. Words are used up by the commit that names them ([`StepRecord::heard`]); a decision is, once the state
///   waits at that gate no more. What was not used up is told again.
/// - With [`Effect::Finish`] no gate of the turn can be answered any more, and no row of a call claims to be under way or about to
///   be: [`status_at_end`] says what it is instead. A row that waits follows its gate ([`DecisionKind::of_open_rows`](crate::domain::DecisionKind::of_open_rows)).
///
/// # Errors
/// All verbs give [`JournalError`]: `Unavailable` when it may be tried again, `Stale` when somebody else works on the turn now,
/// `Corrupt` when what is stored makes no sense. The engine stops at each of them, except that it tries [`Journal::done`] again for as
/// long as the memory is unavailable.
pub trait Journal: Send + Sync {
    /// The next thing that people (or time) did to the turn, if there is one: a stop first, then words for the running turn, then the
    /// decision of the open gate. A gate whose time is over is settled here.
    fn news<'a>(&'a self, state: &'a TurnState) -> BoxFuture<'a, Result<Option<OutsideInput>, JournalError>>;

    /// The chat of the turn, as rules name it; blank where there is none.
    fn chat(&self) -> &str {
        ""
    }

    /// What people allowed in the chat for longer than one task, as it holds for this turn now. `None` means that the settings let nobody, or
    /// that nobody keeps it: then nothing of the kind is offered either.
    fn standing(&self) -> BoxFuture<'_, Result<Option<StandingGrants>, JournalError>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Unread edits of the request. They need no step of their own: the next one takes them along.
    fn edits(&self) -> BoxFuture<'_, Result<Vec<i64>, JournalError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// Writes a step. `false` means nothing is written, because the step would end the turn while there are words of the requester
    /// that were not read yet.
    fn commit<'a>(&'a self, entry: StepRecord<'a>) -> BoxFuture<'a, Result<bool, JournalError>>;

    /// When to look again at the turn, which waits at its open gate: at its end, at the latest. What is due about the gate before that is
    /// done here.
    fn due<'a>(&'a self, state: &'a TurnState) -> BoxFuture<'a, Result<Millis, JournalError>>;

    /// Messages of earlier tasks that the model should know, oldest first.
    fn history<'a>(&'a self, _policy: &'a Policy) -> BoxFuture<'a, Result<Vec<Message>, JournalError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// Comes back once unread words of one of these kinds are there, and not before: it is waited for beside a call.
    fn heard<'a>(&'a self, kinds: &'a [SignalKind]) -> BoxFuture<'a, ()>;

    /// Writes down that a write call is being sent, if it may be: it was approved, never sent before, and `begins`; and, where a standing
    /// grant let it through, the grant still holds ([`Sending::Not`] if not), of which one use is counted. Only
    /// [`Sending::Now`] lets it run, and no two callers ever get that for one action.
    fn sending<'a>(&'a self, action: &'a ActionId, begins: bool) -> BoxFuture<'a, Result<Sending, JournalError>>;

    /// Writes down what came of a call that was sent. A repetition changes nothing.
    fn done<'a>(&'a self, action: &'a ActionId, result: &'a ToolResult) -> BoxFuture<'a, Result<(), JournalError>>;
}
