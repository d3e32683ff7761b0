//! The same thing many times, at once or later, and ids that look alike: each is done once and kept apart.

use std::time::Duration;

use futures_util::future::{join, join_all};
use serde_json::{Value, json};

use crate::support::api::eventually;
use crate::support::fake_model::say;
use crate::support::people::reply;
use crate::support::scripts::{in_order, reporter, writes};
use crate::support::world::{GROUP, World};
use countersign::cli::demo::{Posted, Words};

const C: &str = "oc_c1";
const U: &str = "ou_u1";

fn request<'a>(user: &'a str, chat: &'a str) -> Words<'a> {
    Words {
        user,
        chat,
        text: "整理笔记",
        group: true,
        mention: true,
        reply_to: None,
        thread: None,
    }
}

/// H1, P1: fifty taps at once: all answered with a toast, one decision, one continuation, one answer.
#[tokio::test]
async fn fifty_parallel_taps_make_one_continuation() {
    let world = World::start(&[], reporter).await;
    world.say(U, C, "整理笔记", GROUP).await;
    let card = world.plan_card(C).await;
    let toasts = join_all((0..50).map(|_| world.tap(U, C, &card, "approve", None))).await;
    assert_eq!(toasts.iter().filter(|toast| toast.starts_with("已确认")).count(), 1, "{toasts:?}");
    assert_eq!(
        toasts.iter().filter(|toast| toast.contains("已经处理过了：已确认")).count(),
        49,
        "{toasts:?}"
    );
    world.hears(C, "全部完成").await;
    world.quiet().await;
    assert_eq!(
        (world.continuations(), world.count(C, "全部完成"), world.turns_in(C).await.len()),
        (1, 1, 1)
    );
    let turn = world.api.turn_in(C, "completed").await;
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

/// S1, H4: ten copies of one event at once are one turn; so is the same message under another event id.
#[tokio::test]
async fn ten_parallel_copies_of_a_message_are_one_turn() {
    let world = World::start(&[], reporter).await;
    let event = world.tenant.message(&request(U, C));
    world.lark.learn(&event.message_id, C);
    join_all((0..10).map(|_| world.push(&event))).await;
    let mut renamed = event.clone();
    renamed.body["header"]["event_id"] = json!("another-id");
    world.push(&renamed).await;
    world.plan_card(C).await;
    world.quiet().await;
    assert_eq!((world.turns_in(C).await.len(), world.titled(C, "计划确认")), (1, 1));
    assert_eq!(world.model.seen_of("整理笔记").len(), 1);
    world.end().await;
}

/// B3, S1: what the platform sends again after 15 s, 5 min, 1 h and 6 h, and after a restart, is known: request, OK and click.
#[tokio::test]
async fn redelivery_for_hours_and_after_a_restart_does_nothing() {
    let mut world = World::frozen(&[("CHANNELS__LARK__PLAN_REVIEW_PENDING_TTL_MINUTES", "1440")], reporter).await;
    let first = world.tenant.message(&request(U, C));
    world.lark.learn(&first.message_id, C);
    world.push(&first).await;
    let card = world.plan_card(C).await;
    world.clock.advance(Duration::from_secs(15));
    world.push(&first).await;
    let change = world.tenant.message(&Words {
        text: "写到 report-v2.md",
        ..request(U, C)
    });
    world.lark.learn(&change.message_id, C);
    world.push(&change).await;
    let card = world.card_after(C, &card).await;
    world.clock.advance(Duration::from_secs(1));
    let tap = world.tenant.tap(U, C, &card.id, &card.button("approve").unwrap(), None);
    let toast = |answer: Value| answer["toast"]["content"].as_str().unwrap().to_owned();
    let heard = toast(world.push(&tap).await);
    world.hears(C, "全部完成").await;
    for wait in [0, 5 * 60, 60 * 60, 6 * 60 * 60 - 60] {
        world.clock.advance(Duration::from_secs(wait));
        world.restart(&[]).await;
        world.push(&first).await;
        world.push(&change).await;
        assert_eq!(toast(world.push(&tap).await), heard, "the same click hears the same");
        world.quiet().await;
        assert_eq!(
            (world.turns_in(C).await.len(), world.continuations(), world.titled(C, "计划确认")),
            (1, 2, 2)
        );
        assert_eq!(world.count(C, "全部完成"), 1);
    }
    world.end().await;
}

/// H2: an OK by text and one by button at once: one settles it, neither becomes a task.
#[tokio::test]
async fn text_and_button_at_once_make_one_continuation() {
    let world = World::start(&[], reporter).await;
    for round in 0..10 {
        let chat = format!("oc_round{round}");
        world.say(U, &chat, "整理笔记", GROUP).await;
        let card = world.plan_card(&chat).await;
        let (_, toast) = join(
            world.say(U, &chat, "OK", reply(&card.id)),
            world.tap(U, &chat, &card, "approve", None),
        )
        .await;
        assert!(toast.contains("已确认"), "{toast}");
        world.hears(&chat, "全部完成").await;
    }
    world.quiet().await;
    assert_eq!(
        (
            world.continuations(),
            world.api.turns().await.iter().filter(|turn| turn["channel"] == "lark").count()
        ),
        (10, 10)
    );
    world.end().await;
}

/// H3: an OK and a change at once: the first decides; the other never changes what was decided.
#[tokio::test]
async fn an_ok_and_a_change_at_once_are_never_both_taken() {
    let world = World::start(&[], reporter).await;
    for round in 0..6 {
        let chat = format!("oc_round{round}");
        world.say(U, &chat, "整理笔记", GROUP).await;
        let card = world.plan_card(&chat).await;
        let (ok, change) = (reply(&card.id), reply(&card.id));
        if round % 2 == 0 {
            join(world.say(U, &chat, "OK", ok), world.say(U, &chat, "写到 report-v2.md", change)).await;
        } else {
            join(world.say(U, &chat, "写到 report-v2.md", change), world.say(U, &chat, "OK", ok)).await;
        }
        world.quiet().await;
        let review = world.review_of(&card).await;
        match review["status"].as_str().unwrap() {
            // The change was handed to the running turn, or is a task of its own if that was over already.
            "approved" => {
                world
                    .seen("a word about the change", |lark| {
                        let told = |words: &str| lark.in_chat(&chat).any(|message| message.words().contains(words));
                        (told("已转给") || lark.in_chat(&chat).filter(|message| message.title() == Some("计划确认")).count() == 2)
                            .then_some(())
                    })
                    .await;
            }
            // The OK was for the old card: it approves nothing.
            "revised" => {
                let second = world.card_after(&chat, &card).await;
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

/// S4-7, H19: the last two calls approved at once let the turn go on once.
#[tokio::test]
async fn the_last_two_calls_approved_at_once_resume_the_turn_once() {
    let world = World::start(&[], in_order(vec![writes(&["a.md", "b.md"]), say("都写好了")])).await;
    for round in 0..5 {
        let chat = format!("oc_round{round}");
        world.say(U, &chat, "写两个文件", GROUP).await;
        let card = world.card_titled(&chat, "操作确认").await;
        let taps = rows(&card).into_iter().map(|value| {
            let (world, card, chat) = (&world, &card, &chat);
            async move { world.tenant.click(U, chat, &card.id, &value, None).await.unwrap() }
        });
        let toasts = join_all(taps).await;
        assert!(
            toasts
                .iter()
                .all(|answer| answer["toast"]["content"].as_str().unwrap().starts_with("已确认")),
            "{toasts:?}"
        );
        world.hears(&chat, "都写好了").await;
        let turn = world.api.turn_in(&chat, "completed").await;
        let types = world.api.event_types(&turn).await;
        assert_eq!(types.iter().filter(|kind| *kind == "turn_resumed").count(), 1, "{types:?}");
        assert_eq!(types.iter().filter(|kind| *kind == "tool_finished").count(), 2, "{types:?}");
    }
    assert_eq!(world.model.seen_of("写两个文件").len(), 10);
    world.end().await;
}

/// The approve buttons of an approval card, a row each.
pub(super) fn rows(card: &Posted) -> Vec<Value> {
    fn collect(node: &Value, found: &mut Vec<Value>) {
        if node["action"] == "approve" && node["action_id"].is_string() && !found.contains(node) {
            found.push(node.clone());
        }
        match node {
            Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
            Value::Object(members) => members.values().for_each(|item| collect(item, found)),
            _ => (),
        }
    }
    let mut found = Vec::new();
    collect(&card.content, &mut found);
    found
}
