//! Several people for a tool call: each call of a card is counted for itself.

use futures_util::future::join;
use serde_json::{Value, json};

use super::actions::actions;
use crate::support::fake_model::say;
use crate::support::people::{reply, rows};
use crate::support::platform::{On, on_either};
use crate::support::scripts::{in_order, writes};
use crate::support::world::{GROUP, World};

on_either! {
    two_people_approve_each_call,
    a_word_for_the_card_is_a_vote_for_every_call,
    a_rejection_settles_its_call_at_once,
    calls_ask_their_own_people,
    of_two_who_press_together_both_count,
}

const APPROVERS: &str = "CHAT__PLAN_REVIEW_APPROVERS";
const OF_CALLS: &str = "CHAT__APPROVAL_APPROVERS";
const QUORUM: &str = "CHAT__APPROVAL_QUORUM";

/// A world in which two calls wait for two people each.
async fn two_calls(on: On) -> World {
    let answers = in_order(vec![writes(&["a.md", "b.md"]), say("好了")]);
    let world = World::start_on(on, &[(APPROVERS, "anyone"), (QUORUM, "2")], answers).await;
    world.say(on.user("u1"), on.chat("c1"), "写", GROUP).await;
    world
}

/// The votes of the call that writes `path`, by person.
async fn voters(world: &World, path: &str) -> Vec<String> {
    let found = actions(world, "all")
        .await
        .into_iter()
        .find(|action| action["arguments"]["path"] == path);
    let found = found.unwrap_or_else(|| panic!("no call writes {path}"));
    let by = |vote: &Value| vote["by"].as_str().unwrap().to_owned();
    found["votes"].as_array().unwrap().iter().map(by).collect()
}

/// interface (H): a call needs two people; one counts once, and a vote for one call is none for another. Nothing runs before every call has its word.
/// Card and API show how many have approved.
async fn two_people_approve_each_call(on: On) {
    let (c, u1, u2) = (on.chat("c1"), on.user("u1"), on.user("u2"));
    let world = two_calls(on).await;
    let card = world.card_titled(c, "操作确认").await;
    assert_eq!(card.words().matches("0/2").count(), 2, "{}", card.words());
    let values = rows(&card);
    for _ in 0..2 {
        world.press(u1, c, &card, &values[0], None).await.done("1/2");
    }
    let shown = world.repainted(&card, "1/2").await;
    assert_eq!(shown.words().matches("0/2").count(), 1, "{}", shown.words());
    let pending = actions(&world, "pending").await;
    assert!(
        pending
            .iter()
            .all(|action| action["quorum"] == 2 && action["approvers"] == "anyone"),
        "{pending:?}"
    );
    assert_eq!(
        (voters(&world, "a.md").await, voters(&world, "b.md").await),
        (vec![u1.to_owned()], Vec::new())
    );
    world.press(u2, c, &card, &values[1], None).await.done("1/2");
    world.press(u2, c, &card, &values[0], None).await.done("已确认");
    assert_eq!((world.file("a.md"), world.file("b.md")), (None, None));
    world.press(u1, c, &card, &values[1], None).await.done("已确认");
    world.hears(c, "好了").await;
    assert!(world.file("a.md").is_some() && world.file("b.md").is_some());
    let executed = actions(&world, "executed").await;
    for action in &executed {
        assert_eq!(action["decision"]["approvers"].as_array().unwrap().len(), 2, "{action}");
    }
    world.end().await;
}

/// interface (H): `OK` in words is a vote for every call that waits.
async fn a_word_for_the_card_is_a_vote_for_every_call(on: On) {
    let (c, u1, u2) = (on.chat("c1"), on.user("u1"), on.user("u2"));
    let world = two_calls(on).await;
    let card = world.card_titled(c, "操作确认").await;
    world.say(u1, c, "同意", reply(&card.id)).await;
    world.hears(c, "1/2").await;
    let shown = world.repainted(&card, "1/2").await;
    assert_eq!(shown.words().matches("1/2").count(), 2, "{}", shown.words());
    assert_eq!(world.file("a.md"), None);
    world.say(u2, c, "同意", reply(&card.id)).await;
    world.hears(c, "好了").await;
    assert!(world.file("a.md").is_some() && world.file("b.md").is_some());
    world.end().await;
}

/// interface (H): one person's rejection settles a call, whatever others have said; the other call goes on waiting.
async fn a_rejection_settles_its_call_at_once(on: On) {
    let (c, u1, u2) = (on.chat("c1"), on.user("u1"), on.user("u2"));
    let world = two_calls(on).await;
    let card = world.card_titled(c, "操作确认").await;
    let values = rows(&card);
    world.press(u1, c, &card, &values[0], None).await.done("1/2");
    let reject = json!({ "action": "reject", "action_id": values[0]["action_id"] });
    world.press(u2, c, &card, &reject, None).await.done("已拒绝");
    world.press(u1, c, &card, &values[0], None).await.told("已经处理过了").await;
    world.say(u1, c, "同意", reply(&card.id)).await;
    world.hears(c, "1/2").await;
    world.say(u2, c, "同意", reply(&card.id)).await;
    world.hears(c, "好了").await;
    assert_eq!((world.file("a.md"), world.file("b.md").is_some()), (None, true));
    world.end().await;
}

/// interface (H): calls may ask other people than plans do.
async fn calls_ask_their_own_people(on: On) {
    let (c, u1, boss) = (on.chat("c1"), on.user("u1"), on.user("boss"));
    let answers = in_order(vec![writes(&["a.md"]), say("好了")]);
    let world = World::start_on(on, &[(OF_CALLS, &format!("[{boss}]"))], answers).await;
    world.say(u1, c, "写", GROUP).await;
    let card = world.card_titled(c, "操作确认").await;
    assert!(card.words().contains(&format!("{} 请批准", on.at(boss))), "{}", card.words());
    let told = world.tap(u1, c, &card, "approve", None).await.told("没有生效").await;
    assert!(told.contains(boss), "{told}");
    assert_eq!(actions(&world, "pending").await[0]["approvers"], json!([boss]));
    world.tap(boss, c, &card, "approve", None).await.done("已确认");
    world.hears(c, "好了").await;
    world.end().await;
}

/// Two people press at the same moment: both count, and the call runs once.
async fn of_two_who_press_together_both_count(on: On) {
    let (c, u1, u2) = (on.chat("c1"), on.user("u1"), on.user("u2"));
    let answers = in_order(vec![writes(&["a.md"]), say("好了")]);
    let world = World::start_on(on, &[(APPROVERS, "anyone"), (QUORUM, "2")], answers).await;
    world.say(u1, c, "写", GROUP).await;
    let card = world.card_titled(c, "操作确认").await;
    join(world.tap(u1, c, &card, "approve", None), world.tap(u2, c, &card, "approve", None)).await;
    world.hears(c, "好了").await;
    let executed = actions(&world, "executed").await;
    assert_eq!((executed.len(), voters(&world, "a.md").await.len()), (1, 2));
    world.end().await;
}

/// interface (H): over the API an approval is one vote, the same again is the same vote; the token counts once, and a person's own vote beside it.
#[tokio::test]
async fn votes_over_the_api() {
    let (on, c) = (On::Lark, On::Lark.chat("c1"));
    let world = two_calls(on).await;
    let card = world.card_titled(c, "操作确认").await;
    let id = actions(&world, "pending").await[0]["id"].as_str().unwrap().to_owned();
    let vote = |user: &'static str| {
        let (api, path) = (&world.api, format!("/api/v1/actions/{id}/decision"));
        async move { api.post(&path, &json!({ "decision": "approve", "user_id": user })).await }
    };
    for user in ["ou_u1", "ou_u1", "ou_u2"] {
        let (status, action) = vote(user).await;
        assert_eq!((status, &action["status"]), (200, &json!("pending")), "{action}");
    }
    world.repainted(&card, "1/2").await;
    let button = json!({ "action": "approve", "action_id": id });
    world.press(on.user("boss"), c, &card, &button, None).await.done("已确认");
    world.end().await;
}
