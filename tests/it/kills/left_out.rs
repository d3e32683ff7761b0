//! From the press that leaves steps out to the card of the next version.

use super::kit::{ANSWER, Handshake, TASK};
use crate::support::platform::{On, on_either};
use crate::support::quiet::{quiet, stored};

on_either! {
    a_choice_that_was_not_answered_makes_one_version,
    a_version_whose_review_was_opened_survives_a_kill,
}

/// The gateway dies at `point` after the press, which the platform then pushes once more: one new version on one new card, and the model
/// hears of it with the OK.
async fn dies_over_the_choice(on: On, point: &str) {
    let mut hand = Handshake::start(on, None).await;
    hand.ask().await;
    let card = hand.card().await;
    hand.world.child().kill();
    hand.world.restart_process(Some(point));
    let asked = hand.world.model.seen_of(TASK).len();
    let value = card.button("keep_steps").unwrap();
    let press = hand.world.tenant.keep(hand.user, hand.chat, &card.id, &value, &["1", "2"]);
    hand.push(&press).await;
    hand.dies().await;
    hand.restart();
    let (status, body) = hand.push(&press).await.unwrap();
    assert_eq!(status, 200, "{body}");
    let new = hand.world.card_after(hand.chat, &card).await;
    quiet(&hand.world).await;
    assert_eq!(hand.world.model.seen_of(TASK).len(), asked, "the model is not asked");
    let versions = stored(&hand.world, "SELECT CAST(plan_version AS TEXT) FROM gates ORDER BY plan_version").await;
    assert_eq!(versions, ["1", "2"]);
    hand.say_ok(&new).await;
    hand.world.hears(hand.chat, ANSWER).await;
    assert_eq!(hand.world.titled(hand.chat, "计划确认"), 2);
    assert!(hand.world.file("report.md").is_some());
    hand.world.end().await;
}

/// The decision is committed, its answer is lost.
async fn a_choice_that_was_not_answered_makes_one_version(on: On) {
    dies_over_the_choice(on, "decision_written").await;
}

/// The review of the next version is open, its card not posted.
async fn a_version_whose_review_was_opened_survives_a_kill(on: On) {
    dies_over_the_choice(on, "gate_journaled").await;
}
