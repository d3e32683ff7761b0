//! A world's database seen from beside its gateway: waiting until nothing is left to do (what has not happened by then will
//! not happen), reading what is stored, keeping the gateway from writing.

use std::path::PathBuf;

use countersign_agent::domain::Millis;
use sqlx::{AnyConnection, AssertSqlSafe, Connection, Executor, Row};

use super::api::eventually;
use super::world::World;

/// Rows that wait to be looked at, lanes that are worked on or due, and messages that are on their way.
const LEFT: &str = "SELECT (SELECT COUNT(*) FROM inbox WHERE state = 'new')
  + (SELECT COUNT(*) FROM lanes WHERE owner <> '' OR ready_at <= $1)
  + (SELECT COUNT(*) FROM outbox WHERE state = 'waiting') AS count";
const UNREAD: &str = "SELECT COUNT(*) AS count FROM inbox WHERE state = 'new' AND CAST($1 AS BIGINT) > 0";

/// The database file of a world that stands on SQLite.
pub fn database(world: &World) -> PathBuf {
    world.database_url().strip_prefix("sqlite://").unwrap().into()
}

/// A connection beside the gateway's own.
pub async fn connect(world: &World) -> AnyConnection {
    sqlx::any::install_default_drivers();
    AnyConnection::connect(world.database_url()).await.unwrap()
}

/// Waits until everything that came in is dealt with and everything that should go out has gone out.
pub async fn quiet(world: &World) {
    wait(world, LEFT, "a quiet gateway").await;
}

/// Waits until everything that came in has got its meaning.
pub async fn heard(world: &World) {
    wait(world, UNREAD, "an inbox without news").await;
}

async fn wait(world: &World, count: &'static str, what: &str) {
    let conn = tokio::sync::Mutex::new(connect(world).await);
    let look = || async {
        let row = sqlx::query(count)
            .bind(world.clock.now().0)
            .fetch_one(&mut *conn.lock().await)
            .await
            .unwrap();
        row.get::<i64, _>("count") == 0
    };
    // The clock is read before the rows are: a lane that became due in between is not due by that reading, but by the next one.
    eventually(what, || async { (look().await && look().await).then_some(()) }).await;
}

/// Until when the platform's rates hold the next message back, if they hold one.
pub async fn held_back(world: &World) -> Option<Millis> {
    sqlx::any::install_default_drivers();
    let mut conn = AnyConnection::connect(world.database_url()).await.ok()?;
    let query = "SELECT CAST(MIN(held_until) AS BIGINT) AS at FROM outbox WHERE state = 'waiting' AND owner = '' AND held_until > $1";
    let row = sqlx::query(query).bind(world.clock.now().0).fetch_one(&mut conn).await.ok()?;
    row.try_get("at").ok().map(Millis)
}

/// The first column of a query, as text.
pub async fn stored(world: &World, query: &str) -> Vec<String> {
    column(&mut connect(world).await, query).await
}

async fn column(conn: &mut AnyConnection, query: &str) -> Vec<String> {
    let rows = sqlx::query(AssertSqlSafe(query.to_owned())).fetch_all(conn).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

/// Names of the tables, on PostgreSQL.
const TABLES: &str = "SELECT CAST(tablename AS TEXT) FROM pg_tables WHERE schemaname = 'public' ORDER BY 1";

/// Everything that the database holds: the bytes of its files, or every row as text.
pub async fn contents(world: &World) -> Vec<u8> {
    if world.on_a_file() {
        let file = database(world);
        let log = std::fs::read(file.with_extension("db-wal")).unwrap_or_default();
        return [std::fs::read(file).unwrap(), log].concat();
    }
    let mut conn = connect(world).await;
    let mut all = String::new();
    for table in column(&mut conn, TABLES).await {
        let rows = column(&mut conn, &format!("SELECT CAST({table} AS TEXT) FROM {table}")).await;
        all.push_str(&rows.join("\n"));
    }
    all.into_bytes()
}

/// Keeps everybody else from writing until [`Held::release`].
pub struct Held(AnyConnection);

/// As a backup or an administrator would: the gateway can read, and not write.
pub async fn hold(world: &World) -> Held {
    let mut conn = connect(world).await;
    if world.on_a_file() {
        conn.execute("BEGIN IMMEDIATE").await.unwrap();
    } else {
        let tables = column(&mut conn, TABLES).await.join(", ");
        let lock = format!("BEGIN; LOCK TABLE {tables} IN SHARE ROW EXCLUSIVE MODE");
        // One table after the other: a transaction that holds the next one may be waiting for this one.
        while let Err(error) = conn.execute(AssertSqlSafe(lock.clone())).await {
            assert!(error.to_string().contains("deadlock"), "{error}");
            conn.execute("ROLLBACK").await.unwrap();
        }
    }
    Held(conn)
}

impl Held {
    /// Others may write again.
    pub async fn release(mut self) {
        self.0.execute("ROLLBACK").await.unwrap();
    }
}
