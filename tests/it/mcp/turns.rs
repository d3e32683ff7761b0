//! Calls of MCP tools inside a turn: who is asked, what the card shows, and what becomes of a call that nobody answered.

use countersign_playground::Posted;
use serde_json::{Value, json};

use crate::support::fake_model::{call, say};
use crate::support::people::rows;
use crate::support::platform::On;
use crate::support::played_mcp::{Played, PlayedHttp, tool};
use crate::support::scripts::{clarified, finished, in_order, planned};
use crate::support::world::{GROUP, World};

const NOTES: &[(&str, &[&str])] = &[("记下来", &["srv__note", "srv__wipe"])];

async fn actions(world: &World, status: &str) -> Vec<Value> {
    world.api.get(&format!("/api/v1/actions?chat=oc_c1&status={status}")).await["items"]
        .as_array()
        .unwrap()
        .clone()
}

fn call_of(name: &str, words: &str) -> Value {
    call([(name, json!({ "text": words }))])
}

/// S2-14, S4-12: a call that no plan declares asks with its arguments on the card; refused it is not sent, approved it is sent once; one
/// that the configuration calls a read asks nobody.
#[tokio::test]
async fn a_call_asks_with_its_arguments() {
    let played = Played::new(&["echo", "note"]);
    let setting = played.setting(&json!({"echo": "read"}));
    let script = in_order(vec![
        call_of("srv__echo", "a"),
        call_of("srv__note", "第一张"),
        call_of("srv__note", "第二张"),
        say("好了"),
    ]);
    let world = World::start(&[("TOOLS__MCP_SERVERS", &setting)], script).await;
    world.say("ou_u1", "oc_c1", "记下来", GROUP).await;
    let card = world.card_titled("oc_c1", "操作确认").await;
    assert!(
        card.words().contains("srv__note") && card.words().contains("第一张"),
        "{}",
        card.words()
    );
    assert_eq!((played.calls("echo"), played.calls("note")), (1, 0));
    world.press("ou_u1", "oc_c1", &card, &refusal(&rows(&card)[0]), None).await;
    let card = asking(&world, "第二张").await;
    world.tap("ou_u1", "oc_c1", &card, "approve", None).await;
    world.hears("oc_c1", "好了").await;
    assert_eq!(played.file("notes").unwrap(), "第二张\n");
    let done = actions(&world, "executed").await.remove(0);
    assert_eq!(
        (&done["tool"], &done["effect"], &done["result"]["text"]),
        (&json!("srv__note"), &json!("write"), &json!("noted"))
    );
    let turn = world.api.turns().await.remove(0);
    let messages = world.api.messages(&turn).await;
    assert!(
        messages
            .iter()
            .any(|message| message["content"] == "[tool_result:srv__echo] echo a"),
        "{messages:#?}"
    );
    world.end().await;
}

/// An open card that shows these words.
async fn asking(world: &World, words: &str) -> Posted {
    let found = |message: &&Posted| message.words().contains(words) && message.button("approve").is_some();
    world.seen(words, |seen| seen.in_chat("oc_c1").find(found).cloned()).await
}

fn refusal(row: &Value) -> Value {
    json!({ "action": "reject", "action_id": row["action_id"] })
}

/// design: interface §5, an approved plan grants the write tools that it declares; one whose server calls it destructive asks all the same.
#[tokio::test]
async fn a_plan_grants_writes_and_a_destructive_tool_asks() {
    let played = Played::new(&["note"]);
    let mut wipe = tool("note");
    wipe["name"] = "wipe".into();
    wipe["annotations"] = json!({"readOnlyHint": true, "destructiveHint": true});
    played.offer(&[tool("note"), wipe]);
    let setting = played.setting(&json!({}));
    let script = in_order(vec![
        planned("记下来", NOTES),
        clarified(),
        call_of("srv__note", "x"),
        call_of("srv__wipe", "all"),
        finished(),
        say("好了"),
    ]);
    let world = World::start(&[("TOOLS__MCP_SERVERS", &setting)], script).await;
    world.say("ou_u1", "oc_c1", "记下来", GROUP).await;
    let plan = world.plan_card("oc_c1").await;
    world.tap("ou_u1", "oc_c1", &plan, "approve", None).await;
    let card = world.card_titled("oc_c1", "操作确认").await;
    assert!(card.words().contains("srv__wipe"), "{}", card.words());
    assert_eq!((played.calls("note"), played.calls("wipe")), (1, 0));
    world.tap("ou_u1", "oc_c1", &card, "reject", None).await;
    world.hears("oc_c1", "好了").await;
    assert_eq!(
        (
            played.calls("wipe"),
            actions(&world, "executed").await[0]["decision"]["via"].clone()
        ),
        (0, json!("grant"))
    );
    world.end().await;
}

/// F-T4, F-K14: a server that dies in an approved call leaves it unknown: a person is asked, nothing is sent again before, and an approval
/// sends it once more to the server that came back.
#[tokio::test]
async fn a_call_that_nobody_answered_asks_a_person() {
    let played = Played::new(&["die"]);
    let setting = played.setting(&json!({}));
    let script = in_order(vec![call_of("srv__die", "once"), say("好了")]);
    let world = World::start(&[("TOOLS__MCP_SERVERS", &setting)], script).await;
    world.say("ou_u1", "oc_c1", "做", GROUP).await;
    let card = world.card_titled("oc_c1", "操作确认").await;
    world.tap("ou_u1", "oc_c1", &card, "approve", None).await;
    let asked = world
        .seen("the question about the unknown call", |seen| {
            seen.in_chat("oc_c1")
                .rfind(|message| message.id != card.id && message.button("approve").is_some())
                .cloned()
        })
        .await;
    assert_eq!((played.calls("die"), actions(&world, "unknown").await.len()), (1, 1));
    crate::support::api::eventually("the server's return", || async {
        (played.heard("initialize").len() == 2).then_some(())
    })
    .await;
    world.breath().await;
    world.tap("ou_u1", "oc_c1", &asked, "approve", None).await;
    world.hears("oc_c1", "好了").await;
    assert_eq!(played.file("notes").unwrap(), "once\nonce\n");
    world.end().await;
}

/// S4-2, design: rule 6, a read that the server did not answer is a failed read: nobody is asked, the model hears of it.
#[tokio::test]
async fn a_read_that_nobody_answered_is_a_failed_read() {
    let played = Played::new(&["die"]);
    let setting = played.setting(&json!({"die": "read"}));
    let script = in_order(vec![call_of("srv__die", "x"), say("好了")]);
    let world = World::start_on(On::Lark, &[("TOOLS__MCP_SERVERS", &setting)], script).await;
    world.say("ou_u1", "oc_c1", "读", GROUP).await;
    world.hears("oc_c1", "好了").await;
    let turn = world.api.turns().await.remove(0);
    let messages = world.api.messages(&turn).await;
    let heard = messages.iter().find(|message| message["role"] == "tool").unwrap()["content"]
        .as_str()
        .unwrap();
    assert!(heard.contains("did not answer") && heard.contains("is not known"), "{heard}");
    world.end().await;
}

/// interface §10 M, F15 of the peers: a session that is forgotten while a card waits costs no second approval: the call was never taken, and is sent over the next one.
#[tokio::test]
async fn an_approval_outlives_the_session() {
    let played = Played::new(&["note"]);
    let http = PlayedHttp::start(&played).await;
    let script = in_order(vec![call_of("srv__note", "once"), say("好了")]);
    let world = World::start(&[("TOOLS__MCP_SERVERS", &http.setting())], script).await;
    world.say("ou_u1", "oc_c1", "做", GROUP).await;
    let card = world.card_titled("oc_c1", "操作确认").await;
    http.forget();
    world.tap("ou_u1", "oc_c1", &card, "approve", None).await;
    world.hears("oc_c1", "好了").await;
    assert_eq!(played.file("notes").unwrap(), "once\n");
    assert_eq!(actions(&world, "executed").await.len(), 1);
    world.end().await;
}
