//! A card that Lark keeps apart from its message: one message in the end, in its newest state, whatever call the process dies over.

use countersign_playground::Snapshot;

use super::kit::Handshake;
use crate::lark_entities::rises;
use crate::support::platform::On;

/// The process died over the card's post. The next one goes on.
async fn dies_over_the_post(point: &str) -> Handshake {
    let mut hand = Handshake::start(On::Lark, Some(point)).await;
    hand.ask().await;
    hand.dies().await;
    hand.restart();
    hand
}

/// Approves the plan, and waits until the only card of it says that it is done.
async fn carried_out(mut hand: Handshake) {
    let card = hand.card().await;
    hand.say_ok(&card).await;
    is_done(hand).await;
}

async fn is_done(hand: Handshake) {
    hand.ended(1).await;
    let chat = hand.chat;
    let done = |seen: &Snapshot| {
        let cards: Vec<_> = seen.in_chat(chat).filter(|message| message.title() == Some("计划确认")).collect();
        assert_eq!(cards.len(), 1, "{cards:#?}");
        (cards[0].words().contains("已完成") && cards[0].buttons().is_empty()).then_some(())
    };
    hand.world.seen("the card of a plan that is done", done).await;
    rises(&hand.world.chat.snapshot());
    hand.same_when_pushed_again().await;
}

/// F-K9: Lark has the card, and nobody wrote that down: the message holds a card of its own.
#[tokio::test]
async fn a_card_that_lark_has() {
    let hand = dies_over_the_post("card_kept").await;
    carried_out(hand).await;
}

/// F-K9: Lark has the card, which no message shows yet.
#[tokio::test]
async fn a_card_that_lark_has_as_noted() {
    let hand = dies_over_the_post("card_noted").await;
    hand.card().await;
    assert_eq!(hand.world.chat.snapshot().count("card"), 1, "it is not made again");
    carried_out(hand).await;
}

/// F-K9: the message shows the card, and nobody wrote that down.
#[tokio::test]
async fn a_card_that_is_posted() {
    let hand = dies_over_the_post("card_posted").await;
    carried_out(hand).await;
}

/// F-K9: the card is changed, and nobody wrote that down; and the same once more.
#[tokio::test]
async fn a_card_that_is_changed() {
    let mut hand = Handshake::start(On::Lark, Some("repainted")).await;
    hand.ask().await;
    let card = hand.card().await;
    hand.say_ok(&card).await;
    hand.dies().await;
    hand.restart_and_die("repainted").await;
    hand.restart();
    is_done(hand).await;
}
