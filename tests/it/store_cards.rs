//! The table of cards: written with a card's post, completed by its receipt, and filled from what the version before left.
#![expect(clippy::unwrap_used, reason = "outside test functions too, a step that fails fails its test")]

use countersign_agent::domain::{Conversation, Gate, Millis, OutboxOp};
use countersign_gateway::store::{NewOutbox, Tx, card_key};
use secrecy::ExposeSecret;
use sqlx::{AnyConnection, Connection, Executor};

use crate::store_kit::{LEASE_MS, START, Store, decision, file, open, place, server, store, working};

const BOSS: &str = "ou_boss";

/// A gate that was escalated to the boss; both its cards wait in the outbox.
async fn escalated(store: &Store) -> Gate {
    let (lease, turn) = working(store, "a", &place("oc_1", ""), "ou_1").await;
    let gate = open(store, &lease, &turn, "rv_1").await;
    let mut tx = store.ledger.begin().await.unwrap();
    let card = NewOutbox {
        key: card_key(&gate.id, ""),
        queue: turn.id.to_string(),
        gate_id: Some(gate.id.clone()),
        turn_id: Some(turn.id),
        conversation: gate.conversation.clone(),
        op: OutboxOp::Post {
            reply_to: None,
            content: gate.card.clone(),
        },
    };
    tx.enqueue(&card).await.unwrap();
    assert!(tx.mark_escalated(&lease, &gate.id, &[BOSS.to_owned()], START).await.unwrap());
    let gate = tx.gate(&gate.id).await.unwrap().unwrap().gate;
    tx.post_direct_cards(&gate, &gate.card).await.unwrap();
    tx.commit().await.unwrap();
    gate
}

/// The cards arrive: `om_card` in the chat of the gate, `om_direct` in that of the boss.
async fn arrive(store: &Store) {
    let mut tx = store.ledger.begin().await.unwrap();
    for row in tx.claim_outbox("d", LEASE_MS, 10, &[]).await.unwrap() {
        let direct = row.new.conversation.chat == BOSS;
        if direct {
            tx.outbox_in_chat(row.id, &row.new.conversation, "oc_boss").await.unwrap();
        }
        let message = if direct { "om_direct" } else { "om_card" };
        tx.outbox_sent(row.id, Some(message), Some(Millis(9))).await.unwrap();
    }
    tx.commit().await.unwrap();
}

/// What an answer in these places finds.
async fn finds_both(tx: &mut Tx, gate: &Gate) {
    let (home, there) = (place("oc_1", ""), place("oc_boss", ""));
    let unnamed = place("", "");
    for (place, message, person, found) in [
        (&home, "om_card", "ou_9", true),
        (&unnamed, "om_card", "ou_9", true),
        (&there, "om_card", "ou_9", false),
        (&there, "om_direct", BOSS, true),
        (&unnamed, "om_direct", BOSS, true),
        (&there, "om_direct", "ou_9", false),
        (&home, "om_direct", BOSS, false),
        (&home, "om_else", BOSS, false),
    ] {
        let card = tx.gate_of_card(place, message, person).await.unwrap();
        assert_eq!(card.as_ref() == Some(&gate.id), found, "{message} in {} for {person}", place.chat);
    }
    let sent_there = tx.gates_of_direct_chat(&there, BOSS).await.unwrap();
    assert_eq!(
        sent_there.iter().map(|gate| (gate.id.as_str(), gate.card_at)).collect::<Vec<_>>(),
        [("rv_1", Some(Millis(9)))]
    );
    assert!(
        tx.gates_of_direct_chat(&home, BOSS).await.unwrap().is_empty(),
        "the gate's own card is none"
    );
    assert!(!tx.is_direct_card_under_way(&there, BOSS).await.unwrap());
    is_pressed(tx, gate, [(&there, "om_direct", BOSS, true), (&there, "om_card", BOSS, false)]).await;
}

/// Whether these presses are on the direct card of `gate`.
async fn is_pressed<const N: usize>(tx: &mut Tx, gate: &Gate, presses: [(&Conversation, &str, &str, bool); N]) {
    for (place, message, person, counts) in presses {
        let is_it = tx.is_direct_card(&gate.id, person, place, message).await.unwrap();
        assert_eq!(is_it, counts, "{message} in {} by {person}", place.chat);
    }
}

/// design: a direct card is its person's from the moment in which it may have arrived. Once its receipt is there, it is that message alone.
#[tokio::test]
async fn a_card_is_known_before_its_receipt() {
    let store = store().await;
    let gate = escalated(&store).await;
    let (there, elsewhere) = (place("oc_boss", ""), place("oc_2", ""));
    let mut tx = store.ledger.begin().await.unwrap();
    is_pressed(&mut tx, &gate, [(&there, "om_direct", BOSS, false)]).await;
    assert!(!tx.is_direct_card_under_way(&there, BOSS).await.unwrap(), "nobody sends it");
    assert_eq!(tx.claim_outbox("d", LEASE_MS, 10, &[]).await.unwrap().len(), 2);
    is_pressed(
        &mut tx,
        &gate,
        [(&there, "om_direct", BOSS, true), (&there, "om_direct", "ou_1", false)],
    )
    .await;
    assert!(tx.is_direct_card_under_way(&there, BOSS).await.unwrap());
    assert!(!tx.is_direct_card_under_way(&there, "ou_1").await.unwrap());
    assert!(tx.is_card_under_way(&place("", ""), BOSS).await.unwrap());
    assert!(!tx.is_card_under_way(&elsewhere, "ou_1").await.unwrap());
    drop(tx);
    arrive(&store).await;
    let mut tx = store.ledger.begin().await.unwrap();
    finds_both(&mut tx, &gate).await;
    is_pressed(&mut tx, &gate, [(&elsewhere, "om_direct", BOSS, false)]).await;
    assert!(!tx.is_card_under_way(&place("", ""), BOSS).await.unwrap());
}

/// design: a database of the version before has no table of cards. Its cards are found, also those of gates that were closed there.
#[tokio::test]
async fn a_database_without_cards_gets_them() {
    let mut store = file().await;
    let gate = escalated(&store).await;
    arrive(&store).await;
    store.ledger.close().await;
    let mut older = AnyConnection::connect(store.stores.database_url.expose_secret()).await.unwrap();
    older.execute("DROP TABLE cards").await.unwrap();
    older.execute("DELETE FROM _sqlx_migrations WHERE version >= 19").await.unwrap();
    older.close().await.unwrap();
    store.restart().await;
    let mut tx = store.ledger.begin().await.unwrap();
    finds_both(&mut tx, &gate).await;
    tx.decide(
        &gate,
        &decision(countersign_agent::domain::DecisionKind::Approve, BOSS, store.clock.now()),
    )
    .await
    .unwrap();
    let closed = tx.last_closed_of_direct_chat(&place("oc_boss", ""), Millis(0)).await.unwrap();
    assert_eq!(closed.map(|record| record.gate.id), Some(gate.id));
}

/// design: a process of the version before posts cards and takes receipts while this one runs: all that it writes is in the outbox.
#[tokio::test]
async fn cards_of_a_process_of_the_version_before_are_found() {
    let Some(store) = server().await else { return };
    let gate = escalated(&store).await;
    arrive(&store).await;
    let mut older = AnyConnection::connect(store.stores.database_url.expose_secret()).await.unwrap();
    for left in ["UPDATE cards SET message = NULL, posted_at = NULL", "DELETE FROM cards"] {
        older.execute(left).await.unwrap();
        let mut tx = store.ledger.begin().await.unwrap();
        is_pressed(&mut tx, &gate, [(&place("oc_boss", ""), "om_direct", BOSS, true)]).await;
        finds_both(&mut tx, &gate).await;
        drop(tx);
        let mut tx = store.ledger.begin().await.unwrap();
        assert_eq!(tx.gates_of_direct_chat(&place("oc_boss", ""), BOSS).await.unwrap().len(), 1);
    }
}
