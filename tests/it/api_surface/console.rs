//! The console channel: a chat with the bot over the API alone.

use serde_json::{Value, json};

use super::{decide, say};
use crate::support::api::eventually;
use crate::support::people::in_full;
use crate::support::quiet::quiet;
use crate::support::raw::{members, post};
use crate::support::scripts::reporter;
use crate::support::world::World;

/// What was said, oldest first.
async fn said(world: &World, chat: &str) -> Vec<Value> {
    let mut said = world.api.get(&format!("/api/v1/messages?chat={chat}")).await["items"]
        .as_array()
        .unwrap()
        .clone();
    said.reverse();
    said
}

/// Waits for a message of this kind.
async fn shown(world: &World, chat: &str, kind: &str) -> Value {
    eventually(&format!("a {kind} in {chat}"), || async {
        said(world, chat).await.into_iter().find(|message| message["kind"] == kind)
    })
    .await
}

/// outside A6: a program reads the card and says OK in the next millisecond. The OK counts, however late the delivery is noted.
#[tokio::test]
async fn an_ok_right_after_the_card_counts() {
    let world = World::start(&[], reporter).await;
    for round in 0..20 {
        let chat = format!("chat_{round}");
        say(&world, "u1", &chat, "整理笔记").await;
        let card = loop {
            let card = said(&world, &chat).await.into_iter().find(|message| message["kind"] == "plan_card");
            if let Some(card) = card {
                break card;
            }
        };
        let at: jiff::Timestamp = card["at"].as_str().unwrap().parse().unwrap();
        while world.clock.now().0 <= at.as_millisecond() {
            tokio::task::yield_now().await;
        }
        say(&world, "u1", &chat, "OK").await;
        shown(&world, &chat, "answer").await;
    }
    world.end().await;
}

/// S0-28, S0-32: said over the API, shown as a plan card, decided over the API, answered in the same chat, once.
#[tokio::test]
async fn a_console_chat_goes_round() {
    let world = World::start(&[], reporter).await;
    say(&world, "u1", "chat_a", "整理笔记").await;
    let card = shown(&world, "chat_a", "plan_card").await;
    assert_eq!(
        (&card["from"], &card["user_id"], &card["chat_id"], &card["thread_id"]),
        (&json!("bot"), &Value::Null, &json!("chat_a"), &Value::Null)
    );
    let text = card["text"].as_str().unwrap();
    for words in ["计划确认", "整理笔记", "写报告", "write_file"] {
        assert!(text.contains(words), "{words} in {text}");
    }
    let review = world.api.review_in("chat_a").await;
    assert_eq!((&card["card"]["review_id"], &review["message_id"]), (&review["id"], &card["id"]));
    assert_eq!(
        (&review["channel"], &review["tenant"], &review["user_id"]),
        (&json!("console"), &Value::Null, &json!("u1"))
    );
    assert_eq!(world.file("report.md"), None, "nothing runs before the approval");
    let decided = decide(&world, &review, &json!({ "decision": "approve", "user_id": "u1" }))
        .await
        .json();
    assert_eq!((&decided["status"], &decided["decision"]["by"]), (&json!("approved"), &json!("u1")));
    let answer = shown(&world, "chat_a", "answer").await;
    assert!(answer["text"].as_str().unwrap().contains("全部完成"));
    quiet(&world).await;
    let all = said(&world, "chat_a").await;
    for message in &all {
        assert_eq!(
            members(message),
            ["at", "card", "chat_id", "from", "id", "kind", "text", "thread_id", "user_id"]
        );
    }
    assert_eq!(all.iter().filter(|message| message["kind"] == "answer").count(), 1);
    assert_eq!(
        (
            &all[0]["from"],
            &all[0]["kind"],
            &all[0]["user_id"],
            &all[0]["text"],
            &all[0]["card"]
        ),
        (&json!("user"), &json!("text"), &json!("u1"), &json!("整理笔记"), &Value::Null)
    );
    let card = all.iter().find(|message| message["kind"] == "plan_card").unwrap();
    assert_eq!(card["card"]["state"]["state"], "decided", "the card shows the decision: {card}");
    assert_eq!(
        all.iter()
            .map(|message| message["id"].as_str().unwrap())
            .collect::<std::collections::BTreeSet<_>>()
            .len(),
        all.len()
    );
    assert_eq!(said(&world, "chat_b").await, Vec::<Value>::new(), "another chat heard nothing");
    world.end().await;
}

/// S0-32, S0-34: words in the console chat decide as in any chat: changes make a new plan, `OK` lets it run.
#[tokio::test]
async fn words_decide_in_the_console_too() {
    let world = World::start(&[], reporter).await;
    say(&world, "u1", "chat_a", "整理笔记").await;
    let first = world.api.review_in("chat_a").await;
    say(&world, "u1", "chat_a", &in_full("只要要点")).await;
    let second = eventually("a second review", || async {
        let review = world.api.review_in("chat_a").await;
        (review["id"] != first["id"]).then_some(review)
    })
    .await;
    assert_eq!(second["plan_version"], 2);
    say(&world, "u1", "chat_a", "OK").await;
    shown(&world, "chat_a", "answer").await;
    quiet(&world).await;
    assert!(world.file("report-v2.md").is_some() && world.file("report.md").is_none());
    let old = world.api.get(&format!("/api/v1/reviews/{}", first["id"].as_str().unwrap())).await;
    assert_eq!(
        (&old["status"], &old["decision"]["text"], &old["decision"]["via"]),
        (&json!("revised"), &json!(in_full("只要要点")), &json!("text"))
    );
    world.end().await;
}

/// B3: the same `event_id` is the same message, whoever repeats it and whenever; without one each is its own.
#[tokio::test]
async fn an_event_id_counts_once() {
    let world = World::start(&[], reporter).await;
    let body = json!({ "chat_id": "chat_a", "user_id": "u1", "text": "整理笔记", "event_id": "ev-1" });
    for _ in 0..3 {
        let reply = post(&world, "/api/v1/messages", &body).await;
        assert_eq!((reply.status, reply.json()), (202, json!({ "event_id": "ev-1" })));
    }
    let copies = (0..10).map(|_| async { post(&world, "/api/v1/messages", &body).await.status });
    assert_eq!(futures_util::future::join_all(copies).await, [202; 10]);
    let review = world.api.review_in("chat_a").await;
    quiet(&world).await;
    assert_eq!(world.api.turns().await.len(), 1);
    assert_eq!(
        said(&world, "chat_a")
            .await
            .iter()
            .filter(|message| message["from"] == "user")
            .count(),
        1
    );
    decide(&world, &review, &json!({ "decision": "cancel", "user_id": "u1" })).await;
    quiet(&world).await;
    let (one, two) = (
        say(&world, "u1", "chat_b", "整理笔记").await,
        say(&world, "u2", "chat_b", "整理笔记").await,
    );
    assert_ne!(one, two);
    quiet(&world).await;
    assert_eq!(world.api.turns().await.len(), 3);
    world.end().await;
}

/// M-5: two threads of a console chat are two conversations; what is said in one does not answer the other.
#[tokio::test]
async fn threads_of_a_console_chat_are_apart() {
    let world = World::start(&[], reporter).await;
    let in_thread = |thread: &str, text: &str| json!({ "chat_id": "chat_a", "user_id": "u1", "text": text, "thread_id": thread });
    for thread in ["t1", "t2"] {
        assert_eq!(post(&world, "/api/v1/messages", &in_thread(thread, "整理笔记")).await.status, 202);
    }
    quiet(&world).await;
    assert_eq!(
        world.api.get("/api/v1/reviews?chat=chat_a").await["items"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    post(&world, "/api/v1/messages", &in_thread("t2", "OK")).await;
    shown(&world, "chat_a", "answer").await;
    quiet(&world).await;
    let open = world.api.get("/api/v1/reviews?chat=chat_a").await["items"]
        .as_array()
        .unwrap()
        .clone();
    assert_eq!(
        open.iter().map(|review| review["thread_id"].as_str().unwrap()).collect::<Vec<_>>(),
        ["t1"]
    );
    let threads: Vec<Value> = said(&world, "chat_a")
        .await
        .iter()
        .map(|message| message["thread_id"].clone())
        .collect();
    assert!(threads.iter().all(|thread| thread == "t1" || thread == "t2"), "{threads:?}");
    world.end().await;
}

/// design: a message has 1 to 16384 characters and ids that can be ids; anything else is 422 and is not taken.
#[tokio::test]
async fn messages_have_limits() {
    let world = World::start(&[("MODEL__PROVIDER", "openai")], |_| crate::support::fake_model::say("好")).await;
    let with = |name: &str, value: Value| {
        let mut body = json!({ "chat_id": "chat_a", "user_id": "u1", "text": "你好" });
        body[name] = value;
        body
    };
    for (name, value) in [
        ("text", json!("")),
        ("text", json!("字".repeat(16_385))),
        ("text", json!(null)),
        ("text", json!(["x"])),
        ("chat_id", json!("")),
        ("chat_id", json!("a\u{0}b")),
        ("chat_id", json!("x".repeat(257))),
        ("user_id", json!("")),
        ("user_id", json!("u\r\n1")),
        ("user_id", json!(1)),
        ("event_id", json!("")),
        ("event_id", json!("e\n")),
        ("event_id", json!("x".repeat(257))),
        ("thread_id", json!("t\u{7f}")),
        ("thread_id", json!({})),
    ] {
        let reply = post(&world, "/api/v1/messages", &with(name, value.clone())).await;
        assert_eq!((reply.status, reply.code().as_str()), (422, "invalid"), "{name}");
        let message = reply.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(message.contains(name) || message.contains("expected a string"), "{name}: {message}");
    }
    quiet(&world).await;
    assert_eq!(world.api.turns().await, Vec::<Value>::new());
    for (name, value) in [
        ("text", json!("字".repeat(16_384))),
        ("thread_id", json!(null)),
        ("event_id", json!(null)),
        ("color", json!("red")),
    ] {
        let body = with(name, value);
        assert_eq!(post(&world, "/api/v1/messages", &body).await.status, 202, "{name}");
    }
    quiet(&world).await;
    assert_eq!(world.api.turns().await.len(), 4);
    world.end().await;
}
