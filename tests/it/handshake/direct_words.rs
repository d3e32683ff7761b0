//! Words in a direct chat about a card that was escalated to its person.

use std::time::Duration;

use serde_json::json;

use super::escalation::{MINUTE, TASK, copy, direct_of, escalating, unanswered};
use crate::support::api::eventually;
use crate::support::platform::{On, on_both};
use crate::support::scripts::reporter;
use crate::support::world::{DIRECT, GROUP, To};

on_both! {
    words_about_the_plan_on_a_copy_go_to_the_model,
    words_in_the_direct_chat_decide,
    a_reply_to_an_earlier_copy_counts_for_the_same_plan,
}

/// The form on a copy hands changes on; the new plan is nobody's but its approvers'. A question about the plan leaves it escalated.
async fn words_about_the_plan_on_a_copy_go_to_the_model(on: On) {
    let (c, u, chief) = (on.chat("c1"), on.user("u1"), on.user("chief"));
    let world = escalating(on, &[], reporter).await;
    let card = unanswered(&world, c, u).await;
    let first = copy(&world, chief).await;
    let there = direct_of(on, chief);
    world.tap(chief, &there, &first, "revise", Some("这一步会删数据吗？")).await;
    let second = world.card_after(c, &card).await;
    let again = world
        .seen("the copy of the card that takes its place", |seen| {
            seen.in_chat(&there)
                .find(|posted| posted.id != first.id && posted.title().is_some())
                .cloned()
        })
        .await;
    for shown in [&card, &first] {
        world.repainted(shown, "计划未改动").await;
    }
    world.clock.advance(MINUTE);
    world.tap(chief, &there, &again, "revise", Some("写到 report-v2.md")).await;
    let third = world.card_after(c, &second).await;
    for shown in [&second, &again] {
        world.repainted(shown, "已提出修改").await;
    }
    world.tap(chief, c, &third, "approve", None).await.told("没有生效").await;
    world.tap(u, c, &third, "approve", None).await.done("已确认");
    world.hears(c, "全部完成").await;
    world.end().await;
}

/// A reply to the copy, and a listed word in a direct chat where one copy waits, count as on the card. Other words are a task of their own.
async fn words_in_the_direct_chat_decide(on: On) {
    let (u, chief) = (on.user("u1"), on.user("chief"));
    let world = escalating(on, &[], reporter).await;
    let there = direct_of(on, chief);
    for (name, by_reply) in [("reply", true), ("alone", false)] {
        let c = on.chat(name);
        let before = world.chat.snapshot().in_chat(&there).count();
        world.say(u, c, TASK, GROUP).await;
        let card = world.plan_card(c).await;
        world.clock.advance(10 * MINUTE);
        let copy = world.seen("the copy", |seen| seen.in_chat(&there).nth(before).cloned()).await;
        world.caught_up().await;
        world.clock.advance(MINUTE);
        let to = To {
            reply_to: by_reply.then_some(copy.id.as_str()),
            ..DIRECT
        };
        world.say(chief, &there, "OK", to).await;
        world.hears(c, "全部完成").await;
        let review = world.review_of(&card).await;
        assert_eq!(
            (&review["decision"]["by"], &review["decision"]["via"]),
            (&json!(chief), &json!("text"))
        );
        // Slack rations repaints: what is held back waits by the clock of the test.
        eventually("the decision on the copy", || async {
            world.clock.advance(Duration::from_secs(2));
            let shown = world.chat.snapshot();
            let copy = shown.messages.iter().find(|posted| posted.id == copy.id)?;
            copy.words().contains("已确认").then_some(())
        })
        .await;
    }
    world.clock.advance(MINUTE);
    let late = world.say(chief, &there, "OK", DIRECT).await;
    let told = world.word_back(&there, &late).await;
    assert!(told.words().contains("已经处理过了"), "{}", told.words());
    assert_eq!(world.turns_in(&there).await.len(), 0);
    world.end().await;
}

/// A question leaves the plan as it is. A yes in reply to the copy that was asked counts for the copy that took its place; changes make another plan, for
/// which it does not.
async fn a_reply_to_an_earlier_copy_counts_for_the_same_plan(on: On) {
    let (u, chief) = (on.user("u1"), on.user("chief"));
    let there = direct_of(on, chief);
    for (words, counts) in [("这一步会删数据吗？", true), ("写到 report-v2.md", false)] {
        let c = on.chat("c1");
        let world = escalating(on, &[], reporter).await;
        let card = unanswered(&world, c, u).await;
        let first = copy(&world, chief).await;
        world.tap(chief, &there, &first, "revise", Some(words)).await;
        let second = world.card_after(c, &card).await;
        world.caught_up().await;
        world.clock.advance(MINUTE);
        let to = To {
            reply_to: Some(&first.id),
            ..DIRECT
        };
        let said = world.say(chief, &there, "OK", to).await;
        if counts {
            world.hears(c, "全部完成").await;
            assert_eq!(world.review_of(&second).await["decision"]["by"], chief);
        } else {
            let told = world.word_back(&there, &said).await;
            assert!(told.words().contains("已经处理过了"), "{}", told.words());
            assert_eq!(world.review_of(&second).await["status"], "pending");
        }
        world.end().await;
    }
}
