//! What a scenario expects, and the gateway's own rules.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use super::recorded::{Scenario, words};
use crate::support::world::World;

/// Words of ours that only the model may see.
const INNER: [&str; 6] = ["<plan_", "<plan-", "<turn-", "<mailbox", "\"continuation\"", "\"outcome\""];

type Files = BTreeMap<String, String>;

/// The files below `folder`.
pub(super) fn files(folder: &Path) -> Files {
    let mut found = Files::new();
    let mut open = vec![folder.to_owned()];
    while let Some(inside) = open.pop() {
        for path in std::fs::read_dir(inside).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
                found.insert(name, std::fs::read_to_string(path).unwrap());
            }
        }
    }
    found
}

/// What is not as the scenario expects.
pub(super) fn differences(scenario: &Scenario, turn: &Value, gates: &[String], before: &Files, after: &Files) -> Vec<String> {
    let expect = scenario.expect();
    let mut found = Vec::new();
    let mut check = |right: bool, what: String| {
        if !right {
            found.push(what);
        }
    };
    let status = expect["status"].as_str().unwrap_or("completed");
    check(turn["status"] == status, format!("ended as {}: {}", turn["status"], turn["reason"]));
    let answer = turn["answer"].as_str().unwrap_or_default();
    for word in words(&expect["answer"]) {
        check(answer.contains(word), format!("the answer does not say {word}: {answer}"));
    }
    for word in words(&expect["never"]) {
        check(!answer.contains(word), format!("the answer says {word}: {answer}"));
    }
    for (path, wanted) in expect["files"].as_object().into_iter().flatten() {
        for word in words(wanted) {
            check(
                after.get(path).is_some_and(|text| text.contains(word)),
                format!("{path} lacks {word}"),
            );
        }
    }
    for path in words(&expect["same"]) {
        check(
            before.contains_key(path) && before.get(path) == after.get(path),
            format!("{path} was changed"),
        );
    }
    for path in words(&expect["absent"]) {
        check(!after.contains_key(path), format!("{path} is there"));
    }
    if expect["gates"].is_array() {
        check(words(&expect["gates"]) == gates, format!("gates: {gates:?}"));
    }
    check(expect["no_gates"] != true || gates.is_empty(), format!("gates: {gates:?}"));
    if expect["steps"].is_array() {
        let steps = turn["plan"]["steps"].as_array().into_iter().flatten();
        let steps: Vec<&str> = steps.map(|step| step["status"].as_str().unwrap()).collect();
        check(words(&expect["steps"]) == steps, format!("steps: {steps:?}"));
    }
    let open = turn["open_steps"].as_array().map_or(0, Vec::len);
    check(expect["open_steps"] != true || open > 0, String::from("open steps are not named"));
    found
}

/// Rules of the gateway that were broken.
pub(super) async fn violations(world: &World, turn: &Value, before: &Files, after: &Files) -> Vec<String> {
    let id = turn["id"].as_str().unwrap();
    let mut found = Vec::new();
    let mut ran = Vec::new();
    for status in ["approved", "running", "executed", "failed", "unknown"] {
        let path = format!("/api/v1/actions?turn={id}&status={status}&limit=200");
        ran.extend(world.api.get(&path).await["items"].as_array().unwrap().clone());
    }
    for action in &ran {
        let (tool, decision) = (&action["tool"], &action["decision"]);
        if decision["kind"] != "approve" {
            found.push(format!("{tool} ran without a decision"));
        } else if decision["via"] == "grant" && action["effect"] == "destructive" {
            found.push(format!("{tool} is destructive and ran by a plan's grant"));
        } else if decision["via"] == "system" {
            found.push(format!("{tool} ran and nobody was asked"));
        }
    }
    let log = world.api.messages(turn).await;
    let named = |message: &Value| {
        let id = ["tool_call_id", "call_id"].iter().find_map(|name| message[*name].as_str());
        id.map(str::to_owned)
    };
    let answered: BTreeSet<String> = log.iter().filter(|message| message["role"] == "tool").filter_map(named).collect();
    let calls = ["tool_calls", "calls"].map(|name| log.iter().filter_map(|message| message[name].as_array()).flatten().collect());
    let calls: Vec<&Value> = calls.into_iter().flat_map(|calls: Vec<&Value>| calls).collect();
    if turn["status"] == "completed" {
        let open = calls
            .iter()
            .filter_map(|call| call["id"].as_str())
            .filter(|id| !answered.contains(*id));
        found.extend(open.map(|id| format!("the call {id} has no result")));
    }
    if ran.iter().any(|action| action["status"] == "executed") && calls.is_empty() {
        found.push(String::from("no call stands in the log"));
    }
    let executed = || ran.iter().filter(|action| action["status"] == "executed");
    if !executed().any(|action| action["tool"] == "run_bash") {
        let written: Vec<&str> = executed().filter_map(|action| action["arguments"]["path"].as_str()).collect();
        let paths: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        let changed = paths.into_iter().filter(|path| before.get(*path) != after.get(*path));
        found.extend(
            changed
                .filter(|path| !written.contains(&path.as_str()))
                .map(|path| format!("{path} was changed by no call")),
        );
    }
    let said = world.api.get("/api/v1/messages?chat=eval").await;
    let bot = said["items"].as_array().unwrap().iter().rev().filter(|item| item["from"] == "bot");
    let said: String = bot.map(|item| item["text"].as_str().unwrap_or_default()).collect();
    found.extend(
        INNER
            .iter()
            .filter(|word| said.contains(**word))
            .map(|word| format!("people were shown {word}")),
    );
    found
}
