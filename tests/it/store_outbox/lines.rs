//! What a platform rations, and what it has places for: who is taken, and who waits in line.

use std::time::Duration;

use countersign_agent::domain::{ChannelKind, Millis};
use countersign_gateway::store::{Line, LineKind, NewOutbox, OutboxRow};

use super::{HOLD_MS, enqueue, patch, post, sent, take};
use crate::store_kit::{Store, place_on, store};

/// What a dispatcher takes that holds no more than so many of each line.
async fn take_of(store: &Store, lines: &[Line]) -> Vec<OutboxRow> {
    let mut tx = store.ledger.begin().await.unwrap();
    let rows = tx.claim_outbox("d1", HOLD_MS, 100, lines).await.unwrap();
    tx.commit().await.unwrap();
    rows
}

fn keys(rows: &[OutboxRow]) -> Vec<&str> {
    rows.iter().map(|row| row.new.key.as_str()).collect()
}

const TWO_REPAINTS: Line = Line {
    channel: ChannelKind::Console,
    kind: LineKind::Repaints,
    most: 2,
    within: Duration::from_millis(3000),
    free: 64,
};

/// F-C1, design: of what a platform rations only so much is held at a time, by whatever process; the rest waits where it is, oldest first,
/// and other rows pass it. What was held back keeps its place.
#[tokio::test]
async fn what_is_rationed_waits_in_line() {
    let store = store().await;
    let cards: Vec<String> = (0..5).map(|number| format!("card{number}")).collect();
    enqueue(&store, &cards.iter().map(|card| post(card, card)).collect::<Vec<_>>()).await;
    for card in take(&store).await {
        sent(&store, &card, &card.new.key).await;
    }
    for (number, card) in cards.iter().enumerate() {
        enqueue(&store, &[patch(&format!("p{number}"), card, card)]).await;
        store.pass(10);
    }
    let lines = [TWO_REPAINTS];
    let first = take_of(&store, &lines).await;
    assert_eq!(keys(&first), ["p0", "p1"]);
    enqueue(&store, &[post("words", "card4")]).await;
    assert_eq!(keys(&take_of(&store, &lines).await), ["words"]);
    sent(&store, &first[0], "card0").await;
    let third = take_of(&store, &lines).await.remove(0);
    assert_eq!((third.new.key.as_str(), third.tries), ("p2", 0));

    let mut tx = store.ledger.begin().await.unwrap();
    let later = Millis(store.clock.now().0 + 3000);
    tx.outbox_held_back(&third, later, "limited").await.unwrap();
    // The second time it is said, somebody else may have it.
    tx.outbox_held_back(&third, later, "limited").await.unwrap();
    tx.commit().await.unwrap();
    let fourth = take_of(&store, &lines).await;
    assert_eq!(keys(&fourth), ["p3"]);
    sent(&store, &first[1], "card1").await;
    sent(&store, &fourth[0], "card3").await;
    store.pass(3000);
    let rest = take_of(&store, &[Line { most: 1, ..TWO_REPAINTS }]).await;
    assert_eq!((keys(&rest), rest[0].tries, rest[0].uncertain), (vec!["p2"], 1, false));
    sent(&store, &rest[0], "card2").await;
    assert_eq!(keys(&take_of(&store, &lines).await), ["p4"]);
}

/// Cards of these names, and a repaint of each that is due.
async fn repaints(store: &Store, cards: &[&str]) {
    enqueue(store, &cards.iter().map(|card| post(card, card)).collect::<Vec<_>>()).await;
    for card in take(store).await {
        sent(store, &card, &card.new.key).await;
    }
    for card in cards {
        enqueue(store, &[patch(&format!("{card} anew"), card, card)]).await;
        store.pass(10);
    }
}

/// F-C1: repaints that hang, or whose holder is gone, have had their turn after the time that a delivery may wait for the rates: from then on
/// others go, while those are still held. As many at a time as before.
#[tokio::test]
async fn what_hangs_holds_up_no_line() {
    let store = store().await;
    repaints(&store, &["a", "b", "c", "d", "e"]).await;
    let lines = [TWO_REPAINTS];
    assert_eq!(keys(&take_of(&store, &lines).await), ["a anew", "b anew"]);
    store.pass(2999);
    assert!(take_of(&store, &lines).await.is_empty(), "they may still be waiting for their turn");
    store.pass(1);
    assert_eq!(keys(&take_of(&store, &lines).await), ["c anew", "d anew"]);
    assert!(take_of(&store, &lines).await.is_empty());
    store.pass(3000);
    assert_eq!(keys(&take_of(&store, &lines).await), ["e anew"]);
    store.pass(HOLD_MS - 6000);
    let again = take_of(&store, &lines).await;
    assert_eq!(
        (keys(&again), again[0].uncertain),
        (vec!["a anew", "b anew"], true),
        "their hold is over"
    );
}

/// F-C1, design: a platform whose places are all taken keeps no row of another from going, however much older its own are.
#[tokio::test]
async fn platforms_have_places_of_their_own() {
    let store = store().await;
    let on = |key: &str, channel: ChannelKind| NewOutbox {
        conversation: place_on(channel, key, ""),
        ..post(key, key)
    };
    for key in ["l1", "l2", "l3"] {
        enqueue(&store, &[on(key, ChannelKind::Lark)]).await;
        store.pass(10);
    }
    enqueue(&store, &[on("s1", ChannelKind::Slack), on("c1", ChannelKind::Console)]).await;
    let line = |channel, free| Line {
        channel,
        kind: LineKind::Posts,
        free,
        ..TWO_REPAINTS
    };
    let lines = |lark| {
        [
            line(ChannelKind::Lark, lark),
            line(ChannelKind::Slack, 2),
            line(ChannelKind::Console, 2),
        ]
    };
    assert_eq!(keys(&take_of(&store, &lines(1)).await), ["l1", "s1", "c1"]);
    enqueue(&store, &[on("s2", ChannelKind::Slack)]).await;
    assert_eq!(keys(&take_of(&store, &lines(0)).await), ["s2"]);
    assert_eq!(keys(&take_of(&store, &lines(2)).await), ["l2", "l3"]);
}

/// F-C1, design: what people wait for passes repaints that are older, and has places that these cannot take.
#[tokio::test]
async fn posts_come_before_repaints() {
    let store = store().await;
    repaints(&store, &["a", "b", "c"]).await;
    enqueue(&store, &[post("words", "d")]).await;
    let posts = |free| Line {
        kind: LineKind::Posts,
        most: 64,
        free,
        ..TWO_REPAINTS
    };
    let repaints = |free| Line { free, ..TWO_REPAINTS };
    assert_eq!(keys(&take_of(&store, &[posts(1), repaints(0)]).await), ["words"]);
    enqueue(&store, &[post("more words", "e")]).await;
    let mut rows = take_of(&store, &[posts(3), repaints(2)]).await;
    rows.sort_by_key(|row| row.id);
    assert_eq!(keys(&rows), ["a anew", "more words"]);
}

/// F-C1: posts are rationed chat by chat: one that is busy holds up no other.
#[tokio::test]
async fn posts_are_rationed_by_chat() {
    let store = store().await;
    let in_chat = |key: &str, chat: &str| NewOutbox {
        conversation: place_on(ChannelKind::Lark, chat, ""),
        ..post(key, key)
    };
    enqueue(
        &store,
        &[in_chat("a1", "A"), in_chat("a2", "A"), in_chat("b1", "B"), in_chat("a3", "A")],
    )
    .await;
    let lines = [Line {
        channel: ChannelKind::Lark,
        kind: LineKind::Posts,
        most: 1,
        ..TWO_REPAINTS
    }];
    let rows = take_of(&store, &lines).await;
    assert_eq!(keys(&rows), ["a1", "b1"]);
    sent(&store, &rows[0], "om_1").await;
    assert_eq!(keys(&take_of(&store, &lines).await), ["a2"]);
}

/// design: the newest look of a card takes the place in line of the one that it replaces, also of one that was held back: a card that
/// changes often comes to its turn like others.
#[tokio::test]
async fn a_newer_look_takes_the_place() {
    let store = store().await;
    enqueue(&store, &[post("a", "a"), post("b", "b")]).await;
    for card in take(&store).await {
        sent(&store, &card, &card.new.key).await;
    }
    let lines = [Line { most: 1, ..TWO_REPAINTS }];
    for row in [patch("a1", "a", "a"), patch("b1", "b", "b")] {
        enqueue(&store, &[row]).await;
        store.pass(10);
    }
    enqueue(&store, &[patch("a2", "a", "a")]).await;
    let held = take_of(&store, &lines).await.remove(0);
    assert_eq!(held.new.key, "a2");
    let mut tx = store.ledger.begin().await.unwrap();
    tx.outbox_held_back(&held, Millis(store.clock.now().0 + 3000), "limited")
        .await
        .unwrap();
    tx.commit().await.unwrap();
    enqueue(&store, &[patch("a3", "a", "a")]).await;
    let newest = take_of(&store, &lines).await.remove(0);
    assert_eq!(newest.new.key, "a3", "it was not tried, so nothing is held back");
    sent(&store, &newest, "a").await;
    assert_eq!(keys(&take_of(&store, &lines).await), ["b1"]);
    store.pass(3000);
    assert!(
        take_of(&store, &lines).await.is_empty(),
        "the older look of the first card is not shown any more"
    );
}

/// attacks N7: in a chat, cards and answers go before words back to messages, however many of those wait.
#[tokio::test]
async fn cards_and_answers_go_before_notices() {
    let store = store().await;
    let notices: Vec<NewOutbox> = (0..30).map(|nth| post(&format!("n{nth}"), &format!("inbox:{nth}"))).collect();
    enqueue(&store, &notices).await;
    enqueue(&store, &[post("card", "turn_1")]).await;
    let line = Line {
        channel: ChannelKind::Console,
        kind: LineKind::Posts,
        most: 2,
        within: Duration::from_secs(3),
        free: 10,
    };
    let mut keys: Vec<String> = take_of(&store, &[line]).await.into_iter().map(|row| row.new.key).collect();
    keys.sort();
    assert_eq!(keys, ["card", "n0"]);
}
