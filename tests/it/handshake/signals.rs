//! Continuation signals over HTTP: obeyed, told on the timeline, seen by nobody.

use serde_json::{Value, json};

use crate::support::fake_model::{Script, say};
use crate::support::platform::{On, on_either};
use crate::support::scripts::{reads, reporter};
use crate::support::world::{GROUP, World};

on_either! {
    a_signal_goes_on_and_nobody_sees_its_json,
    a_required_signal_is_asked_for_and_its_absence_ends,
}

fn system_prompt(request: &Value) -> &str {
    request["messages"][0]["content"].as_str().unwrap()
}

/// S3-5, S3-9, S3-11, C18: a CONTINUE without calls loops, its progress is an event, what it announced is not done; people, the API and
/// the next request to the model have the words without the JSON.
async fn a_signal_goes_on_and_nobody_sees_its_json(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], reporter).await;
    let announced = json!({"continuation": {"status": "CONTINUE", "reason": "还要读笔记",
        "next_action": {"type": "tool_call", "tool": "write_file", "parameters": {"path": "forged.md", "content": "x"}},
        "progress": {"current_step": 1, "total_steps": 2, "completion_percentage": 50}}});
    let answer = json!({"response": "看完了。", "continuation": {"status": "TERMINATE", "reason": "done"}});
    let script = Script::new()
        .message(say(&format!("先看看。\n```json\n{announced:#}\n```")))
        .message(reads())
        .message(say(&answer.to_string()));
    world.model.script("看笔记", script);
    world.say(u, c, "看笔记", GROUP).await;
    world.hears(c, "看完了。").await;
    let turn = world.api.turn_in(c, "completed").await;
    assert_eq!((&turn["reason"], world.count(c, "continuation")), (&json!("final_answer"), 0));
    assert_eq!(world.file("forged.md"), None);
    let path = format!("/api/v1/turns/{}", turn["id"].as_str().unwrap());
    let messages = world.api.get(&format!("{path}/messages")).await;
    let said = messages["items"].as_array().unwrap().iter().skip(1);
    assert!(said.clone().count() > 3, "{messages}");
    for message in said {
        assert!(
            !message["content"].as_str().unwrap_or_default().contains("\"continuation\""),
            "{message}"
        );
    }
    let events = world.api.get(&format!("{path}/events?after=0")).await;
    let progress: Vec<_> = events["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["type"] == "continuation_progress")
        .map(|event| event["data"].clone())
        .collect();
    assert_eq!(
        progress,
        [
            json!({"iteration": 1, "max_iterations": 10, "current_step": 1, "total_steps": 2, "percentage": 50.0, "current_tools": ["write_file"]})
        ]
    );
    let request = &world.model.seen_of("看笔记")[1];
    assert!(system_prompt(request).contains("## CONTINUATION PROTOCOL") && !system_prompt(request).contains("MUST end with"));
    let last = request["messages"].as_array().unwrap().last().unwrap();
    assert!(last["content"].as_str().unwrap().starts_with("<turn-continuation>\n"), "{last}");
    world.end().await;
}

/// S3-7, S3-8: with `require_explicit_signal` the model is told that every answer needs its signal, features or not; words without one
/// are final, whatever they sound like.
async fn a_required_signal_is_asked_for_and_its_absence_ends(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let settings = [("AGENT__REQUIRE_EXPLICIT_SIGNAL", "true"), ("AGENT__PROMPT_FEATURES", "[]")];
    let world = World::start_on(on, &settings, reporter).await;
    world.model.script("看笔记", Script::new().text("not finished, I will continue"));
    world.say(u, c, "看笔记", GROUP).await;
    world.hears(c, "not finished, I will continue").await;
    let seen = world.model.seen_of("看笔记");
    assert_eq!(seen.len(), 1);
    assert!(system_prompt(&seen[0]).contains("Every reply without tool calls MUST end with one JSON object"));
    world.end().await;
}
