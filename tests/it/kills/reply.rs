//! From the person's OK to the continuation.

use countersign_playground::Posted;

use super::kit::{Handshake, TASK};
use crate::support::fake_model::{Gate, Script, Step, call};
use crate::support::platform::{On, on_both, on_either};
use crate::support::scripts::reporter;
use crate::support::world::DIRECT;

on_both! {
    an_ok_to_a_card_that_is_not_noted_yet_is_not_lost,
    a_stop_overtakes_an_ok_that_is_kept,
}

on_either! {
    an_accepted_ok_survives_a_kill,
    an_ok_that_was_not_committed_is_not_an_approval,
    a_decision_by_word_that_no_worker_read_survives_a_kill,
    a_decision_that_was_read_and_not_journaled_continues_once,
    a_tap_whose_toast_was_lost_has_decided,
    a_tap_that_was_read_and_not_journaled_continues_once,
    a_tap_at_a_dead_gateway_is_tapped_again,
    a_kill_while_the_model_reads_the_approval_continues_once,
}

/// The plan waits; then the gateway dies at `point` over a reply of `OK`. The platform pushes nothing again.
async fn dies_over_the_word(on: On, point: &str) -> Handshake {
    let mut hand = waiting(on, point).await;
    let card = hand.card().await;
    hand.say_ok(&card).await;
    hand.dies().await;
    hand.restart();
    hand
}

/// A waiting plan before a gateway that will die at `point`.
async fn waiting(on: On, point: &str) -> Handshake {
    let mut hand = Handshake::start(on, None).await;
    assert_eq!(hand.ask().await, Some(200));
    hand.card().await;
    hand.world.restart_process(Some(point));
    hand
}

/// F-K11: an OK that was committed and not acknowledged continues the turn once.
async fn an_accepted_ok_survives_a_kill(on: On) {
    dies_over_the_word(on, "accepted").await.ends_whole().await;
}

/// F-K1: an OK that was not committed decides nothing; said again by the platform, it does.
async fn an_ok_that_was_not_committed_is_not_an_approval(on: On) {
    let mut hand = waiting(on, "verified").await;
    let card = hand.card().await;
    let event = hand.words("OK", Some(&card.id)).await;
    assert_eq!(hand.push(&event).await, None);
    hand.dies().await;
    hand.restart();
    hand.card().await;
    assert_eq!(hand.push(&event).await.unwrap().0, 200);
    hand.ends_whole().await;
}

/// B4, C13, F-K12: the decision is written and nobody has read it: it is read after the restart, once.
async fn a_decision_by_word_that_no_worker_read_survives_a_kill(on: On) {
    dies_over_the_word(on, "triaged").await.ends_whole().await;
}

/// B4, C13, F-K12: the decision was read by a worker whose step was not journaled: read again, one continuation.
async fn a_decision_that_was_read_and_not_journaled_continues_once(on: On) {
    dies_over_the_word(on, "decision_read").await.ends_whole().await;
}

/// F-K12: a button's decision is written, its answer lost: the turn goes on; a second tap hears that it is done.
async fn a_tap_whose_toast_was_lost_has_decided(on: On) {
    let mut hand = waiting(on, "decision_written").await;
    let card = hand.card().await;
    let heard = hand.press(&card, "approve").await;
    assert!(heard.is_none(), "the person sees the platform's error");
    hand.dies().await;
    hand.restart();
    hand.press(&card, "approve").await.unwrap().told("已经处理过了").await;
    hand.ends_whole().await;
}

/// F-K12: the same with a worker that has read the button's decision.
async fn a_tap_that_was_read_and_not_journaled_continues_once(on: On) {
    let mut hand = waiting(on, "decision_read").await;
    let card = hand.card().await;
    hand.press(&card, "approve").await;
    hand.dies().await;
    hand.restart();
    hand.ends_whole().await;
}

/// F-K0: a tap that the gateway never saw leaves the review waiting; the person taps again.
async fn a_tap_at_a_dead_gateway_is_tapped_again(on: On) {
    let mut hand = Handshake::start(on, None).await;
    hand.ask().await;
    let card = hand.card().await;
    hand.world.child().kill();
    assert!(hand.press(&card, "approve").await.is_none());
    hand.restart();
    hand.card().await;
    hand.press(&card, "approve").await.unwrap().done("已确认");
    hand.ends_whole().await;
}

/// F-K5: dead while the model thinks about the approved plan: it is asked again with the same single block of feedback.
async fn a_kill_while_the_model_reads_the_approval_continues_once(on: On) {
    let mut hand = Handshake::start(on, None).await;
    let gate = Gate::new();
    let plan = reporter(&serde_json::json!({ "tools": [1], "messages": [] }));
    let held = Step::Gated(
        gate.clone(),
        Box::new(Step::Message(call([("list_files", serde_json::json!({ "path": "." }))]), None)),
    );
    hand.world.model.script(TASK, Script::new().message(plan).then(held));
    hand.ask().await;
    let card = hand.card().await;
    hand.press(&card, "approve").await.unwrap();
    gate.reached().await;
    hand.kill_and_restart();
    gate.open();
    hand.ends_whole().await;
}

/// The call with which a gateway tries again what may have arrived: Lark knows the message by its `uuid`, on Slack it is
/// looked for.
fn second_try(on: On) -> &'static str {
    match on {
        On::Lark => "reply",
        On::Slack => "replies",
    }
}

/// The card is in the chat, and the gateway that posted it died before it had noted that; the next one cannot note it
/// either until the test releases its second try.
async fn unnoted(on: On) -> (Handshake, Posted) {
    let mut hand = Handshake::start(on, Some("card_posted")).await;
    assert_eq!(hand.ask().await, Some(200));
    hand.dies().await;
    hand.world.chat.hold(second_try(on));
    hand.restart();
    let posted = hand.world.chat.snapshot();
    let card = posted.in_chat(hand.chat).next().unwrap().clone();
    (hand, card)
}

/// Comes back when everything that was pushed before has been looked at.
async fn looked_at(hand: &Handshake) {
    let on = hand.world.on;
    hand.world.say(on.user("u9"), on.direct("k9"), "另一件事", DIRECT).await;
    hand.world.api.turn_in(on.direct("k9"), "paused").await;
}

/// F-K9, F-S3: an OK to a card that is in the chat, and that the gateway has not noted yet, is kept until it can be told from one
/// that was said before the card; then it is an approval.
async fn an_ok_to_a_card_that_is_not_noted_yet_is_not_lost(on: On) {
    let (mut hand, card) = unnoted(on).await;
    assert_eq!(hand.say_ok(&card).await, Some(200));
    looked_at(&hand).await;
    assert_eq!(hand.world.api.turn_in(hand.chat, "paused").await["gate"]["kind"], "plan_review");
    hand.world.chat.release(second_try(on));
    hand.ends_whole().await;
}

/// F-K9, F-H18: a stop overtakes the OK that is kept, and is obeyed at once.
async fn a_stop_overtakes_an_ok_that_is_kept(on: On) {
    let (mut hand, card) = unnoted(on).await;
    assert_eq!(hand.say_ok(&card).await, Some(200));
    looked_at(&hand).await;
    let event = hand.words("/stop", None).await;
    assert_eq!(hand.push(&event).await.unwrap().0, 200);
    let turn = hand.world.api.turn_in(hand.chat, "cancelled").await;
    assert_eq!(turn["reason"], "cancelled");
    hand.world.chat.release(second_try(on));
    hand.world.hears(hand.chat, "处理过了").await;
    assert_eq!(hand.world.file("report.md"), None);
    hand.world.end().await;
}
