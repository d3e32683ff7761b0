//! Too early and too late: words from before the card, and after its time. The clock is the test's.

use std::time::Duration;

use serde_json::json;

use crate::support::api::eventually;
use crate::support::fake_model::{call, say};
use crate::support::people::{NOT_STORED, moment, reply};
use crate::support::platform::{On, on_both, on_either};
use crate::support::quiet::hold;
use crate::support::scripts::{in_order, reporter, writes};
use crate::support::world::{DIRECT, GROUP, To, World};

on_both! {
    an_ok_after_the_time_is_told_so_and_runs_nothing,
    a_day_later_an_ok_is_a_message_like_any_other,
}

on_either! {
    an_ok_from_before_the_card_does_not_approve,
    the_last_millisecond_counts_and_the_next_does_not,
    a_press_that_is_decided_too_late_for_its_answer_counts,
    the_time_starts_with_the_delivery,
    a_row_that_nobody_answers_lapses_and_the_turn_goes_on,
    a_question_that_nobody_answers_ends_the_task,
}

const MINUTE: Duration = Duration::from_secs(60);

/// F-H10, B2: an OK from before the card is no OK to it, whether it arrives before the card or after it.
async fn an_ok_from_before_the_card_does_not_approve(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::frozen_on(on, &[], reporter).await;
    world.chat.hold("reply");
    world.say(u, c, "整理笔记", GROUP).await;
    world.api.turn_in(c, "paused").await;
    // The plan waits, but nobody can have read its card.
    world.say(u, c, "OK", GROUP).await;
    world.caught_up().await;
    assert_eq!(world.continuations(), 0);
    world.chat.release("reply");
    let card = world.plan_card(c).await;
    world.clock.advance(Duration::from_secs(5));
    // At the very moment of the card, and a millisecond before it; delivered late.
    world.say_at(card.at, u, c, "OK", GROUP).await;
    world
        .say_at(countersign_agent::domain::Millis(card.at.0 - 1), u, c, "OK", GROUP)
        .await;
    world.caught_up().await;
    assert_eq!(world.review_of(&card).await["status"], "pending");
    assert_eq!((world.continuations(), world.turns_in(c).await.len()), (0, 1));
    world
        .say_at(countersign_agent::domain::Millis(card.at.0 + 1), u, c, "OK", GROUP)
        .await;
    world.hears(c, "全部完成").await;
    world.end().await;
}

/// F-P1: a press that is not decided while the platform waits is answered as not stored. It is decided all the same, and shows on the card.
async fn a_press_that_is_decided_too_late_for_its_answer_counts(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let mut world = World::without_gateway(on, &[], reporter).await;
    world.boot_with(|timings| timings.click = Duration::ZERO).await;
    world.say(u, c, "整理笔记", GROUP).await;
    let card = world.plan_card(c).await;
    let press = world.tenant.tap(u, c, &card.id, &card.button("approve").unwrap(), None);
    let sealed = world.tenant.seal(&press);
    let held = hold(&world).await;
    let mut posting = Box::pin(world.tenant.post(&sealed));
    // Over a socket the platform waits long for an acknowledgement that does not come. The database is free again before.
    let answered = tokio::time::timeout(Duration::from_secs(1), &mut posting).await;
    held.release().await;
    let answer = if let Ok(answer) = answered {
        drop(posting);
        answer
    } else {
        posting.await
    };
    let (status, _) = answer.unwrap();
    assert!(NOT_STORED.contains(&status), "{status}");
    world.hears(c, "全部完成").await;
    world.repainted(&card, "已确认").await;
    assert_eq!((world.continuations(), world.turns_in(c).await.len()), (1, 1));
    world.end().await;
}

/// F-H6, B5, S0-29: after its time the plan is over: said once, on the card too; a late OK is told so and is nothing else;
/// asking again is a new task.
async fn an_ok_after_the_time_is_told_so_and_runs_nothing(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::frozen_on(on, &[], reporter).await;
    world.say(u, c, "整理笔记", GROUP).await;
    let card = world.plan_card(c).await;
    world.clock.advance(61 * MINUTE);
    let turn = world.api.turn_in(c, "cancelled").await;
    assert_eq!(turn["reason"], "expired");
    world.hears(c, "等待超时").await;
    let lapsed = world.repainted(&card, "已过期").await;
    assert!(
        lapsed.button("approve").is_none() && lapsed.button("revise").is_none(),
        "{}",
        lapsed.words()
    );
    let late = world.say(u, c, "OK", GROUP).await;
    let told = world.word_back(c, &late).await;
    assert!(told.words().contains("已经过期"), "{}", told.words());
    world.tap(u, c, &card, "approve", None).await.told("已经过期").await;
    if on == On::Lark {
        // In a thread such words point at no card: there they are a task of their own.
        world.clock.advance(Duration::from_secs(5));
        let late = world.say(u, c, "先备份", reply(&card.id)).await;
        let told = world.word_back(c, &late).await;
        assert!(told.words().contains("已经过期"), "{}", told.words());
    }
    world.caught_up().await;
    assert_eq!(
        (world.turns_in(c).await.len(), world.continuations(), world.file("report.md")),
        (1, 0, None)
    );
    assert_eq!(world.count(c, "等待超时"), 1, "told once");
    world.clock.advance(MINUTE);
    world.say(u, c, "请重新整理笔记", GROUP).await;
    let again = world.card_after(c, &card).await;
    world.clock.advance(MINUTE);
    world.tap(u, c, &again, "approve", None).await;
    world.hears(c, "全部完成").await;
    assert_eq!(world.turns_in(c).await.len(), 2);
    world.end().await;
}

/// F-H5: in its last millisecond a plan can be approved, one later it cannot; the words match what happens.
async fn the_last_millisecond_counts_and_the_next_does_not(on: On) {
    let u = on.user("u1");
    let world = World::frozen_on(on, &[], reporter).await;
    for (chat, after, words) in [(on.chat("in"), 0, "已确认"), (on.chat("out"), 1, "已经过期")] {
        world.say(u, chat, "整理笔记", GROUP).await;
        let card = world.plan_card(chat).await;
        let left = moment(&world.review_of(&card).await["expires_at"]) - world.clock.now().0;
        world.clock.advance(Duration::from_millis(u64::try_from(left - 1 + after).unwrap()));
        let heard = world.tap(u, chat, &card, "approve", None).await;
        if after == 0 {
            heard.done(words);
        } else {
            heard.told(words).await;
        }
        world.hears(chat, if after == 0 { "全部完成" } else { "等待超时" }).await;
    }
    assert_eq!(world.continuations(), 1);
    world.end().await;
}

/// F-C1: the time to answer starts when the card is there, not when the plan was made.
async fn the_time_starts_with_the_delivery(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::frozen_on(on, &[], reporter).await;
    world.chat.hold("reply");
    world.say(u, c, "整理笔记", GROUP).await;
    world.api.turn_in(c, "paused").await;
    world
        .seen("the card on its way", |seen| (seen.count("reply") > 0).then_some(()))
        .await;
    world.clock.advance(Duration::from_secs(20));
    world.chat.release("reply");
    let card = world.plan_card(c).await;
    let review = world.review_of(&card).await;
    assert_eq!(moment(&review["expires_at"]) - moment(&review["created_at"]), 60 * 60_000 + 20_000);
    world.end().await;
}

/// S4-15, F-H20: of two calls one is approved, the other lapses: the turn goes on once, the lapsed one was not run, the model knows.
async fn a_row_that_nobody_answers_lapses_and_the_turn_goes_on(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::frozen_on(on, &[], in_order(vec![writes(&["a.md", "b.md"]), say("都处理了")])).await;
    world.say(u, c, "写两个文件", GROUP).await;
    let card = world.card_titled(c, "操作确认").await;
    world.clock.advance(MINUTE);
    world.tap(u, c, &card, "approve", None).await.done("已确认");
    assert_eq!(world.file("a.md"), None, "the calls wait for each other");
    world.clock.advance(61 * MINUTE);
    world.hears(c, "都处理了").await;
    assert!(world.file("a.md").is_some() && world.file("b.md").is_none());
    let turn = world.api.turn_in(c, "completed").await;
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
    world.tap(u, c, &card, "reject", None).await.told("过").await;
    assert_eq!(world.model.seen_of("写两个文件").len(), 2);
    world.end().await;
}

/// design: a question that nobody answers ends the task; the late answer is told so.
async fn a_question_that_nobody_answers_ends_the_task(on: On) {
    let u = on.user("u1");
    let asks = call([("request_user", json!({ "message": "要哪个文件？" }))]);
    let world = World::frozen_on(on, &[], in_order(vec![asks, say("不该到这里")])).await;
    world.say(u, on.direct("p1"), "整理", DIRECT).await;
    let card = world.card_titled(on.direct("p1"), "需要你的回答").await;
    world.clock.advance(61 * MINUTE);
    assert_eq!(world.api.turn_in(on.direct("p1"), "cancelled").await["reason"], "expired");
    world.repainted(&card, "已过期").await;
    world.say(u, on.direct("p1"), "notes.md", reply_direct(&card.id)).await;
    world.hears(on.direct("p1"), "已经过期").await;
    world.caught_up().await;
    assert_eq!(
        (world.turns_in(on.direct("p1")).await.len(), world.model.seen_of("整理").len()),
        (1, 1)
    );
    world.end().await;
}

fn reply_direct(message: &str) -> To<'_> {
    To {
        reply_to: Some(message),
        ..DIRECT
    }
}

/// design: twenty-four hours later an OK is about nothing any more: it is a message like any other.
async fn a_day_later_an_ok_is_a_message_like_any_other(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::frozen_on(on, &[], reporter).await;
    world.say(u, c, "整理笔记", GROUP).await;
    world.plan_card(c).await;
    world.clock.advance(61 * MINUTE);
    world.api.turn_in(c, "cancelled").await;
    world.clock.advance(25 * 60 * MINUTE);
    // On Slack it would be late in its old thread for ever; said anew it is about nothing.
    let anew = To {
        thread: (on == On::Slack).then_some("anew"),
        ..GROUP
    };
    world.say(u, c, "OK", anew).await;
    eventually("a task of its own", || async { (world.turns_in(c).await.len() == 2).then_some(()) }).await;
    assert_eq!(world.turns_in(c).await[1]["text"], "OK");
    world.plan_card(c).await;
    world.end().await;
}
