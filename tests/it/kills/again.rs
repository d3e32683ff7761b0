//! From the press of "ask again" on an expired card to the card of the new turn.

use sqlx::Connection;

use super::kit::{ANSWER, Handshake, TASK};
use crate::support::platform::{On, on_either};
use crate::support::quiet::{connect, quiet, stored};

on_either! {
    a_press_that_was_not_answered_opens_one_turn,
    a_turn_that_was_begun_again_survives_a_kill,
    a_review_that_was_opened_again_survives_a_kill,
}

/// The gateway dies at `point` after the press, which the platform then pushes once more: one new turn, one new card, the same plan, and
/// the model hears of it with the OK.
async fn dies_over_the_press(on: On, point: &str) {
    let mut hand = Handshake::start(on, None).await;
    hand.ask().await;
    let card = hand.card().await;
    hand.world.child().kill();
    // An hour is too long for a test with a clock of its own.
    let mut conn = connect(&hand.world).await;
    for due in ["UPDATE gates SET expires_at = 1", "UPDATE lanes SET ready_at = 1"] {
        sqlx::query(due).execute(&mut conn).await.unwrap();
    }
    conn.close().await.unwrap();
    hand.restart();
    hand.world.hears(hand.chat, "等待超时").await;
    let lapsed = hand.world.repainted(&card, "已过期").await;
    quiet(&hand.world).await;
    hand.world.child().kill();
    hand.world.restart_process(Some(point));
    let asked = hand.world.model.seen_of(TASK).len();
    let press = hand
        .world
        .tenant
        .tap(hand.user, hand.chat, &card.id, &lapsed.button("ask_again").unwrap(), None);
    hand.push(&press).await;
    hand.dies().await;
    hand.restart();
    let (status, body) = hand.push(&press).await.unwrap();
    assert_eq!(status, 200, "{body}");
    let new = hand.world.card_after(hand.chat, &card).await;
    quiet(&hand.world).await;
    assert_eq!(hand.world.model.seen_of(TASK).len(), asked, "the model is not asked");
    let digests = stored(&hand.world, "SELECT digest FROM gates ORDER BY opened_at").await;
    assert!(digests.len() == 2 && digests[0] == digests[1], "{digests:?}");
    hand.say_ok(&new).await;
    hand.world.hears(hand.chat, ANSWER).await;
    assert_eq!(
        (hand.world.turns_in(hand.chat).await.len(), hand.world.titled(hand.chat, "计划确认")),
        (2, 2)
    );
    assert!(hand.world.file("report.md").is_some());
    hand.world.end().await;
}

/// The press is committed, its answer is lost: the platform's repetition hears what came of it.
async fn a_press_that_was_not_answered_opens_one_turn(on: On) {
    dies_over_the_press(on, "decision_written").await;
}

/// The new turn has its row and its log, and no step is journaled.
async fn a_turn_that_was_begun_again_survives_a_kill(on: On) {
    dies_over_the_press(on, "turn_begun").await;
}

/// The review is open, its card not posted.
async fn a_review_that_was_opened_again_survives_a_kill(on: On) {
    dies_over_the_press(on, "gate_journaled").await;
}
