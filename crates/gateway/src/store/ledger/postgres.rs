//! PostgreSQL: a server that any number of processes share.
//!
//! Transactions of one chat run one after another ([`Purpose::WriteChat`]), those of different chats side by side. What a process
//! that stands still holds is given free by the server: every session has its limits.
//!
//! Time is the server's, asked every half minute and carried on by the monotonic clock: leases and expiries are the same on every
//! machine.

use std::sync::{Arc, Weak};
use std::time::Duration;

use countersign_agent::domain::{Conversation, Millis, ServerTime, digest128};
use secrecy::{ExposeSecret, SecretString};
use sqlx::any::AnyConnectOptions;
use sqlx::pool::PoolOptions;
use sqlx::postgres::PgConnectOptions;
use sqlx::{AnyConnection, AnyPool, Connection, Database, Executor, Row};

use super::arg::args;
use super::arrive::ServerInbox;
use super::conn::Purpose;
use super::ids::Sequence;
use super::inner::{Inner, Pools};
use super::pool::Pool;
use super::schema::SchemaState;
use super::sql::encode;
use super::sql_errors::POOLER;
use super::{Result, schema, sql};
use crate::store::StoreError;

/// How long a verb waits for a connection.
const CONNECTION_WAIT: Duration = Duration::from_secs(2);
/// Batches of the inbox: the connection that is kept, and one in place of one that broke.
const ACCEPTORS: u32 = 2;
/// Journal transactions at a time.
const WRITERS: u32 = 12;
/// Readers.
const READERS: u32 = 6;
/// How often the server is asked for the time.
const TIME_CHECK: Duration = Duration::from_secs(30);
/// Statements that a connection keeps prepared: more than there are in this program.
const STATEMENTS: u32 = 500;

/// See [`super::Ledger::schema_state`].
pub(super) async fn schema_state(url: &SecretString) -> Result<SchemaState> {
    let state = async {
        let mut conn = connect(url).await?;
        let state = schema::state(&mut conn).await?;
        conn.close().await?;
        Ok(state)
    };
    state.await.map_err(|error| naming(url, error))
}

/// See [`super::Ledger::try_start`].
pub(super) async fn try_start(url: &SecretString, migrate: bool) -> Result<SchemaState> {
    let tried = async {
        let (mut conn, mut other) = (connect(url).await?, connect(url).await?);
        if are_pooled(&mut conn, &mut other).await? {
            return Err(StoreError::Unavailable(POOLER.to_owned()));
        }
        other.close().await?;
        let state = schema::state(&mut conn).await?;
        let mut trial = conn.begin().await?;
        try_rights(&mut trial, state, migrate).await?;
        trial.rollback().await?;
        conn.close().await?;
        Ok(state)
    };
    tried.await.map_err(|error| naming(url, error))
}

/// Does what shows whether we may make, change, read and write our tables. The caller takes it back.
async fn try_rights(conn: &mut AnyConnection, state: SchemaState, migrate: bool) -> Result<()> {
    let makes = migrate && state != SchemaState::Current;
    if makes {
        conn.execute("CREATE TABLE countersign_check (id BIGINT)").await?;
    } else if state == SchemaState::Current {
        conn.execute("UPDATE facts SET value = value WHERE name = 'starts'").await?;
    }
    // Of a table that is not there nothing is said.
    let row = sql::one(
        conn,
        "SELECT MIN(CASE WHEN $2 = 1 AND NOT pg_has_role((SELECT relowner FROM pg_class WHERE oid = to_regclass(name)), 'USAGE')
                    THEN 'does not own the table `' || name || '`'
                    WHEN NOT (has_table_privilege(to_regclass(name), 'SELECT') AND has_table_privilege(to_regclass(name), 'INSERT')
                      AND has_table_privilege(to_regclass(name), 'UPDATE') AND has_table_privilege(to_regclass(name), 'DELETE'))
                    THEN 'may not read and write the table `' || name || '`' END) AS lacks
         FROM json_array_elements_text(CAST($1 AS JSON)) AS ours(name)",
        args![encode(&schema::tables())?, makes],
    )
    .await?;
    match row.get::<Option<String>>("lacks")? {
        Some(lacks) => Err(StoreError::Unusable(format!("the user {lacks}"))),
        None => Ok(()),
    }
}

/// Are these two connections not two sessions of the server? A pooler that hands out transactions gives both to the same one, or one of them
/// to several. Prepared statements, locks and settings of a session are then anybody's.
async fn are_pooled(one: &mut AnyConnection, other: &mut AnyConnection) -> sqlx::Result<bool> {
    let mut seen: [Vec<i64>; 2] = [Vec::new(), Vec::new()];
    for _ in 0..3 {
        for (sessions, conn) in seen.iter_mut().zip([&mut *one, &mut *other]) {
            // A text without values: no statement is prepared for it.
            let row = conn.fetch_one("SELECT CAST(pg_backend_pid() AS BIGINT) AS pid").await?;
            sessions.push(row.try_get("pid")?);
        }
    }
    let [ours, others] = seen;
    let moves = |sessions: &[i64]| sessions.windows(2).any(|pair| pair[0] != pair[1]);
    Ok(moves(&ours) || moves(&others) || ours.first() == others.first())
}

/// See [`are_pooled`]; with a connection of each pool. What is wrong with a connection is found out by who uses it.
pub(super) async fn refuse_pooler(pools: &Pools) -> Result<()> {
    let (Pool::Server(read), Some(Pool::Server(journal))) = (&pools.read, &pools.journal) else {
        return Ok(());
    };
    let pooled = async {
        let mut one = read.acquire().await?;
        let mut other = journal.acquire().await?;
        are_pooled(&mut one, &mut other).await
    };
    if pooled.await.unwrap_or(false) {
        return Err(StoreError::Unavailable(POOLER.to_owned()));
    }
    Ok(())
}

/// See [`super::Ledger::migrate`].
pub(super) async fn migrate(url: &SecretString) -> Result<()> {
    let migrated = async {
        let mut conn = connect(url).await?;
        schema::migrate(&mut conn).await?;
        conn.close().await?;
        Ok(())
    };
    migrated.await.map_err(|error| naming(url, error))
}

/// Connections, the server's time, and ids. What other processes hold stays theirs until it runs out.
pub(super) async fn open(url: &SecretString, migrate: bool) -> Result<(Pools, ServerInbox, ServerTime, Sequence)> {
    let opened = async {
        let mut conn = connect(url).await?;
        if migrate {
            schema::migrate(&mut conn).await?;
        } else {
            schema::check(&mut conn).await?;
        }
        let mut other = connect(url).await?;
        if are_pooled(&mut conn, &mut other).await? {
            tracing::error!("{POOLER}; nothing is sure until it does");
        }
        other.close().await?;
        let sequence = Sequence::begin((&mut conn).into()).await?;
        let time = ServerTime::guessed();
        for _ in 0..3 {
            ask_time(&mut conn, &time).await?;
        }
        conn.close().await?;
        let pools = Pools {
            journal: Some(Pool::Server(pool(url, WRITERS).await?)),
            read: Pool::Server(pool(url, READERS).await?),
        };
        let inbox = pool_of(ACCEPTORS).connect_with(options(url)?.database_url.as_str().parse()?);
        Ok((pools, ServerInbox::new(inbox.await?), time, sequence))
    };
    opened.await.map_err(|error| naming(url, error))
}

/// Connections to look at it beside those who work with it.
pub(super) async fn open_read_only(url: &SecretString) -> Result<Pools> {
    let opened = async {
        let mut conn = connect(url).await?;
        schema::check(&mut conn).await?;
        conn.close().await?;
        Ok(Pools {
            journal: None,
            read: Pool::Server(pool(url, 1).await?),
        })
    };
    opened.await.map_err(|error| naming(url, error))
}

/// The text of a claim, in whose inner SELECT `{skip}` stands for: rows that another process is taking at this moment are not waited
/// for, they are passed over, so that many who claim at once take different ones. One writer at a time needs no such words.
/// `{each}` stands for the members of the JSON array `$1`, as rows with a column `value`.
pub(super) fn claiming(text: &str, rows: &str, shared: bool) -> String {
    let (skip, each) = if shared {
        (format!("FOR UPDATE OF {rows} SKIP LOCKED"), "json_array_elements(CAST($1 AS JSON))")
    } else {
        (String::new(), "json_each($1)")
    };
    text.replace("{skip}", &skip).replace("{each}", each)
}

/// One process removes old rows at a time; the lock ends with the transaction. Two would each remove half of what the other has chosen.
pub(super) const PRUNING: Purpose = Purpose::WriteChat(0);

/// The chat's number for [`Purpose::WriteChat`].
pub(super) fn chat_number(place: &Conversation) -> i64 {
    // Without the tenant: a click on Slack does not name it.
    number(&digest128(&[place.channel.as_str(), &place.app, &place.chat]))
}

/// A key of an advisory lock.
fn number(digest: &[u8; 16]) -> i64 {
    digest.iter().take(8).fold(0, |number, byte| (number << 8) | i64::from(*byte))
}

/// Keeps `time` right as long as the ledger lives.
pub(super) async fn keep_time(inner: Weak<Inner>, time: Arc<ServerTime>) {
    loop {
        tokio::time::sleep(TIME_CHECK).await;
        let Some(inner) = inner.upgrade() else { return };
        let Pool::Server(read) = &inner.pools.read else { return };
        let asked = async {
            let mut conn = read.acquire().await?;
            ask_time(&mut conn, &time).await
        };
        match asked.await {
            Ok(()) => {}
            Err(_) if read.is_closed() => return,
            // The clock goes on, right for a while.
            Err(error) => tracing::debug!(%error, "the database's time is not known"),
        }
    }
}

async fn ask_time(conn: &mut AnyConnection, time: &ServerTime) -> Result<()> {
    let asked = time.now();
    let row = conn
        .fetch_one("SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT) AS now")
        .await?;
    time.correct(asked, Millis(row.try_get("now")?));
    Ok(())
}

fn options(url: &SecretString) -> Result<AnyConnectOptions> {
    sqlx::any::install_default_drivers();
    let mut options: AnyConnectOptions = url.expose_secret().parse()?;
    let address = &mut options.database_url;
    for (name, value) in [
        ("statement-cache-capacity", STATEMENTS.to_string()),
        ("application_name", "countersign".to_owned()),
    ] {
        if !address.query_pairs().any(|(key, _)| key == name) {
            address.query_pairs_mut().append_pair(name, &value);
        }
    }
    Ok(options)
}

/// A connection outside the pools, which would try again for a while what cannot go well.
async fn connect(url: &SecretString) -> Result<AnyConnection> {
    let options = options(url)?;
    let connected = async {
        let mut conn = AnyConnection::connect_with(&options).await?;
        conn.execute(SESSION).await?;
        // What people write is in no other encoding whole; some take words and refuse the first emoji.
        let row = conn.fetch_one("SELECT current_setting('server_encoding') AS encoding").await?;
        match row.try_get::<String, _>("encoding")?.as_str() {
            "UTF8" => Ok(conn),
            other => Err(StoreError::Unusable(format!("the database is in {other}; it must be UTF8"))),
        }
    };
    tokio::time::timeout(CONNECTION_WAIT, connected)
        .await
        .unwrap_or_else(|_| Err(StoreError::Unavailable("the server does not answer".to_owned())))
}

/// Says of which server and database it is; never the password.
fn naming(url: &SecretString, error: StoreError) -> StoreError {
    let Ok(options) = url.expose_secret().parse::<PgConnectOptions>() else {
        return error;
    };
    let host = options.get_socket().map_or_else(
        || format!("{}:{}", options.get_host(), options.get_port()),
        |socket| socket.display().to_string(),
    );
    let place = format!(
        "PostgreSQL at {host}, database `{}`",
        options.get_database().unwrap_or(options.get_username())
    );
    match error {
        StoreError::Unusable(why) => StoreError::Unusable(format!("{place}: {why}")),
        StoreError::Unavailable(why) => StoreError::Unavailable(format!("{place}: {why}")),
        other @ (StoreError::Stale | StoreError::Held { .. } | StoreError::Corrupt(_)) => other,
    }
}

async fn pool(url: &SecretString, size: u32) -> Result<AnyPool> {
    Ok(pool_of(size).connect_with(options(url)?).await?)
}

fn pool_of<D: Database>(size: u32) -> PoolOptions<D>
where
    for<'c> &'c mut D::Connection: Executor<'c>,
{
    PoolOptions::new()
        .max_connections(size)
        .min_connections(1)
        .acquire_timeout(CONNECTION_WAIT)
        .test_before_acquire(false)
        .after_connect(|conn: &mut D::Connection, _| {
            Box::pin(async move {
                conn.execute(SESSION).await?;
                conn.execute(LIMITS).await?;
                Ok(())
            })
        })
}

/// What a session needs, whatever the server's or the user's defaults are. An answered commit survives a crash of the server. A transaction
/// that first takes a lock can set neither isolation nor mode any more: it stands on these.
const SESSION: &str = "SET default_transaction_isolation = 'read committed';
    SET default_transaction_read_only = off;
    SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'";

/// A stopped or cut-off process keeps what it has locked for as long as the server lets it. Not for a start, which may have to
/// wait for another that migrates.
const LIMITS: &str = "SET lock_timeout = '5s';
    SET statement_timeout = '30s';
    SET idle_in_transaction_session_timeout = '10s'";

#[cfg(test)]
mod tests {
    use super::*;

    /// design: an error names the server and the database, never the password.
    #[test]
    fn errors_name_the_server() {
        let url = SecretString::from("postgres://u:secret@db.example:6543/countersign?sslmode=require");
        let error = naming(&url, StoreError::Unavailable("no connection".to_owned())).to_string();
        assert!(
            error.contains("PostgreSQL at db.example:6543, database `countersign`: no connection"),
            "{error}"
        );
        assert!(!error.contains("secret"), "{error}");
    }
}
