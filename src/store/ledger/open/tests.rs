//! What only the inside of the store can show: the write connection's settings, and addresses.

use secrecy::SecretString;
use sqlx::{Executor, Row};

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
    let ledger = Ledger::open(&url, Clock::system(), true).await.unwrap();
    let write = ledger.inner.write.as_ref().unwrap();
    assert_eq!(pragma(write, "PRAGMA journal_mode").await, "wal");
    assert_eq!(pragma(write, "PRAGMA synchronous").await, "2");
    assert_eq!(pragma(write, "PRAGMA foreign_keys").await, "1");
    assert_eq!(pragma(write, "PRAGMA busy_timeout").await, "5000");
    assert_eq!(pragma(&ledger.inner.read, "PRAGMA query_only").await, "1");
    assert!(folder.path().join("deep/er/x y%.db").exists());
    ledger.close().await;
}

/// design: addresses of other databases are refused without repeating their password.
#[test]
fn addresses() {
    for (url, wanted) in [
        ("postgres://u:hunter2@db/x", "not in this version"),
        ("mysql://u:hunter2@db/x", "sqlite://PATH"),
        ("sqlite::memory:", "sqlite://PATH"),
        ("sqlite://:memory:", "must name a file"),
        ("sqlite://x.db?mode=ro", "must name a file"),
        ("sqlite://", "must name a file"),
    ] {
        let error = file_of(&SecretString::from(url.to_owned())).unwrap_err().to_string();
        assert!(error.contains(wanted), "{url}: {error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
    let absolute = file_of(&SecretString::from("sqlite:///var/lib/x.db".to_owned())).unwrap();
    assert_eq!(absolute, Path::new("/var/lib/x.db"));
    let relative = file_of(&SecretString::from("sqlite://data/x.db".to_owned())).unwrap();
    assert!(relative.is_absolute() && relative.ends_with("data/x.db"));
}
