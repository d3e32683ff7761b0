//! Actions over the API: an undeclared write asks, runs after its approval, never after a refusal.

use serde_json::{Value, json};

use super::say;
use crate::support::api::eventually;
use crate::support::fake_model::{call, say as answer};
use crate::support::quiet::quiet;
use crate::support::raw::{Reply, post};
use crate::support::world::{World, last};

/// Writes two files at once without any plan, then tells what came of it.
fn writer(request: &Value) -> Value {
    if last(request)["role"] != "tool" {
        let file = |name: &str| ("write_file", json!({ "path": name, "content": "x\n" }));
        return call([file("one.md"), file("two.md")]);
    }
    answer("都办好了。")
}

/// The actions that wait in a chat, in the order of the calls.
async fn waiting(world: &World, chat: &str) -> Vec<Value> {
    eventually("two actions that wait", || async {
        let mut items = world.api.get(&format!("/api/v1/actions?chat={chat}")).await["items"]
            .as_array()
            .unwrap()
            .clone();
        items.sort_by_key(|action| action["arguments"]["path"].to_string());
        (items.len() == 2).then_some(items)
    })
    .await
}

async fn decide(world: &World, action: &Value, body: &Value) -> Reply {
    post(world, &format!("/api/v1/actions/{}/decision", action["id"].as_str().unwrap()), body).await
}

/// Decides an action as a program does: what was not stored is sent again.
async fn decide_at_last(world: &World, action: &Value, body: &Value) -> Reply {
    let stored = || async {
        let reply = decide(world, action, body).await;
        (reply.status != 503).then_some(reply)
    };
    eventually("a decision that is stored", stored).await
}

/// S4-2, S4-3, S4-7, S4-11: two undeclared writes wait, one is approved and one rejected over the API; only the first runs, the turn
/// goes on once, and the model hears both verdicts.
#[tokio::test]
async fn an_undeclared_write_waits_and_runs_after_its_approval() {
    let world = World::start(&[], writer).await;
    say(&world, "u1", "chat_a", "写两个文件").await;
    let actions = waiting(&world, "chat_a").await;
    let [one, two] = &actions[..] else { panic!("{actions:?}") };
    for action in &actions {
        assert!(action["id"].as_str().unwrap().starts_with("act_"));
        assert_eq!(
            (&action["status"], &action["tool"], &action["effect"]),
            (&json!("pending"), &json!("write_file"), &json!("write"))
        );
        assert_eq!(
            (&action["decision"], &action["result"], &action["user_id"]),
            (&Value::Null, &Value::Null, &json!("u1"))
        );
        assert!(action["expires_at"].is_string() && !action["justification"].as_str().unwrap().is_empty());
    }
    let turn = world.api.turn_in("chat_a", "paused").await;
    assert_eq!(turn["gate"]["kind"], "tool_approval");
    assert_eq!((world.file("one.md"), world.file("two.md")), (None, None));

    let approved = decide(&world, one, &json!({ "decision": "approve", "user_id": "u1" })).await;
    assert_eq!(
        (approved.status, &approved.json()["status"], &approved.json()["decision"]["by"]),
        (200, &json!("approved"), &json!("u1"))
    );
    quiet(&world).await;
    assert_eq!(world.file("one.md"), None, "rows run when the gate settles");
    let rejected = decide(
        &world,
        two,
        &json!({ "decision": "reject", "reason": "不要第二个", "user_id": "u1" }),
    )
    .await;
    assert_eq!((rejected.status, &rejected.json()["status"]), (200, &json!("rejected")));
    let done = world.api.turn_in("chat_a", "completed").await;
    quiet(&world).await;
    assert_eq!((world.file("one.md").as_deref(), world.file("two.md")), (Some("x\n"), None));

    let path = |action: &Value| format!("/api/v1/actions/{}", action["id"].as_str().unwrap());
    let executed = world.api.get(&path(one)).await;
    assert_eq!(
        (&executed["status"], &executed["decision"]["via"]),
        (&json!("executed"), &json!("api"))
    );
    assert!(executed["result"]["text"].is_string() && executed["result"]["truncated"] == json!(false));
    let refused = world.api.get(&path(two)).await;
    assert_eq!(
        (&refused["status"], &refused["decision"]["text"], &refused["result"]),
        (&json!("rejected"), &json!("不要第二个"), &Value::Null)
    );
    let results: Vec<Value> = world
        .api
        .messages(&done)
        .await
        .into_iter()
        .filter(|message| message["role"] == "tool")
        .collect();
    assert_eq!(results.len(), 2);
    assert!(
        results[0]["content"].as_str().unwrap().starts_with("[tool_result:write_file] "),
        "{results:?}"
    );
    assert!(results[1]["content"].as_str().unwrap().contains("不要第二个"), "{results:?}");
    assert_eq!(world.model.seen().len(), 2, "one continuation");

    // Later words change nothing.
    assert_eq!(
        decide(&world, one, &json!({ "decision": "approve", "user_id": "u1" })).await.status,
        200
    );
    let late = decide(&world, one, &json!({ "decision": "reject", "user_id": "u1" })).await;
    assert_eq!((late.status, late.code().as_str()), (409, "conflict"));
    let message = late.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(
        message.contains("u1") && message.contains(executed["decision"]["at"].as_str().unwrap()),
        "{message}"
    );
    for wrong in ["cancel", "revise", "executed", ""] {
        let reply = decide(&world, two, &json!({ "decision": wrong, "user_id": "u1" })).await;
        assert_eq!((reply.status, reply.code().as_str()), (422, "invalid"), "{wrong}");
    }
    world.end().await;
}

/// S4-7, S4-8: fifty decisions at once on two rows make one continuation, and each write runs once.
#[tokio::test]
async fn many_decisions_at_once_continue_once() {
    let world = World::start(&[], writer).await;
    say(&world, "u1", "chat_a", "写两个文件").await;
    let actions = waiting(&world, "chat_a").await;
    let approve = json!({ "decision": "approve", "user_id": "u1" });
    let all = (0..50).map(|at| decide_at_last(&world, &actions[at % 2], &approve));
    let replies = futures_util::future::join_all(all).await;
    assert!(replies.iter().all(|reply| reply.status == 200), "{replies:?}");
    let done = world.api.turn_in("chat_a", "completed").await;
    quiet(&world).await;
    let types = world.api.event_types(&done).await;
    assert_eq!(types.iter().filter(|kind| *kind == "turn_resumed").count(), 1);
    assert_eq!(types.iter().filter(|kind| *kind == "tool_started").count(), 2);
    assert_eq!(world.model.seen().len(), 2);
    world.end().await;
}
