//! The process dies over an update of a plan's card: one card in the end, in its newest state.

use countersign_playground::Snapshot;

use super::kit::Handshake;
use crate::support::platform::On;

/// F-K9: the card is updated, and nobody wrote that down; and the same once more.
#[tokio::test]
async fn a_card_that_is_updated() {
    let mut hand = Handshake::start(On::Lark, Some("repainted")).await;
    hand.ask().await;
    let card = hand.card().await;
    hand.say_ok(&card).await;
    hand.dies().await;
    hand.restart_and_die("repainted").await;
    hand.restart();
    hand.ended(1).await;
    let chat = hand.chat;
    let done = |seen: &Snapshot| {
        let cards: Vec<_> = seen.in_chat(chat).filter(|message| message.title() == Some("计划确认")).collect();
        assert_eq!(cards.len(), 1, "{cards:#?}");
        (cards[0].words().contains("已完成") && cards[0].buttons().is_empty()).then_some(())
    };
    hand.world.seen("the card of a plan that is done", done).await;
    hand.same_when_pushed_again().await;
}
