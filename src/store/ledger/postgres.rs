//! PostgreSQL: a server that any number of processes share.
//!
//! Transactions of one chat run one after another ([`chat_lock`]), those of different chats side by side. What a process
//! that stands still holds is given free by the server: every session has its limits.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use sqlx::any::{AnyConnectOptions, AnyPoolOptions};
use sqlx::{AnyConnection, AnyPool, Connection, Executor, Row};

use super::open::{Looked, Pools};
use super::{Result, schema};
use crate::domain::{Clock, Conversation, digest128};

/// How long a verb waits for a connection.
const CONNECTION_WAIT: Duration = Duration::from_secs(2);
/// Batches of the inbox: one on its way, one being filled.
const ACCEPTORS: u32 = 2;
/// Journal transactions at a time.
const WRITERS: u32 = 12;
/// Readers.
const READERS: u32 = 6;

/// How a transaction that only looks begins: what it reads is one snapshot, as on SQLite.
pub(super) const SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY";

/// See [`super::Ledger::look`].
pub(super) async fn look(url: &SecretString) -> Result<Looked> {
    let mut conn = AnyConnection::connect_with(&options(url)?).await?;
    let behind = schema::is_behind(&mut conn).await?;
    conn.close().await?;
    Ok(if behind { Looked::Behind } else { Looked::Current })
}

/// See [`super::Ledger::migrate`].
pub(super) async fn migrate(url: &SecretString) -> Result<()> {
    let mut conn = AnyConnection::connect_with(&options(url)?).await?;
    schema::migrate(&mut conn).await?;
    conn.close().await?;
    Ok(())
}

/// Connections, the server's time, and the highest id in use.
pub(super) async fn open(url: &SecretString, clock: Clock, migrate: bool) -> Result<(Pools, Clock, i64)> {
    let mut conn = AnyConnection::connect_with(&options(url)?).await?;
    if migrate {
        schema::migrate(&mut conn).await?;
    } else {
        schema::check(&mut conn).await?;
    }
    let last = super::ids::highest(&mut conn).await?;
    let ahead = Arc::new(AtomicI64::new(measure(&mut conn).await?));
    conn.close().await?;
    let clock = clock.of_server(&ahead);
    let pools = Pools {
        accept: Some(pool(url, ACCEPTORS).await?),
        journal: Some(pool(url, WRITERS).await?),
        read: pool(url, READERS).await?,
    };
    Ok((pools, clock, last))
}

/// Connections to look at it beside those who work with it.
pub(super) async fn open_read_only(url: &SecretString) -> Result<Pools> {
    let mut conn = AnyConnection::connect_with(&options(url)?).await?;
    schema::check(&mut conn).await?;
    conn.close().await?;
    Ok(Pools {
        accept: None,
        journal: None,
        read: pool(url, 1).await?,
    })
}

/// Whoever changes what belongs to a chat waits here for the others who do; the lock ends with the transaction. Every rule that
/// holds between rows of one chat (a quorum, the queue of a lane, which gate is open) may so be checked and then written.
pub(super) async fn chat_lock(conn: &mut AnyConnection, place: &Conversation) -> Result<()> {
    // Without the tenant: a click on Slack does not name it.
    let key = digest128(&[place.channel.as_str(), &place.app, &place.chat]);
    // The function gives `void`, which the driver cannot read.
    sqlx::query("SELECT 1 FROM (SELECT pg_advisory_xact_lock($1)) AS held")
        .bind(number(&key))
        .execute(conn)
        .await?;
    Ok(())
}

/// Who may hold the lock of the epoch together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) enum Among {
    /// All who open a gate.
    Many,
    /// Nobody else: an epoch begins.
    Alone,
}

/// See `store::reviews::epoch`; the lock ends with the transaction.
pub(in crate::store) async fn epoch_lock(conn: &mut AnyConnection, among: Among) -> Result<()> {
    let text = match among {
        Among::Many => "SELECT 1 FROM (SELECT pg_advisory_xact_lock_shared($1)) AS held",
        Among::Alone => "SELECT 1 FROM (SELECT pg_advisory_xact_lock($1)) AS held",
    };
    sqlx::query(text).bind(number(&digest128(&["reviews.epoch"]))).execute(conn).await?;
    Ok(())
}

/// A key of an advisory lock.
fn number(digest: &[u8; 16]) -> i64 {
    digest.iter().take(8).fold(0, |number, byte| (number << 8) | i64::from(*byte))
}

/// How many milliseconds the server's clock is ahead of this machine's.
async fn measure(conn: &mut AnyConnection) -> Result<i64> {
    let machine = Clock::system();
    let asked = machine.now();
    let row = conn
        .fetch_one("SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT) AS now")
        .await?;
    let there: i64 = row.try_get("now")?;
    // The answer was given about half way between the question and its arrival.
    let here = asked.0.midpoint(machine.now().0);
    Ok(there - here)
}

fn options(url: &SecretString) -> Result<AnyConnectOptions> {
    sqlx::any::install_default_drivers();
    Ok(url.expose_secret().parse()?)
}

async fn pool(url: &SecretString, size: u32) -> Result<AnyPool> {
    let pool = AnyPoolOptions::new()
        .max_connections(size)
        .min_connections(1)
        .acquire_timeout(CONNECTION_WAIT)
        .test_before_acquire(false)
        .after_connect(|conn, _| {
            Box::pin(async move {
                for setting in SESSION {
                    conn.execute(*setting).await?;
                }
                Ok(())
            })
        })
        .connect_with(options(url)?)
        .await?;
    Ok(pool)
}

/// Limits of a session. A stopped or cut-off process keeps what it has locked for as long as the server lets it.
const SESSION: &[&str] = &[
    "SET application_name = 'countersign'",
    "SET lock_timeout = '5s'",
    "SET statement_timeout = '30s'",
    "SET idle_in_transaction_session_timeout = '10s'",
];
