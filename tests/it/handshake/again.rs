//! "Ask again" on the card of a plan review that nobody answered: the same plan waits anew, and the model is not asked.

use std::time::Duration;

use countersign_playground::Posted;
use futures_util::future::join;
use serde_json::{Value, json};

use crate::support::api::eventually;
use crate::support::people::{moment, reply};
use crate::support::platform::{On, on_both, on_either};
use crate::support::quiet::stored;
use crate::support::scripts::reporter;
use crate::support::world::{GROUP, World, user_words};

on_both! {
    one_new_review_follows_however_often_it_is_pressed,
}

on_either! {
    the_same_plan_waits_anew_without_the_model,
    those_who_may_decide_may_ask_again_and_others_may_not,
    a_day_later_the_plan_cannot_be_asked_for_again,
    where_plans_are_not_reviewed_any_more_none_is_asked_for_again,
    it_waits_behind_the_other_tasks_of_its_requester,
    a_plan_in_plan_mode_is_asked_for_again,
    a_review_that_expires_again_can_be_asked_for_again,
    the_request_that_was_taken_back_ends_the_new_turn,
}

const MINUTE: Duration = Duration::from_secs(60);
const TASK: &str = "整理笔记";
const APPROVERS: &str = "CHAT__PLAN_REVIEW_APPROVERS";

/// The plan card of the chat after its time is over.
async fn expired(world: &World, chat: &str, card: &Posted) -> Posted {
    world.clock.advance(61 * MINUTE);
    world.hears(chat, "等待超时").await;
    let card = world.repainted(card, "已过期").await;
    assert!(card.button("ask_again").is_some(), "{}", card.words());
    card
}

fn again(card: &Posted) -> Value {
    card.button("ask_again").unwrap()
}

async fn review(world: &World, id: &Value) -> Value {
    world.api.get(&format!("/api/v1/reviews/{}", id.as_str().unwrap())).await
}

/// interface: a press opens a new turn of the same lane with the request, log and plan of the expired one, and a fresh review of the same
/// digest; no model is called before the OK, which has the plan carried out. The old card loses the button and says who pressed.
async fn the_same_plan_waits_anew_without_the_model(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::frozen_on(on, &[], reporter).await;
    world.say(u, c, TASK, GROUP).await;
    let card = world.plan_card(c).await;
    let lapsed = expired(&world, c, &card).await;
    world.hears(c, "再问一次").await;
    let asked = world.model.seen_of(TASK).len();
    world.tap(u, c, &lapsed, "ask_again", None).await.done("已再次发起");
    let new = world.card_after(c, &card).await;
    let old = world.repainted(&card, "已再次发起这份计划").await;
    assert!(old.buttons().is_empty() && old.words().contains(u), "{}", old.words());
    let (first, second) = (review(&world, &again(&lapsed)["review_id"]).await, world.review_of(&new).await);
    for member in ["digest", "plan_version", "goal", "steps", "grants", "user_id", "thread_id"] {
        assert_eq!(first[member], second[member], "{member}");
    }
    assert_eq!((&first["status"], &second["status"]), (&json!("expired"), &json!("pending")));
    assert_ne!(first["turn_id"], second["turn_id"]);
    assert_eq!(
        first["asked_again"],
        json!({ "by": u, "principal": null, "at": first["asked_again"]["at"] })
    );
    assert_eq!(second["asked_again"], Value::Null);
    let turn = world.turns_in(c).await.pop().unwrap();
    assert_eq!(
        (&turn["text"], &turn["user_id"], &turn["steps_used"]),
        (&json!(TASK), &json!(u), &json!(0))
    );
    assert_eq!(
        world.api.event_types(&turn).await,
        ["turn_started", "plan_created", "turn_paused"],
        "the timeline of the new turn"
    );
    world.caught_up().await;
    assert_eq!(world.model.seen_of(TASK).len(), asked, "the model is not asked");
    world.clock.advance(MINUTE);
    assert_eq!(
        moment(&review(&world, &second["id"]).await["expires_at"]) - moment(&second["created_at"]),
        60 * 60_000
    );
    world.say(u, c, "OK", reply(&new.id)).await;
    world.hears(c, "全部完成").await;
    assert!(world.file("report.md").is_some());
    let resumed = &world.model.seen_of(TASK)[asked]["messages"];
    let roles: Vec<&str> = resumed
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    assert_eq!(
        roles,
        ["system", "user", "assistant", "tool", "user"],
        "the log of the old turn, then the OK: {resumed}"
    );
    assert_eq!(world.turns_in(c).await.len(), 2);
    assert_eq!(
        stored(&world, "SELECT principal FROM audit WHERE kind = 'asked_again'").await,
        [u],
        "the press is in the trail"
    );
    world.end().await;
}

/// interface: the requester and those who may decide may press; the turn stays the requester's, whoever pressed. Others are told.
async fn those_who_may_decide_may_ask_again_and_others_may_not(on: On) {
    let (c, u, boss, other) = (on.chat("c1"), on.user("u1"), on.user("boss"), on.user("u9"));
    let world = World::frozen_on(on, &[(APPROVERS, &format!("[{boss}]"))], reporter).await;
    world.say(u, c, TASK, GROUP).await;
    let card = world.plan_card(c).await;
    let lapsed = expired(&world, c, &card).await;
    world.tap(other, c, &lapsed, "ask_again", None).await.told("没有生效").await;
    world.caught_up().await;
    assert_eq!(world.turns_in(c).await.len(), 1);
    world.tap(boss, c, &lapsed, "ask_again", None).await.done("已再次发起");
    let new = world.card_after(c, &card).await;
    assert!(
        new.words().contains(&format!("{} 请确认 {} 发起的计划", on.at(boss), on.at(u))),
        "{}",
        new.words()
    );
    let review = world.review_of(&new).await;
    assert_eq!(
        (&review["user_id"], &review["votes"]),
        (&json!(u), &json!([])),
        "to ask is not to approve"
    );
    world.tap(u, c, &new, "approve", None).await.told("没有生效").await;
    world.tap(boss, c, &new, "approve", None).await.done("已确认");
    world.hears(c, "全部完成").await;
    world.end().await;
}

/// interface: two people at once, the same person twice, and the platform's repetition of a press open one new turn.
async fn one_new_review_follows_however_often_it_is_pressed(on: On) {
    let (c, u, boss) = (on.chat("c1"), on.user("u1"), on.user("boss"));
    let world = World::frozen_on(on, &[(APPROVERS, "anyone")], reporter).await;
    world.say(u, c, TASK, GROUP).await;
    let card = world.plan_card(c).await;
    let lapsed = expired(&world, c, &card).await;
    let value = again(&lapsed);
    let press = world.tenant.tap(boss, c, &card.id, &value, None);
    let twice = world.tenant.tap(u, c, &card.id, &value, None);
    let (first, _) = join(world.push(&press), world.push(&twice)).await;
    let new = world.card_after(c, &card).await;
    assert_eq!(
        world.push(&press).await["toast"],
        first["toast"],
        "a repetition hears what the first one heard"
    );
    let late = world.press(u, c, &lapsed, &value, None).await;
    late.told("已经再次发起过这份计划").await;
    // A word to the old card names the newer one.
    world.clock.advance(MINUTE);
    if on == On::Lark {
        let word = world.say(u, c, "OK", reply(&card.id)).await;
        let told = world.word_back(c, &word).await;
        assert!(told.words().contains("请在新的卡片上操作"), "{}", told.words());
    }
    world.caught_up().await;
    assert_eq!((world.turns_in(c).await.len(), world.titled(c, "计划确认")), (2, 2));
    assert_eq!(world.review_of(&new).await["status"], "pending");
    world.tap(u, c, &new, "approve", None).await;
    world.hears(c, "全部完成").await;
    world.press(u, c, &lapsed, &value, None).await.told("已经再次发起过").await;
    assert_eq!(world.turns_in(c).await.len(), 2);
    world.end().await;
}

/// interface: the button works for 24 hours.
async fn a_day_later_the_plan_cannot_be_asked_for_again(on: On) {
    let u = on.user("u1");
    let world = World::frozen_on(on, &[], reporter).await;
    for (chat, more, words) in [(on.chat("in"), 0, "已再次发起"), (on.chat("out"), 1, "超过 24 小时")] {
        world.say(u, chat, TASK, GROUP).await;
        let card = world.plan_card(chat).await;
        let lapsed = expired(&world, chat, &card).await;
        let closed = moment(&review(&world, &again(&lapsed)["review_id"]).await["decision"]["at"]);
        let left = u64::try_from(closed + 24 * 60 * 60_000 - world.clock.now().0 + more).unwrap();
        world.clock.advance(Duration::from_millis(left));
        let heard = world.tap(u, chat, &lapsed, "ask_again", None).await;
        if more == 0 {
            heard.done(words);
            world.card_after(chat, &card).await;
        } else {
            heard.told(words).await;
        }
        world.caught_up().await;
        assert_eq!(world.turns_in(chat).await.len(), if more == 0 { 2 } else { 1 });
    }
    world.end().await;
}

/// Where the settings have plans confirmed by nobody, the press is told so: a plan that went on by itself is not what was asked for.
async fn where_plans_are_not_reviewed_any_more_none_is_asked_for_again(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let mut world = World::frozen_on(on, &[], reporter).await;
    world.say(u, c, TASK, GROUP).await;
    let card = world.plan_card(c).await;
    let lapsed = expired(&world, c, &card).await;
    for key in ["CHAT__PLAN_REVIEW_REQUIRE_CONFIRMATION", "CHAT__PLAN_REVIEW_ENABLED"] {
        world.restart(&[(key, "false")]).await;
        world.tap(u, c, &lapsed, "ask_again", None).await.told("不再需要确认").await;
    }
    world.caught_up().await;
    assert_eq!(world.turns_in(c).await.len(), 1);
    world.end().await;
}

/// It queues in its requester's lane as any task, and whoever pressed is told behind how many.
async fn it_waits_behind_the_other_tasks_of_its_requester(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::frozen_on(on, &[], reporter).await;
    world.say(u, c, TASK, GROUP).await;
    let card = world.plan_card(c).await;
    let lapsed = expired(&world, c, &card).await;
    world.clock.advance(MINUTE);
    world.say(u, c, "再整理一遍笔记", GROUP).await;
    let other = world.card_after(c, &card).await;
    world
        .tap(u, c, &lapsed, "ask_again", None)
        .await
        .told("发起人还有 1 个任务排在前面")
        .await;
    world.caught_up().await;
    assert_eq!((world.turns_in(c).await.len(), world.titled(c, "计划确认")), (2, 2), "it waits");
    world.tap(u, c, &other, "cancel", None).await;
    let new = world
        .seen("the third card", |seen| {
            seen.in_chat(c)
                .filter(|posted| posted.title() == Some("计划确认"))
                .find(|posted| posted.id != card.id && posted.id != other.id)
                .cloned()
        })
        .await;
    assert_eq!(
        world.review_of(&new).await["digest"],
        review(&world, &again(&lapsed)["review_id"]).await["digest"]
    );
    world.clock.advance(MINUTE);
    world.tap(u, c, &new, "approve", None).await.done("已确认");
    world.hears(c, "全部完成").await;
    world.end().await;
}

/// The mode of the old turn stays, whatever is configured: its plan was made for it.
async fn a_plan_in_plan_mode_is_asked_for_again(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::frozen_on(on, &[], reporter).await;
    world.say(u, c, "/plan 整理笔记", GROUP).await;
    let card = world.plan_card(c).await;
    let lapsed = expired(&world, c, &card).await;
    let asked = world.model.seen_of(TASK).len();
    world.tap(u, c, &lapsed, "ask_again", None).await.done("已再次发起");
    let new = world.card_after(c, &card).await;
    assert_eq!(world.model.seen_of(TASK).len(), asked);
    world.clock.advance(MINUTE);
    world.tap(u, c, &new, "approve", None).await.done("已确认");
    world
        .seen("the first step carried out", |_| {
            (world.model.seen_of(TASK).len() > asked).then_some(())
        })
        .await;
    let brief = user_words(&world.model.seen_of(TASK)[asked]);
    assert!(brief.contains("读取笔记"), "a step has a brief of its own: {brief}");
    world.say(u, c, "/stop", GROUP).await;
    eventually("the task is stopped", || async {
        let turns = world.turns_in(c).await;
        turns.iter().all(|turn| turn["status"] == "cancelled").then_some(())
    })
    .await;
    world.end().await;
}

/// Nobody answers the second time either: its card has the button as well, the first card none.
async fn a_review_that_expires_again_can_be_asked_for_again(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::frozen_on(on, &[], reporter).await;
    world.say(u, c, TASK, GROUP).await;
    let card = world.plan_card(c).await;
    let lapsed = expired(&world, c, &card).await;
    world.tap(u, c, &lapsed, "ask_again", None).await.done("已再次发起");
    let second = world.card_after(c, &card).await;
    let lapsed_again = expired(&world, c, &second).await;
    world.tap(u, c, &lapsed_again, "ask_again", None).await.done("已再次发起");
    let third = world
        .seen("the third card", |seen| {
            seen.in_chat(c)
                .filter(|posted| posted.button("approve").is_some())
                .find(|posted| posted.id != second.id)
                .cloned()
        })
        .await;
    world.clock.advance(MINUTE);
    world.caught_up().await;
    world.tap(u, c, &third, "approve", None).await.done("已确认");
    world.hears(c, "全部完成").await;
    assert_eq!(world.turns_in(c).await.len(), 3);
    world.end().await;
}

/// The new turn answers the same message: taking that back ends it.
async fn the_request_that_was_taken_back_ends_the_new_turn(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::frozen_on(on, &[], reporter).await;
    let request = world.say(u, c, TASK, GROUP).await;
    let card = world.plan_card(c).await;
    let lapsed = expired(&world, c, &card).await;
    world.tap(u, c, &lapsed, "ask_again", None).await.done("已再次发起");
    world.card_after(c, &card).await;
    world.recall(u, c, &request).await;
    eventually("the end of the new turn", async || {
        let turns = world.turns_in(c).await;
        let reasons: Vec<&Value> = turns.iter().map(|turn| &turn["reason"]).collect();
        (reasons == ["expired", "cancelled"]).then_some(())
    })
    .await;
    world.end().await;
}
