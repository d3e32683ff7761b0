//! What people think of an answer: the pair of buttons under it.

use countersign_playground::{Fault, Posted};
use serde_json::{Value, json};

use crate::support::fake_model::{Script, say};
use crate::support::platform::{On, on_both, on_either};
use crate::support::scripts::reporter;
use crate::support::world::{DIRECT, GROUP, World};

on_both! {
    forged_feedback_is_not_noted,
    people_say_whether_an_answer_helped_and_the_last_word_counts,
}

on_either! {
    only_people_who_are_served_are_heard,
    only_a_final_answer_asks,
}

/// Feedback by this query.
async fn listed(world: &World, query: &str) -> Vec<Value> {
    let listed = world.api.get(&format!("/api/v1/feedback{query}")).await;
    listed["items"].as_array().unwrap().clone()
}

async fn answered(world: &World, chat: &str) -> Posted {
    world.say(world.on.user("u1"), chat, "说点什么", GROUP).await;
    world.hears(chat, "说完了").await
}

fn speaker(_: &Value) -> Value {
    say("说完了")
}

/// interface §9 I: under the final answer anybody says whether it helped; one row a person and turn, the last word counts; the turn's timeline goes
/// on without a gap, and the same word twice is one event.
async fn people_say_whether_an_answer_helped_and_the_last_word_counts(on: On) {
    let (c, u, other) = (on.chat("c1"), on.user("u1"), on.user("u2"));
    let world = World::start_on(on, &[], speaker).await;
    let answer = answered(&world, c).await;
    let turn = world.api.turn_in(c, "completed").await["id"].as_str().unwrap().to_owned();
    for verb in ["feedback_up", "feedback_up", "feedback_down"] {
        world.tap(u, c, &answer, verb, None).await.told("谢谢").await;
    }
    world.tap(other, c, &answer, "feedback_up", None).await.told("谢谢").await;
    let rows = listed(&world, "").await;
    let said: Vec<_> = rows.iter().map(|row| (&row["user_id"], &row["value"])).collect();
    assert_eq!(said, [(&json!(other), &json!("up")), (&json!(u), &json!("down"))], "newest first");
    for row in &rows {
        assert_eq!(
            (&row["turn_id"], &row["chat_id"], &row["text"]),
            (&json!(turn), &json!(c), &Value::Null)
        );
        assert!(row["id"].as_str().unwrap().starts_with("fb_") && row["at"].is_string(), "{row}");
    }
    assert_eq!(listed(&world, &format!("?user={u}&turn={turn}&chat={c}")).await.len(), 1);
    assert_eq!(listed(&world, "?chat=elsewhere").await, Vec::<Value>::new());
    let page = world.api.get("/api/v1/feedback?limit=1").await;
    let next = page["next"].as_str().unwrap();
    assert_eq!(listed(&world, &format!("?cursor={next}")).await, rows[1..]);
    assert_eq!(world.api.try_get("/api/v1/feedback?status=all").await.0, 400);
    let events = world.api.get(&format!("/api/v1/turns/{turn}/events")).await;
    let events = events["items"].as_array().unwrap();
    let seqs: Vec<i64> = events.iter().filter_map(|event| event["seq"].as_i64()).collect();
    assert_eq!(seqs, (1..=i64::try_from(events.len()).unwrap()).collect::<Vec<_>>(), "no gap");
    let told: Vec<_> = events
        .iter()
        .filter(|event| event["type"] == "feedback")
        .map(|event| &event["data"])
        .collect();
    assert_eq!(told, [&json!({"value": "up"}), &json!({"value": "down"}), &json!({"value": "up"})]);
    world.end().await;
}

/// interface §2: whom the settings keep from being heard, they keep from this as well.
async fn only_people_who_are_served_are_heard(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[("CHAT__ALLOWED_USERS", &format!("[{u}]"))], speaker).await;
    let answer = answered(&world, c).await;
    world
        .tap(on.user("u2"), c, &answer, "feedback_up", None)
        .await
        .told("没有把你列入")
        .await;
    assert_eq!(listed(&world, "").await, Vec::<Value>::new());
    world.tap(u, c, &answer, "feedback_up", None).await.told("谢谢").await;
    assert_eq!(listed(&world, "").await.len(), 1);
    world.end().await;
}

/// S0-C3: a button of an answer says nothing in another chat, of another turn, or of a turn that is not over.
async fn forged_feedback_is_not_noted(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], |request| match request.to_string().contains("整理") {
        true => reporter(request),
        false => say("说完了"),
    })
    .await;
    let answer = answered(&world, c).await;
    let value = answer.button("feedback_up").unwrap();
    // Slack shows nobody a note in a thread that is not there.
    if on == On::Lark {
        world.press(u, on.chat("c2"), &answer, &value, None).await.told("不在了").await;
    }
    world.say(u, c, "整理笔记", GROUP).await;
    world.plan_card(c).await;
    let open = world.api.turn_in(c, "paused").await;
    for turn in [open["id"].as_str().unwrap(), "turn_guessed"] {
        let forged = json!({ "action": "feedback_up", "turn_id": turn });
        world.press(u, c, &answer, &forged, None).await.told("不在了").await;
    }
    assert_eq!(listed(&world, "").await, Vec::<Value>::new());
    world.end().await;
}

/// interface §9 I: a task that failed or was stopped does not ask whether it helped.
async fn only_a_final_answer_asks(on: On) {
    let p = on.direct("p1");
    let world = World::start_on(on, &[], speaker).await;
    world.model.script("说点什么", Script::new().status(401, &[]));
    world.say(on.user("u1"), p, "说点什么", DIRECT).await;
    let failed = world.hears(p, "问题编号").await;
    assert_eq!(failed.button("feedback_up"), None);
    world.end().await;
}

/// reach §3: a workspace that refuses the pair gets the answer without it, in the same delivery and as a card; it is asked once.
#[tokio::test]
async fn a_workspace_that_refuses_new_blocks_is_asked_once() {
    let on = On::Slack;
    let c = on.chat("c1");
    let world = World::start_on(on, &[], speaker).await;
    world.chat.fault("reply", Fault::Error("invalid_blocks"));
    let answer = answered(&world, c).await;
    assert_eq!((answer.button("feedback_up"), answer.kind.as_str()), (None, "interactive"));
    world.say(on.user("u2"), c, "再说点什么", GROUP).await;
    let second = world
        .seen("the second answer", |seen| {
            let said: Vec<&Posted> = seen.in_chat(c).filter(|said| said.words().contains("说完了")).collect();
            (said.len() > 1).then(|| said[1].clone())
        })
        .await;
    assert_eq!(second.button("feedback_up"), None);
    let replies = world.chat.snapshot().count("reply");
    assert_eq!(replies, 3, "one was refused, and none after it");
    world.end().await;
}
