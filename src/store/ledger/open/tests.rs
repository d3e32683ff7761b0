//! What only the inside of the store can show: the settings of its connections.

use secrecy::SecretString;
use sqlx::{Executor, Row};

use sqlx::AnyPool;

use super::*;

async fn pragma(pool: &AnyPool, name: &'static str) -> String {
    let row = pool.fetch_one(name).await.unwrap();
    row.try_get::<String, _>(0)
        .or_else(|_| row.try_get::<i64, _>(0).map(|value| value.to_string()))
        .unwrap()
}

/// design: an answered commit survives a power cut: WAL with `synchronous=FULL` (2), foreign keys on, 5 s of patience.
#[tokio::test]
async fn the_writer_syncs_every_commit() {
    let folder = tempfile::tempdir().unwrap();
    let url = SecretString::from(format!("sqlite://{}/deep/er/x y%?.db", folder.path().display()).replace('?', ""));
    let ledger = Ledger::open(&Stores::embedded(url), Clock::system()).await.unwrap();
    let write = ledger.inner.pools.journal.as_ref().unwrap();
    assert_eq!(pragma(write, "PRAGMA journal_mode").await, "wal");
    assert_eq!(pragma(write, "PRAGMA synchronous").await, "2");
    assert_eq!(pragma(write, "PRAGMA foreign_keys").await, "1");
    assert_eq!(pragma(write, "PRAGMA busy_timeout").await, "5000");
    assert_eq!(pragma(&ledger.inner.pools.read, "PRAGMA query_only").await, "1");
    assert!(folder.path().join("deep/er/x y%.db").exists());
    ledger.close().await;
}

/// design: a full disk loses nothing and heals without a restart: what is committed afterwards is really committed.
/// (SQLite rolls back by itself then, and the connection's own count of open transactions is off by one.)
#[tokio::test]
async fn a_full_disk_heals() {
    let folder = tempfile::tempdir().unwrap();
    let url = SecretString::from(format!("sqlite://{}/x.db", folder.path().display()));
    let ledger = Ledger::open(&Stores::embedded(url), Clock::system()).await.unwrap();
    let write = ledger.inner.pools.journal.as_ref().unwrap();
    write.execute("PRAGMA max_page_count = 1").await.unwrap();
    let mut tx = ledger.begin().await.unwrap();
    tx.set_fact("before", "x").await.unwrap();
    let error = tx.set_fact("big", &"x".repeat(1 << 20)).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error}");
    drop(tx);

    let mut tx = ledger.begin().await.unwrap();
    tx.set_fact("dropped", "x").await.unwrap();
    drop(tx);
    let mut tx = ledger.begin().await.unwrap();
    tx.set_fact("after", "x").await.unwrap();
    tx.commit().await.unwrap();

    let mut read = ledger.read().await.unwrap();
    for (name, there) in [("before", false), ("big", false), ("dropped", false), ("after", true)] {
        assert_eq!(read.fact(name).await.unwrap().is_some(), there, "{name}");
    }
}
