//! Opening the database: which kind the address names, its connections, and the end of them.

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use countersign_agent::domain::Clock;
use secrecy::{ExposeSecret, SecretString};
use sqlx::AnyPool;

use super::accept::Acceptor;
use super::chat_locks::ChatLocks;
use super::ids::Sequence;
use super::pace::Paced;
use super::turnstile::Turnstile;
use super::wakeups::Wakeups;
use super::{Inner, Ledger, Result, file, postgres, sqlite};
use crate::config::{Coordination, Stores};
use crate::store::StoreError;
use crate::store::coordination::{Redis, Standing};

/// A look at the database for `/readyz`.
const PING: Duration = Duration::from_secs(1);
/// Some pages long, so that it finds a disk full on which a few bytes still fit.
static PROBE: LazyLock<String> = LazyLock::new(|| "-".repeat(16_384));

/// How a database stands; see [`Ledger::look`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Looked {
    /// There is none yet, but there can be.
    Absent,
    /// Its schema is older than this program's.
    Behind,
    /// It is as this program wants it.
    Current,
}

/// The connections of a ledger, by what they are for.
#[derive(Debug)]
pub(super) struct Pools {
    /// Batches of the inbox. `None` means opened read-only.
    pub(super) accept: Option<AnyPool>,
    /// The other writers. `None` means opened read-only.
    pub(super) journal: Option<AnyPool>,
    pub(super) read: AnyPool,
}

/// What an address names.
enum Place {
    File(PathBuf),
    Server(SecretString),
}

impl Place {
    fn of(url: &SecretString) -> Result<Self> {
        let text = url.expose_secret();
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            Ok(Self::Server(url.clone()))
        } else {
            file::of(url).map(Self::File)
        }
    }
}

impl Ledger {
    /// Looks how the database stands, beside a process that may be running: no lock, no migration, no write.
    ///
    /// # Errors
    /// `Unusable` for a wrong address, a place where no file can be, a file that is no database, or a newer schema;
    /// `Unavailable` for a server that does not answer.
    pub async fn look(url: &SecretString) -> Result<Looked> {
        match Place::of(url)? {
            Place::File(path) => sqlite::look(&path).await,
            Place::Server(url) => postgres::look(&url).await,
        }
    }

    /// Brings the database to the current schema. Creates a missing file; a file of another program is refused.
    ///
    /// # Errors
    /// Those of [`Ledger::open`].
    pub async fn migrate(url: &SecretString) -> Result<()> {
        match Place::of(url)? {
            Place::File(path) => {
                let (pools, lock, _) = sqlite::open(&path, &Clock::system(), true).await?;
                pools.close().await;
                lock.give_back();
                Ok(())
            }
            Place::Server(url) => postgres::migrate(&url).await,
        }
    }

    /// Opens the database. A file is made if need be, locked, and whatever leases it holds are void; a server is shared with
    /// other processes, and time is its time.
    ///
    /// # Errors
    /// `Held` when another process has the file; `Unusable` for a wrong address, a damaged file, a schema that is
    /// newer than this program, or an older one when `migrate_on_start` is false; `Unavailable` for a server that does not answer.
    pub async fn open(stores: &Stores, clock: Clock) -> Result<Self> {
        let migrate = stores.migrate_on_start;
        let mut time = None;
        let (clock, pools, sequence, lock, turnstile) = match Place::of(&stores.database_url)? {
            Place::File(path) => {
                let (pools, lock, sequence) = sqlite::open(&path, &clock, migrate).await?;
                (clock, pools, sequence, Some(lock), Some(Turnstile::default()))
            }
            Place::Server(url) => {
                let (pools, there, sequence) = postgres::open(&url, migrate).await?;
                let there = time.insert(Arc::new(there));
                (clock.of_server(there), pools, sequence, None, None)
            }
        };
        let (redis, jobs) = match &stores.coordination {
            Coordination::Embedded => (None, None),
            Coordination::Redis { url, prefix } => {
                let (redis, jobs) = Redis::new(url, prefix)?;
                (Some(redis), Some(jobs))
            }
        };
        let inner = Arc::new(Inner {
            clock,
            sequence,
            pools,
            turnstile,
            chat_locks: ChatLocks::default(),
            wakeups: Wakeups::of(redis.clone()),
            pace: Paced::default(),
            lock: std::sync::Mutex::new(lock),
        });
        if let Some(time) = time {
            tokio::spawn(postgres::keep_time(Arc::downgrade(&inner), time));
        }
        let acceptor = Acceptor::start(Arc::clone(&inner));
        let redis_tasks = match redis.zip(jobs) {
            Some((redis, jobs)) => {
                let here = Arc::clone(&inner);
                Some(Arc::new(redis.start(jobs, move |ready| here.wakeups.wake_here(ready)).await))
            }
            None => None,
        };
        Ok(Self {
            inner,
            acceptor: Some(acceptor),
            redis_tasks,
        })
    }

    /// Opens an existing database to look at it, beside a running process: no lock, no migration, no write.
    ///
    /// # Errors
    /// `Unusable` when there is no such database, or its schema is not this program's.
    pub async fn open_read_only(url: &SecretString) -> Result<Self> {
        let (pools, turnstile) = match Place::of(url)? {
            Place::File(path) => (sqlite::open_read_only(&path).await?, Some(Turnstile::default())),
            Place::Server(url) => (postgres::open_read_only(&url).await?, None),
        };
        Ok(Self {
            inner: Arc::new(Inner {
                clock: Clock::system(),
                sequence: Sequence::after(0, 0),
                pools,
                turnstile,
                chat_locks: ChatLocks::default(),
                wakeups: Wakeups::of(None),
                pace: Paced::default(),
                lock: std::sync::Mutex::new(None),
            }),
            acceptor: None,
            redis_tasks: None,
        })
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
            sqlx::query("SELECT 1").fetch_one(&self.inner.pools.read).await?;
            let Some(acceptor) = self.acceptor.as_ref().filter(|acceptor| acceptor.is_refusing()) else {
                return Ok(());
            };
            let mut tx = self.begin().await?;
            tx.set_fact("probe", &PROBE).await?;
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
    pub fn coordination(&self) -> Standing {
        match &self.inner.wakeups.redis {
            Some(redis) => redis.standing(),
            None => Standing {
                degraded: false,
                message: "embedded".to_owned(),
            },
        }
    }

    /// Flushes the writer task and closes; gives a file free.
    pub async fn close(&self) {
        if let Some(acceptor) = &self.acceptor {
            acceptor.finish().await;
        }
        if let Some(redis) = &self.inner.wakeups.redis {
            redis.finish().await;
        }
        if let Some(tasks) = &self.redis_tasks {
            tasks.end();
        }
        self.inner.pools.close().await;
        if let Ok(mut lock) = self.inner.lock.lock()
            && let Some(held) = lock.take()
        {
            held.give_back();
        }
    }
}

impl Pools {
    async fn close(&self) {
        self.read.close().await;
        for pool in [&self.accept, &self.journal].into_iter().flatten() {
            pool.close().await;
        }
    }
}

#[cfg(test)]
mod tests;
