//! Models for tests: pure functions of the request, so that asking again after a crash gives the same answer.

use countersign_agent::domain::Addressed;
use countersign_gateway::conversation::Phrase;
use serde_json::{Value, json};

use super::fake_model::{Gate, Step, call, say};
use super::world::{last, place};

/// The feedback of the last `<plan_feedback>` block, if the last user message is one.
pub fn feedback(request: &Value) -> Option<String> {
    let messages = request["messages"].as_array().unwrap();
    let block = messages.iter().rev().find(|message| message["role"] == "user")?["content"].as_str()?;
    let inside = block.strip_prefix("<plan_feedback>")?;
    let (_, after) = inside.split_once("user_feedback:\n")?;
    let (words, _) = after.split_once("\n\ninstruction:")?;
    Some(words.lines().map(str::trim).collect::<Vec<_>>().join("\n"))
}

/// Plans three steps; after an OK reads, writes `report.md`, reports done, answers `全部完成`. Other feedback: a
/// question gets an answer in words, anything else a second plan that writes `report-v2.md`.
pub fn reporter(request: &Value) -> Value {
    if request["tools"].as_array().is_none_or(Vec::is_empty) {
        return say("只完成了一部分。");
    }
    let Some(words) = feedback(request) else {
        return after_plan(request);
    };
    // The message that holds the feedback is the last one: the model's move.
    if last(request)["role"] == "user" {
        return match words.as_str() {
            yes if consents(yes) => call([("clarify", json!({ "task_goal_ui": "读取笔记" }))]),
            question if question.ends_with(['?', '？']) => say("不会删除任何数据，只会新建 report.md。"),
            _ => call([("plan", plan("整理笔记（修改后）", STEPS_V2))]),
        };
    }
    if consents(&words) {
        act(request)
    } else {
        say("请确认新的计划。")
    }
}

/// A model understands any word of consent.
fn consents(words: &str) -> bool {
    let said = Addressed {
        text: words.to_owned(),
        to_bot: true,
        to_others: false,
    };
    Phrase::of(&said, true) == Phrase::Approve
}

const STEPS: &[(&str, &[&str])] = &[
    ("读取笔记", &["read_file"]),
    ("写报告", &["write_file report.md"]),
    ("核对", &["read_file"]),
];
const STEPS_V2: &[(&str, &[&str])] = &[
    ("读取笔记", &["read_file"]),
    ("写报告到 report-v2.md", &["write_file report-v2.md"]),
];

fn after_plan(request: &Value) -> Value {
    if place(request) == 0 {
        call([("plan", plan("整理笔记", STEPS))])
    } else {
        say("计划还在等确认。")
    }
}

/// The steps after an OK, by how many tool answers came since.
fn act(request: &Value) -> Value {
    let messages = request["messages"].as_array().unwrap();
    let since = messages.iter().rposition(|message| message["role"] == "user").unwrap();
    let answers: Vec<&Value> = messages[since..].iter().filter(|message| message["role"] == "tool").collect();
    let second = messages[since]["content"].as_str().unwrap().contains("report-v2.md");
    let file = if second { "report-v2.md" } else { "report.md" };
    match answers.len() {
        1 => call([("read_file", json!({ "path": "notes.md" }))]),
        2 => call([("write_file", json!({ "path": file, "content": "# 报告\n\n- ship the report\n" }))]),
        3 => call([("plan_progress", json!({ "plan_status": "completed", "step_summary": "写好了" }))]),
        _ => say("全部完成：报告已写好。"),
    }
}

/// Answers these one after the other, by how many messages of the model the request already holds; the last again and
/// again. The flagged last call gets `只完成了一部分。`.
pub fn in_order(answers: Vec<Value>) -> impl Fn(&Value) -> Value + Send + Sync + 'static {
    move |request| {
        if request["tools"].as_array().is_none_or(Vec::is_empty) {
            return say("只完成了一部分。");
        }
        answers[place(request).min(answers.len() - 1)].clone()
    }
}

/// `plan()` with these steps as (content, tools).
pub fn plan(goal: &str, steps: &[(&str, &[&str])]) -> Value {
    let steps: Vec<Value> = steps
        .iter()
        .enumerate()
        .map(|(at, (content, tools))| step(at + 1, content, tools))
        .collect();
    json!({ "overall_goal_ui": goal, "complexity": "complex", "internal_plan": steps })
}

/// A step. `write_file PATH` declares one call, `write_file` any number of them at any path, and so does a server's tool for its `text`; other
/// tools are only named.
pub fn step(number: usize, content: &str, tools: &[&str]) -> Value {
    let name = |tool: &&str| tool.split(' ').next().unwrap_or_default().to_owned();
    let call = |tool: &&str| match tool.split_once(' ') {
        Some((tool, path)) => Some(json!({ "tool": tool, "arguments": { "path": path } })),
        None => {
            let argument = [("write_file", "path"), ("__", "text")]
                .iter()
                .find(|(name, _)| tool.contains(name));
            argument.map(|(_, argument)| json!({ "tool": tool, "arguments": { *argument: "**" }, "times": 1000 }))
        }
    };
    let names: Vec<String> = tools.iter().map(name).collect();
    let calls: Vec<Value> = tools.iter().filter_map(call).collect();
    json!({ "id": number.to_string(), "content": content, "tools": names, "calls": calls })
}

/// A complex plan.
pub fn planned(goal: &str, steps: &[(&str, &[&str])]) -> Value {
    call([("plan", plan(goal, steps))])
}

/// A simple plan.
pub fn planned_simply(goal: &str, tools: &[&str]) -> Value {
    let steps = json!([step(1, goal, tools)]);
    call([(
        "plan",
        json!({ "overall_goal_ui": goal, "complexity": "simple", "internal_plan": steps }),
    )])
}

/// Declares the current task, as a complex plan wants it before the first action.
pub fn clarified() -> Value {
    call([("clarify", json!({ "task_goal_ui": "第一步" }))])
}

/// Reads the notes.
pub fn reads() -> Value {
    call([("read_file", json!({ "path": "notes.md" }))])
}

/// Writes these files, all in one reply.
pub fn writes(names: &[&str]) -> Value {
    call(
        names
            .iter()
            .map(|name| ("write_file", json!({ "path": name, "content": format!("内容 {name}\n") }))),
    )
}

/// Reports that the plan is done.
pub fn finished() -> Value {
    call([("plan_progress", json!({ "plan_status": "completed" }))])
}

/// A step of a script that waits for the gate.
pub fn gated(gate: &Gate, message: Value) -> Step {
    Step::Gated(gate.clone(), Box::new(Step::Message(message, None)))
}
