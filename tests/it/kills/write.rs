//! Around a write call: never twice without a person's word.

use super::kit::Handshake;
use crate::support::platform::{On, on_either};
use crate::support::world::World;

on_either! {
    a_write_that_was_not_sent_is_sent_after_a_kill,
    a_write_of_unknown_outcome_runs_again_when_a_person_says_so,
    a_write_of_unknown_outcome_stays_undone_when_a_person_rejects_it,
    a_write_whose_result_was_lost_runs_again_only_when_approved,
    a_write_whose_result_was_lost_is_left_alone_when_rejected,
    a_write_that_is_lost_twice_is_asked_about_twice,
    the_question_about_a_lost_write_outlives_the_process,
    a_journaled_result_is_used_after_a_kill,
}

/// The plan is approved, and the gateway dies at `point`, at or around its write call.
async fn dies_over_the_write(on: On, point: &str) -> Handshake {
    let mut hand = Handshake::start(on, Some(point)).await;
    assert_eq!(hand.ask().await, Some(200));
    let card = hand.card().await;
    hand.press(&card, "approve").await;
    hand.dies().await;
    hand
}

/// What the API calls the lost call.
async fn unknown(world: &World) -> usize {
    world.api.get("/api/v1/actions?status=unknown").await["items"]
        .as_array()
        .unwrap()
        .len()
}

/// F-K13: a call that was journaled and never sent is sent, without asking anybody.
async fn a_write_that_was_not_sent_is_sent_after_a_kill(on: On) {
    let mut hand = dies_over_the_write(on, "action_unsent").await;
    assert_eq!(hand.world.file("report.md"), None);
    hand.restart();
    hand.ends_whole().await;
}

/// F-K14: sent, and nobody knows whether it ran: the card says so; approved, it runs (here for the first time).
async fn a_write_of_unknown_outcome_runs_again_when_a_person_says_so(on: On) {
    let mut hand = dies_over_the_write(on, "action_sent").await;
    assert_eq!(hand.world.file("report.md"), None);
    hand.restart();
    let card = hand.lost_call(None).await;
    assert!(card.words().contains("不确定是否已经执行"), "{}", card.words());
    assert_eq!(hand.world.file("report.md"), None, "it is not run without a person's word");
    assert_eq!(unknown(&hand.world).await, 1);
    hand.press(&card, "approve").await.unwrap().done("已确认");
    let turn = hand.ended(2).await;
    let ran = hand.executed(&turn).await;
    assert_eq!(ran.len(), 1);
    assert!(ran[0]["result"]["text"].as_str().unwrap().starts_with("created"), "{}", ran[0]);
    assert_eq!(ran[0]["decision"]["via"], "button");
    assert!(hand.world.file("report.md").is_some());
    hand.same_when_pushed_again().await;
}

/// F-K14: rejected, it does not run, and the model hears that its outcome is unknown.
async fn a_write_of_unknown_outcome_stays_undone_when_a_person_rejects_it(on: On) {
    let mut hand = dies_over_the_write(on, "action_sent").await;
    hand.restart();
    let card = hand.lost_call(None).await;
    hand.press(&card, "reject").await.unwrap();
    let turn = hand.ended(2).await;
    assert_eq!(hand.executed(&turn).await, Vec::<serde_json::Value>::new());
    assert_eq!(hand.world.file("report.md"), None);
    let told = hand.world.api.messages(&turn).await;
    assert!(
        told.iter().any(|message| message["content"]
            .as_str()
            .is_some_and(|text| text.contains("may or may not have run"))),
        "{told:#?}"
    );
    hand.same_when_pushed_again().await;
}

/// F-K15: it ran, and its result was lost: the same question; approved, it runs a second time.
async fn a_write_whose_result_was_lost_runs_again_only_when_approved(on: On) {
    let mut hand = dies_over_the_write(on, "action_ran").await;
    assert!(hand.world.file("report.md").is_some());
    hand.restart();
    let card = hand.lost_call(None).await;
    hand.press(&card, "approve").await.unwrap();
    let turn = hand.ended(2).await;
    let ran = hand.executed(&turn).await;
    assert_eq!(ran.len(), 1);
    assert!(ran[0]["result"]["text"].as_str().unwrap().starts_with("replaced"), "{}", ran[0]);
    hand.same_when_pushed_again().await;
}

/// F-K15: rejected by word, it does not run a second time.
async fn a_write_whose_result_was_lost_is_left_alone_when_rejected(on: On) {
    let mut hand = dies_over_the_write(on, "action_ran").await;
    let marked = hand.world.folder.path().join("workspace/report.md");
    std::fs::write(&marked, "marked by the test").unwrap();
    hand.restart();
    let card = hand.lost_call(None).await;
    let event = hand.words("不行", Some(&card.id)).await;
    assert_eq!(hand.push(&event).await.unwrap().0, 200);
    let turn = hand.ended(2).await;
    assert_eq!(hand.executed(&turn).await, Vec::<serde_json::Value>::new());
    assert_eq!(hand.world.file("report.md").as_deref(), Some("marked by the test"));
    hand.same_when_pushed_again().await;
}

/// F-K14, F-K15: dead again while it runs again: asked again, on a card of its own.
async fn a_write_that_is_lost_twice_is_asked_about_twice(on: On) {
    let mut hand = dies_over_the_write(on, "action_sent").await;
    hand.world.restart_process(Some("action_ran"));
    let first = hand.lost_call(None).await;
    hand.press(&first, "approve").await;
    hand.dies().await;
    hand.restart();
    let second = hand.lost_call(Some(&first)).await;
    hand.press(&first, "approve").await.unwrap().told("取代").await;
    assert_eq!(unknown(&hand.world).await, 1, "the first card decides nothing any more");
    hand.press(&second, "reject").await.unwrap();
    let turn = hand.ended(3).await;
    assert_eq!(hand.executed(&turn).await, Vec::<serde_json::Value>::new());
    hand.same_when_pushed_again().await;
}

/// F-K14: a question that nobody has answered outlives further restarts, and is asked once.
async fn the_question_about_a_lost_write_outlives_the_process(on: On) {
    let mut hand = dies_over_the_write(on, "action_sent").await;
    hand.restart_and_die("card_posted").await;
    hand.restart();
    let card = hand.lost_call(None).await;
    hand.kill_and_restart();
    hand.press(&card, "approve").await.unwrap();
    hand.ended(2).await;
    hand.same_when_pushed_again().await;
}

/// F-K16: a result that was journaled is used; the call is not made again.
async fn a_journaled_result_is_used_after_a_kill(on: On) {
    let mut hand = dies_over_the_write(on, "action_journaled").await;
    assert!(hand.world.file("report.md").is_some());
    hand.restart();
    hand.ends_whole().await;
}
