//! The handle of an open ledger: its transactions, readers and wake-ups, and the end of it.

use std::sync::Arc;
use std::time::Duration;

use countersign_agent::domain::{Clock, Conversation, Inbound};
use tokio::sync::{Notify, watch};

use super::accept::Acceptor;
use super::conn::Purpose;
use super::inner::Inner;
use super::simulation::SimulatedOrder;
use super::transaction::{Read, Tx};
use super::{Result, postgres};
use crate::store::StoreError;
use crate::store::coordination::{CoordinationHealth, RedisTasks};

/// A look at the database for `/readyz`.
const PING: Duration = Duration::from_secs(1);
/// A journal transaction that waits longer than this for its turn is told so: something holds the database.
const WRITE_WAIT: Duration = Duration::from_secs(5);

/// The database: on SQLite one process and one writer at a time, on PostgreSQL any number of both.
#[derive(Clone, Debug)]
pub struct Ledger {
    pub(super) inner: Arc<Inner>,
    /// `None` in a ledger that was opened read-only.
    pub(super) acceptor: Option<Acceptor>,
    /// The background tasks of Redis, until the last handle is gone.
    pub(super) redis_tasks: Option<Arc<RedisTasks>>,
}

impl Ledger {
    /// A write transaction on what belongs to no chat, or on rows that one statement takes (waits behind webhook batches).
    ///
    /// # Errors
    /// `Unavailable` when the ledger is closed or read-only, or when its turn does not come within 5 s, a connection within 2 s, or the lock of
    /// another program within 5 s.
    pub async fn begin(&self) -> Result<Tx> {
        self.begin_for(Purpose::Write).await
    }

    pub(super) async fn begin_for(&self, purpose: Purpose) -> Result<Tx> {
        let journal = self.inner.pools.journal.as_ref();
        let journal = journal.ok_or_else(|| StoreError::Unavailable("opened read-only".to_owned()))?;
        let turn = self.inner.simulation.begin().await?;
        let pass = match &self.inner.write_queue {
            Some(queue) => Some(
                tokio::time::timeout(WRITE_WAIT, queue.pass_for_journal())
                    .await
                    .map_err(|_| StoreError::Unavailable("another transaction takes too long".to_owned()))?,
            ),
            None => None,
        };
        let begun = journal.begin(purpose).await?;
        Ok(Tx::new(Read::new(&self.inner, begun, turn), pass))
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
        let mut tx = self.begin_for(Purpose::WriteChat(chat)).await?;
        tx.chat_lock = Some(lock);
        Ok(tx)
    }

    /// A read-only connection.
    ///
    /// # Errors
    /// `Unavailable` when the ledger is closed or every reader is busy for 2 s.
    pub async fn read(&self) -> Result<Read> {
        let turn = self.inner.simulation.begin().await?;
        let begun = self.inner.pools.read.begin(Purpose::Read).await?;
        Ok(Read::new(&self.inner, begun, turn))
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

    /// Stores one verified event and gives its id. Concurrent calls share one commit; returns after it. 900 ms at most. An event
    /// that was stored before is stored again: triage tells copies apart.
    ///
    /// # Errors
    /// `Unavailable` when it is not known to be committed; should the commit come through later, the event that is
    /// sent again is a copy.
    pub async fn accept(&self, inbound: &Inbound) -> Result<i64> {
        match &self.acceptor {
            Some(acceptor) => acceptor.accept(inbound).await,
            None => Err(StoreError::Unavailable("opened read-only".to_owned())),
        }
    }

    /// Commits that [`Ledger::accept`] made so far: fewer than events when calls shared them.
    #[must_use]
    pub fn accept_commits(&self) -> u64 {
        self.acceptor.as_ref().map_or(0, Acceptor::commits)
    }

    /// The clock by which leases and expiries are reckoned: this machine's, or the database server's.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.inner.clock
    }

    /// Cheap liveness check for `/readyz`: reads, and asks whether events are still taken. After one that was not, it writes: a disk
    /// may be full while everything can be read.
    ///
    /// # Errors
    /// `Unavailable` when the database does not answer within a second, cannot be written or is closed.
    pub async fn ping(&self) -> Result<()> {
        if self.acceptor.as_ref().is_some_and(Acceptor::is_closed) {
            return Err(StoreError::Unavailable("closed".to_owned()));
        }
        let answer = async {
            self.inner.pools.read.ping().await?;
            postgres::refuse_pooler(&self.inner.pools).await?;
            let Some(acceptor) = self.acceptor.as_ref().filter(|acceptor| acceptor.is_refusing()) else {
                return Ok(());
            };
            let mut tx = self.begin().await?;
            tx.probe_disk().await?;
            tx.commit().await?;
            acceptor.is_well();
            Ok(())
        };
        tokio::time::timeout(PING, answer)
            .await
            .unwrap_or_else(|_| Err(StoreError::Unavailable("no answer within a second".to_owned())))
    }

    /// How the look-up of pending reviews and the wake-ups between processes stand.
    #[must_use]
    pub fn coordination(&self) -> CoordinationHealth {
        match &self.inner.wakeups.redis {
            Some(redis) => redis.standing(),
            None => CoordinationHealth {
                degraded: false,
                message: "embedded".to_owned(),
            },
        }
    }

    /// The rows that were passed over in the last hour because they do not read back, each with its table, its id and what is wrong. At
    /// most a hundred.
    #[must_use]
    pub fn damage(&self) -> Vec<String> {
        self.inner.damage.rows(self.inner.clock.now())
    }

    /// Flushes the writer task and closes; gives a file free.
    pub async fn close(&self) {
        if let Some(acceptor) = &self.acceptor {
            acceptor.finish().await;
        }
        if let Some(tasks) = &self.redis_tasks {
            tasks.finish().await;
        }
        self.inner.pools.close().await;
        let lock = self.inner.file_lock.lock().take();
        if let Some(lock) = lock {
            lock.give_back();
        }
    }

    /// Lets `order` decide when this ledger's transactions run from now on, and which commits fail. For tests; of several calls the first counts.
    pub fn simulate(&self, order: Arc<dyn SimulatedOrder>) {
        self.inner.simulation.set(order);
    }
}
