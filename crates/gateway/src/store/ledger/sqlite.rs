//! SQLite: one file and one process; two writers, of the journal and of the inbox, beside a few readers.

use std::path::Path;
use std::time::Duration;

use countersign_agent::domain::Clock;
use sqlx::any::{AnyConnectOptions, AnyPoolOptions};
use sqlx::{AnyConnection, AnyPool, Connection, Executor, Row};

use super::file::FileLock;
use super::file_inbox::FileInbox;
use super::ids::Sequence;
use super::inner::Pools;
use super::schema::SchemaState;
use super::sql::args;
use super::{Result, file, schema, sql};
use crate::store::StoreError;

/// How long a verb waits for a connection.
const CONNECTION_WAIT: Duration = Duration::from_secs(2);
/// Readers beside the writers.
const READERS: u32 = 4;

/// See [`super::Ledger::schema_state`].
pub(super) async fn schema_state(path: &Path) -> Result<SchemaState> {
    if !path.exists() {
        let above = path.ancestors().skip(1).find(|folder| folder.exists());
        return match above {
            Some(folder) if !folder.is_dir() => Err(StoreError::Unusable(format!("`{}` is no folder", folder.display()))),
            _ => Ok(SchemaState::Absent),
        };
    }
    let state = async {
        examine(path, Access::Look).await?;
        let mut conn = AnyConnection::connect_with(&address(path, Access::Look)?).await?;
        let state = schema::state(&mut conn).await?;
        conn.close().await?;
        Ok(state)
    };
    state.await.map_err(|error| naming(path, error))
}

/// Takes the file for this process; gives its connections, its inbox, the lock that says so, and its ids.
pub(super) async fn open(path: &Path, clock: &Clock, migrate: bool) -> Result<(Pools, FileInbox, FileLock, Sequence)> {
    file::prepare(path)?;
    let lock = FileLock::take(path)?;
    let named = |error| naming(path, error);
    if !lock.was_closed() {
        examine(path, Access::Write).await.map_err(named)?;
    }
    let write = connect(path, Access::Write).await.map_err(named)?;
    let opened = set_up(&write, clock, migrate, lock.was_closed()).await.map_err(named);
    let sequence = match opened {
        Ok(sequence) => sequence,
        Err(error) => {
            write.close().await;
            return Err(error);
        }
    };
    let read = connect(path, Access::Read).await.map_err(named)?;
    let inbox = FileInbox::open(path, pragmas(Access::Write)).map_err(named)?;
    let pools = Pools {
        accept: None,
        journal: Some(write),
        read,
    };
    Ok((pools, inbox, lock, sequence))
}

/// Connections to look at it beside the process that has it.
pub(super) async fn open_read_only(path: &Path) -> Result<Pools> {
    if !path.exists() {
        return Err(StoreError::Unusable(format!("there is no file `{}`", path.display())));
    }
    let named = |error| naming(path, error);
    examine(path, Access::Look).await.map_err(named)?;
    let read = connect(path, Access::Look).await.map_err(named)?;
    let mut conn = read.acquire().await.map_err(|error| named(error.into()))?;
    schema::check(&mut conn).await.map_err(named)?;
    drop(conn);
    Ok(Pools {
        accept: None,
        journal: None,
        read,
    })
}

/// Schema, and the end of every lease: on SQLite the lock has proved that no other process lives. One that stopped in order has given
/// back its lanes, each to its moment; else whatever may have work is looked at, and the turns that were under way saw a death.
async fn set_up(write: &AnyPool, clock: &Clock, migrate: bool, closed: bool) -> Result<Sequence> {
    let mut conn = write.acquire().await?;
    if migrate {
        schema::migrate(&mut conn).await?;
    } else {
        schema::check(&mut conn).await?;
    }
    let now = clock.now();
    sql::run(&mut conn, concat!(
        "UPDATE lanes SET crashes = crashes + CASE WHEN owner <> '",
        super::lanes::stopping!(),
        "' AND (turn_id IS NOT NULL OR gathering IS NOT NULL) THEN 1 ELSE 0 END, owner = '', lease_until = 0, ready_at = $1, wakes = wakes + 1 WHERE owner <> ''"
    ), args![now]).await?;
    if !closed {
        sql::run(
            &mut conn,
            "UPDATE lanes SET ready_at = $1, wakes = wakes + 1 WHERE ready_at > $1 AND (turn_id IS NOT NULL
             OR EXISTS (SELECT 1 FROM inbox WHERE inbox.lane_id = lanes.id AND inbox.state = 'laned'))",
            args![now],
        )
        .await?;
    }
    // While no process ran, none tried: what waits gets its whole time again. The process that held a row may have sent it: its
    // name stays.
    sql::run(
        &mut conn,
        "UPDATE outbox SET held_until = 0, give_up_at = $1 WHERE state = 'waiting'",
        args![now.0.saturating_add(super::outbox::GIVE_UP_MS)],
    )
    .await?;
    Sequence::begin(&mut conn).await
}

/// Names the file in what is said about it.
fn naming(path: &Path, error: StoreError) -> StoreError {
    match error {
        StoreError::Unusable(why) => StoreError::Unusable(format!("`{}`: {why}", path.display())),
        StoreError::Unavailable(why) => StoreError::Unavailable(format!("`{}`: {why}", path.display())),
        other @ (StoreError::Stale | StoreError::Held { .. } | StoreError::Corrupt(_)) => other,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    /// A writer.
    Write,
    /// A reader of our own process.
    Read,
    /// A reader beside another process.
    Look,
}

fn address(path: &Path, access: Access) -> Result<AnyConnectOptions> {
    sqlx::any::install_default_drivers();
    let mode = if access == Access::Look { "ro" } else { "rwc" };
    Ok(format!("sqlite://{}?mode={mode}", file::encoded(path)?).parse()?)
}

/// Is it a sound database? Asked over a connection of its own: a pool would try again and again, and say in the
/// end that it took too long.
async fn examine(path: &Path, access: Access) -> Result<()> {
    let mut conn = AnyConnection::connect_with(&address(path, access)?).await?;
    let verdict: String = conn.fetch_one("PRAGMA quick_check(1)").await?.try_get(0)?;
    conn.close().await?;
    if verdict == "ok" {
        Ok(())
    } else {
        Err(StoreError::Unusable(format!("the file is damaged: {verdict}")))
    }
}

async fn connect(path: &Path, access: Access) -> Result<AnyPool> {
    let options = address(path, access)?;
    let size = if access == Access::Write { 1 } else { READERS };
    let pool = AnyPoolOptions::new()
        .max_connections(size)
        .min_connections(1)
        .acquire_timeout(CONNECTION_WAIT)
        // A file does not go away like a server does: asking first would cost a round trip a verb.
        .test_before_acquire(false)
        .idle_timeout(None)
        .max_lifetime(None)
        // When SQLite rolls back by itself (disk full, I/O error), the driver's ROLLBACK fails and it believes for ever
        // that a transaction is open: later ones would be savepoints inside nothing, or inside one that is never ended,
        // and their "commits" not durable. Such a connection is replaced. The ping waits for a queued rollback; a connection
        // that is in no transaction has none queued.
        .after_release(|conn, _| {
            Box::pin(async move {
                if conn.is_in_transaction() {
                    conn.ping().await?;
                }
                Ok(!conn.is_in_transaction())
            })
        })
        .after_connect(move |conn, _| {
            Box::pin(async move {
                for pragma in pragmas(access) {
                    conn.execute(*pragma).await?;
                }
                Ok(())
            })
        })
        .connect_with(options)
        .await?;
    Ok(pool)
}

/// `FULL`: a commit that was answered with 200 survives a power cut, <https://www.sqlite.org/pragma.html#pragma_synchronous>.
fn pragmas(access: Access) -> &'static [&'static str] {
    match access {
        Access::Write => &[
            "PRAGMA journal_mode = WAL",
            "PRAGMA synchronous = FULL",
            "PRAGMA foreign_keys = ON",
            "PRAGMA busy_timeout = 5000",
            // 16 MiB: keys are spread, and a page that changes again before the checkpoint is written once.
            "PRAGMA wal_autocheckpoint = 4000",
        ],
        Access::Read | Access::Look => &["PRAGMA busy_timeout = 5000", "PRAGMA query_only = ON"],
    }
}
