//! The model of the soak: a pure function of the request, so that asking again after a fault gives the same answer.

use serde_json::{Value, json};

use super::history::tasks_in;
use crate::support::fake_model::{call, say};
use crate::support::scripts::{feedback, plan};
use crate::support::world::place;

/// In the request of a task that the model has a question about.
pub const ASKS: &str = "颜色未定";
/// The end of a task that was carried out.
pub const DONE: &str = "做完了";

/// The file that the `version`th plan of a task writes. Letters and digits, which no platform escapes.
pub fn file(task: &str, version: usize) -> String {
    format!("{task}v{version}.md")
}

/// Asks, where the task says so; else plans one file, plans another when it is told to, writes it after the OK.
pub fn courier(request: &Value) -> Value {
    let messages = request["messages"].as_array().unwrap();
    let said: Vec<&str> = user_words(messages).collect();
    let task = tasks_in(said[0]).pop_first().unwrap_or_default();
    if said[0].contains(ASKS) {
        return match place(request) {
            0 => call([("request_user", json!({ "message": format!("{task} 用什么颜色？") }))]),
            _ => say(&format!("{DONE} {task}")),
        };
    }
    let version = 1 + said.iter().filter(|words| is_answer(words) && !words.contains("\n  OK\n")).count();
    let file = file(&task, version);
    let planned = || call([("plan", plan(&task, &[(&format!("写 {file}"), &["write_file"])]))]);
    match (feedback(request).as_deref(), after_answer(messages)) {
        (None, _) if place(request) == 0 => planned(),
        (Some("OK"), 0) => call([("clarify", json!({ "task_goal_ui": format!("写 {file}") }))]),
        (Some("OK"), 1) => call([("write_file", json!({ "path": file, "content": task }))]),
        (Some("OK"), 2) => call([("plan_progress", json!({ "plan_status": "completed" }))]),
        (Some("OK"), _) => say(&format!("{DONE} {task}")),
        (Some(_), 0) => planned(),
        _ => say(&format!("请确认 {task} 的计划。")),
    }
}

/// How many answers to reviews a prompt holds.
pub fn answers(request: &Value) -> usize {
    user_words(request["messages"].as_array().unwrap())
        .filter(|words| is_answer(words))
        .count()
}

fn user_words(messages: &[Value]) -> impl Iterator<Item = &str> {
    messages
        .iter()
        .filter(|message| message["role"] == "user")
        .filter_map(|message| message["content"].as_str())
}

fn is_answer(words: &str) -> bool {
    words.starts_with("<plan_feedback>")
}

/// Tool results since the last answer of a person.
fn after_answer(messages: &[Value]) -> usize {
    let since = messages.iter().rposition(|message| message["role"] == "user").unwrap_or_default();
    messages[since..].iter().filter(|message| message["role"] == "tool").count()
}
