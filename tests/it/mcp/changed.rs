//! Definitions that change, and are confirmed, while a turn is under way: what was allowed under the old one is not allowed under the new one.

use countersign_playground::Posted;
use serde_json::{Value, json};

use crate::support::api::eventually;
use crate::support::fake_model::{Gate, Script, call};
use crate::support::played_mcp::{Played, tool};
use crate::support::scripts::{clarified, finished, gated, planned, reporter};
use crate::support::world::{DIRECT, GROUP, World};

const TASK: &str = "记下来";
const NEWS: &str = "有什么变化";

async fn world_of(played: &Played) -> World {
    let setting = played.setting(&json!({"announce": "read"}));
    World::start(&[("TOOLS__MCP_SERVERS", &setting)], reporter).await
}

fn note() -> Value {
    call([("srv__note", json!({"text": "x"}))])
}

/// The definition of `note` changes: its server calls it destructive from now on. An admin confirms it.
async fn change(world: &World, played: &Played) {
    let mut changed = tool("note");
    changed["annotations"] = json!({"destructiveHint": true});
    played.offer(&[tool("announce"), changed]);
    // Somebody else's task makes the server tell its news.
    world
        .model
        .script(NEWS, Script::new().call("srv__announce", json!({})).text("换了"));
    world.say("ou_u2", "oc_c2", NEWS, DIRECT).await;
    world.hears("oc_c2", "换了").await;
    let waiting = || async { world.api.get("/api/v1/mcp").await["items"][0].clone() };
    let listed = eventually("the new definition", || async {
        Some(waiting().await).filter(|server| server["confirmation"].is_string())
    })
    .await;
    assert_eq!(
        (&listed["waiting"][0]["name"], &listed["waiting"][0]["effect"]),
        (&json!("note"), &json!("destructive"))
    );
    let (status, done) = world
        .api
        .post("/api/v1/mcp/srv/confirm", &json!({"confirmation": listed["confirmation"]}))
        .await;
    assert_eq!(status, 200, "{done}");
    eventually("the tool on offer again", || async {
        (waiting().await["status"] == "ok").then_some(())
    })
    .await;
}

/// The open card about `srv__note` that is not `older`.
async fn asked(world: &World, older: Option<&Posted>) -> Posted {
    let found = |message: &&Posted| {
        older.is_none_or(|older| older.id != message.id) && message.words().contains("srv__note") && message.button("reject").is_some()
    };
    world
        .seen("a card about the call", |seen| seen.in_chat("oc_c1").rfind(found).cloned())
        .await
}

async fn effects(world: &World, status: &str) -> Vec<Value> {
    let listed = world.api.get(&format!("/api/v1/actions?chat=oc_c1&status={status}")).await;
    let items = listed["items"].as_array().unwrap().iter();
    items.map(|action| action["effect"].clone()).collect()
}

async fn told(world: &World) -> bool {
    let turn = world.api.turn_in("oc_c1", "completed").await;
    let messages = world.api.messages(&turn).await;
    let words = "the definition of srv__note has changed since this call was made";
    messages
        .iter()
        .any(|message| message["content"].as_str().is_some_and(|text| text.contains(words)))
}

/// design: issue E part D, an approval is of a call as its card showed it: approved after the definition changed, it is not sent; the model
/// hears why, and its next call asks with the class that the tool has now.
#[tokio::test]
async fn an_approval_is_of_one_definition() {
    let played = Played::new(&["announce", "note"]);
    let world = world_of(&played).await;
    world.model.script(TASK, Script::new().message(note()).message(note()).text("好了"));
    world.say("ou_u1", "oc_c1", TASK, GROUP).await;
    let card = asked(&world, None).await;
    assert_eq!(effects(&world, "pending").await, ["write"]);
    change(&world, &played).await;
    world.tap("ou_u1", "oc_c1", &card, "approve", None).await;
    let again = asked(&world, Some(&card)).await;
    assert_eq!(
        (played.calls("note"), effects(&world, "pending").await),
        (0, vec![json!("destructive")])
    );
    world.tap("ou_u1", "oc_c1", &again, "approve", None).await;
    world.hears("oc_c1", "好了").await;
    assert_eq!(played.file("notes").unwrap(), "x\n");
    assert_eq!(
        (effects(&world, "executed").await, effects(&world, "failed").await),
        (vec![json!("destructive")], vec![json!("write")])
    );
    assert!(told(&world).await);
    world.end().await;
}

/// design: issue E part D, a turn under way does not keep the classes that it began with: a call that the model made by the old definition
/// is not sent under the approved plan, and one by the new definition, which is destructive, asks.
#[tokio::test]
async fn a_turn_under_way_hears_of_a_new_class() {
    let played = Played::new(&["announce", "note"]);
    let (world, gate) = (world_of(&played).await, Gate::new());
    let script = Script::new().message(planned(TASK, &[(TASK, &["srv__note"])])).message(clarified());
    let script = script.then(gated(&gate, note())).message(note()).message(finished()).text("好了");
    world.model.script(TASK, script);
    world.say("ou_u1", "oc_c1", TASK, GROUP).await;
    let plan = world.plan_card("oc_c1").await;
    world.tap("ou_u1", "oc_c1", &plan, "approve", None).await;
    gate.reached().await;
    change(&world, &played).await;
    gate.open();
    let card = asked(&world, Some(&plan)).await;
    assert_eq!(
        (played.calls("note"), effects(&world, "pending").await),
        (0, vec![json!("destructive")])
    );
    world.tap("ou_u1", "oc_c1", &card, "approve", None).await;
    world.hears("oc_c1", "好了").await;
    assert_eq!(played.calls("note"), 1);
    assert!(told(&world).await);
    world.end().await;
}
