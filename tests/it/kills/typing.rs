//! The mark of somebody who types ends, whatever call the process dies over.

use super::kit::Handshake;
use crate::support::platform::On;

/// The process dies at `point`, over a mark of the request.
async fn nobody_types_in_the_end(point: &str) {
    let mut hand = Handshake::start(On::Lark, Some(point)).await;
    hand.ask().await;
    hand.dies().await;
    hand.restart();
    let card = hand.card().await;
    let request = card.reply_to.clone().unwrap();
    hand.world
        .seen("nobody types", |seen| seen.marks(&request).is_empty().then_some(()))
        .await;
    hand.say_ok(&card).await;
    hand.ended(1).await;
    hand.world
        .seen("the end alone", |seen| (seen.marks(&request) == ["DONE"]).then_some(()))
        .await;
    hand.same_when_pushed_again().await;
}

/// interface (I): the mark is there, and nobody wrote that down.
#[tokio::test]
async fn a_mark_that_is_there() {
    nobody_types_in_the_end("posted").await;
}

/// interface (I): the mark is gone, and nobody wrote that down.
#[tokio::test]
async fn a_mark_that_is_gone() {
    nobody_types_in_the_end("unmarked").await;
}
