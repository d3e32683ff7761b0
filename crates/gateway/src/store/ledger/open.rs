//! Opening the database: which kind the address names, its connections, and the end of them.

use std::sync::Arc;

use countersign_agent::domain::Clock;
use parking_lot::Mutex;
use secrecy::{ExposeSecret, SecretString};

use super::accept::{Acceptor, InboxStore};
use super::damage::Damage;
use super::handle::Ledger;
use super::ids::Sequence;
use super::inner::Inner;
use super::schema::SchemaState;
use super::simulation::Simulation;
use super::wakeups::Wakeups;
use super::write_queue::{ChatLocks, WriteQueue};
use super::{Result, file, postgres, sqlite};
use crate::config::{Coordination, DatabaseAddress, Stores};
use crate::store::StoreError;
use crate::store::coordination::Redis;

/// What `url` names. The driver is given no address that was not looked at here.
fn named(url: &SecretString) -> Result<DatabaseAddress> {
    let why = |why: String| StoreError::Unusable(format!("the address is wrong: {why}"));
    DatabaseAddress::parse(url.expose_secret()).map_err(why)
}

impl Ledger {
    /// Looks how the database stands, beside a process that may be running: no lock, no migration, no write.
    ///
    /// # Errors
    /// `Unusable` for a wrong address, a place where no file can be, a file that is no database, or a newer schema;
    /// `Unavailable` for a server that does not answer.
    pub async fn schema_state(url: &SecretString) -> Result<SchemaState> {
        match named(url)? {
            DatabaseAddress::File(path) => sqlite::schema_state(&path).await,
            DatabaseAddress::Server => postgres::schema_state(url).await,
        }
    }

    /// Tries what a start needs, beside a process that may be running, and leaves all as it is: rights to make and to write the tables, a server that takes
    /// writes and no pooler before it, a folder for the file. `migrate`: the start would bring the schema up to date.
    ///
    /// # Errors
    /// Those of [`Ledger::open`], but not that another process has the file.
    pub async fn try_start(url: &SecretString, migrate: bool) -> Result<SchemaState> {
        match named(url)? {
            DatabaseAddress::File(path) => {
                let state = sqlite::schema_state(&path).await?;
                file::try_writing(&path)?;
                Ok(state)
            }
            DatabaseAddress::Server => postgres::try_start(url, migrate).await,
        }
    }

    /// Brings the database to the current schema. Creates a missing file; a file of another program is refused.
    ///
    /// # Errors
    /// Those of [`Ledger::open`].
    pub async fn migrate(url: &SecretString) -> Result<()> {
        match named(url)? {
            DatabaseAddress::File(path) => {
                let (pools, inbox, lock, _) = sqlite::open(&path, &Clock::system(), true).await?;
                drop(inbox);
                pools.close().await;
                lock.give_back();
                Ok(())
            }
            DatabaseAddress::Server => postgres::migrate(url).await,
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
        let (clock, pools, sequence, inbox, lock, write_queue) = match named(&stores.database_url)? {
            DatabaseAddress::File(path) => {
                let (pools, inbox, lock, sequence) = sqlite::open(&path, &clock, migrate).await?;
                let write_queue = Some(WriteQueue::default());
                (clock, pools, sequence, InboxStore::File(inbox), Some(lock), write_queue)
            }
            DatabaseAddress::Server => {
                let (pools, inbox, there, sequence) = postgres::open(&stores.database_url, migrate).await?;
                let there = time.insert(Arc::new(there));
                (clock.of_server(there), pools, sequence, InboxStore::Server(inbox), None, None)
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
            write_queue,
            chat_locks: ChatLocks::default(),
            wakeups: Wakeups::of(redis.clone()),
            simulation: Simulation::default(),
            damage: Damage::default(),
            file_lock: Mutex::new(lock),
        });
        if let Some(time) = time {
            tokio::spawn(postgres::keep_time(Arc::downgrade(&inner), time));
        }
        let acceptor = Acceptor::start(Arc::clone(&inner), inbox)?;
        let redis_tasks = match redis.zip(jobs) {
            Some((redis, jobs)) => {
                let here = Arc::clone(&inner);
                Some(Arc::new(redis.start(jobs, move |ready| here.wakeups.wake_here(ready)).await))
            }
            None => None,
        };
        let ledger = Self {
            inner,
            acceptor: Some(acceptor),
            redis_tasks,
        };
        if !ledger.inner.is_shared() {
            let mut tx = ledger.begin().await?;
            if tx.note_first_cards().await? > 0 {
                tx.commit().await?;
            }
        }
        Ok(ledger)
    }

    /// Opens an existing database to look at it, beside a running process: no lock, no migration, no write.
    ///
    /// # Errors
    /// `Unusable` when there is no such database, or its schema is not this program's.
    pub async fn open_read_only(url: &SecretString) -> Result<Self> {
        let (pools, write_queue) = match named(url)? {
            DatabaseAddress::File(path) => (sqlite::open_read_only(&path).await?, Some(WriteQueue::default())),
            DatabaseAddress::Server => (postgres::open_read_only(url).await?, None),
        };
        Ok(Self {
            inner: Arc::new(Inner {
                clock: Clock::system(),
                sequence: Sequence::after(0, 0),
                pools,
                write_queue,
                chat_locks: ChatLocks::default(),
                wakeups: Wakeups::of(None),
                simulation: Simulation::default(),
                damage: Damage::default(),
                file_lock: Mutex::new(None),
            }),
            acceptor: None,
            redis_tasks: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::ledger::conn::{Conn, Purpose};
    use crate::store::ledger::pool::OpenTransaction;

    fn pragma(begun: &mut OpenTransaction, name: &str) -> String {
        let Conn::File(conn) = begun.lend().unwrap() else {
            panic!("a file")
        };
        let value = |row: &rusqlite::Row<'_>| {
            row.get::<_, String>(0)
                .or_else(|_| row.get::<_, i64>(0).map(|value| value.to_string()))
        };
        conn.query_row(name, [], value).unwrap()
    }

    /// design: an answered commit survives a power cut: WAL with `synchronous=FULL` (2), foreign keys on. Readers do not write.
    #[tokio::test]
    async fn the_writer_syncs_every_commit() {
        let folder = tempfile::tempdir().unwrap();
        let url = SecretString::from(format!("sqlite://{}/deep/er/x y%?.db", folder.path().display()).replace('?', ""));
        let ledger = Ledger::open(&Stores::embedded(url), Clock::system()).await.unwrap();
        let pools = &ledger.inner.pools;
        let mut write = pools.journal.as_ref().unwrap().begin(Purpose::Write).await.unwrap();
        assert_eq!(pragma(&mut write, "PRAGMA journal_mode"), "wal");
        assert_eq!(pragma(&mut write, "PRAGMA synchronous"), "2");
        assert_eq!(pragma(&mut write, "PRAGMA foreign_keys"), "1");
        let mut read = pools.read.begin(Purpose::Read).await.unwrap();
        assert_eq!(pragma(&mut read, "PRAGMA query_only"), "1");
        drop((write, read));
        assert!(folder.path().join("deep/er/x y%.db").exists());
        ledger.close().await;
    }

    /// design: a full disk loses nothing and heals without a restart: what is committed afterwards is really committed.
    /// SQLite rolls back by itself then: what the transaction does after that is refused, not committed statement by statement.
    #[tokio::test]
    async fn a_full_disk_heals() {
        let folder = tempfile::tempdir().unwrap();
        let url = SecretString::from(format!("sqlite://{}/x.db", folder.path().display()));
        let ledger = Ledger::open(&Stores::embedded(url), Clock::system()).await.unwrap();
        let mut tx = ledger.begin().await.unwrap();
        tx.run("PRAGMA max_page_count = 1", Vec::new()).await.unwrap();
        tx.set_fact("before", "x").await.unwrap();
        let error = tx.set_fact("big", &"x".repeat(1 << 20)).await.unwrap_err();
        assert!(matches!(error, StoreError::Unavailable(_)), "{error}");
        let error = tx.set_fact("alone", "x").await.unwrap_err();
        assert!(matches!(error, StoreError::Unavailable(_)), "{error}");
        let error = tx.commit().await.unwrap_err();
        assert!(matches!(error, StoreError::Unavailable(_)), "{error}");

        let mut tx = ledger.begin().await.unwrap();
        tx.set_fact("dropped", "x").await.unwrap();
        drop(tx);
        let mut tx = ledger.begin().await.unwrap();
        tx.set_fact("after", "x").await.unwrap();
        tx.commit().await.unwrap();

        let mut read = ledger.read().await.unwrap();
        for (name, there) in [
            ("before", false),
            ("big", false),
            ("alone", false),
            ("dropped", false),
            ("after", true),
        ] {
            assert_eq!(read.fact(name).await.unwrap().is_some(), there, "{name}");
        }
    }
}
