//! The tool `chat_history`: the model reads on where the block about the chat ends.

use serde_json::{Value, json};

use crate::support::fake_model::{call, offered, say};
use crate::support::platform::{On, on_both, on_either};
use crate::support::world::{ASIDE, GROUP, To, World, last};

on_both! {
    the_model_reads_on_without_asking,
}

on_either! {
    a_wrong_time_is_told,
}

/// The last answer of a tool in a request.
fn answer(request: &Value) -> Option<&str> {
    let last = last(request);
    last["content"].as_str().filter(|_| last["role"] == "tool")
}

/// interface §5: `chat_history` reads this chat, earlier than a moment if one is given; it asks nobody. The console has none.
async fn the_model_reads_on_without_asking(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[("CHAT__CONTEXT_MESSAGES", "1")], |request| match answer(request) {
        None => call([("chat_history", json!({"limit": 2}))]),
        Some(text) if text.contains("第三条") => {
            let (before, _) = text.split_once("第二条").unwrap();
            let at = before
                .rsplit("  ")
                .find_map(|line| line.split(' ').next().filter(|word| word.ends_with('Z')))
                .unwrap();
            call([("chat_history", json!({"before": at, "limit": 5}))])
        }
        Some(_) => say("读完了。"),
    })
    .await;
    for text in ["第一条", "第二条", "第三条"] {
        world.overhears(on.user("wang"), c, text, ASIDE);
    }
    world.say(u, c, "整理笔记", GROUP).await;
    world.hears(c, "读完了").await;
    let seen = world.model.seen();
    let first = answer(&seen[1].body).unwrap();
    assert!(
        first.contains("第二条") && first.contains("第三条") && !first.contains("第一条"),
        "{first}"
    );
    let second = answer(&seen[2].body).unwrap();
    assert!(second.contains("第一条") && !second.contains("第二条"), "{second}");
    assert!(
        world.api.get("/api/v1/actions?status=all").await["items"]
            .as_array()
            .unwrap()
            .is_empty(),
        "a read asks nobody"
    );
    world
        .api
        .post(
            "/api/v1/messages",
            &json!({"chat_id": "web", "user_id": "anna", "text": "整理周报"}),
        )
        .await;
    crate::support::api::eventually("the console's request", || async { (world.model.seen().len() > 3).then_some(()) }).await;
    let console = world.model.seen()[3].body.clone();
    assert!(!offered(&console).contains("chat_history") && offered(&seen[0].body).contains("chat_history"));
    world.end().await;
}

/// design: bad input gets an error that says what to mend.
async fn a_wrong_time_is_told(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], |request| match answer(request) {
        None => call([("chat_history", json!({"before": "yesterday"}))]),
        Some(_) => say("读完了。"),
    })
    .await;
    world.say(u, c, "整理笔记", GROUP).await;
    world.hears(c, "读完了").await;
    let told = world.model.seen()[1].body.clone();
    assert!(answer(&told).unwrap().contains("is no time; give it as"), "{told}");
    world.end().await;
}

/// design: issue I part B, a topic of Lark takes no range of time: older messages of it are found behind the newest ones.
#[tokio::test]
async fn older_messages_of_a_topic_are_found() {
    let on = On::Lark;
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let first_time = |text: &str| {
        text.lines()
            .nth(2)
            .and_then(|line| line.trim().split(' ').next())
            .unwrap_or_default()
            .to_owned()
    };
    let world = World::start_on(on, &[], move |request| match answer(request) {
        None => call([("chat_history", json!({"limit": 50}))]),
        Some(text) if text.contains("第 79 条") => call([("chat_history", json!({"before": first_time(text), "limit": 5}))]),
        Some(_) => say("读完了。"),
    })
    .await;
    let topic = To {
        thread: Some("omt_1"),
        ..ASIDE
    };
    for number in 0..80 {
        world.overhears(on.user("wang"), c, &format!("第 {number} 条"), topic);
    }
    world.say(u, c, "整理笔记", To { mention: true, ..topic }).await;
    world.hears(c, "读完了").await;
    let seen = world.model.seen();
    let (newest, older) = (answer(&seen[1].body).unwrap(), answer(&seen[2].body).unwrap());
    let oldest_shown = (0..80).find(|number| newest.contains(&format!("第 {number} 条"))).unwrap();
    assert!(
        older.contains(&format!("第 {} 条", oldest_shown - 1)),
        "after {oldest_shown}: {older}"
    );
    world.end().await;
}
