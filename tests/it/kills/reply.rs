//! From the person's OK to the continuation.

use countersign::cli::demo::Posted;

use super::kit::{CHAT, Handshake, TASK};
use crate::support::fake_model::{Gate, Script, Step, call};
use crate::support::scripts::reporter;
use crate::support::world::DIRECT;

/// The plan waits; then the gateway dies at `point` over a reply of `OK`. The platform pushes nothing again.
async fn dies_over_the_word(point: &str) -> Handshake {
    let mut hand = waiting(point).await;
    let card = hand.card().await;
    hand.say_ok(&card).await;
    hand.dies().await;
    hand.restart();
    hand
}

/// A waiting plan before a gateway that will die at `point`.
async fn waiting(point: &str) -> Handshake {
    let mut hand = Handshake::start(None).await;
    assert_eq!(hand.ask().await, Some(200));
    hand.card().await;
    hand.world.restart_process(Some(point));
    hand
}

/// K11: an OK that was committed and not acknowledged continues the turn once.
#[tokio::test]
async fn an_accepted_ok_survives_a_kill() {
    dies_over_the_word("accepted").await.ends_whole().await;
}

/// K1: an OK that was not committed decides nothing; said again by the platform, it does.
#[tokio::test]
async fn an_ok_that_was_not_committed_is_not_an_approval() {
    let mut hand = waiting("verified").await;
    let card = hand.card().await;
    let event = hand.words("OK", Some(&card.id));
    assert_eq!(hand.push("events", &event).await, None);
    hand.dies().await;
    hand.restart();
    hand.card().await;
    assert_eq!(hand.push("events", &event).await.unwrap().0, 200);
    hand.ends_whole().await;
}

/// K12: the decision is written and nobody has read it: it is read after the restart, once.
#[tokio::test]
async fn a_decision_by_word_that_no_worker_read_survives_a_kill() {
    dies_over_the_word("triaged").await.ends_whole().await;
}

/// K12: the decision was read by a worker whose step was not journaled: read again, one continuation.
#[tokio::test]
async fn a_decision_that_was_read_and_not_journaled_continues_once() {
    dies_over_the_word("decision_read").await.ends_whole().await;
}

/// K12: a button's decision is written, its answer lost: the turn goes on; a second tap hears that it is done.
#[tokio::test]
async fn a_tap_whose_toast_was_lost_has_decided() {
    let mut hand = waiting("decision_written").await;
    let card = hand.card().await;
    assert_eq!(hand.press(&card, "approve").await, None, "the person sees the platform's error");
    hand.dies().await;
    hand.restart();
    let toast = hand.press(&card, "approve").await.unwrap();
    assert!(toast.contains("已经处理过了"), "{toast}");
    hand.ends_whole().await;
}

/// K12: the same with a worker that has read the button's decision.
#[tokio::test]
async fn a_tap_that_was_read_and_not_journaled_continues_once() {
    let mut hand = waiting("decision_read").await;
    let card = hand.card().await;
    hand.press(&card, "approve").await;
    hand.dies().await;
    hand.restart();
    hand.ends_whole().await;
}

/// K0: a tap that the gateway never saw leaves the review waiting; the person taps again.
#[tokio::test]
async fn a_tap_at_a_dead_gateway_is_tapped_again() {
    let mut hand = Handshake::start(None).await;
    hand.ask().await;
    let card = hand.card().await;
    hand.world.child().kill();
    assert_eq!(hand.press(&card, "approve").await, None);
    hand.restart();
    hand.card().await;
    let toast = hand.press(&card, "approve").await.unwrap();
    assert!(toast.contains("已确认"), "{toast}");
    hand.ends_whole().await;
}

/// K5: dead while the model thinks about the approved plan: it is asked again with the same single block of feedback.
#[tokio::test]
async fn a_kill_while_the_model_reads_the_approval_continues_once() {
    let mut hand = Handshake::start(None).await;
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

/// The card is in the chat, and the gateway that posted it died before it had noted that; the next one cannot note it
/// either until the test releases `reply`.
async fn unnoted() -> (Handshake, Posted) {
    let mut hand = Handshake::start(Some("card_posted")).await;
    assert_eq!(hand.ask().await, Some(200));
    hand.dies().await;
    hand.world.lark.hold("reply");
    hand.restart();
    let posted = hand.world.lark.snapshot();
    let card = posted.in_chat(CHAT).next().unwrap().clone();
    (hand, card)
}

/// Comes back when everything that was pushed before has been looked at.
async fn looked_at(hand: &Handshake) {
    hand.world.say("ou_u9", "oc_k9", "另一件事", DIRECT).await;
    hand.world.api.turn_in("oc_k9", "paused").await;
}

/// K9, S3: an OK to a card that is in the chat, and that the gateway has not noted yet, is kept until it can be told from one
/// that was said before the card; then it is an approval.
#[tokio::test]
async fn an_ok_to_a_card_that_is_not_noted_yet_is_not_lost() {
    let (mut hand, card) = unnoted().await;
    assert_eq!(hand.say_ok(&card).await, Some(200));
    looked_at(&hand).await;
    assert_eq!(hand.world.api.turn_in(CHAT, "paused").await["gate"]["kind"], "plan_review");
    hand.world.lark.release("reply");
    hand.ends_whole().await;
}

/// K9, H18: a stop overtakes the OK that is kept, and is obeyed at once.
#[tokio::test]
async fn a_stop_overtakes_an_ok_that_is_kept() {
    let (mut hand, card) = unnoted().await;
    assert_eq!(hand.say_ok(&card).await, Some(200));
    looked_at(&hand).await;
    let event = hand.words("/stop", None);
    assert_eq!(hand.push("events", &event).await.unwrap().0, 200);
    let turn = hand.world.api.turn_in(CHAT, "cancelled").await;
    assert_eq!(turn["reason"], "cancelled");
    hand.world.lark.release("reply");
    hand.world.hears(CHAT, "处理过了").await;
    assert_eq!(hand.world.file("report.md"), None);
    hand.world.end().await;
}
