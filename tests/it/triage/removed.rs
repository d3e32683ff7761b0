//! Gates that are removed, for their age, between the look of whoever answers and the answer's commit.

use countersign_agent::domain::{ClickTarget, ClickVerb, GateKind, Notice};
use secrecy::ExposeSecret;
use sqlx::{AnyConnection, AssertSqlSafe, Connection, Executor, Row};

use super::words::says;
use super::world::World;
use crate::store_kit::server;

/// A transaction that is removing this gate.
async fn removing(conn: &mut AnyConnection, gate: &str) {
    conn.execute("BEGIN").await.unwrap();
    let delete = format!("DELETE FROM gates WHERE id = '{gate}'");
    conn.execute(AssertSqlSafe(delete)).await.unwrap();
}

/// Waits until somebody waits for a row of it, and ends it.
async fn removed(conn: &mut AnyConnection, watch: &mut AnyConnection) {
    let waiting = "SELECT COUNT(*) AS n FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock' AND wait_event <> 'advisory'";
    while watch.fetch_one(waiting).await.unwrap().get::<i64, _>("n") == 0 {
        tokio::task::yield_now().await;
    }
    conn.execute("COMMIT").await.unwrap();
}

/// design: copies that name different chats are looked at side by side; the key refuses the second, and its second look knows why.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_that_meets_its_original() {
    let Some(store) = server().await else { return };
    let mut world = World::on(store, |_| {}).await;
    let url = world.store.stores.database_url.expose_secret().to_owned();
    let mut watch = AnyConnection::connect(&url).await.unwrap();

    let original = says("1", "u1", "写周报");
    world.accept(says("1", "u1", "写周报").chat("oc_other")).await;
    let mut tx = world.ledger.begin_in(&original.inbound.conversation).await.unwrap();
    assert!(tx.insert_press(&original.inbound).await.unwrap());
    let handled = async {
        let waiting = "SELECT COUNT(*) AS n FROM pg_stat_activity
            WHERE datname = current_database() AND wait_event_type = 'Lock' AND wait_event <> 'advisory'";
        while watch.fetch_one(waiting).await.unwrap().get::<i64, _>("n") == 0 {
            tokio::task::yield_now().await;
        }
        tx.commit().await.unwrap();
    };
    let (triaged, ()) = tokio::join!(world.conversations.triage(), handled);
    assert_eq!((triaged.unwrap(), world.untriaged().await), (1, 0));
    assert_eq!(world.notices().await, []);
}

/// design: a row that cannot be understood is given up, told of once, and holds up nobody; so is the copy behind it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_understood_is_given_up_with_its_copies() {
    let mut world = World::new().await;
    world.hear(says("1", "u1", "写周报")).await;
    let turn = world.begin().await;
    let gate = world.gate(&turn, GateKind::PlanReview, 1).await;
    let url = world.store.stores.database_url.expose_secret().to_owned();
    let mut conn = AnyConnection::connect(&url).await.unwrap();
    let damage = format!("UPDATE gates SET card = 'damaged' WHERE id = '{}'", gate.id);
    conn.execute(AssertSqlSafe(damage)).await.unwrap();
    for _ in 0..2 {
        world.accept(says("2", "u1", "OK")).await;
    }
    for _ in 0..4 {
        world.conversations.triage().await.unwrap();
    }
    assert_eq!((world.conversations.triage().await.unwrap(), world.untriaged().await), (0, 0));
    let told = world.notices().await;
    assert!(matches!(told[..], [Notice::Internal { .. }]), "{told:?}");
}

/// design: an OK or a tap that meets the removal of its gate finds nothing to answer; neither is given up as unreadable.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_meets_the_removal() {
    let Some(store) = server().await else { return };
    let mut world = World::on(store, |_| {}).await;
    let url = world.store.stores.database_url.expose_secret().to_owned();
    let mut conn = AnyConnection::connect(&url).await.unwrap();
    let mut watch = AnyConnection::connect(&url).await.unwrap();

    world.hear(says("1", "u1", "写周报")).await;
    let turn = world.begin().await;
    let gate = world.gate(&turn, GateKind::PlanReview, 1).await;
    removing(&mut conn, gate.id.as_str()).await;
    world.accept(says("2", "u1", "OK")).await;
    let (triaged, ()) = tokio::join!(world.conversations.triage(), removed(&mut conn, &mut watch));
    triaged.unwrap();
    let told = world.notices().await;
    assert!(!told.iter().any(|notice| matches!(notice, Notice::Internal { .. })), "{told:?}");

    let gate = world.gate(&turn, GateKind::PlanReview, 1).await;
    removing(&mut conn, gate.id.as_str()).await;
    let target = ClickTarget::Gate(gate.id.clone());
    let tap = world.click("u1", ClickVerb::Approve, target);
    let (notice, ()) = tokio::join!(tap, removed(&mut conn, &mut watch));
    assert_eq!(notice, Notice::UnknownReview {});
}
