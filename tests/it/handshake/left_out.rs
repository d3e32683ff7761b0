//! Steps that a person leaves out on the plan's card: the rest waits on a new card, and the model is not asked.

use countersign_playground::Posted;
use futures_util::future::join;
use serde_json::{Value, json};

use crate::support::fake_model::call;
use crate::support::heard::Heard;
use crate::support::platform::{On, on_both, on_either};
use crate::support::quiet::stored;
use crate::support::scripts::{clarified, in_order, planned, reporter};
use crate::support::world::{GROUP, World};

on_both! {
    all_none_and_forged_boxes_change_nothing,
    a_long_plan_is_shown_whole,
    the_rest_waits_on_a_new_card_without_the_model,
}

on_either! {
    a_call_of_a_step_that_was_left_out_asks,
    one_new_version_follows_however_often_it_is_pressed,
    votes_for_the_whole_plan_are_none_for_the_rest,
    a_plan_in_plan_mode_can_be_made_smaller,
    odd_ids_are_not_offered,
}

const TASK: &str = "整理笔记";
const APPROVERS: &str = "CHAT__PLAN_REVIEW_APPROVERS";

/// Presses the button below the boxes with those of these `ids` ticked.
async fn keep(world: &World, user: &str, chat: &str, card: &Posted, ids: &[&str]) -> Heard {
    let value = card.button("keep_steps").unwrap_or_else(|| panic!("no boxes on {}", card.words()));
    let before = world.chat.snapshot().notes.len();
    let event = world.tenant.keep(user, chat, &card.id, &value, ids);
    Heard::new(world, user, chat, before, &world.push(&event).await)
}

async fn review(world: &World, card: &Posted) -> Value {
    let id = &card.first().button("approve").unwrap()["review_id"];
    world.api.get(&format!("/api/v1/reviews/{}", id.as_str().unwrap())).await
}

/// interface: a press by the requester settles the review as changes; the rest is a new version on a new card, which says what was left out and
/// by whom. No model is called before the OK. Strangers are refused, and so is the old card.
async fn the_rest_waits_on_a_new_card_without_the_model(on: On) {
    let (c, u, boss, other) = (on.chat("c1"), on.user("u1"), on.user("boss"), on.user("u9"));
    let world = World::start_on(on, &[(APPROVERS, &format!("[{boss}]"))], reporter).await;
    world.say(u, c, TASK, GROUP).await;
    let card = world.plan_card(c).await;
    let asked = world.model.seen_of(TASK).len();
    keep(&world, other, c, &card, &["1", "2"]).await.told("没有生效").await;
    keep(&world, u, c, &card, &["1", "2"]).await.done("修改意见已收到");
    let new = world.card_after(c, &card).await;
    for words in [&format!("{} 去掉了上一版里的这些步骤", on.at(u)), "核对", "第 2 版"] {
        assert!(new.words().contains(words), "{words} in {}", new.words());
    }
    let old = world.repainted(&card, "只保留步骤 1、2").await;
    assert!(
        old.buttons().is_empty() && old.words().contains("已提出修改") && old.words().contains(u),
        "{}",
        old.words()
    );
    let (first, second) = (review(&world, &card).await, world.review_of(&new).await);
    assert_eq!(
        (&first["status"], &first["decision"]["kind"]),
        (&json!("revised"), &json!("revise"))
    );
    assert_eq!(first["decision"]["text"], "keep only steps 1, 2");
    assert_eq!((&second["status"], &second["plan_version"]), (&json!("pending"), &json!(2)));
    assert_ne!(first["digest"], second["digest"]);
    assert_eq!((&second["votes"], &second["replaces"]), (&json!([]), &Value::Null));
    assert_eq!(second["steps"].as_array().unwrap()[..], first["steps"].as_array().unwrap()[..2]);
    world.caught_up().await;
    assert_eq!(world.model.seen_of(TASK).len(), asked, "the model is not asked");
    world
        .press(boss, c, &card, &card.button("approve").unwrap(), None)
        .await
        .told("已被新的取代")
        .await;
    keep(&world, boss, c, &card, &["1"]).await.told("已被新的取代").await;
    world.tap(u, c, &new, "approve", None).await.told("没有生效").await;
    world.tap(boss, c, &new, "approve", None).await.done("已确认");
    world.hears(c, "全部完成").await;
    assert!(world.file("report.md").is_some());
    let resumed = world.model.seen_of(TASK)[asked]["messages"].to_string();
    assert!(resumed.contains("left_out:\\n  3. 核对"), "{resumed}");
    let trail = stored(&world, "SELECT principal FROM audit WHERE kind = 'decision' ORDER BY seq").await;
    assert_eq!(trail, [u, boss]);
    world.end().await;
}

/// issue H: an OK to the rest covers no call of a step that was left out.
async fn a_call_of_a_step_that_was_left_out_asks(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], reporter).await;
    world.say(u, c, TASK, GROUP).await;
    let card = world.plan_card(c).await;
    assert_eq!(world.review_of(&card).await["grants"].as_array().unwrap().len(), 1);
    keep(&world, u, c, &card, &["1", "3"]).await.done("修改意见已收到");
    let new = world.card_after(c, &card).await;
    assert_eq!(world.review_of(&new).await["grants"], json!([]));
    world.tap(u, c, &new, "approve", None).await.done("已确认");
    let asks = world
        .seen("the approval card", |seen| {
            seen.in_chat(c).find(|posted| posted.title() == Some("操作确认")).cloned()
        })
        .await;
    assert!(world.file("report.md").is_none());
    world.tap(u, c, &asks, "reject", None).await;
    world.hears(c, "全部完成").await;
    assert!(world.file("report.md").is_none());
    world.end().await;
}

/// interface: who leaves all or none is told so; what no form of ours sends changes nothing; a box alone is no press.
async fn all_none_and_forged_boxes_change_nothing(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], reporter).await;
    world.say(u, c, TASK, GROUP).await;
    let card = world.plan_card(c).await;
    keep(&world, u, c, &card, &["1", "2", "3"]).await.told("没有去掉任何步骤").await;
    keep(&world, u, c, &card, &[]).await.told("至少要保留一个步骤").await;
    keep(&world, u, c, &card, &["1", "9"]).await.told("任务已经不在了").await;
    let value = card.button("keep_steps").unwrap();
    if on == On::Slack {
        keep(&world, u, c, &card, &["1", "1"]).await.told("任务已经不在了").await;
        let notes = world.chat.snapshot().notes.len();
        let box_alone = world.tenant.ticks(u, c, &card.id, &value, &["1"]).unwrap();
        assert_eq!(world.push(&box_alone).await, Value::Null);
        world.caught_up().await;
        assert_eq!(world.chat.snapshot().notes.len(), notes, "nobody is told of a box");
    }
    let mut odd = world.tenant.keep(u, c, &card.id, &value, &["1"]);
    match on {
        On::Lark => odd.body["event"]["action"]["form_value"] = json!({ "step_1": "yes" }),
        On::Slack => odd.body["state"] = json!({ "values": {} }),
    }
    world.push_unreadable(&odd).await;
    world.caught_up().await;
    assert_eq!(world.review_of(&card).await["status"], "pending");
    assert_eq!(world.titled(c, "计划确认"), 1);
    world.tap(u, c, &card, "approve", None).await.done("已确认");
    world.hears(c, "全部完成").await;
    world.end().await;
}

/// interface: two people at once and the platform's repetition of a press make one new version.
async fn one_new_version_follows_however_often_it_is_pressed(on: On) {
    let (c, u, boss) = (on.chat("c1"), on.user("u1"), on.user("boss"));
    let world = World::start_on(on, &[(APPROVERS, "anyone")], reporter).await;
    world.say(u, c, TASK, GROUP).await;
    let card = world.plan_card(c).await;
    let value = card.button("keep_steps").unwrap();
    let press = world.tenant.keep(boss, c, &card.id, &value, &["1", "2"]);
    let other = world.tenant.keep(u, c, &card.id, &value, &["2", "3"]);
    let (first, second) = join(world.push(&press), world.push(&other)).await;
    let new = world.card_after(c, &card).await;
    // Either may be first. The second one was told who was, and hears of the new card by now.
    let (won, heard) = if second["toast"]["type"] == "success" {
        (&other, second)
    } else {
        (&press, first)
    };
    assert_eq!(
        world.push(won).await["toast"],
        heard["toast"],
        "a repetition hears what the first one heard"
    );
    world.push(&press).await;
    world.push(&other).await;
    world.caught_up().await;
    assert_eq!(world.titled(c, "计划确认"), 2);
    assert_eq!(world.review_of(&new).await["steps"].as_array().unwrap().len(), 2);
    keep(&world, boss, c, &new, &["2"]).await.done("修改意见已收到");
    let last = world
        .seen("the third card", |seen| {
            seen.in_chat(c)
                .filter(|posted| posted.button("approve").is_some())
                .find(|posted| posted.id != new.id && posted.id != card.id)
                .cloned()
        })
        .await;
    assert!(last.button("keep_steps").is_none(), "one step is no choice");
    world.caught_up().await;
    assert_eq!(world.review_of(&last).await["plan_version"], 3);
    world.tap(u, c, &last, "approve", None).await.done("已确认");
    world.hears(c, "全部完成").await;
    world.end().await;
}

/// One entitled person makes the plan smaller; who had approved the whole plan has not approved the rest.
async fn votes_for_the_whole_plan_are_none_for_the_rest(on: On) {
    let (c, u, one, two) = (on.chat("c1"), on.user("u1"), on.user("boss"), on.user("u2"));
    let settings = [(APPROVERS, "anyone"), ("CHAT__PLAN_REVIEW_QUORUM", "2")];
    let world = World::start_on(on, &settings, reporter).await;
    world.say(u, c, TASK, GROUP).await;
    let card = world.plan_card(c).await;
    world.tap(one, c, &card, "approve", None).await.done("1/2");
    keep(&world, two, c, &card, &["1", "2"]).await.done("修改意见已收到");
    let new = world.card_after(c, &card).await;
    assert_eq!(world.review_of(&new).await["votes"], json!([]));
    world.tap(one, c, &new, "approve", None).await.done("1/2");
    world.tap(two, c, &new, "approve", None).await.done("已确认");
    world.hears(c, "全部完成").await;
    world.end().await;
}

/// Plan mode: the first step that stays is carried out first.
async fn a_plan_in_plan_mode_can_be_made_smaller(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], reporter).await;
    world.say(u, c, "/plan 整理笔记", GROUP).await;
    let card = world.plan_card(c).await;
    let asked = world.model.seen_of(TASK).len();
    keep(&world, u, c, &card, &["2", "3"]).await.done("修改意见已收到");
    let new = world.card_after(c, &card).await;
    world.caught_up().await;
    assert_eq!(world.model.seen_of(TASK).len(), asked);
    world.tap(u, c, &new, "approve", None).await.done("已确认");
    let brief = world
        .seen("the first step carried out", |_| world.model.seen_of(TASK).get(asked).cloned())
        .await["messages"]
        .to_string();
    assert!(brief.contains("写报告") && !brief.contains("读取笔记"), "{brief}");
    world.say(u, c, "/stop", GROUP).await;
    world.caught_up().await;
    world.end().await;
}

/// A plan of thirty steps has no boxes on Slack, which takes ten; it is shown whole all the same.
async fn a_long_plan_is_shown_whole(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let contents: Vec<String> = (1..=30).map(|number| format!("第 {number} 件事")).collect();
    let steps: Vec<(&str, &[&str])> = contents.iter().map(|content| (content.as_str(), &[][..])).collect();
    let world = World::start_on(on, &[], in_order(vec![planned("很多事", &steps), clarified()])).await;
    world.say(u, c, TASK, GROUP).await;
    let card = world.plan_card(c).await;
    assert!(contents.iter().all(|content| card.words().contains(content)), "{}", card.words());
    assert_eq!(card.button("keep_steps").is_some(), on == On::Lark);
    world.tap(u, c, &card, "cancel", None).await;
    world.caught_up().await;
    world.end().await;
}

/// Ids that cannot stand in the name of a box: the plan has no boxes.
async fn odd_ids_are_not_offered(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let steps = json!([{ "id": "第一", "content": "读取" }, { "id": "b", "content": "写" }]);
    let plan = json!({ "overall_goal_ui": "两件事", "complexity": "complex", "internal_plan": steps });
    let world = World::start_on(on, &[], in_order(vec![call([("plan", plan)]), clarified()])).await;
    world.say(u, c, TASK, GROUP).await;
    let card = world.plan_card(c).await;
    assert!(card.button("keep_steps").is_none() && card.button("approve").is_some());
    world.tap(u, c, &card, "cancel", None).await;
    world.caught_up().await;
    world.end().await;
}
