//! The SQL database.
//!
//! One SQL text for every database (see `migrations/`): `$n` marks, no boolean results, sums cast, JSON as TEXT.
//! The verbs are methods of [`Read`] and [`Tx`], one file a theme.

mod accept;
mod actions;
mod arrive;
mod audit;
mod chat_locks;
mod close;
mod wakeups;
mod decisions;
mod depth;
mod events;
pub(super) mod facts;
mod fault;
mod file;
mod gates;
mod ids;
mod inbox;
mod lanes;
mod lock;
mod open;
mod outbox;
mod pace;
mod page;
mod pins;
pub(super) mod postgres;
mod prune;
mod said;
mod schema;
mod seal;
mod signals;
mod sql;
mod sqlite;
mod tail;
mod turns;
mod turnstile;

use std::collections::BTreeSet;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use countersign_agent::domain::{Clock, Conversation, GateId, LaneId, Millis};
use sqlx::{Any, AssertSqlSafe, Transaction};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use self::accept::Acceptor;
use self::chat_locks::{ChatLock, ChatLocks};
use self::ids::Sequence;
use self::open::Pools;
use self::pace::Paced;
use self::turnstile::{Pass, Turnstile};
use self::wakeups::{Touched, Wakeups};
use super::coordination::Tasks;
use super::{AuditEntry, StoreError};

pub use self::audit::{AuditCheck, AuditHead, NoAuditHead};
pub use self::depth::Depth;
pub use self::open::Looked;
pub use self::pace::{Fate, Leave, Pace};
pub use self::page::{Cursor, NoCursor};
pub use self::prune::Pruned;
pub use self::seal::SealPart;
pub use self::tail::Tail;

type Result<T> = std::result::Result<T, StoreError>;

/// A journal transaction that waits longer than this for its turn is told so: something holds the database.
const WRITE_WAIT: Duration = Duration::from_secs(5);

/// The database: on SQLite one process and one writer at a time, on PostgreSQL any number of both.
#[derive(Clone, Debug)]
pub struct Ledger {
    inner: Arc<Inner>,
    /// `None` in a ledger that was opened read-only.
    acceptor: Option<Acceptor>,
    /// The background tasks of Redis, until the last handle is gone.
    redis_tasks: Option<Arc<Tasks>>,
}

#[derive(Debug)]
struct Inner {
    clock: Clock,
    sequence: Sequence,
    pools: Pools,
    /// The queue of writers on SQLite, which has one at a time. `None` on PostgreSQL.
    turnstile: Option<Turnstile>,
    /// On PostgreSQL, which has many writers.
    chat_locks: ChatLocks,
    wakeups: Wakeups,
    pace: Paced,
    /// Held as long as the ledger is open.
    lock: std::sync::Mutex<Option<lock::Held>>,
}

impl Inner {
    /// Is the database shared with other processes?
    fn is_shared(&self) -> bool {
        self.turnstile.is_none()
    }
}

/// A connection that reads. What it reads is one snapshot.
pub struct Read {
    inner: Arc<Inner>,
    conn: Transaction<'static, Any>,
    /// Last, so that it goes when the transaction is over.
    _leave: Option<Leave>,
}

impl std::fmt::Debug for Read {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Read").finish_non_exhaustive()
    }
}

impl Read {
    fn now(&self) -> Millis {
        self.inner.clock.now()
    }
}

/// A write transaction, which reads as well; dropped without [`Tx::commit`] it is rolled back.
#[derive(Debug)]
pub struct Tx {
    begun: Instant,
    // Before the pass: the connection is on its way back when the next writer moves up.
    read: Read,
    touched: Touched,
    /// The lease that this transaction has proved to hold.
    held: Option<(LaneId, i64)>,
    /// What goes into the approval trail with the commit.
    trail: Vec<AuditEntry>,
    /// Gates whose rows were changed: the trail shall say how they are at the commit.
    unsealed: BTreeSet<GateId>,
    pass: Option<Pass>,
    chat_lock: Option<ChatLock>,
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
    /// Commits, and wakes the workers that have work now.
    ///
    /// # Errors
    /// `Unavailable` when it is not known to be committed, or when it holds events and took so long that readers would miss them.
    pub async fn commit(mut self) -> Result<()> {
        let trail = self.append_trail().await?;
        // What was added to the trail has proved it already.
        if !trail && self.inner.is_shared() {
            postgres::prove(&mut self.conn).await?;
        }
        let Self {
            begun,
            read,
            touched,
            pass,
            chat_lock,
            ..
        } = self;
        // Last of all: for the head of the trail one may wait long.
        if touched.events && begun.elapsed() > tail::OLDEST_COMMIT {
            return Err(StoreError::Unavailable("the transaction took too long".to_owned()));
        }
        let fate = read.inner.pace.commit();
        if fate == Fate::Lost {
            return Err(Fate::lost());
        }
        read.conn.commit().await?;
        drop((pass, chat_lock));
        read.inner.wakeups.after_commit(touched);
        if fate == Fate::Unheard { Err(Fate::lost()) } else { Ok(()) }
    }

    /// The text of a claim of `rows`; see [`postgres::claiming`].
    fn claiming(&self, text: &str, rows: &str) -> AssertSqlSafe<String> {
        AssertSqlSafe(postgres::claiming(text, rows, self.inner.is_shared()))
    }

    fn next_id(&self) -> i64 {
        self.inner.sequence.next(self.now())
    }
}

impl Ledger {
    /// A write transaction on what belongs to no chat, or on rows that one statement takes (waits behind webhook batches).
    ///
    /// # Errors
    /// `Unavailable` when the ledger is closed or read-only, or when its turn does not come within 5 s.
    pub async fn begin(&self) -> Result<Tx> {
        let journal = self.inner.pools.journal.as_ref();
        let journal = journal.ok_or_else(|| StoreError::Unavailable("opened read-only".to_owned()))?;
        let leave = self.inner.pace.begin().await?;
        let pass = match &self.inner.turnstile {
            Some(turnstile) => Some(
                tokio::time::timeout(WRITE_WAIT, turnstile.second())
                    .await
                    .map_err(|_| StoreError::Unavailable("another transaction takes too long".to_owned()))?,
            ),
            None => None,
        };
        let begun = if self.inner.is_shared() {
            postgres::begin(journal, postgres::WRITE).await?
        } else {
            journal.begin().await?
        };
        Ok(Tx {
            begun: Instant::now(),
            read: self.reader(begun, leave),
            touched: Touched::default(),
            held: None,
            trail: Vec::new(),
            unsealed: BTreeSet::new(),
            pass,
            chat_lock: None,
        })
    }

    /// A write transaction on what belongs to this chat: such transactions run one after another, whatever process they are of.
    ///
    /// # Errors
    /// Those of [`Ledger::begin`].
    pub async fn begin_in(&self, place: &Conversation) -> Result<Tx> {
        if !self.inner.is_shared() {
            return self.begin().await;
        }
        let chat = postgres::chat_number(place);
        let lock = tokio::time::timeout(WRITE_WAIT, self.inner.chat_locks.lock(chat))
            .await
            .map_err(|_| StoreError::Unavailable("another transaction of the chat takes too long".to_owned()))?;
        let mut tx = self.begin().await?;
        postgres::chat_lock(&mut tx.conn, chat).await?;
        tx.chat_lock = Some(lock);
        Ok(tx)
    }

    /// A read-only connection.
    ///
    /// # Errors
    /// `Unavailable` when the ledger is closed or every reader is busy for 2 s.
    pub async fn read(&self) -> Result<Read> {
        let read = &self.inner.pools.read;
        let leave = self.inner.pace.begin().await?;
        let begun = if self.inner.is_shared() {
            postgres::begin(read, postgres::SNAPSHOT).await?
        } else {
            read.begin().await?
        };
        Ok(self.reader(begun, leave))
    }

    fn reader(&self, conn: Transaction<'static, Any>, leave: Option<Leave>) -> Read {
        Read {
            inner: Arc::clone(&self.inner),
            conn,
            _leave: leave,
        }
    }

    /// Notified after a commit that put something new into the inbox. Take all there is each time.
    #[must_use]
    pub fn inbox_wakeup(&self) -> Arc<Notify> {
        Arc::clone(&self.inner.wakeups.inbox)
    }

    /// Notified after a commit that made a lane ready or freed one.
    #[must_use]
    pub fn lane_wakeup(&self) -> Arc<Notify> {
        Arc::clone(&self.inner.wakeups.lanes)
    }

    /// Notified after a commit that enqueued something to send, or made the next of a queue its head.
    #[must_use]
    pub fn outbox_wakeup(&self) -> Arc<Notify> {
        Arc::clone(&self.inner.wakeups.outbox)
    }

    /// Changes after every commit of this process and, with Redis, soon after those of others. One may be missed.
    #[must_use]
    pub fn commits(&self) -> watch::Receiver<u64> {
        self.inner.wakeups.commits.subscribe()
    }
}
