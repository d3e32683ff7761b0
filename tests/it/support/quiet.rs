//! Waiting until a gateway has nothing left to do: what has not happened by then will not happen.

use std::path::PathBuf;

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions, Row};

use super::api::eventually;
use super::world::World;

/// Rows that wait to be looked at, lanes that are worked on or due, and messages that are on their way.
const LEFT: &str = "SELECT (SELECT COUNT(*) FROM inbox WHERE state = 'new')
  + (SELECT COUNT(*) FROM lanes WHERE owner <> '' OR ready_at <= $1)
  + (SELECT COUNT(*) FROM outbox WHERE state = 'waiting') AS count";
const UNREAD: &str = "SELECT COUNT(*) AS count FROM inbox WHERE state = 'new' AND $1 = $1";

/// The database file of a world.
pub fn database(world: &World) -> PathBuf {
    world.folder.path().join("countersign.db")
}

/// A connection beside the gateway's own.
pub async fn connect(world: &World) -> SqliteConnection {
    SqliteConnectOptions::new().filename(database(world)).connect().await.unwrap()
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
    eventually(what, || async {
        let row = sqlx::query(count)
            .bind(world.clock.now().0)
            .fetch_one(&mut *conn.lock().await)
            .await
            .unwrap();
        (row.get::<i64, _>("count") == 0).then_some(())
    })
    .await;
}

/// The first column of a query, as text.
pub async fn stored(world: &World, query: &str) -> Vec<String> {
    let mut conn = connect(world).await;
    let rows = sqlx::query(AssertSqlSafe(query.to_owned())).fetch_all(&mut conn).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}
