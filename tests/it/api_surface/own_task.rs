//! A program's own task: found by the event that asked for it, from the queue to its end; and in which language the API speaks.

use serde_json::{Value, json};

use super::{decide, say};
use crate::support::api::eventually;
use crate::support::fake_model::{Gate, Script, call, say as words};
use crate::support::raw::{get, members};
use crate::support::scripts::{gated, reporter};
use crate::support::world::World;

async fn items(world: &World, path: &str) -> Vec<Value> {
    world.api.get(path).await["items"].as_array().unwrap().clone()
}

/// api (M): what waits behind a task is listed with its place, oldest first, page by page, and has no turn yet; then it has one, which has the id of
/// its event. No turn is ever `queued`.
#[tokio::test]
async fn a_program_finds_its_own_task() {
    let world = World::start(&[], reporter).await;
    let gate = Gate::new();
    world.model.script("慢任务", Script::new().then(gated(&gate, words("做完了"))));
    world.model.script("第二个", Script::new().text("第二个做完了"));
    world.model.script("第三个", Script::new().text("第三个做完了"));
    let first = say(&world, "u1", "chat_a", "慢任务").await;
    gate.reached().await;
    let second = say(&world, "u1", "chat_a", "第二个").await;
    let third = say(&world, "u1", "chat_a", "第三个").await;
    let queued = eventually("two tasks in the queue", || async {
        let queued = items(&world, "/api/v1/queue?chat=chat_a").await;
        (queued.len() == 2).then_some(queued)
    })
    .await;
    let row = json!({
        "event_id": second, "channel": "console", "chat_id": "chat_a", "thread_id": null, "user_id": "u1", "text": "第二个", "position": 1,
        "at": queued[0]["at"],
    });
    assert_eq!(queued[0], row);
    assert_eq!((&queued[1]["event_id"], &queued[1]["position"]), (&json!(third), &json!(2)));
    assert_eq!(items(&world, "/api/v1/queue").await, queued);
    assert_eq!(items(&world, "/api/v1/queue?chat=chat_b").await, Vec::<Value>::new());
    let page = world.api.get("/api/v1/queue?limit=1").await;
    assert_eq!(page["items"], json!([queued[0]]));
    let next = page["next"].as_str().unwrap();
    let page = world.api.get(&format!("/api/v1/queue?limit=1&cursor={next}")).await;
    assert_eq!((&page["items"], &page["next"]), (&json!([queued[1]]), &Value::Null));
    let own = items(&world, &format!("/api/v1/turns?event={first}")).await;
    assert_eq!(own.len(), 1, "{own:?}");
    assert_eq!(
        (&own[0]["event_id"], &own[0]["status"], &own[0]["error"]),
        (&json!(first), &json!("running"), &Value::Null)
    );
    assert!(items(&world, &format!("/api/v1/turns?event={second}")).await.is_empty());
    assert!(items(&world, "/api/v1/turns?status=queued").await.is_empty());
    for query in ["queue?limit=0", "queue?status=all", "reviews?event=e", "actions?event=e"] {
        assert_eq!(get(&world, &format!("/api/v1/{query}")).await.status, 400, "{query}");
    }
    gate.open();
    for event in [second, third] {
        eventually("the task of its event", || async {
            let own = items(&world, &format!("/api/v1/turns?event={event}&status=completed")).await;
            (own.len() == 1 && own[0]["event_id"] == event.as_str()).then_some(())
        })
        .await;
    }
    assert!(items(&world, "/api/v1/queue").await.is_empty());
    world.end().await;
}

/// api (M): the event that says that a task waits names the gate, which is decided by that id, a question with words; a turn that failed says why.
#[tokio::test]
async fn the_gate_is_named_when_a_task_pauses() {
    let ask = call([("request_user", json!({ "message": "哪一个？", "title": "文件夹" }))]);
    let world = World::start(&[], move |request| match crate::support::world::place(request) {
        0 => ask.clone(),
        _ => words("好的"),
    })
    .await;
    say(&world, "u1", "chat_a", "整理").await;
    let turn = world.api.turn_in("chat_a", "paused").await;
    let path = format!("/api/v1/turns/{}/events", turn["id"].as_str().unwrap());
    let events = items(&world, &path).await;
    let paused = events.iter().find(|event| event["type"] == "turn_paused").unwrap();
    assert_eq!(
        members(&paused["data"]),
        ["gate", "gate_id", "pending_action_count", "steps_remaining", "steps_used"]
    );
    assert_eq!(paused["data"]["gate_id"], turn["gate"]["id"]);
    let answer = json!({ "decision": "revise", "feedback": "docs", "user_id": "u1" });
    assert_eq!(decide(&world, &turn["gate"], &answer).await.status, 200);
    world.api.turn_in("chat_a", "completed").await;
    world.end().await;
}

/// api (M): our words in the API are English, whatever the channel is set to, unless the request says that its sender reads Chinese.
#[tokio::test]
async fn the_api_speaks_english_unless_asked() {
    for locale in ["zh-CN", "auto"] {
        let world = World::start(&[("CHANNELS__CONSOLE__LOCALE", locale)], reporter).await;
        say(&world, "u1", "chat_a", "/help").await;
        eventually("the reply", || async {
            (items(&world, "/api/v1/messages?chat=chat_a").await.len() == 2).then_some(())
        })
        .await;
        for (accepts, english) in [
            (None, true),
            (Some("fr"), true),
            (Some("en, zh;q=0.5"), true),
            (Some("zh"), false),
            (Some("en;q=0.2, zh-TW"), false),
        ] {
            // The tests' own client reads Chinese.
            let http = countersign_agent::tls::http_client().no_proxy().build().unwrap();
            let mut request = http.get(world.api.url("/api/v1/messages?chat=chat_a"));
            if let Some(tags) = accepts {
                request = request.header("accept-language", tags);
            }
            let reply: Value = request.send().await.unwrap().json().await.unwrap();
            let told = reply["items"][0]["text"].as_str().unwrap();
            assert_eq!(told.contains("Tell me a task"), english, "{locale}, {accepts:?}: {told}");
            assert_eq!(told.contains("直接说出任务"), !english, "{locale}, {accepts:?}: {told}");
        }
        world.end().await;
    }
}
