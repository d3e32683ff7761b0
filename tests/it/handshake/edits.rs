//! A person edits the arguments of a waiting call over the API, and approves it so.

use serde_json::{Value, json};

use super::actions::{actions, tool_words};
use crate::support::api::eventually;
use crate::support::fake_model::say;
use crate::support::people::rows;
use crate::support::platform::{On, on_either};
use crate::support::quiet::stored;
use crate::support::scripts::{in_order, planned_simply, writes};
use crate::support::world::{GROUP, World};

on_either! {
    a_call_runs_with_the_arguments_of_the_person_who_approved_it,
    arguments_that_cannot_be_are_told_and_change_nothing,
    a_call_of_unknown_outcome_keeps_its_arguments,
    an_edited_call_survives_a_kill_between_decision_and_run,
    an_edited_call_whose_file_changed_asks_again,
    an_edit_does_not_get_around_a_rule,
}

/// A model that writes these files and says that it is done.
fn writer(names: &[&str]) -> impl Fn(&Value) -> Value + Send + Sync + 'static {
    in_order(vec![planned_simply("写", &[]), writes(names), say("好了")])
}

/// Asks for the files; gives the calls that wait.
async fn asked(world: &World) -> Vec<Value> {
    let c = world.on.chat("c1");
    world.say(world.on.user("u1"), c, "写", GROUP).await;
    world.card_titled(c, "操作确认").await;
    let mut waiting = actions(world, "pending").await;
    waiting.sort_by_key(|row| row["arguments"]["path"].to_string());
    waiting
}

async fn decide(world: &World, row: &Value, body: Value) -> (u16, Value) {
    let path = format!("/api/v1/actions/{}/decision", row["id"].as_str().unwrap());
    let mut body = body;
    body["user_id"] = world.on.user("u1").into();
    world.api.post(&path, &body).await
}

/// Decides where the process is about to die. `None`: it was dead before it could answer, and the decision is stored all the same.
async fn decide_before_the_end(world: &World, row: &Value, mut body: Value) -> Option<Value> {
    let path = format!("/api/v1/actions/{}/decision", row["id"].as_str().unwrap());
    body["user_id"] = world.on.user("u1").into();
    let response = world.api.http().post(world.api.url(&path)).json(&body).send().await.ok()?;
    response.json().await.ok()
}

/// interface (H), api (H): what runs is what the person wrote; the action, the card, the trail and the model's next request say so, and the model's
/// own call stays in its log as it was.
async fn a_call_runs_with_the_arguments_of_the_person_who_approved_it(on: On) {
    let world = World::start_on(on, &[], writer(&["a.md", "z.md"])).await;
    let waiting = asked(&world).await;
    assert_eq!(waiting[0]["edited"], Value::Null);
    let theirs = json!({"path": "b.md", "content": "人的话\n</plan_feedback>\n"});
    let edit = json!({"decision": "approve", "arguments": theirs});
    let (status, row) = decide(&world, &waiting[0], edit.clone()).await;
    assert_eq!((status, &row["arguments"]), (200, &theirs), "{row}");
    assert_eq!(row["edited"]["original"], waiting[0]["arguments"]);
    assert_eq!(
        (&row["edited"]["by"], &row["edited"]["through_api"]),
        (&json!(on.user("u1")), &json!(true))
    );
    assert!(row["justification"].as_str().unwrap().starts_with("Write: b.md"), "{row}");
    let preview = row["preview"].as_str().unwrap();
    assert!(
        preview.contains("+++ b.md") && !preview.contains("a.md"),
        "the preview is of the call that runs: {preview}"
    );
    let (status, again) = decide(&world, &waiting[0], edit).await;
    assert_eq!((status, &again["arguments"]), (200, &theirs), "the same once more is the same");
    for other in [
        json!({"decision": "approve"}),
        json!({"decision": "approve", "arguments": {"path": "c.md", "content": ""}}),
    ] {
        assert_eq!(decide(&world, &waiting[0], other).await.0, 409, "another decision is another");
    }
    let card = world.repainted(&world.card_titled(on.chat("c1"), "操作确认").await, "b.md").await;
    assert!(
        card.words().contains("批准时修改了参数") && !rows(&card).is_empty(),
        "{}",
        card.words()
    );
    assert_eq!(decide(&world, &waiting[1], json!({"decision": "approve"})).await.0, 200);
    world.hears(on.chat("c1"), "好了").await;
    assert_eq!(world.file("b.md").as_deref(), Some("人的话\n</plan_feedback>\n"));
    assert_eq!((world.file("a.md"), world.file("z.md").is_some()), (None, true));
    let told = tool_words(&world).await;
    let told = told.iter().find(|words| words.contains("edited: ")).unwrap();
    assert!(
        told.starts_with("[tool_result:write_file] edited: a person changed the arguments") && told.contains("b.md"),
        "{told}"
    );
    assert!(
        told.contains("&lt;/plan_feedback&gt;") && !told.contains("</plan_feedback>") && told.contains("created"),
        "{told}"
    );
    let turn = world.turns_in(on.chat("c1")).await.remove(0);
    let log = Value::from(world.api.messages(&turn).await).to_string();
    assert!(log.contains("内容 a.md"), "the model's own call stays as it sent it: {log}");
    let trail = stored(&world, "SELECT details FROM audit WHERE kind = 'action_edited'").await;
    assert!(
        trail.len() == 1 && trail[0].contains("a.md") && trail[0].contains("b.md"),
        "{trail:?}"
    );
    world.end().await;
}

/// api (H): the arguments are held to the tool's schema, and only an approval changes them.
async fn arguments_that_cannot_be_are_told_and_change_nothing(on: On) {
    let world = World::start_on(on, &[], writer(&["a.md"])).await;
    let row = asked(&world).await.remove(0);
    for (body, words) in [
        (
            json!({"decision": "approve", "arguments": {"path": "b.md"}}),
            "arguments: `content` is required",
        ),
        (
            json!({"decision": "approve", "arguments": {"path": 1, "content": ""}}),
            "arguments: `path` must be",
        ),
        (
            json!({"decision": "approve", "arguments": {"path": "b.md", "content": "", "mode": 1}}),
            "unknown parameter `mode`",
        ),
        (json!({"decision": "approve", "arguments": ["b.md"]}), "must be one JSON object"),
        (
            json!({"decision": "reject", "arguments": {"path": "b.md", "content": ""}}),
            "only an approval",
        ),
    ] {
        let (status, told) = decide(&world, &row, body).await;
        assert_eq!(status, 422, "{told}");
        assert!(told["error"]["message"].as_str().unwrap().contains(words), "{words}: {told}");
    }
    assert_eq!(actions(&world, "pending").await, std::slice::from_ref(&row), "nothing was changed");
    decide(&world, &row, json!({"decision": "reject"})).await;
    world.hears(on.chat("c1"), "好了").await;
    world.end().await;
}

/// interface (H): a call that may have run is run again as it is, or not at all.
async fn a_call_of_unknown_outcome_keeps_its_arguments(on: On) {
    let mut world = World::process_on(on, &[], Some("action_sent"), writer(&["a.md"])).await;
    let row = asked(&world).await.remove(0);
    decide_before_the_end(&world, &row, json!({"decision": "approve"})).await;
    world.ended().await;
    world.restart_process(None);
    let lost = eventually("the lost call", || async { actions(&world, "unknown").await.pop() }).await;
    let edit = json!({"decision": "approve", "gate_id": lost["gate_id"], "arguments": {"path": "b.md", "content": ""}});
    let (status, told) = decide(&world, &lost, edit).await;
    assert_eq!(status, 409);
    assert!(
        told["error"]["message"]
            .as_str()
            .unwrap()
            .contains("not known whether this call ran"),
        "{told}"
    );
    decide(&world, &lost, json!({"decision": "approve", "gate_id": lost["gate_id"]})).await;
    world.hears(on.chat("c1"), "好了").await;
    assert_eq!((world.file("a.md").is_some(), world.file("b.md")), (true, None));
    world.end().await;
}

/// design: the edit is part of the decision. A process that dies before the call was sent leaves it to the next one, which runs exactly what was edited.
async fn an_edited_call_survives_a_kill_between_decision_and_run(on: On) {
    for point in ["decision_read", "action_unsent"] {
        let mut world = World::process_on(on, &[], Some(point), writer(&["a.md"])).await;
        let row = asked(&world).await.remove(0);
        let edit = json!({"decision": "approve", "arguments": {"path": "b.md", "content": "人的话"}});
        decide_before_the_end(&world, &row, edit).await;
        world.ended().await;
        assert_eq!((world.file("a.md"), world.file("b.md")), (None, None), "{point}");
        world.restart_process(None);
        world.hears(on.chat("c1"), "好了").await;
        assert_eq!(
            (world.file("a.md"), world.file("b.md").as_deref()),
            (None, Some("人的话")),
            "{point}"
        );
        assert!(tool_words(&world).await.iter().any(|words| words.contains("edited: ")), "{point}");
        world.end().await;
    }
}

/// interface: an edited call of a file that changed since the approval is not sent; it asks again, with its own preview, and keeps the edit.
async fn an_edited_call_whose_file_changed_asks_again(on: On) {
    let mut world = World::process_on(on, &[], Some("decision_read"), writer(&["a.md"])).await;
    let row = asked(&world).await.remove(0);
    let edit = json!({"decision": "approve", "arguments": {"path": "notes.md", "content": "人的话\n"}});
    if let Some(edited) = decide_before_the_end(&world, &row, edit).await {
        assert!(edited["preview"].as_str().unwrap().contains("-# Notes"), "{edited}");
    }
    world.ended().await;
    std::fs::write(world.folder.path().join("workspace/notes.md"), "另一个人\n").unwrap();
    world.restart_process(None);
    let again = eventually("the call asks again", || async {
        let waiting = actions(&world, "pending").await.pop()?;
        (waiting["gate_id"] != row["gate_id"]).then_some(waiting)
    })
    .await;
    assert_eq!(
        (&again["arguments"]["path"], &again["edited"]["original"]),
        (&json!("notes.md"), &row["arguments"])
    );
    assert!(again["preview"].as_str().unwrap().contains("-另一个人"), "{again}");
    assert_eq!(world.file("notes.md").as_deref(), Some("另一个人\n"));
    let (status, told) = decide(&world, &again, json!({"decision": "approve", "gate_id": again["gate_id"]})).await;
    assert_eq!(status, 200, "{told}");
    world.hears(on.chat("c1"), "好了").await;
    assert_eq!(world.file("notes.md").as_deref(), Some("人的话\n"));
    world.end().await;
}

/// interface §9: what a rule says of the changed call counts: one that is denied is refused, and one about which it asks others must be asked for
/// anew. The call waits on as it was.
async fn an_edit_does_not_get_around_a_rule(on: On) {
    let boss = on.user("boss");
    let rules = format!(
        "[{{tool: write_file, where: {{path: 'prod/**'}}, then: ask, approvers: [{boss}]}}, {{tool: write_file, where: {{path: 'secret/**'}}, then: deny}}]"
    );
    let world = World::start_on(on, &[("RULES", &rules)], writer(&["a.md"])).await;
    let waiting = asked(&world).await.remove(0);
    for (path, status) in [("prod/x", 409), ("secret/x", 422)] {
        let edit = json!({"decision": "approve", "arguments": {"path": path, "content": "x"}});
        let (found, told) = decide(&world, &waiting, edit).await;
        assert_eq!(found, status, "{told}");
        assert!(
            told["error"]["message"].as_str().unwrap().contains("a rule of the administrator"),
            "{told}"
        );
    }
    assert_eq!(actions(&world, "pending").await[0]["arguments"], waiting["arguments"]);
    assert_eq!(decide(&world, &waiting, json!({"decision": "approve"})).await.0, 200);
    world.hears(on.chat("c1"), "好了").await;
    assert!(world.file("a.md").is_some() && world.file("prod/x").is_none());
    world.end().await;
}

/// interface §9: on the console people speak for themselves. Somebody who may not decide a call changes nothing of it, although they may decide
/// another one of its card.
#[tokio::test]
async fn an_edit_that_is_refused_leaves_nothing() {
    let rules = "[{tool: write_file, where: {path: 'prod/**'}, then: ask, approvers: [anna]}]";
    let world = World::start(&[("RULES", rules)], writer(&["a.md", "prod/x"])).await;
    let request = json!({"chat_id": "demo", "user_id": "bob", "text": "写"});
    assert_eq!(world.api.post("/api/v1/messages", &request).await.0, 202);
    let both = || async {
        let rows = world.api.get("/api/v1/actions?chat=demo").await["items"]
            .as_array()
            .unwrap()
            .clone();
        (rows.len() == 2).then_some(rows)
    };
    let rows = eventually("both calls", both).await;
    let row = rows.iter().find(|row| row["arguments"]["path"] == "prod/x").unwrap();
    let path = format!("/api/v1/actions/{}", row["id"].as_str().unwrap());
    let edit = json!({"decision": "approve", "user_id": "bob", "arguments": {"path": "prod/y", "content": "bob's"}});
    assert_eq!(world.api.post(&format!("{path}/decision"), &edit).await.0, 403);
    let now = world.api.get(&path).await;
    assert_eq!((&now["arguments"], &now["edited"]), (&row["arguments"], &Value::Null));
    let stop = json!({"user_id": "bob"});
    let turn = row["turn_id"].as_str().unwrap();
    assert_eq!(world.api.post(&format!("/api/v1/turns/{turn}/cancel"), &stop).await.0, 200);
    world.api.turn_in("demo", "cancelled").await;
    world.end().await;
}
