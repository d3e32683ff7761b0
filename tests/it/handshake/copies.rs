//! The same thing many times, at once or later, and ids that look alike: each is done once and kept apart.

use std::time::Duration;

use futures_util::future::{join, join_all};
use serde_json::json;

use crate::support::api::eventually;
use crate::support::fake_model::say;
use crate::support::heard::Heard;
use crate::support::people::{reply, rows};
use crate::support::platform::{On, on_both, on_either};
use crate::support::scripts::{in_order, reporter, writes};
use crate::support::world::{GROUP, World};

on_both! {
    fifty_parallel_taps_make_one_continuation,
    ten_parallel_copies_of_a_message_are_one_turn,
    redelivery_for_hours_and_after_a_restart_does_nothing,
}

on_either! {
    text_and_button_at_once_make_one_continuation,
    an_ok_and_a_change_at_once_are_never_both_taken,
    the_last_two_calls_approved_at_once_resume_the_turn_once,
}

/// F-H1, F-P1: fifty taps at once: all answered with a toast, one decision, one continuation, one answer.
async fn fifty_parallel_taps_make_one_continuation(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::unhurried_on(on, &[], reporter).await;
    world.say(u, c, "整理笔记", GROUP).await;
    let card = world.plan_card(c).await;
    let heard = join_all((0..50).map(|_| world.tap(u, c, &card, "approve", None))).await;
    if on == On::Lark {
        let toasts: Vec<String> = heard.iter().filter_map(Heard::text).collect();
        assert_eq!(toasts.iter().filter(|toast| toast.starts_with("已确认")).count(), 1, "{toasts:?}");
        let late = toasts.iter().filter(|toast| toast.contains("已经处理过了：已确认"));
        assert_eq!(late.count(), 49, "{toasts:?}");
    }
    world.hears(c, "全部完成").await;
    world.caught_up().await;
    assert_eq!(
        (world.continuations(), world.count(c, "全部完成"), world.turns_in(c).await.len()),
        (1, 1, 1)
    );
    let turn = world.api.turn_in(c, "completed").await;
    let resumed = world
        .api
        .event_types(&turn)
        .await
        .iter()
        .filter(|kind| *kind == "turn_resumed")
        .count();
    assert_eq!(resumed, 1);
    world.end().await;
}

/// F-S1, F-S2, F-S7, F-H4: ten copies of one event at once are one turn; so is the same message under another event id.
async fn ten_parallel_copies_of_a_message_are_one_turn(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], reporter).await;
    let event = world.message(u, c, "整理笔记", GROUP);
    join_all((0..10).map(|_| world.push(&event))).await;
    let mut renamed = event.clone();
    match on {
        On::Lark => renamed.body["header"]["event_id"] = json!("another-id"),
        On::Slack => renamed.body["event_id"] = json!("EvANOTHER"),
    }
    world.push(&renamed).await;
    world.plan_card(c).await;
    world.caught_up().await;
    assert_eq!((world.turns_in(c).await.len(), world.titled(c, "计划确认")), (1, 1));
    assert_eq!(world.model.seen_of("整理笔记").len(), 1);
    world.end().await;
}

/// B3, F-S1, F-S6: what the platform sends again after 15 s, 5 min, 1 h and 6 h, and after a restart, is known: request, OK and click.
async fn redelivery_for_hours_and_after_a_restart_does_nothing(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let mut world = World::frozen_on(on, &[("CHAT__PLAN_REVIEW_PENDING_TTL_MINUTES", "1440")], reporter).await;
    let first = world.message(u, c, "整理笔记", GROUP);
    world.push(&first).await;
    let card = world.plan_card(c).await;
    world.clock.advance(Duration::from_secs(15));
    world.push(&first).await;
    let change = world.message(u, c, "写到 report-v2.md", GROUP);
    world.push(&change).await;
    let card = world.card_after(c, &card).await;
    world.clock.advance(Duration::from_secs(1));
    let tap = world.tenant.tap(u, c, &card.id, &card.button("approve").unwrap(), None);
    let heard = world.push(&tap).await["toast"].clone();
    assert_eq!(heard.is_object(), on == On::Lark);
    world.hears(c, "全部完成").await;
    for wait in [0, 5 * 60, 60 * 60, 6 * 60 * 60 - 60] {
        world.clock.advance(Duration::from_secs(wait));
        world.restart(&[]).await;
        world.push(&first).await;
        world.push(&change).await;
        assert_eq!(world.push(&tap).await["toast"], heard, "the same click hears the same");
        world.caught_up().await;
        assert_eq!(
            (world.turns_in(c).await.len(), world.continuations(), world.titled(c, "计划确认")),
            (1, 2, 2)
        );
        assert_eq!(world.count(c, "全部完成"), 1);
    }
    world.end().await;
}

/// F-H2: an OK by text and one by button at once: one settles it, neither becomes a task.
async fn text_and_button_at_once_make_one_continuation(on: On) {
    let u = on.user("u1");
    let world = World::start_on(on, &[], reporter).await;
    for round in 0..10 {
        let chat = on.chat(&format!("round{round}"));
        world.say(u, chat, "整理笔记", GROUP).await;
        let card = world.plan_card(chat).await;
        let (_, heard) = join(
            world.say(u, chat, "OK", reply(&card.id)),
            world.tap(u, chat, &card, "approve", None),
        )
        .await;
        if let Some(text) = heard.text() {
            assert!(text.contains("已确认"), "{text}");
        }
        world.hears(chat, "全部完成").await;
    }
    world.caught_up().await;
    assert_eq!(
        (
            world.continuations(),
            world.api.turns().await.iter().filter(|turn| turn["channel"] == on.name()).count()
        ),
        (10, 10)
    );
    world.end().await;
}

/// F-H3: an OK and a change at once: the first decides; the other never changes what was decided.
async fn an_ok_and_a_change_at_once_are_never_both_taken(on: On) {
    let u = on.user("u1");
    let world = World::start_on(on, &[], reporter).await;
    for round in 0..6 {
        let chat = on.chat(&format!("round{round}"));
        world.say(u, chat, "整理笔记", GROUP).await;
        let card = world.plan_card(chat).await;
        let (ok, change) = (reply(&card.id), reply(&card.id));
        if round % 2 == 0 {
            join(world.say(u, chat, "OK", ok), world.say(u, chat, "写到 report-v2.md", change)).await;
        } else {
            join(world.say(u, chat, "写到 report-v2.md", change), world.say(u, chat, "OK", ok)).await;
        }
        world.caught_up().await;
        let review = world.review_of(&card).await;
        match review["status"].as_str().unwrap() {
            // The change was handed to the running turn, or is a task of its own if that was over already.
            "approved" => {
                world
                    .seen("a word about the change", |seen| {
                        let told = |words: &str| seen.in_chat(chat).any(|message| message.words().contains(words));
                        (told("已转给") || seen.in_chat(chat).filter(|message| message.title() == Some("计划确认")).count() == 2)
                            .then_some(())
                    })
                    .await;
            }
            // The OK was for the old card: it approves nothing.
            "revised" => {
                let second = world.card_after(chat, &card).await;
                assert_eq!(world.review_of(&second).await["status"], "pending");
            }
            other => panic!("{other}"),
        }
    }
    eventually("no turn runs any more", || async {
        world
            .api
            .turns()
            .await
            .iter()
            .all(|turn| turn["status"] != "running" && turn["status"] != "queued")
            .then_some(())
    })
    .await;
    world.end().await;
}

/// S4-7, F-H19: the last two calls approved at once let the turn go on once.
async fn the_last_two_calls_approved_at_once_resume_the_turn_once(on: On) {
    let u = on.user("u1");
    let world = World::unhurried_on(on, &[], in_order(vec![writes(&["a.md", "b.md"]), say("都写好了")])).await;
    for round in 0..5 {
        let chat = on.chat(&format!("round{round}"));
        world.say(u, chat, "写两个文件", GROUP).await;
        let card = world.card_titled(chat, "操作确认").await;
        let values = rows(&card);
        let taps = values.iter().map(|value| world.press(u, chat, &card, value, None));
        for heard in join_all(taps).await {
            heard.done("已确认");
        }
        world.hears(chat, "都写好了").await;
        let turn = world.api.turn_in(chat, "completed").await;
        let types = world.api.event_types(&turn).await;
        assert_eq!(types.iter().filter(|kind| *kind == "turn_resumed").count(), 1, "{types:?}");
        assert_eq!(types.iter().filter(|kind| *kind == "tool_finished").count(), 2, "{types:?}");
    }
    assert_eq!(world.model.seen_of("写两个文件").len(), 10);
    world.end().await;
}
