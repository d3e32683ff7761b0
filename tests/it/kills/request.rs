//! From the request's first byte to the waiting card.

use super::kit::{Handshake, TASK};
use crate::support::deliveries::Delivery;
use crate::support::fake_model::{Gate, Script, Step, Then, call, say};
use crate::support::platform::{On, on_both, on_either};

on_both! {
    a_posted_card_is_not_posted_twice,
}

on_either! {
    a_kill_before_the_body_is_read_leaves_nothing,
    a_kill_before_the_commit_leaves_no_mark_of_the_event,
    an_accepted_request_survives_a_kill,
    a_queued_request_survives_a_kill,
    a_begun_turn_survives_a_kill,
    a_kill_while_the_model_thinks_asks_it_again,
    half_a_stream_is_dropped_with_the_process,
    an_answer_of_the_model_that_was_not_journaled_is_asked_for_again,
    a_journaled_plan_gets_its_card_after_a_kill,
    a_card_that_was_under_way_at_the_kill_is_one_card,
    a_kill_after_the_mark_on_the_request_is_harmless,
    a_waiting_review_outlives_the_process,
}

/// The gateway dies at `point` while it handles the request; after the restart the platform pushes nothing again.
async fn dies_over_the_request(on: On, point: &str) -> Handshake {
    let mut hand = Handshake::start(on, Some(point)).await;
    hand.ask().await;
    hand.dies().await;
    hand.restart();
    hand
}

/// F-K0, F-P1: half a request and a kill are as if nothing had been sent; the whole one, pushed again, is one turn.
async fn a_kill_before_the_body_is_read_leaves_nothing(on: On) {
    if !Delivery::Webhook.runs() {
        return;
    }
    let mut hand = Handshake::start(on, None).await;
    let event = hand.words(TASK, None).await;
    let base = hand.world.child().base.clone();
    let _connection = hand.push_half(&event, &base).await;
    hand.kill_and_restart();
    assert!(hand.world.api.turns().await.is_empty());
    assert_eq!(hand.push(&event).await.unwrap().0, 200);
    hand.carried_out().await;
}

/// F-K1: dead between the signature check and the commit, the gateway has acknowledged nothing and remembers nothing; the
/// pushed again event is new.
async fn a_kill_before_the_commit_leaves_no_mark_of_the_event(on: On) {
    let mut hand = Handshake::start(on, Some("verified")).await;
    let event = hand.words(TASK, None).await;
    assert_eq!(hand.push(&event).await, None, "nothing is acknowledged before it is stored");
    hand.dies().await;
    hand.restart();
    assert!(hand.world.api.turns().await.is_empty());
    assert_eq!(hand.push(&event).await.unwrap().0, 200);
    hand.carried_out().await;
}

/// F-K2: committed and not acknowledged, the event runs once, although the platform pushes it again.
async fn an_accepted_request_survives_a_kill(on: On) {
    dies_over_the_request(on, "accepted").await.carried_out().await;
}

/// F-K3: a request that was given to its lane, and that no worker had begun, runs once.
async fn a_queued_request_survives_a_kill(on: On) {
    dies_over_the_request(on, "triaged").await.carried_out().await;
}

/// F-K4: a turn that was begun, and whose model was never asked, goes on at once: no lease is waited for.
async fn a_begun_turn_survives_a_kill(on: On) {
    dies_over_the_request(on, "turn_begun").await.carried_out().await;
}

/// F-K5: the model was asked and had not answered; it is asked again, and one plan comes of it.
async fn a_kill_while_the_model_thinks_asks_it_again(on: On) {
    let mut hand = Handshake::start(on, None).await;
    let gate = Gate::new();
    let held = Step::Gated(gate.clone(), Box::new(Step::Message(say("这句话没有人听到"), None)));
    hand.world.model.script(TASK, Script::new().then(held));
    assert_eq!(hand.ask().await, Some(200));
    gate.reached().await;
    hand.kill_and_restart();
    gate.open();
    hand.card().await;
    assert_eq!(hand.world.model.seen_of(TASK).len(), 2);
    assert_eq!(hand.world.count(hand.chat, "没有人听到"), 0, "half an answer is never posted");
    hand.carried_out().await;
}

/// F-K5: half of the model's stream had arrived, its words and the head of a call: nothing of it is shown or done; the model is asked
/// again, and one plan comes of it.
async fn half_a_stream_is_dropped_with_the_process(on: On) {
    let mut hand = Handshake::start(on, None).await;
    let mut half = call([("write_file", serde_json::json!({ "path": "half.md", "content": "半句话" }))]);
    half["content"] = "这半句话没有人听到".into();
    hand.world.model.script(TASK, Script::new().then(Step::Half(half, Then::Silence)));
    assert_eq!(hand.ask().await, Some(200));
    hand.world.model.wait_for(1).await;
    hand.kill_and_restart();
    hand.card().await;
    assert_eq!(hand.world.model.seen_of(TASK).len(), 2);
    assert_eq!(hand.world.count(hand.chat, "没有人听到"), 0, "half an answer is never posted");
    assert_eq!(hand.world.file("half.md"), None);
    hand.carried_out().await;
}

/// F-K6: an answer of the model that was not journaled never was; the model is asked again.
async fn an_answer_of_the_model_that_was_not_journaled_is_asked_for_again(on: On) {
    let hand = dies_over_the_request(on, "model_answered").await;
    hand.card().await;
    assert_eq!(hand.world.model.seen_of(TASK).len(), 2);
    hand.carried_out().await;
}

/// F-K7, F-K8: the plan and its review are journaled in one commit; the card that was not posted is posted, without asking
/// the model again.
async fn a_journaled_plan_gets_its_card_after_a_kill(on: On) {
    let hand = dies_over_the_request(on, "gate_journaled").await;
    hand.card().await;
    assert_eq!(hand.world.model.seen_of(TASK).len(), 1);
    hand.carried_out().await;
}

/// F-K9: a card that is in the chat, and of which the gateway does not know, is posted again under its `uuid`: one card.
async fn a_posted_card_is_not_posted_twice(on: On) {
    let hand = dies_over_the_request(on, "card_posted").await;
    let card = hand.card().await;
    let calls = hand.world.chat.snapshot().calls.clone();
    match on {
        On::Lark => {
            let same = calls.iter().filter(|call| call.body["uuid"] == card.uuid.as_str());
            assert_eq!(same.count(), 2, "the card was sent before and after the kill, under one key");
        }
        On::Slack => {
            let key = &card.uuid;
            let same = calls
                .iter()
                .filter(|call| call.body["metadata"]["event_payload"]["k"] == key.as_str());
            assert_eq!(same.count(), 1, "the card was looked for after the kill, and found");
            assert!(calls.iter().any(|call| call.endpoint == "replies"));
        }
    }
    hand.carried_out().await;
}

/// F-K9: the platform takes the card after the gateway's death; still one card.
async fn a_card_that_was_under_way_at_the_kill_is_one_card(on: On) {
    let mut hand = Handshake::start(on, None).await;
    hand.world.chat.hold("reply");
    assert_eq!(hand.ask().await, Some(200));
    hand.world
        .seen("the card's call", |seen| (seen.count("reply") > 0).then_some(()))
        .await;
    hand.world.child().kill();
    hand.world.chat.release("reply");
    hand.restart();
    hand.carried_out().await;
}

/// F-K9: death right after the very first sign, the mark on the request, costs nothing but the mark's repetition.
async fn a_kill_after_the_mark_on_the_request_is_harmless(on: On) {
    dies_over_the_request(on, "posted").await.carried_out().await;
}

/// F-K10: a waiting review outlives the process: same card, same id, same expiry; the reply works.
async fn a_waiting_review_outlives_the_process(on: On) {
    let mut hand = Handshake::start(on, None).await;
    assert_eq!(hand.ask().await, Some(200));
    hand.card().await;
    let before = hand.world.api.review_in(hand.chat).await;
    hand.kill_and_restart();
    hand.kill_and_restart();
    assert_eq!(hand.world.api.review_in(hand.chat).await, before, "neither lost nor extended");
    hand.carried_out().await;
}
