//! Connections: [`Read`] has the verbs that read, and [`Tx`] those that write.

use std::collections::BTreeSet;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use countersign_agent::domain::{GateId, LaneId, Millis};
use tokio::time::Instant;

use super::arg::Arg;
use super::audit::AuditEntry;
use super::inner::Inner;
use super::pool::OpenTransaction;
use super::simulation::{SimulatedCommit, SimulatedTurn};
use super::sql::{self, Row, Text};
use super::wakeups::Effects;
use super::write_queue::{ChatLock, WritePass};
use super::{Result, postgres};
use crate::store::StoreError;

/// The longest that a transaction may have been open when it is committed, if it holds events.
pub(super) const OLDEST_COMMIT: Duration = Duration::from_secs(20);

/// A connection that reads. What it reads is one snapshot.
pub struct Read {
    pub(super) inner: Arc<Inner>,
    pub(super) conn: OpenTransaction,
    /// Last, so that it goes when the transaction is over.
    _turn: Option<SimulatedTurn>,
}

impl std::fmt::Debug for Read {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Read").finish_non_exhaustive()
    }
}

impl Read {
    /// A connection over what was begun.
    pub(super) fn new(inner: &Arc<Inner>, conn: OpenTransaction, turn: Option<SimulatedTurn>) -> Self {
        Self {
            inner: Arc::clone(inner),
            conn,
            _turn: turn,
        }
    }

    pub(super) fn now(&self) -> Millis {
        self.inner.clock.now()
    }

    /// See [`sql::one`].
    pub(super) async fn one(&mut self, text: impl Into<Text>, args: Vec<Arg>) -> Result<Row> {
        sql::one(self.conn.lend()?, text, args).await
    }

    /// See [`sql::maybe`].
    pub(super) async fn maybe(&mut self, text: impl Into<Text>, args: Vec<Arg>) -> Result<Option<Row>> {
        sql::maybe(self.conn.lend()?, text, args).await
    }

    /// See [`sql::all`].
    pub(super) async fn all(&mut self, text: impl Into<Text>, args: Vec<Arg>) -> Result<Vec<Row>> {
        sql::all(self.conn.lend()?, text, args).await
    }
}

/// A write transaction, which reads as well; dropped without [`Tx::commit`] it is rolled back.
#[derive(Debug)]
pub struct Tx {
    begun: Instant,
    // Before the pass: the connection is on its way back when the next writer moves up.
    read: Read,
    pub(super) effects: Effects,
    /// The lease that this transaction has proved to hold.
    pub(super) proved_lease: Option<(LaneId, i64)>,
    /// What goes into the approval trail with the commit.
    pub(super) trail: Vec<AuditEntry>,
    /// Gates whose rows were changed: the trail shall say how they are at the commit.
    pub(super) unsealed: BTreeSet<GateId>,
    /// Rows that do not read back were set aside: the claim that found nothing else is committed all the same.
    pub(super) passed_over: bool,
    pass: Option<WritePass>,
    pub(super) chat_lock: Option<ChatLock>,
}

impl Deref for Tx {
    type Target = Read;
    fn deref(&self) -> &Read {
        &self.read
    }
}

impl DerefMut for Tx {
    fn deref_mut(&mut self) -> &mut Read {
        &mut self.read
    }
}

impl Tx {
    /// A transaction over what was begun.
    pub(super) fn new(read: Read, pass: Option<WritePass>) -> Self {
        Self {
            begun: Instant::now(),
            read,
            effects: Effects::default(),
            proved_lease: None,
            trail: Vec::new(),
            unsealed: BTreeSet::new(),
            passed_over: false,
            pass,
            chat_lock: None,
        }
    }

    /// Commits, and wakes the workers that have work now.
    ///
    /// # Errors
    /// `Unavailable` when it is not known to be committed, or when it holds events and took so long that readers would miss them.
    pub async fn commit(mut self) -> Result<()> {
        self.append_trail().await?;
        let Self {
            begun,
            read,
            effects,
            pass,
            chat_lock,
            ..
        } = self;
        // Last of all: for the head of the trail one may wait long.
        if effects.events && begun.elapsed() > OLDEST_COMMIT {
            // Before the pass is given on: who gets it must not find the database locked.
            drop(read);
            return Err(StoreError::Unavailable("the transaction took too long".to_owned()));
        }
        let simulated = read.inner.simulation.commit();
        if simulated == SimulatedCommit::Lost {
            return Err(SimulatedCommit::lost());
        }
        read.conn.commit().await?;
        drop((pass, chat_lock));
        read.inner.wakeups.after_commit(effects);
        if simulated == SimulatedCommit::Unheard {
            Err(SimulatedCommit::lost())
        } else {
            Ok(())
        }
    }

    /// Ends a claim that found nothing: commits only if it passed rows over that do not read back. Gives `true` then: look again.
    ///
    /// # Errors
    /// Those of [`Tx::commit`].
    pub async fn end_of_claim(self) -> Result<bool> {
        let passed_over = self.passed_over;
        if passed_over {
            self.commit().await?;
        }
        Ok(passed_over)
    }

    /// The text of a claim of `rows`; see [`postgres::claiming`].
    pub(super) fn claiming(&self, text: &str, rows: &str) -> String {
        postgres::claiming(text, rows, self.inner.is_shared())
    }

    /// See [`sql::run`].
    pub(super) async fn run(&mut self, text: impl Into<Text>, args: Vec<Arg>) -> Result<u64> {
        sql::run(self.conn.lend()?, text, args).await
    }

    pub(super) fn next_id(&self) -> i64 {
        self.inner.sequence.next(self.now())
    }
}
