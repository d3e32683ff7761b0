//! The approval trail: whatever is done to a row in the file is found.
#![expect(clippy::unwrap_used, reason = "outside test functions too, a step that fails fails its test")]

use countersign_agent::domain::{GateId, TurnId};
use countersign_gateway::store::{AuditCheck, AuditEntry};
use secrecy::ExposeSecret;
use serde_json::json;
use sqlx::{AnyConnection, Connection, Executor};

use crate::store_kit::{Store, store};

fn entry(number: i64) -> AuditEntry {
    AuditEntry {
        kind: "decision",
        turn_id: Some(TurnId::new("turn_1")),
        gate_id: (number % 2 == 0).then(|| GateId::new(format!("rv_{number}"))),
        action_id: None,
        principal: Some("ou_1".to_owned()),
        details: json!({"kind": "approve", "number": number}),
    }
}

async fn write(store: &Store, rows: i64) {
    for number in 0..rows {
        let mut tx = store.ledger.begin().await.unwrap();
        tx.audit(entry(number));
        tx.commit().await.unwrap();
    }
}

async fn check(store: &Store) -> AuditCheck {
    store.ledger.read().await.unwrap().verify_audit(None).await.unwrap()
}

fn rows(found: AuditCheck) -> Option<i64> {
    match found {
        AuditCheck::Sound(head) => Some(head.seq),
        _ => None,
    }
}

/// design: an untouched trail is sound, empty or not; what was rolled back is not in it; a restart goes on with it.
#[tokio::test]
async fn an_untouched_trail_is_sound() {
    let mut store = store().await;
    assert_eq!(rows(check(&store).await), Some(0));
    write(&store, 3).await;
    let mut tx = store.ledger.begin().await.unwrap();
    tx.audit(entry(9));
    drop(tx);
    store.restart().await;
    write(&store, 2).await;
    assert_eq!(rows(check(&store).await), Some(5));
}

/// design: a changed, removed, added or reordered row of the trail is named.
#[tokio::test]
async fn tampering_is_found() {
    for (what, broken) in [
        ("UPDATE audit SET principal = 'ou_2' WHERE seq = 3", 3),
        ("UPDATE audit SET details = '{}' WHERE seq = 1", 1),
        ("UPDATE audit SET at = at + 1 WHERE seq = 5", 5),
        ("UPDATE audit SET gate_id = '' WHERE seq = 2 AND gate_id IS NULL", 2),
        ("DELETE FROM audit WHERE seq = 2", 2),
        ("UPDATE audit SET seq = -5 WHERE seq = 5", 1),
        (
            "INSERT INTO audit SELECT 0, at, kind, turn_id, gate_id, action_id, principal, details, hash, hash FROM audit WHERE seq = 5",
            1,
        ),
        ("DELETE FROM audit WHERE seq = 1", 1),
        ("DELETE FROM audit WHERE seq = 5", 5),
        ("DELETE FROM audit", 1),
        ("DELETE FROM audit_head", 6),
        (
            "INSERT INTO audit SELECT 6, at, kind, turn_id, gate_id, action_id, principal, details, hash, hash FROM audit WHERE seq = 5",
            6,
        ),
        (
            "UPDATE audit SET seq = 60 WHERE seq = 2; UPDATE audit SET seq = 2 WHERE seq = 3; UPDATE audit SET seq = 3 WHERE seq = 60",
            2,
        ),
    ] {
        let store = store().await;
        write(&store, 5).await;
        store.ledger.close().await;
        let mut thief = AnyConnection::connect(store.stores.database_url.expose_secret()).await.unwrap();
        for part in what.split(';') {
            let done = thief.execute(sqlx::AssertSqlSafe(part.to_owned())).await.unwrap();
            assert!(done.rows_affected() > 0, "{part}");
        }
        thief.close().await.unwrap();
        let mut store = store;
        store.restart().await;
        assert_eq!(check(&store).await, AuditCheck::Broken { seq: broken }, "{what}");
    }
}
