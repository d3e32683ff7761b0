//! One of two processes dies at a named point, whichever reaches it first; the other takes over within the lease.

use std::time::Instant;

use crate::kills::kit::{Handshake, TASK};
use crate::kills::remind::half_the_time_passes;
use crate::long_answers::{all_sections, report};
use crate::support::fake_model::{Gate, Script, Step, say};
use crate::support::fleet::{Fleet, SHORT};
use crate::support::platform::{On, on_both, on_either};
use crate::support::quiet::quiet;
use crate::support::scripts::reporter;
use crate::support::world::DIRECT;

on_both! {
    a_posted_card_is_not_posted_by_the_other,
    a_posted_answer_is_not_posted_by_the_other,
    the_parts_of_an_answer_are_gone_on_with_by_the_other,
    a_mark_on_the_request_is_taken_over,
}

on_either! {
    a_death_with_half_a_request_is_nobodys_loss,
    a_death_before_the_commit_is_nobodys_loss,
    a_death_after_the_commit_is_nobodys_loss,
    a_queued_request_is_taken_over,
    a_begun_turn_is_taken_over,
    a_question_to_the_model_is_asked_again_by_the_other,
    an_answer_of_the_model_that_was_not_journaled_is_asked_for_by_the_other,
    a_journaled_plan_gets_its_card_from_the_other,
    a_review_waits_on_when_one_dies_after_the_other,
    a_journaled_reminder_is_sent_by_the_other,
    an_accepted_ok_is_taken_over,
    a_decision_that_no_worker_read_is_taken_over,
    a_decision_that_was_read_is_taken_over,
    a_tap_whose_answer_was_lost_has_decided,
    a_write_that_was_not_sent_is_sent_by_the_other,
    a_sent_write_is_asked_about_by_the_other,
    a_write_whose_result_was_lost_is_asked_about_by_the_other,
    a_journaled_result_is_used_by_the_other,
    a_journaled_answer_is_posted_by_the_other,
}

/// Two processes, and a person before them.
async fn two(on: On) -> Option<(Fleet, Handshake)> {
    let (fleet, world) = Fleet::open(on, SHORT, &[&[], &[]], &[], reporter).await?;
    Some((fleet, Handshake::within(world)))
}

/// The line that a run leaves behind.
fn told(row: &str, on: On, since: Instant, rest: &str) {
    println!(
        "{row} {}: taken over in {:.1} s, 1 card, {rest}",
        on.name(),
        since.elapsed().as_secs_f32()
    );
}

const WHOLE: &str = "1 continuation, 1 write, 1 answer";

/// Somebody dies at `point` over the request: the card comes, and all goes on.
async fn over_the_request(on: On, row: &str, point: &str) {
    let Some((mut fleet, mut hand)) = two(on).await else { return };
    fleet.arm(point);
    assert_eq!(hand.ask().await, Some(200), "the other has taken it");
    let (_, died) = fleet.one_dies().await;
    hand.card().await;
    told(row, on, died, WHOLE);
    hand.carried_out().await;
}

/// Somebody dies at `point` after the OK by word.
async fn over_the_word(on: On, row: &str, point: &str) {
    let Some((mut fleet, mut hand)) = two(on).await else { return };
    hand.ask().await;
    let card = hand.card().await;
    fleet.arm(point);
    assert_eq!(hand.say_ok(&card).await, Some(200));
    let (_, died) = fleet.one_dies().await;
    hand.world.hears(hand.chat, crate::kills::kit::ANSWER).await;
    told(row, on, died, WHOLE);
    hand.ends_whole().await;
}

/// Somebody dies at `point` after the OK by button.
async fn over_the_tap(on: On, row: &str, point: &str) {
    let Some((mut fleet, mut hand)) = two(on).await else { return };
    hand.ask().await;
    let card = hand.card().await;
    fleet.arm(point);
    hand.press(&card, "approve").await;
    let (_, died) = fleet.one_dies().await;
    hand.world.hears(hand.chat, crate::kills::kit::ANSWER).await;
    told(row, on, died, WHOLE);
    hand.ends_whole().await;
}

/// Somebody dies at `point` with a write call on its way: the other asks, and does not run it.
async fn over_a_sent_write(on: On, row: &str, point: &str) {
    let Some((mut fleet, mut hand)) = two(on).await else { return };
    hand.ask().await;
    let card = hand.card().await;
    fleet.arm(point);
    hand.press(&card, "approve").await;
    let (_, died) = fleet.one_dies().await;
    let written = hand.world.file("report.md");
    let asked = hand.lost_call(None).await;
    told(row, on, died, "1 continuation, 1 question about the write, 1 answer");
    assert_eq!(hand.world.file("report.md"), written, "it is not run without a person's word");
    hand.press(&asked, "reject").await;
    let turn = hand.ended(2).await;
    assert_eq!(hand.executed(&turn).await, Vec::<serde_json::Value>::new());
    hand.same_when_pushed_again().await;
}

/// F-K0: one process dies with half of the request read; pushed again it is the other's.
async fn a_death_with_half_a_request_is_nobodys_loss(on: On) {
    let Some((mut fleet, mut hand)) = two(on).await else { return };
    let event = hand.words(TASK, None).await;
    let base = fleet.process(0).base.clone();
    let _connection = hand.push_half(&event, &base).await;
    let died = Instant::now();
    fleet.kill(0);
    assert!(hand.world.api.turns().await.is_empty());
    assert_eq!(hand.push(&event).await.unwrap().0, 200);
    hand.card().await;
    told("F-K0", on, died, WHOLE);
    hand.carried_out().await;
}

/// F-K1, F-P1: one process dies with the event in hand; the other has it too.
async fn a_death_before_the_commit_is_nobodys_loss(on: On) {
    over_the_request(on, "F-K1", "verified").await;
}

/// F-K2: committed by the one that died, a duplicate for the other.
async fn a_death_after_the_commit_is_nobodys_loss(on: On) {
    over_the_request(on, "F-K2", "accepted").await;
}

/// F-K3: given to its lane, and not begun.
async fn a_queued_request_is_taken_over(on: On) {
    over_the_request(on, "F-K3", "triaged").await;
}

/// F-K4: leased, and the model not asked.
async fn a_begun_turn_is_taken_over(on: On) {
    over_the_request(on, "F-K4", "turn_begun").await;
}

/// F-K5: killed while the model thinks; half an answer is never posted.
async fn a_question_to_the_model_is_asked_again_by_the_other(on: On) {
    let Some((mut fleet, mut hand)) = two(on).await else { return };
    let gate = Gate::new();
    let held = Step::Gated(gate.clone(), Box::new(Step::Message(say("这句话没有人听到"), None)));
    hand.world.model.script(TASK, Script::new().then(held));
    hand.ask().await;
    gate.reached().await;
    let worker = fleet.worker().await;
    let died = Instant::now();
    fleet.kill(worker);
    gate.open();
    hand.card().await;
    told("F-K5", on, died, WHOLE);
    assert_eq!(hand.world.count(hand.chat, "没有人听到"), 0);
    hand.carried_out().await;
}

/// F-K6: answered by the model, and not journaled.
async fn an_answer_of_the_model_that_was_not_journaled_is_asked_for_by_the_other(on: On) {
    over_the_request(on, "F-K6", "model_answered").await;
}

/// F-K7, F-K8: plan and review journaled, the card not posted.
async fn a_journaled_plan_gets_its_card_from_the_other(on: On) {
    over_the_request(on, "F-K7", "gate_journaled").await;
}

/// F-K9: the card posted, and not noted.
async fn a_posted_card_is_not_posted_by_the_other(on: On) {
    over_the_request(on, "F-K9", "card_posted").await;
}

/// F-K9: the mark on the request made, and not noted.
async fn a_mark_on_the_request_is_taken_over(on: On) {
    over_the_request(on, "F-K9 (mark)", "posted").await;
}

/// F-K10: a review waits through the death of both, one after the other, and keeps its time.
async fn a_review_waits_on_when_one_dies_after_the_other(on: On) {
    let Some((mut fleet, mut hand)) = two(on).await else { return };
    hand.ask().await;
    hand.card().await;
    let before = hand.world.api.review_in(hand.chat).await;
    let died = Instant::now();
    for number in [0, 1] {
        fleet.kill(number);
        fleet.start(number).await;
    }
    assert_eq!(hand.world.api.review_in(hand.chat).await, before, "neither lost nor extended");
    told("F-K10", on, died, WHOLE);
    hand.carried_out().await;
}

/// Half of the time is over, and whoever journals the reminder dies before it is sent: the other sends it, and nobody sends a second one.
async fn a_journaled_reminder_is_sent_by_the_other(on: On) {
    let Some((mut fleet, mut hand)) = two(on).await else { return };
    hand.ask().await;
    hand.card().await;
    // The platform has told that the card arrived.
    quiet(&hand.world).await;
    fleet.arm("reminder_journaled");
    half_the_time_passes(&hand.world).await;
    let (number, died) = fleet.one_dies().await;
    hand.world.hears(hand.chat, "还在等待").await;
    fleet.start(number).await;
    quiet(&hand.world).await;
    assert_eq!(hand.world.count(hand.chat, "还在等待"), 1);
    told("a reminder", on, died, WHOLE);
    hand.carried_out().await;
}

/// F-K11: an OK that was committed.
async fn an_accepted_ok_is_taken_over(on: On) {
    over_the_word(on, "F-K11", "accepted").await;
}

/// F-K12: a decision that is written, and that nobody has read.
async fn a_decision_that_no_worker_read_is_taken_over(on: On) {
    over_the_word(on, "F-K12", "triaged").await;
}

/// F-K12: a decision that was read, and whose step was not journaled.
async fn a_decision_that_was_read_is_taken_over(on: On) {
    over_the_word(on, "F-K12 (read)", "decision_read").await;
}

/// F-K12: a button's decision whose answer was lost.
async fn a_tap_whose_answer_was_lost_has_decided(on: On) {
    over_the_tap(on, "F-K12 (tap)", "decision_written").await;
}

/// F-K13: `intent` without `sent`: it is sent without asking anybody.
async fn a_write_that_was_not_sent_is_sent_by_the_other(on: On) {
    over_the_tap(on, "F-K13", "action_unsent").await;
}

/// F-K14: sent, and nobody knows whether it ran.
async fn a_sent_write_is_asked_about_by_the_other(on: On) {
    over_a_sent_write(on, "F-K14", "action_sent").await;
}

/// F-K15: it ran, and its result was lost.
async fn a_write_whose_result_was_lost_is_asked_about_by_the_other(on: On) {
    over_a_sent_write(on, "F-K15", "action_ran").await;
}

/// F-K16: its result is journaled, and used.
async fn a_journaled_result_is_used_by_the_other(on: On) {
    over_the_tap(on, "F-K16", "action_journaled").await;
}

/// F-K17: the answer journaled, and not posted.
async fn a_journaled_answer_is_posted_by_the_other(on: On) {
    over_the_word(on, "F-K17", "finish_journaled").await;
}

/// F-K18: the answer posted, and not noted.
async fn a_posted_answer_is_not_posted_by_the_other(on: On) {
    over_the_word(on, "F-K18", "answer_posted").await;
}

/// F-K18: the first part of a long answer is in the chat, and not noted; every part is there once.
async fn the_parts_of_an_answer_are_gone_on_with_by_the_other(on: On) {
    let answer = |_: &serde_json::Value| say(&report());
    let Some((mut fleet, world)) = Fleet::open(on, SHORT, &[&[], &[]], &[], answer).await else {
        return;
    };
    fleet.arm("part_posted");
    world.say(on.user("u1"), on.direct("long"), "写一份长报告", DIRECT).await;
    let (_, died) = fleet.one_dies().await;
    let found = all_sections(&world).await;
    assert_eq!(found.concat(), (1..=12).collect::<Vec<_>>());
    println!(
        "F-K18 (parts) {}: gone on with within {:.1} s, each once",
        on.name(),
        died.elapsed().as_secs_f32()
    );
    world.end().await;
}
