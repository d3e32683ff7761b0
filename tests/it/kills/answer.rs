//! The final answer: exactly one.

use super::kit::Handshake;
use crate::support::platform::{On, on_either};

on_either! {
    a_journaled_answer_is_posted_after_a_kill,
    a_posted_answer_is_not_posted_twice,
    an_answer_that_was_under_way_at_the_kill_is_one_answer,
}

/// The gateway dies at `point`, at or around its final answer.
async fn dies_over_the_answer(on: On, point: &str) -> Handshake {
    let mut hand = Handshake::start(on, Some(point)).await;
    assert_eq!(hand.ask().await, Some(200));
    let card = hand.card().await;
    hand.say_ok(&card).await;
    hand.dies().await;
    hand.restart();
    hand
}

/// F-K17: an answer that was journaled and not posted is posted once, without asking the model again.
async fn a_journaled_answer_is_posted_after_a_kill(on: On) {
    let hand = dies_over_the_answer(on, "finish_journaled").await;
    hand.ends_whole().await;
}

/// F-K18: an answer that is in the chat, and of which the gateway does not know, is not posted twice.
async fn a_posted_answer_is_not_posted_twice(on: On) {
    let hand = dies_over_the_answer(on, "answer_posted").await;
    hand.ends_whole().await;
}

/// F-K18: the platform takes the answer after the gateway's death; still one answer.
async fn an_answer_that_was_under_way_at_the_kill_is_one_answer(on: On) {
    let mut hand = Handshake::start(on, None).await;
    assert_eq!(hand.ask().await, Some(200));
    let card = hand.card().await;
    let before = hand.world.chat.snapshot().count("reply");
    hand.world.chat.hold("reply");
    hand.say_ok(&card).await;
    hand.world
        .seen("the answer's call", |seen| (seen.count("reply") > before).then_some(()))
        .await;
    hand.world.child().kill();
    hand.world.chat.release("reply");
    hand.restart();
    hand.ends_whole().await;
}
