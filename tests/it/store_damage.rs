//! Rows that do not read back: who claims rows for all chats passes them over and names them, and the work on the others goes on.
#![expect(clippy::unwrap_used, reason = "outside test functions too, a step that fails fails its test")]

use countersign_agent::domain::{ChannelKind, Outbound};
use countersign_gateway::store::{DamagedRow, NewOutbox, OutboxOp};
use secrecy::ExposeSecret;
use sqlx::{AnyConnection, AssertSqlSafe, Connection, Executor};

use crate::store_kit::{LEASE_MS, Store, accept, claim, lane_task, next_task, place, place_on, simple, store};

/// Changes rows beside the ledger, as no program of ours does.
pub(crate) async fn spoil(store: &Store, text: String) {
    sqlx::any::install_default_drivers();
    let url = store.stores.database_url.expose_secret().to_owned();
    let mut conn = AnyConnection::connect(&url).await.unwrap();
    let changed = conn.execute(AssertSqlSafe(text)).await.unwrap();
    assert_eq!(changed.rows_affected(), 1);
}

/// interface §10: a damaged lane is passed over; it is looked at again later, and mended by the next request of its person.
#[tokio::test]
async fn a_damaged_lane_stops_no_other() {
    for column in ["conversation", "requester"] {
        let store = store().await;
        let (bad, good) = (place("oc_bad", ""), place("oc_good", ""));
        for (name, chat) in [("1", &bad), ("2", &good)] {
            lane_task(&store, &simple(name, chat, "u1")).await;
        }
        let id = bad.lane("u1");
        spoil(&store, format!("UPDATE lanes SET {column} = '{{' WHERE id = '{id}'")).await;
        assert_eq!(claim(&store).await.unwrap().lane_id, good.lane("u1"));
        let mut tx = store.ledger.begin().await.unwrap();
        assert!(tx.claim_lane("w1", LEASE_MS, 10).await.unwrap().is_none());
        tx.end_of_claim().await.unwrap();
        let damage = store.ledger.damage();
        assert!(
            damage.len() == 1 && damage[0].starts_with(&format!("lanes {id} (column `{column}`")),
            "{damage:?}"
        );
        // It costs no look at the database before its time.
        let mut tx = store.ledger.begin().await.unwrap();
        assert!(tx.claim_lane("w1", LEASE_MS, 10).await.unwrap().is_none());
        assert!(!tx.end_of_claim().await.unwrap());
        lane_task(&store, &simple("3", &bad, "u1")).await;
        let mended = claim(&store).await.unwrap();
        assert_eq!((mended.lane_id, mended.conversation, mended.user.as_str()), (id, bad, "u1"));
        assert!(store.ledger.damage().is_empty());
    }
}

/// interface §10: an event that does not read back is passed over; later ones of its sender do not wait for it.
#[tokio::test]
async fn a_damaged_event_stops_no_other() {
    let store = store().await;
    let chat = place("oc_a", "");
    let bad = accept(&store, &simple("1", &chat, "u1")).await;
    let good = accept(&store, &simple("2", &chat, "u1")).await;
    spoil(&store, format!("UPDATE inbox SET payload = '{{' WHERE id = {bad}")).await;
    let page = store.ledger.read().await.unwrap().untriaged(0, 10).await.unwrap();
    let damaged: Vec<&DamagedRow> = page.iter().filter_map(|row| row.as_ref().err()).collect();
    assert_eq!(damaged.iter().map(|row| row.id).collect::<Vec<_>>(), [bad]);
    assert_eq!(page.iter().flatten().map(|row| row.id).collect::<Vec<_>>(), [good]);
    let mut tx = store.ledger.begin().await.unwrap();
    assert!(tx.pass_event_over(damaged[0]).await.unwrap());
    tx.commit().await.unwrap();
    let left = store.ledger.read().await.unwrap().untriaged(0, 10).await.unwrap();
    assert_eq!(left.len(), 1);
    assert!(store.ledger.damage()[0].starts_with(&format!("inbox {bad} (column `payload`")));
    // Nobody can mend it any more, so `/readyz` stops naming it.
    store.pass(3_600_000);
    assert!(store.ledger.damage().is_empty());
}

/// interface §10: a task that does not read back is passed over: the next one of its person goes on, and what waits is listed without it.
#[tokio::test]
async fn a_damaged_task_stops_no_other() {
    let store = store().await;
    let chat = place("oc_a", "");
    let bad = lane_task(&store, &simple("1", &chat, "u1")).await;
    let good = lane_task(&store, &simple("2", &chat, "u1")).await;
    spoil(&store, format!("UPDATE inbox SET payload = '{{' WHERE id = {bad}")).await;
    let lease = claim(&store).await.unwrap();
    let mut tx = store.ledger.begin().await.unwrap();
    for listed in [
        tx.queued(&lease.lane_id).await.unwrap(),
        tx.queued_in_chat(&chat).await.unwrap(),
        tx.queued_of(&chat, "u1", 10).await.unwrap(),
        Vec::from_iter(tx.waiting_message(&chat, "om_2").await.unwrap()),
    ] {
        assert_eq!(listed.iter().map(|row| row.id).collect::<Vec<_>>(), [good]);
    }
    let first = tx.list_queue(None, 1, None).await.unwrap();
    assert!(first.items.is_empty() && first.next.is_some());
    let next = tx.list_queue(None, 1, first.next.as_ref()).await.unwrap();
    let listed: Vec<_> = next.items.iter().map(|(row, place)| (row.id, *place)).collect();
    assert_eq!((listed, next.next), (vec![(good, 2)], None));
    assert!(store.ledger.damage()[0].starts_with(&format!("inbox {bad} (column `payload`")));
    let damaged = tx.next_task(&lease).await.unwrap().unwrap().unwrap_err();
    assert_eq!(damaged.id, bad);
    assert!(tx.pass_event_over(&damaged).await.unwrap());
    assert_eq!(next_task(&mut tx, &lease).await.unwrap().id, good);
    assert_eq!(tx.count_waiting(&chat, "u1").await.unwrap(), 1);
}

/// interface §10: a delivery that does not read back is given up; those of other chats and those behind it go out.
#[tokio::test]
async fn a_damaged_delivery_stops_no_other() {
    let store = store().await;
    let mut tx = store.ledger.begin().await.unwrap();
    for (key, queue) in [("bad", "q1"), ("behind", "q1"), ("other", "q2")] {
        let content = Outbound::Text { text: key.to_owned() };
        let row = NewOutbox {
            key: key.to_owned(),
            queue: queue.to_owned(),
            gate_id: None,
            turn_id: None,
            conversation: place_on(ChannelKind::Console, queue, ""),
            op: OutboxOp::Post { reply_to: None, content },
        };
        tx.enqueue(&row).await.unwrap();
    }
    let repaint = NewOutbox {
        key: "repaint".to_owned(),
        queue: "q1".to_owned(),
        gate_id: None,
        turn_id: None,
        conversation: place_on(ChannelKind::Console, "q1", ""),
        op: OutboxOp::Patch {
            target: "bad".to_owned(),
            content: Outbound::Text { text: "later".to_owned() },
        },
    };
    tx.enqueue(&repaint).await.unwrap();
    tx.commit().await.unwrap();
    spoil(&store, "UPDATE outbox SET body = '{' WHERE key = 'bad'".to_owned()).await;
    let mut taken = Vec::new();
    for _ in 0..2 {
        let mut tx = store.ledger.begin().await.unwrap();
        taken.extend(tx.claim_outbox("d1", 20_000, 100, &[]).await.unwrap());
        tx.commit().await.unwrap();
    }
    let keys: Vec<&str> = taken.iter().map(|row| row.new.key.as_str()).collect();
    assert_eq!(keys, ["other", "behind"]);
    let damage = store.ledger.damage();
    assert!(damage.len() == 1 && damage[0].contains("column `body`"), "{damage:?}");
    // What hangs on it is given up with it, or it would wait for ever.
    spoil(
        &store,
        "UPDATE outbox SET error = 'seen' WHERE key = 'repaint' AND state = 'failed'".to_owned(),
    )
    .await;
}
