//! The private servers that other tests break: what they promise those tests.

use crate::support::api::eventually;
use crate::support::servers::{PostgresServer, RedisServer};
use sqlx::{AnyConnection, AssertSqlSafe, Connection, Executor, Row};
use std::time::Duration;

/// design: a private Redis survives its end with what it saved, can be emptied, stalled and resumed, and leaves nothing behind.
#[tokio::test]
async fn a_redis_of_ones_own() {
    let Some(mut redis) = RedisServer::start(&["--appendonly", "yes", "--appendfsync", "always"]).await else {
        return;
    };
    assert_eq!(redis.cli(&["SET", "name", "林晓"]).await, "OK");
    redis.kill().await;
    assert!(redis.ask(&["PING"]).await.is_err());
    redis.restart().await;
    assert_eq!(redis.cli(&["GET", "name"]).await, "林晓");
    redis.stall();
    let answer = tokio::time::timeout(Duration::from_millis(100), redis.ask(&["PING"])).await;
    assert!(!matches!(answer, Ok(Ok(_))), "a stalled server answered");
    redis.resume();
    eventually("an answer", || async { redis.ask(&["PING"]).await.ok() }).await;
    redis.stop().await;
    assert!(redis.ask(&["PING"]).await.is_err());
    redis.restart_empty().await;
    assert_eq!(redis.cli(&["GET", "name"]).await, "");
    let folder = redis.folder().to_owned();
    drop(redis);
    assert!(!folder.exists());
}

/// design: a private PostgreSQL survives a stop and a kill with what was committed, and can be stalled and resumed.
#[tokio::test]
async fn a_postgres_of_ones_own() {
    let Some(mut postgres) = PostgresServer::start().await else {
        return;
    };
    let url = postgres.fresh_database().await;
    run(&url, "CREATE TABLE kept (name TEXT)").await.unwrap();
    run(&url, "INSERT INTO kept VALUES ('林晓')").await.unwrap();
    postgres.kill().await;
    assert!(run(&url, "SELECT 1").await.is_err());
    postgres.restart().await;
    run(&url, "INSERT INTO kept VALUES ('赵磊')").await.unwrap();
    postgres.restart().await;
    let mut conn = AnyConnection::connect(&url).await.unwrap();
    let count = "SELECT COUNT(*) AS n FROM kept";
    assert_eq!(conn.fetch_one(count).await.unwrap().get::<i64, _>("n"), 2);
    postgres.stall();
    let waiting = conn.fetch_one(count);
    tokio::pin!(waiting);
    assert!(tokio::time::timeout(Duration::from_millis(100), &mut waiting).await.is_err());
    postgres.resume();
    assert_eq!(waiting.await.unwrap().get::<i64, _>("n"), 2);
}

async fn run(url: &str, statement: &str) -> sqlx::Result<()> {
    let mut conn = AnyConnection::connect(url).await?;
    conn.execute(AssertSqlSafe(statement.to_owned())).await?;
    conn.close().await
}
