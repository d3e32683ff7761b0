//! Cards that a platform keeps: which one a row changes, under which number, and what it shows before.

use std::time::Duration;

use countersign_agent::domain::Outbound;
use countersign_gateway::store::KeptCard;

use super::{HOLD_MS, OutboxRow, enqueue, failed, patch, post, sent, take, text};
use crate::store_kit::{Store, stores};

async fn kept(store: &Store, row: &OutboxRow) -> Option<KeptCard> {
    store.ledger.read().await.unwrap().kept_card(row).await.unwrap()
}

/// What a change of the card finds: its number, and what the card shows.
async fn found(store: &Store, row: &OutboxRow) -> (i64, Option<Outbound>) {
    let KeptCard { id, sequence, shown } = kept(store, row).await.unwrap();
    assert_eq!(id, "7355");
    (sequence, shown)
}

async fn next(store: &Store, key: &str) -> OutboxRow {
    enqueue(store, &[patch(key, "q", "card")]).await;
    only(store).await
}

async fn only(store: &Store) -> OutboxRow {
    let mut rows = take(store).await;
    assert_eq!(rows.len(), 1);
    rows.remove(0)
}

/// A world in which the card is posted and kept.
async fn posted(store: &Store) {
    enqueue(store, &[post("card", "q")]).await;
    let mut tx = store.ledger.begin().await.unwrap();
    tx.card_kept("card", "7355").await.unwrap();
    tx.commit().await.unwrap();
    sent(store, &only(store).await, "m").await;
}

/// interface (I): the number rises with each row and each try; what the card shows is known as long as every row before is known to be sent or
/// never tried.
#[tokio::test]
async fn a_change_knows_what_the_card_shows() {
    for store in stores().await {
        posted(&store).await;
        let first = next(&store, "first").await;
        assert_eq!(found(&store, &first).await, (1000, Some(text("card"))));
        assert_eq!(found(&store, &first).await.0, 1000, "asking changes nothing");
        sent(&store, &first, "").await;
        // Overtaken before anybody tried it.
        enqueue(&store, &[patch("second", "q", "card")]).await;
        let third = next(&store, "third").await;
        assert_eq!(found(&store, &third).await, (3000, Some(text("first"))));
        // Its process never said what came of it.
        store.clock.advance(Duration::from_millis(HOLD_MS.unsigned_abs() + 1));
        let third = only(&store).await;
        assert_eq!(found(&store, &third).await, (3001, None), "it may have arrived");
        failed(&store, &third).await;
        let fourth = next(&store, "fourth").await;
        assert_eq!(found(&store, &fourth).await, (4000, None), "so may the one before");
        sent(&store, &fourth, "").await;
        let fifth = next(&store, "fifth").await;
        assert_eq!(found(&store, &fifth).await, (5000, Some(text("fourth"))));
    }
}

/// interface (I): what an answer to a press showed is no row; what is enqueued after the press tells again. A card that was let go is its
/// message's.
#[tokio::test]
async fn an_answer_to_a_press_is_no_row() {
    for store in stores().await {
        posted(&store).await;
        let mut tx = store.ledger.begin().await.unwrap();
        let moment = tx.moment();
        tx.card_answered("card", moment).await.unwrap();
        tx.card_answered("other", moment).await.unwrap();
        tx.commit().await.unwrap();
        let first = next(&store, "first").await;
        assert_eq!(found(&store, &first).await.1, None);
        sent(&store, &first, "").await;
        let second = next(&store, "second").await;
        assert_eq!(found(&store, &second).await.1, Some(text("first")));
        // The clock of the process that answers is behind: "first" has a higher id than its moment.
        let mut tx = store.ledger.begin().await.unwrap();
        tx.card_answered("card", moment).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(found(&store, &second).await.1, None);
        let mut tx = store.ledger.begin().await.unwrap();
        tx.card_let_go("card").await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(kept(&store, &second).await, None);
    }
}
