//! Too early and too late: words from before the card, and after its time. The clock is the test's.

use std::time::Duration;

use serde_json::json;

use crate::support::api::eventually;
use crate::support::fake_model::{call, say};
use crate::support::people::{moment, reply};
use crate::support::scripts::{in_order, reporter, writes};
use crate::support::world::{DIRECT, GROUP, World};

const C: &str = "oc_c1";
const U: &str = "ou_u1";
const MINUTE: Duration = Duration::from_secs(60);

/// H10, B2: an OK from before the card is no OK to it, whether it arrives before the card or after it.
#[tokio::test]
async fn an_ok_from_before_the_card_does_not_approve() {
    let world = World::frozen(&[], reporter).await;
    world.lark.hold("reply");
    world.say(U, C, "整理笔记", GROUP).await;
    world.api.turn_in(C, "paused").await;
    // The plan waits, but nobody can have read its card.
    world.say(U, C, "OK", GROUP).await;
    world.quiet().await;
    assert_eq!(world.continuations(), 0);
    world.lark.release("reply");
    let card = world.plan_card(C).await;
    world.clock.advance(Duration::from_secs(5));
    // At the very moment of the card, and a millisecond before it; delivered late.
    world.say_at(card.at, U, C, "OK", GROUP).await;
    world.say_at(countersign::domain::Millis(card.at.0 - 1), U, C, "OK", GROUP).await;
    world.quiet().await;
    assert_eq!(world.review_of(&card).await["status"], "pending");
    assert_eq!((world.continuations(), world.turns_in(C).await.len()), (0, 1));
    world.say_at(countersign::domain::Millis(card.at.0 + 1), U, C, "OK", GROUP).await;
    world.hears(C, "全部完成").await;
    world.end().await;
}

/// H6, B5, S0-29: after its time the plan is over: said once, on the card too; a late OK is told so and is nothing else;
/// asking again is a new task.
#[tokio::test]
async fn an_ok_after_the_time_is_told_so_and_runs_nothing() {
    let world = World::frozen(&[], reporter).await;
    world.say(U, C, "整理笔记", GROUP).await;
    let card = world.plan_card(C).await;
    world.clock.advance(61 * MINUTE);
    let turn = world.api.turn_in(C, "cancelled").await;
    assert_eq!(turn["reason"], "expired");
    world.hears(C, "等待超时").await;
    let lapsed = world.repainted(&card, "已过期").await;
    assert!(
        lapsed.button("approve").is_none() && lapsed.button("revise").is_none(),
        "{}",
        lapsed.words()
    );
    let late = world.say(U, C, "OK", GROUP).await;
    let told = world
        .seen("a word back", |lark| {
            lark.messages.iter().find(|m| m.reply_to.as_ref() == Some(&late)).cloned()
        })
        .await;
    assert!(told.words().contains("已经过期"), "{}", told.words());
    let toast = world.tap(U, C, &card, "approve", None).await;
    assert!(toast.contains("已经过期"), "{toast}");
    let late = world.say(U, C, "先备份", reply(&card.id)).await;
    let told = world
        .seen("a word back", |lark| {
            lark.messages.iter().find(|m| m.reply_to.as_ref() == Some(&late)).cloned()
        })
        .await;
    assert!(told.words().contains("已经过期"), "{}", told.words());
    world.quiet().await;
    assert_eq!(
        (world.turns_in(C).await.len(), world.continuations(), world.file("report.md")),
        (1, 0, None)
    );
    assert_eq!(world.count(C, "等待超时"), 1, "told once");
    world.clock.advance(MINUTE);
    world.say(U, C, "请重新整理笔记", GROUP).await;
    let again = world.card_after(C, &card).await;
    world.clock.advance(MINUTE);
    world.tap(U, C, &again, "approve", None).await;
    world.hears(C, "全部完成").await;
    assert_eq!(world.turns_in(C).await.len(), 2);
    world.end().await;
}

/// H5: in its last millisecond a plan can be approved, one later it cannot; the words match what happens.
#[tokio::test]
async fn the_last_millisecond_counts_and_the_next_does_not() {
    let world = World::frozen(&[], reporter).await;
    for (chat, after, words) in [("oc_in", 0, "已确认"), ("oc_out", 1, "已经过期")] {
        world.say(U, chat, "整理笔记", GROUP).await;
        let card = world.plan_card(chat).await;
        let left = moment(&world.review_of(&card).await["expires_at"]) - world.clock.now().0;
        world.clock.advance(Duration::from_millis(u64::try_from(left - 1 + after).unwrap()));
        let toast = world.tap(U, chat, &card, "approve", None).await;
        assert!(toast.contains(words), "{toast}");
        world.hears(chat, if after == 0 { "全部完成" } else { "等待超时" }).await;
    }
    assert_eq!(world.continuations(), 1);
    world.end().await;
}

/// C1: the time to answer starts when the card is there, not when the plan was made.
#[tokio::test]
async fn the_time_starts_with_the_delivery() {
    let world = World::frozen(&[], reporter).await;
    world.lark.hold("reply");
    world.say(U, C, "整理笔记", GROUP).await;
    world.api.turn_in(C, "paused").await;
    world
        .seen("the card on its way", |lark| (lark.count("reply") > 0).then_some(()))
        .await;
    world.clock.advance(Duration::from_secs(20));
    world.lark.release("reply");
    let card = world.plan_card(C).await;
    let review = world.review_of(&card).await;
    assert_eq!(moment(&review["expires_at"]) - moment(&review["created_at"]), 60 * 60_000 + 20_000);
    world.end().await;
}

/// S4-15, H20: of two calls one is approved, the other lapses: the turn goes on once, the lapsed one was not run, the model knows.
#[tokio::test]
async fn a_row_that_nobody_answers_lapses_and_the_turn_goes_on() {
    let world = World::frozen(&[], in_order(vec![writes(&["a.md", "b.md"]), say("都处理了")])).await;
    world.say(U, C, "写两个文件", GROUP).await;
    let card = world.card_titled(C, "操作确认").await;
    world.clock.advance(MINUTE);
    let toast = world.tap(U, C, &card, "approve", None).await;
    assert!(toast.contains("已确认"), "{toast}");
    assert_eq!(world.file("a.md"), None, "the calls wait for each other");
    world.clock.advance(61 * MINUTE);
    world.hears(C, "都处理了").await;
    assert!(world.file("a.md").is_some() && world.file("b.md").is_none());
    let turn = world.api.turn_in(C, "completed").await;
    let answers: Vec<String> = world
        .api
        .messages(&turn)
        .await
        .iter()
        .filter(|m| m["role"] == "tool")
        .map(|m| m["content"].as_str().unwrap().to_owned())
        .collect();
    assert!(
        answers.len() == 2 && !answers[0].contains("expired") && answers[1].contains("expired"),
        "{answers:?}"
    );
    world.repainted(&card, "已过期").await;
    let toast = world.tap(U, C, &card, "reject", None).await;
    assert!(toast.contains("过"), "{toast}");
    assert_eq!(world.model.seen_of("写两个文件").len(), 2);
    world.end().await;
}

/// design: a question that nobody answers ends the task; the late answer is told so.
#[tokio::test]
async fn a_question_that_nobody_answers_ends_the_task() {
    let asks = call([("request_user", json!({ "message": "要哪个文件？" }))]);
    let world = World::frozen(&[], in_order(vec![asks, say("不该到这里")])).await;
    world.say(U, "oc_p1", "整理", DIRECT).await;
    let card = world.card_titled("oc_p1", "需要你的回答").await;
    world.clock.advance(61 * MINUTE);
    assert_eq!(world.api.turn_in("oc_p1", "cancelled").await["reason"], "expired");
    world.repainted(&card, "已过期").await;
    world.say(U, "oc_p1", "notes.md", reply_direct(&card.id)).await;
    world.hears("oc_p1", "已经过期").await;
    world.quiet().await;
    assert_eq!((world.turns_in("oc_p1").await.len(), world.model.seen_of("整理").len()), (1, 1));
    world.end().await;
}

fn reply_direct(message: &str) -> crate::support::world::To<'_> {
    crate::support::world::To {
        reply_to: Some(message),
        ..DIRECT
    }
}

/// design: twenty-four hours later an OK is about nothing any more: it is a message like any other.
#[tokio::test]
async fn a_day_later_an_ok_is_a_message_like_any_other() {
    let world = World::frozen(&[], reporter).await;
    world.say(U, C, "整理笔记", GROUP).await;
    world.plan_card(C).await;
    world.clock.advance(61 * MINUTE);
    world.api.turn_in(C, "cancelled").await;
    world.clock.advance(25 * 60 * MINUTE);
    world.say(U, C, "OK", GROUP).await;
    eventually("a task of its own", || async { (world.turns_in(C).await.len() == 2).then_some(()) }).await;
    assert_eq!(world.turns_in(C).await[1]["text"], "OK");
    world.plan_card(C).await;
    world.end().await;
}
