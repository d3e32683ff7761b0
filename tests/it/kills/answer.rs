//! The final answer: exactly one.

use super::kit::Handshake;

/// The gateway dies at `point`, at or around its final answer.
async fn dies_over_the_answer(point: &str) -> Handshake {
    let mut hand = Handshake::start(Some(point)).await;
    assert_eq!(hand.ask().await, Some(200));
    let card = hand.card().await;
    hand.say_ok(&card).await;
    hand.dies().await;
    hand.restart();
    hand
}

/// K17: an answer that was journaled and not posted is posted once, without asking the model again.
#[tokio::test]
async fn a_journaled_answer_is_posted_after_a_kill() {
    let hand = dies_over_the_answer("finish_journaled").await;
    hand.ends_whole().await;
}

/// K18: an answer that is in the chat, and of which the gateway does not know, is not posted twice.
#[tokio::test]
async fn a_posted_answer_is_not_posted_twice() {
    let hand = dies_over_the_answer("answer_posted").await;
    hand.ends_whole().await;
}

/// K18: the platform takes the answer after the gateway's death; still one answer.
#[tokio::test]
async fn an_answer_that_was_under_way_at_the_kill_is_one_answer() {
    let mut hand = Handshake::start(None).await;
    assert_eq!(hand.ask().await, Some(200));
    let card = hand.card().await;
    let before = hand.world.lark.snapshot().count("reply");
    hand.world.lark.hold("reply");
    hand.say_ok(&card).await;
    hand.world
        .seen("the answer's call", |lark| (lark.count("reply") > before).then_some(()))
        .await;
    hand.world.child().kill();
    hand.world.lark.release("reply");
    hand.restart();
    hand.ends_whole().await;
}
