//! Transactions: what is told of a commit is so, a busy chat is nobody else's business, every session has its settings, and a lock is waited for.
#![expect(clippy::unwrap_used, reason = "outside test functions too, a step that fails fails its test")]

use std::time::{Duration, Instant};

use secrecy::ExposeSecret;
use sqlx::{AnyConnection, AssertSqlSafe, Connection, Executor, Row};

use crate::store_kit::{Store, file, place, server, working};

async fn beside(store: &Store) -> AnyConnection {
    AnyConnection::connect(store.stores.database_url.expose_secret()).await.unwrap()
}

/// design: nobody is told "yes" for what was rolled back: the commit of a transaction in which a verb failed is an error.
#[tokio::test]
async fn a_failed_transaction_is_not_told_as_committed() {
    let Some(one) = server().await else { return };
    let other = one.another(&one.clock).await;
    let (lease, turn) = working(&one, "a", &place("oc_1", ""), "ou_1").await;
    let mut tx = one.ledger.begin_in(&turn.conversation).await.unwrap();
    tx.set_fact("x", "y").await.unwrap();
    tx.create_turn(&lease, &turn).await.unwrap_err();
    let error = tx.commit().await.unwrap_err();
    assert!(error.to_string().contains("a statement of the transaction failed"), "{error}");
    assert_eq!(other.ledger.read().await.unwrap().fact("x").await.unwrap(), None);
    // The connection is as good as new.
    for _ in 0..20 {
        let mut tx = one.ledger.begin_in(&turn.conversation).await.unwrap();
        tx.set_fact("x", "z").await.unwrap();
        tx.commit().await.unwrap();
    }
    assert_eq!(other.ledger.read().await.unwrap().fact("x").await.unwrap().as_deref(), Some("z"));
}

/// A chat's lock that is not had in time leaves no connection behind in a transaction that has failed.
#[tokio::test]
async fn a_lock_that_comes_too_late_spoils_no_connection() {
    let Some(one) = server().await else { return };
    let other = one.another(&one.clock).await;
    let busy = place("oc_busy", "");
    let held = other.ledger.begin_in(&busy).await.unwrap();
    let error = one.ledger.begin_in(&busy).await.unwrap_err();
    assert!(error.to_string().contains("55P03"), "{error}");
    drop(held);
    for _ in 0..20 {
        let mut tx = one.ledger.begin_in(&busy).await.unwrap();
        tx.set_fact("x", "y").await.unwrap();
        tx.commit().await.unwrap();
    }
}

/// design: a transaction waits for the lock of another program (a backup, an administrator). It holds up no thread: who only reads goes on.
#[tokio::test]
async fn a_lock_of_another_program_is_waited_for() {
    let store = file().await;
    let mut beside = beside(&store).await;
    beside.execute("BEGIN IMMEDIATE").await.unwrap();
    let begin = store.ledger.begin();
    tokio::pin!(begin);
    assert!(futures_util::poll!(&mut begin).is_pending());
    assert_eq!(store.ledger.read().await.unwrap().fact("x").await.unwrap(), None);
    beside.execute("ROLLBACK").await.unwrap();
    begin.await.unwrap().commit().await.unwrap();
}

/// design: forty who wait for one busy chat, which another process holds, hold up no other chat.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_busy_chat_holds_up_no_other() {
    let Some(one) = server().await else { return };
    let other = one.another(&one.clock).await;
    let held = other.ledger.begin_in(&place("oc_busy", "")).await.unwrap();
    let waiting: Vec<_> = (0..40)
        .map(|_| {
            let ledger = one.ledger.clone();
            tokio::spawn(async move { ledger.begin_in(&place("oc_busy", "")).await.map(drop) })
        })
        .collect();
    let mut conn = beside(&one).await;
    let locks = "SELECT COUNT(*) AS n FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory'";
    while conn.fetch_one(locks).await.unwrap().get::<i64, _>("n") == 0 {
        tokio::task::yield_now().await;
    }
    let asked = Instant::now();
    for number in 0..20 {
        one.ledger.begin_in(&place(&format!("oc_{number}"), "")).await.unwrap();
    }
    assert!(asked.elapsed() < Duration::from_secs(1), "{:?}", asked.elapsed());
    drop(held);
    for one in waiting {
        one.await.unwrap().unwrap();
    }
}

/// design: whatever the server's or the database's defaults are, an answered commit is durable, what a process that stands still
/// has locked is given free, and a transaction sees what others have committed.
#[tokio::test]
async fn every_session_has_its_settings() {
    let Some(mut one) = server().await else { return };
    let mut conn = beside(&one).await;
    let name = one.stores.database_url.expose_secret().rsplit('/').next().unwrap().to_owned();
    for default in [
        "synchronous_commit = off",
        "default_transaction_isolation = 'serializable'",
        "default_transaction_read_only = on",
        "statement_timeout = 0",
        "lock_timeout = 0",
        "idle_in_transaction_session_timeout = 0",
    ] {
        let alter = format!("ALTER DATABASE {name} SET {default}");
        conn.execute(AssertSqlSafe(alter)).await.unwrap();
    }
    // Whoever stores a fact leaves behind how their session is set.
    conn.execute(
        "CREATE TABLE told (setting TEXT, value TEXT);
         CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
           INSERT INTO told SELECT name, current_setting(name) FROM unnest(ARRAY['synchronous_commit', 'transaction_isolation',
             'default_transaction_isolation', 'statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout']) AS name;
           RETURN NEW; END $$;
         CREATE TRIGGER tell BEFORE INSERT ON facts FOR EACH ROW EXECUTE FUNCTION tell();",
    )
    .await
    .unwrap();
    one.restart().await;
    conn.execute("DELETE FROM told").await.unwrap();
    let mut tx = one.ledger.begin_in(&place("oc_1", "")).await.unwrap();
    tx.set_fact("x", "y").await.unwrap();
    tx.commit().await.unwrap();
    let rows = conn.fetch_all("SELECT setting, value FROM told ORDER BY setting").await.unwrap();
    let told: Vec<(String, String)> = rows.iter().map(|row| (row.get("setting"), row.get("value"))).collect();
    let expected = [
        ("default_transaction_isolation", "read committed"),
        ("idle_in_transaction_session_timeout", "10s"),
        ("lock_timeout", "5s"),
        ("statement_timeout", "30s"),
        ("synchronous_commit", "on"),
        ("transaction_isolation", "read committed"),
    ];
    assert_eq!(told, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
}
