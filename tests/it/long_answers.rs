//! Answers that are longer than a message: in order, whole, once, also over a death of the gateway.

use countersign_playground::Snapshot;
use serde_json::{Value, json};

use crate::support::api::eventually;
use crate::support::fake_model::say;
use crate::support::platform::{On, on_both};
use crate::support::world::{DIRECT, World};

on_both! {
    a_long_answer_is_several_messages,
    a_death_between_parts_doubles_and_loses_none,
}

/// Twelve sections of a thousand characters each.
pub(crate) fn report() -> String {
    let section = |number: usize| format!("## 第 {number} 节\n\n{}终{number}终。", "内容".repeat(490));
    let sections: Vec<String> = (1..=12).map(section).collect();
    sections.join("\n\n")
}

/// The number of the sections that a message of ours closes, message by message.
fn sections(on: On, seen: &Snapshot) -> Vec<Vec<usize>> {
    let of = |text: &str| -> Vec<usize> { (1..=12).filter(|number| text.contains(&format!("终{number}终"))).collect() };
    let found = seen.in_chat(on.direct("long")).map(|message| of(&message.words()));
    found.filter(|numbers| !numbers.is_empty()).collect()
}

/// The sections of each message, once the last one is there.
pub(crate) async fn all_sections(world: &World) -> Vec<Vec<usize>> {
    world
        .seen("all sections", |seen| {
            let found = sections(world.on, seen);
            (found.concat().contains(&12)).then_some(found)
        })
        .await
}

/// M-5, interface: a long answer comes as several messages in order, nothing lost or doubled; the turn keeps it whole.
async fn a_long_answer_is_several_messages(on: On) {
    let world = World::start_on(on, &[], |_: &Value| say(&report())).await;
    world.say(on.user("u1"), on.direct("long"), "写一份长报告", DIRECT).await;
    let found = all_sections(&world).await;
    assert!(found.len() >= 4, "{found:?}");
    assert_eq!(found.concat(), (1..=12).collect::<Vec<_>>());
    let turns = world.api.turns().await;
    let id = turns[0]["id"].as_str().unwrap();
    let turn = world.api.get(&format!("/api/v1/turns/{id}")).await;
    assert_eq!(turn["answer"], report());
    world.end().await;
}

/// F-K18: the gateway dies when the first part of an answer is in the chat and it does not know; every part is there once.
async fn a_death_between_parts_doubles_and_loses_none(on: On) {
    let mut world = World::process_on(on, &[], Some("part_posted"), |_: &Value| say(&report())).await;
    world.say(on.user("u1"), on.direct("long"), "写一份长报告", DIRECT).await;
    world.ended().await;
    let before = sections(on, &world.chat.snapshot());
    assert_eq!(before.len(), 1, "{before:?}");
    world.restart_process(None);
    let found = all_sections(&world).await;
    assert_eq!(found.concat(), (1..=12).collect::<Vec<_>>());
    world.end().await;
}

/// api: the console shows each part as `text` and the last one as `answer`, each with its own words.
#[tokio::test]
async fn the_console_lists_every_part() {
    let world = World::start(&[], |_: &Value| say(&report())).await;
    let message = json!({"chat_id": "room", "user_id": "u1", "text": "写一份长报告"});
    assert_eq!(world.api.post("/api/v1/messages", &message).await.0, 202);
    let items = eventually("the answer", async || {
        let list = world.api.get("/api/v1/messages?chat=room").await;
        let mut items = list["items"].as_array().unwrap().clone();
        items.reverse();
        items.iter().any(|item| item["kind"] == "answer").then_some(items)
    })
    .await;
    let bot: Vec<&Value> = items.iter().filter(|item| item["from"] == "bot").collect();
    let parts: Vec<&Value> = bot
        .into_iter()
        .filter(|item| item["text"].as_str().unwrap().contains('终'))
        .collect();
    let kinds: Vec<&str> = parts.iter().map(|item| item["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == "answer").count(), 1, "{kinds:?}");
    assert!(
        kinds.len() >= 4 && kinds.iter().all(|kind| ["text", "answer"].contains(kind)),
        "{kinds:?}"
    );
    world.end().await;
}
