//! Nobody decides who may not, and everybody who decided is named: outsiders, chats and people that are no longer served, the API.

use serde_json::{Value, json};

use crate::support::platform::{On, on_both, on_either};
use crate::support::scripts::reporter;
use crate::support::world::{GROUP, World};

on_both! {
    an_outsider_neither_asks_nor_decides,
    no_list_lets_an_outsider_in,
    outsiders_count_where_the_admin_allows_it,
}

on_either! {
    an_api_vote_takes_no_persons_vote_away,
    a_decision_over_the_api_is_shown_as_such,
    a_press_in_a_chat_that_is_no_longer_served_decides_nothing,
    a_requester_who_is_no_longer_served_is_told_why,
}

const APPROVERS: &str = "CHAT__PLAN_REVIEW_APPROVERS";
const QUORUM: &str = "CHAT__PLAN_REVIEW_QUORUM";

/// The API approves in the name of `user`.
async fn approve_for(world: &World, review: &Value, user: &str) -> Value {
    let path = format!("/api/v1/reviews/{}/decision", review["id"].as_str().unwrap());
    let (status, body) = world.api.post(&path, &json!({"decision": "approve", "user_id": user})).await;
    assert_eq!(status, 200, "{body}");
    body
}

/// The event `decision` of a turn.
async fn decision_event(world: &World, review: &Value) -> Value {
    let path = format!("/api/v1/turns/{}/events", review["turn_id"].as_str().unwrap());
    let events = world.api.get(&path).await;
    let mut all = events["items"].as_array().unwrap().iter();
    all.find(|event| event["type"] == "decision").unwrap()["data"].clone()
}

/// The event says that its sender belongs to another tenant or workspace.
pub(crate) fn from_outside(on: On, body: &mut Value) {
    match on {
        On::Lark => {
            let who = if body["event"]["operator"].is_object() {
                "operator"
            } else {
                "sender"
            };
            body["event"][who]["tenant_key"] = json!("tk_other");
        }
        On::Slack if body["event"].is_object() => {
            for member in ["team", "user_team", "source_team"] {
                body["event"][member] = json!("T0OTHER");
            }
        }
        On::Slack => {
            body["team"]["id"] = json!("T0OTHER");
            body["user"]["team_id"] = json!("T0OTHER");
        }
    }
}

/// interface: the token counts once, in whosever name it votes; a person's own vote takes the place of one that the API gave in their
/// name, so that the people can still approve; all who approved are named.
async fn an_api_vote_takes_no_persons_vote_away(on: On) {
    let (c, u1) = (on.chat("c1"), on.user("u1"));
    let (boss, chief, deputy) = (on.user("boss"), on.user("chief"), on.user("deputy"));
    let listed = format!("[{boss}, {chief}, {deputy}]");
    let world = World::start_on(on, &[(APPROVERS, &listed), (QUORUM, "3")], reporter).await;
    world.say(u1, c, "整理笔记", GROUP).await;
    let card = world.plan_card(c).await;
    let review = world.review_of(&card).await;
    for user in [boss, chief, chief] {
        let voted = approve_for(&world, &review, user).await;
        assert_eq!(voted["status"], "pending", "{voted}");
    }
    let votes = world.review_of(&card).await["votes"].clone();
    for vote in votes.as_array().unwrap() {
        assert_eq!((&vote["via"], &vote["principal"]), (&json!("api"), &json!("api")), "{votes}");
    }
    world.repainted(&card, "需要 3 人确认，已有 1 人").await;
    world.tap(u1, c, &card, "approve", None).await.told("没有生效").await;
    // The token still stands for the other one.
    world.tap(boss, c, &card, "approve", None).await.done("2/3");
    world.repainted(&card, "需要 3 人确认，已有 2 人").await;
    // Its last vote was in the name of chief: that one's own makes no more of them.
    world.tap(chief, c, &card, "approve", None).await.done("2/3");
    let votes = world.review_of(&card).await["votes"].clone();
    assert!(
        votes
            .as_array()
            .unwrap()
            .iter()
            .all(|vote| vote["via"] == "button" && vote["principal"].is_null()),
        "{votes}"
    );
    assert_eq!(
        approve_for(&world, &review, boss).await["status"],
        "pending",
        "it votes for nobody who has voted"
    );
    world.tap(deputy, c, &card, "approve", None).await.done("确认");
    world.hears(c, "全部完成").await;
    let decision = world.review_of(&card).await["decision"].clone();
    assert_eq!(
        (&decision["by"], &decision["approvers"], &decision["principal"]),
        (&json!(deputy), &json!([boss, chief, deputy]), &Value::Null)
    );
    let event = decision_event(&world, &review).await;
    assert_eq!(
        (&event["gate_id"], &event["approvers"], &event["through_api"]),
        (&review["id"], &json!([boss, chief, deputy]), &json!([]))
    );
    let shown = world.repainted(&card, "已确认 ·").await;
    for person in [boss, chief, deputy] {
        assert!(shown.words().contains(person), "{person} in {}", shown.words());
    }
    world.end().await;
}

/// interface: what the API decided in somebody's name is shown so on the card, in the timeline and in the API, never as that person's.
async fn a_decision_over_the_api_is_shown_as_such(on: On) {
    let (c, u1, boss) = (on.chat("c1"), on.user("u1"), on.user("boss"));
    let world = World::start_on(on, &[(APPROVERS, &format!("[{boss}]"))], reporter).await;
    world.say(u1, c, "整理笔记", GROUP).await;
    let card = world.plan_card(c).await;
    let review = world.review_of(&card).await;
    let decided = approve_for(&world, &review, boss).await["decision"].clone();
    assert_eq!(
        (&decided["by"], &decided["via"], &decided["principal"], &decided["approvers"]),
        (&json!(boss), &json!("api"), &json!("api"), &json!([boss]))
    );
    world.hears(c, "全部完成").await;
    let shown = world.repainted(&card, "经 API（以").await;
    assert!(
        shown.words().contains(boss) && shown.words().contains("的名义）已确认"),
        "{}",
        shown.words()
    );
    let event = decision_event(&world, &review).await;
    assert_eq!((&event["by"], &event["through_api"]), (&json!(boss), &json!([boss])));
    world.tap(boss, c, &card, "approve", None).await.told("经 API（以").await;
    world.end().await;
}

/// interface: with `allow_external: false` what people of another organisation say is ignored, and their presses decide nothing, also
/// where anyone may approve and under the requester's own id.
async fn an_outsider_neither_asks_nor_decides(on: On) {
    let (c, u1, u2) = (on.chat("c1"), on.user("u1"), on.user("u2"));
    let world = World::start_on(on, &[(APPROVERS, "anyone")], reporter).await;
    let from = |user: &str, text: &str| {
        let mut event = world.message(user, c, text, GROUP);
        for body in std::iter::once(&mut event.body).chain(&mut event.twin) {
            from_outside(on, body);
        }
        event
    };
    world.push(&from(u2, "整理笔记")).await;
    world.caught_up().await;
    assert_eq!(world.turns_in(c).await.len(), 0, "no task of theirs");
    world.say(u1, c, "整理笔记", GROUP).await;
    let card = world.plan_card(c).await;
    for who in [u2, u1] {
        let heard = world.tap_as(who, c, &card, "approve", |body| from_outside(on, body)).await;
        heard.told("其他组织").await;
    }
    world.push(&from(u2, "OK")).await;
    world.caught_up().await;
    let review = world.review_of(&card).await;
    assert_eq!((&review["status"], &review["votes"]), (&json!("pending"), &json!([])));
    assert_eq!(world.file("report.md"), None);
    world.tap(u2, c, &card, "approve", None).await.done("确认");
    world.hears(c, "全部完成").await;
    world.end().await;
}

/// interface (H): an outsider decides nothing, also not as a member of a group that may, or where everybody but the requester may.
async fn no_list_lets_an_outsider_in(on: On) {
    let (c, u1, u2) = (on.chat("c1"), on.user("u1"), on.user("u2"));
    let group = match on {
        On::Lark => "od-0a1b2c3d",
        On::Slack => "S0614TZR7",
    };
    for approvers in ["not_requester".to_owned(), format!("[{group}]")] {
        let world = World::start_on(on, &[(APPROVERS, &approvers)], reporter).await;
        world.chat.set_group(group, &[u2]);
        world.say(u1, c, "整理笔记", GROUP).await;
        let card = world.plan_card(c).await;
        let heard = world.tap_as(u2, c, &card, "approve", |body| from_outside(on, body)).await;
        heard.told("其他组织").await;
        assert_eq!(world.review_of(&card).await["votes"], json!([]));
        world.tap(u2, c, &card, "approve", None).await.done("确认");
        world.hears(c, "全部完成").await;
        world.end().await;
    }
}

/// interface: with `allow_external: true` they ask and decide like one's own.
async fn outsiders_count_where_the_admin_allows_it(on: On) {
    let (c, u2) = (on.chat("c1"), on.user("u2"));
    let world = World::start_on(on, &[("CHAT__ALLOW_EXTERNAL", "true")], reporter).await;
    let mut event = world.message(u2, c, "整理笔记", GROUP);
    for body in std::iter::once(&mut event.body).chain(&mut event.twin) {
        from_outside(on, body);
    }
    world.push(&event).await;
    let card = world.plan_card(c).await;
    world
        .tap_as(u2, c, &card, "approve", |body| from_outside(on, body))
        .await
        .done("确认");
    world.hears(c, "全部完成").await;
    world.end().await;
}

/// interface: a button asks for the same rights as words: in a chat that `allowed_chats` no longer names, neither decides.
async fn a_press_in_a_chat_that_is_no_longer_served_decides_nothing(on: On) {
    let (c, u1) = (on.chat("c1"), on.user("u1"));
    let mut world = World::start_on(on, &[], reporter).await;
    world.say(u1, c, "整理笔记", GROUP).await;
    let card = world.plan_card(c).await;
    let elsewhere = format!("[{}]", on.chat("other"));
    world.restart(&[("CHAT__ALLOWED_CHATS", &elsewhere)]).await;
    for verb in ["approve", "cancel"] {
        world.tap(u1, c, &card, verb, None).await.told("不允许我在这个会话").await;
    }
    assert_eq!(world.review_of(&card).await["status"], "pending");
    let here = format!("[{}, {c}]", on.chat("other"));
    world.restart(&[("CHAT__ALLOWED_CHATS", &here)]).await;
    world.tap(u1, c, &card, "approve", None).await.done("确认");
    world.hears(c, "全部完成").await;
    world.end().await;
}

/// interface: a requester who was taken off `allowed_users` hears that, not that only they may decide.
async fn a_requester_who_is_no_longer_served_is_told_why(on: On) {
    let (c, u1) = (on.chat("c1"), on.user("u1"));
    let mut world = World::start_on(on, &[], reporter).await;
    world.say(u1, c, "整理笔记", GROUP).await;
    let card = world.plan_card(c).await;
    let others = format!("[{}]", on.user("u2"));
    world.restart(&[("CHAT__ALLOWED_USERS", &others)]).await;
    let told = world.tap(u1, c, &card, "approve", None).await.told("没有把你列入").await;
    assert!(!told.contains(u1), "{told}");
    assert_eq!(world.review_of(&card).await["status"], "pending");
    world.end().await;
}
