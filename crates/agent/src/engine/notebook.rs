//! A turn as a value: its journal in memory, with what people say to it; written out as JSON and read back.

mod page;

pub use crate::domain::handshake::Act as Verdict;
pub use page::{FORMAT, OpenGate, RestoreError, TimelineEntry};

use std::fmt;
use std::io;
use std::pin::pin;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

pub(super) use self::page::NotebookPage;
use super::journal::{Journal, OutsideInput, Sending, StepRecord};
use crate::domain::SignalKind;
use crate::domain::handshake::Actor;
use crate::domain::{
    Action, ActionId, CallDraft, Clock, GateId, Message, Millis, NotEditable, Outbound, Policy, ToolResult, TurnStatus, Via,
};
use crate::engine::JournalError;
use crate::model::BoxFuture;
use crate::reducer::{Turn, TurnState};

/// Keeps what a notebook holds: called with the whole of it, as JSON, before a change counts. Called on the task that makes the
/// change, one call at a time, while the notebook is held: it must not use the notebook itself.
pub type Keeper = Arc<dyn Fn(&str) -> io::Result<()> + Send + Sync>;

/// What came of a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerdictEffect {
    /// The gate is decided; run the turn again.
    Decided,
    /// One of several approvals, or of several calls: the gate still waits.
    Waits,
}

/// Why a word about a gate does not count. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum VerdictError {
    /// No such gate is open: it was decided, or a newer one took its place.
    #[error("there is no open gate {0}")]
    NotOpen(String),
    /// Its time is over; the next run says so to the model or ends the turn.
    #[error("the gate lapsed")]
    Lapsed,
    /// The card does not show all that would be allowed. A call is decided on its own, by [`Notebook::decide_call`]; of a plan a shorter
    /// one can be asked for.
    #[error("the card does not show everything: decide each call on its own, or ask for a shorter plan")]
    Hidden,
    /// The verdict makes no sense at this gate; says what to mend.
    #[error("{0}")]
    Invalid(&'static str),
    /// No such call waits at the open gate.
    #[error("no call {0} waits for a verdict")]
    NoCall(String),
    /// The call cannot be changed.
    #[error(transparent)]
    NotEditable(#[from] NotEditable),
    /// It could not be kept.
    #[error(transparent)]
    Store(#[from] JournalError),
}

/// Why a task is not carried out.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// It has ended: every task is executed once.
    #[error("the task was executed already: {}", .0.as_str())]
    AlreadyExecuted(TurnStatus),
    /// It was deserialized and has no agent: [`Agent::restore`](super::Agent::restore) or [`Agent::attach`](super::Agent::attach) gives it one.
    #[error("the task has no agent: restore it through one")]
    NotInitialized,
    /// What it does could not be kept, so it stopped before it. Worth another try when it is `Unavailable`.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// The journal of one turn in memory; cheap to clone, all clones are the same notebook.
///
/// Everything that happens to the turn from outside goes through it, also while the turn runs: [`Notebook::decide`],
/// [`Notebook::say`], [`Notebook::stop`]. Who may say what is for the program to know: a notebook takes every `by` for true.
#[derive(Clone)]
pub struct Notebook(Arc<NotebookInner>);

struct NotebookInner {
    held: Mutex<NotebookContents>,
    /// Ready when somebody has spoken.
    words: Notify,
}

struct NotebookContents {
    page: NotebookPage,
    clock: Clock,
    keeper: Option<Keeper>,
}

impl fmt::Debug for Notebook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notebook").field("page", &self.held().page).finish_non_exhaustive()
    }
}

impl Notebook {
    pub(super) fn new(page: NotebookPage, clock: Clock) -> Self {
        let held = NotebookContents { page, clock, keeper: None };
        Self(Arc::new(NotebookInner {
            held: Mutex::new(held),
            words: Notify::new(),
        }))
    }

    pub(super) fn set_clock(&self, clock: Clock) {
        self.held().clock = clock;
    }

    pub(super) fn set_keeper(&self, keeper: Keeper) {
        self.held().keeper = Some(keeper);
    }

    /// Changes what is kept with the next step.
    pub(super) fn prepare(&self, edit: impl FnOnce(&mut NotebookPage)) {
        edit(&mut self.held().page);
    }

    /// Somebody has said something that the turn has not read: words, or a decision of its gate.
    pub(super) fn has_news(&self) -> bool {
        let held = self.held();
        let decided = held.page.gate.as_ref().is_some_and(|gate| gate.decision.is_some());
        decided || !held.page.words.is_empty()
    }

    /// The turn as it was last written: its state and its log.
    #[must_use]
    pub fn turn(&self) -> Turn {
        self.held().page.turn()
    }

    /// The gate at which it waits for a person, if it waits and is not decided yet.
    #[must_use]
    pub fn gate(&self) -> Option<OpenGate> {
        self.held().page.gate.clone().filter(|gate| gate.decision.is_none())
    }

    /// Write calls that were proposed or granted, in order, with what became of them.
    #[must_use]
    pub fn calls(&self) -> Vec<Action> {
        self.held().page.actions.clone()
    }

    /// What was said to the person, in order: answers and notices. Cards are at their gates.
    #[must_use]
    pub fn said(&self) -> Vec<Outbound> {
        self.held().page.said.clone()
    }

    /// The timeline.
    #[must_use]
    pub fn events(&self) -> Vec<TimelineEntry> {
        self.held().page.events.clone()
    }

    /// Everything, as JSON with a format version. Contains what was said and what tools gave; no keys or settings of providers.
    #[must_use]
    pub fn serialize(&self) -> String {
        self.held().page.encode()
    }

    /// Says `verdict` at the gate `id`, which names exactly what was shown: a plan that changed since has another.
    ///
    /// # Errors
    /// [`VerdictError`].
    pub fn decide(&self, id: &GateId, by: &str, verdict: Verdict) -> Result<VerdictEffect, VerdictError> {
        let actor = self.actor(by);
        self.change(|page| page.decide(id, verdict, &actor).map(Some))
            .map(|heard| heard.unwrap_or(VerdictEffect::Waits))
    }

    /// Approves one call of the gate `gate`, or rejects it (`reason` is told to the model). A call of unknown outcome is asked about
    /// again at another gate: a word for the earlier one does not count there.
    ///
    /// # Errors
    /// [`VerdictError`].
    pub fn decide_call(
        &self,
        gate: &GateId,
        call: &ActionId,
        by: &str,
        approve: bool,
        reason: Option<String>,
    ) -> Result<VerdictEffect, VerdictError> {
        let actor = self.actor(by);
        let act = if approve {
            Verdict::Approve
        } else {
            Verdict::Reject(reason.clone())
        };
        self.change(|page| page.decide_rows(gate, Some(call), &act, reason.as_deref(), None, &actor).map(Some))
            .map(|heard| heard.unwrap_or(VerdictEffect::Waits))
    }

    /// Approves one call of the gate `gate` with the arguments of `draft` ([`Agent::draft`](super::Agent::draft)) instead of the model's, which is told so.
    ///
    /// # Errors
    /// [`VerdictError`]; a call of unknown outcome cannot be changed.
    pub fn approve_edited(&self, gate: &GateId, call: &ActionId, by: &str, draft: CallDraft) -> Result<VerdictEffect, VerdictError> {
        let actor = self.actor(by);
        self.change(|page| {
            page.decide_rows(gate, Some(call), &Verdict::Approve, None, Some(draft), &actor)
                .map(Some)
        })
        .map(|heard| heard.unwrap_or(VerdictEffect::Waits))
    }

    /// More words for the turn: read before the next call of the model, one that is under way is made anew.
    ///
    /// # Errors
    /// [`TaskError::AlreadyExecuted`] when the turn has ended, [`TaskError::Journal`] when they could not be kept.
    pub fn say(&self, by: &str, text: &str) -> Result<(), TaskError> {
        self.add(SignalKind::Steer, by, Some(text.to_owned()))
    }

    /// Stops the turn: at the next run, or now if it runs. A write call under way is given time to end, and told of.
    ///
    /// # Errors
    /// As for [`Notebook::say`].
    pub fn stop(&self, by: &str) -> Result<(), TaskError> {
        self.add(SignalKind::Cancel, by, None)
    }

    fn add(&self, kind: SignalKind, by: &str, text: Option<String>) -> Result<(), TaskError> {
        self.change(|page| {
            if page.state.status.is_final() {
                return Err(TaskError::AlreadyExecuted(page.state.status));
            }
            page.hear(kind, by, text);
            Ok(Some(()))
        })?;
        self.0.words.notify_waiters();
        Ok(())
    }

    fn actor(&self, by: &str) -> Actor {
        Actor {
            user: Some(by.to_owned()),
            via: Via::Api,
            ..Actor::system(self.now())
        }
    }

    /// Changes the page whole, and only once that is kept. `None` means there is nothing to change.
    fn change<T, E: From<JournalError>>(&self, edit: impl FnOnce(&mut NotebookPage) -> Result<Option<T>, E>) -> Result<Option<T>, E> {
        let mut held = self.held();
        let mut next = held.page.clone();
        let Some(given) = edit(&mut next)? else { return Ok(None) };
        if let Some(keep) = &held.keeper {
            keep(&next.encode()).map_err(|error| JournalError::Unavailable(error.to_string()))?;
        }
        held.page = next;
        Ok(Some(given))
    }

    fn held(&self) -> MutexGuard<'_, NotebookContents> {
        self.0.held.lock()
    }

    fn now(&self) -> Millis {
        self.held().clock.now()
    }

    fn news_now(&self, state: &TurnState) -> Result<Option<OutsideInput>, JournalError> {
        let now = self.now();
        // A gate whose time is over takes its decision here, unless somebody was first.
        self.change(|page| Ok::<_, JournalError>(page.lapse(now).then_some(())))?;
        Ok(self.held().page.news(state))
    }
}

fn ready<'a, T: Send + 'a>(value: T) -> BoxFuture<'a, T> {
    Box::pin(std::future::ready(value))
}

impl Journal for Notebook {
    fn news<'a>(&'a self, state: &'a TurnState) -> BoxFuture<'a, Result<Option<OutsideInput>, JournalError>> {
        ready(self.news_now(state))
    }

    fn commit<'a>(&'a self, entry: StepRecord<'a>) -> BoxFuture<'a, Result<bool, JournalError>> {
        let now = self.now();
        ready(
            self.change(|page| Ok(page.write(entry, now).then_some(())))
                .map(|written| written.is_some()),
        )
    }

    fn due<'a>(&'a self, _: &'a TurnState) -> BoxFuture<'a, Result<Millis, JournalError>> {
        ready(Ok(self.held().page.gate.as_ref().map_or(Millis::NEVER, |gate| gate.expires_at)))
    }

    fn history<'a>(&'a self, _: &'a Policy) -> BoxFuture<'a, Result<Vec<Message>, JournalError>> {
        ready(Ok(self.held().page.history.clone()))
    }

    fn heard<'a>(&'a self, kinds: &'a [SignalKind]) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            loop {
                let mut word = pin!(self.0.words.notified());
                // Before the look: a word that comes between the two is not missed.
                word.as_mut().enable();
                if self.held().page.words.iter().any(|word| kinds.contains(&word.kind)) {
                    return;
                }
                word.await;
            }
        })
    }

    fn sending<'a>(&'a self, action: &'a ActionId, begins: bool) -> BoxFuture<'a, Result<Sending, JournalError>> {
        // Looked at and marked in one change: of two who ask, one gets to send it.
        let mut found = Ok(Sending::Not);
        let marked = self.change(|page| {
            found = Sending::of(page.action(action)?, begins);
            let now = matches!(found, Ok(Sending::Now));
            if now {
                page.sent(action)?;
            }
            Ok::<_, JournalError>(now.then_some(()))
        });
        ready(marked.and(found))
    }

    fn done<'a>(&'a self, action: &'a ActionId, result: &'a ToolResult) -> BoxFuture<'a, Result<(), JournalError>> {
        ready(self.change(|page| page.done(action, result).map(Some)).map(drop))
    }
}
