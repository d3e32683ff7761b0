//! Plan mode from a chat.

use serde_json::{Value, json};

use super::asked::{Asked, asked, goes_on, outcome, writes};
use crate::support::fake_model::{Gate, Script, call, say};
use crate::support::people::reply;
use crate::support::platform::{On, on_either};
use crate::support::scripts::{gated, planned};
use crate::support::world::{DIRECT, GROUP, World};

const PLAN: (&str, &str) = ("AGENT__MODE", "plan");

on_either! {
    a_review_an_approval_in_a_step_and_an_added_step,
    the_command_asks_for_plan_mode_once,
    steps_that_fail_are_named,
    words_that_come_meanwhile_reach_the_step,
}

/// Two steps, none of which declares a tool that writes; the second writes all the same. A reflection adds a third.
fn played(request: &Value) -> Value {
    match asked(request) {
        Asked::Plan => planned("整理笔记", &[("读取笔记", &["read_file"]), ("整理内容", &[])]),
        Asked::Step(id, 0) if id != "2" => call([("read_file", json!({ "path": if id == "1" { "notes.md" } else { "extra.md" } }))]),
        Asked::Step(_, 0) => writes("extra.md"),
        Asked::Step(id, _) => say(&format!("第 {id} 步做完了。")),
        Asked::Reflection(1) => outcome(
            "expand",
            &json!({ "steps": [{ "content": "核对 extra.md", "tools": ["read_file"] }] }),
        ),
        Asked::Reflection(_) => goes_on(),
        Asked::Conclusion => say("全部完成：整理好了。"),
    }
}

/// S2-3, S2-4, S2-8, S2-10, M-4: reviewed; a write that the plan does not declare asks from within its step; the reflection adds a step,
/// which is countersigned on a card that says what is new; then done. Every step shows its result, the card shows the steps.
async fn a_review_an_approval_in_a_step_and_an_added_step(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[PLAN], played).await;
    world.say(u, c, "整理笔记", GROUP).await;
    let first = world.plan_card(c).await;
    world.tap(u, c, &first, "approve", None).await.done("确认");
    let ask = world.card_titled(c, "操作确认").await;
    assert!(ask.words().contains("extra.md"), "{}", ask.words());
    let paused = world.api.turn_in(c, "paused").await;
    assert_eq!(paused["gate"]["kind"], "tool_approval");
    assert_eq!(paused["plan"]["steps"][0]["result"]["output"], "第 1 步做完了。");
    assert_eq!(
        (&paused["plan"]["steps"][1]["status"], world.file("extra.md")),
        (&json!("in_progress"), None)
    );
    world.tap(u, c, &ask, "approve", None).await;
    let second = world.card_after(c, &first).await;
    for words in ["第 2 版", "➕ 核对 extra.md", "笔记里还提到了别的事"] {
        assert!(second.words().replace('\\', "").contains(words), "{words} in {}", second.words());
    }
    assert!(world.file("extra.md").is_some());
    assert_eq!(world.count(c, "全部完成"), 0, "the added step waits");
    world.say(u, c, "OK", reply(&second.id)).await;
    world.hears(c, "全部完成").await;
    let turn = world.api.turn_in(c, "completed").await;
    assert_eq!(
        (&turn["reason"], &turn["pauses"], &turn["open_steps"]),
        (&json!("final_answer"), &json!(3), &json!([]))
    );
    let steps = turn["plan"]["steps"].as_array().unwrap();
    assert_eq!(steps.iter().filter(|step| step["status"] == "completed").count(), 3);
    let result = &steps[1]["result"];
    assert_eq!(result["tool_calls"][0]["name"], "write_file");
    let id = result["tool_calls"][0]["id"].as_str().unwrap();
    assert!(result["data"][id].as_str().unwrap().contains("created"), "{result}");
    assert!(result["executed_at"].as_str().unwrap().ends_with('Z'), "{result}");
    let types = world.api.event_types(&turn).await;
    let told: Vec<&str> = types
        .iter()
        .map(String::as_str)
        .filter(|kind| ["plan_created", "plan_updated", "reflected", "turn_paused"].contains(kind))
        .collect();
    assert_eq!(
        told,
        [
            "plan_created",
            "turn_paused",
            "reflected",
            "turn_paused",
            "reflected",
            "plan_updated",
            "turn_paused",
            "reflected"
        ]
    );
    let log = world.api.messages(&turn).await;
    for id in ["1", "2", "3"] {
        let own: Vec<&Value> = log.iter().filter(|message| message["step"] == id).collect();
        assert_eq!(own.len(), 4, "brief, call, result, words of step {id}: {own:#?}");
    }
    assert!(log.iter().any(|message| message["step"].is_null() && message["role"] == "user"));
    let card = world.repainted(&second, "3/3").await;
    assert!(card.button("approve").is_none());
    world.end().await;
}

/// S2-3, S2-T: `/plan` and a task carries that one out in plan mode, whatever is configured; the next is worked on as ever. Alone it tells
/// where the plan stands.
async fn the_command_asks_for_plan_mode_once(on: On) {
    let (p, u) = (on.direct("p1"), on.user("u1"));
    let world = World::start_on(on, &[], |request| {
        let offers = |name: &str| {
            let tools = request["tools"].as_array().into_iter().flatten();
            tools.into_iter().any(|tool| tool["function"]["name"] == name)
        };
        match asked(request) {
            Asked::Plan if offers("clarify") => say("一问一答。"),
            Asked::Plan => planned("看看", &[("看一眼", &[])]),
            Asked::Step(..) => say("看过了。"),
            Asked::Reflection(_) => goes_on(),
            Asked::Conclusion => say("都看过了。"),
        }
    })
    .await;
    world.say(u, p, "/plan 看看", DIRECT).await;
    let card = world.plan_card(p).await;
    world.say(u, p, "/plan", DIRECT).await;
    world.hears(p, "等待确认计划").await;
    world.tap(u, p, &card, "approve", None).await;
    world.hears(p, "都看过了").await;
    let turn = world.api.turn_in(p, "completed").await;
    assert_eq!(turn["text"], "看看");
    world.say(u, p, "看看", DIRECT).await;
    world.hears(p, "一问一答").await;
    world.end().await;
}

/// S2-2, S2-4, C3: a step that failed and one that was skipped are named under the answer; the plan goes on without them.
async fn steps_that_fail_are_named(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let ended = |status: &str, why: &str| call([("plan_progress", json!({ "step_status": status, "step_summary": why }))]);
    let world = World::start_on(on, &[PLAN, ("AGENT__REFLECTION", "on_failure")], move |request| {
        match asked(request) {
            Asked::Plan => planned(
                "整理笔记",
                &[("读取旧笔记", &["read_file"]), ("问问赵雷", &[]), ("写报告", &["write_file"])],
            ),
            Asked::Step(id, _) if id == "1" => ended("failed", "没有旧笔记"),
            Asked::Step(id, _) if id == "2" => ended("skipped", "赵雷不在"),
            Asked::Step(_, 0) => writes("report.md"),
            Asked::Step(..) => say("写好了。"),
            Asked::Reflection(_) => goes_on(),
            Asked::Conclusion => say("报告写好了。"),
        }
    })
    .await;
    world.say(u, c, "整理笔记", GROUP).await;
    let card = world.plan_card(c).await;
    world.tap(u, c, &card, "approve", None).await;
    let answer = world.hears(c, "报告写好了").await;
    for words in ["✗ 1. 读取旧笔记", "2. 问问赵雷"] {
        assert!(answer.words().replace('\\', "").contains(words), "{words} in {}", answer.words());
    }
    assert!(!answer.words().contains("3. 写报告") && world.file("report.md").is_some());
    let turn = world.api.turn_in(c, "completed").await;
    let step = |at: usize| turn["plan"]["steps"][at].clone();
    assert_eq!((&step(0)["status"], &step(0)["error"]), (&json!("failed"), &json!("没有旧笔记")));
    assert_eq!(
        (&step(1)["status"], &step(1)["result"]["output"]),
        (&json!("skipped"), &json!("赵雷不在"))
    );
    let reflections = world
        .api
        .event_types(&turn)
        .await
        .iter()
        .filter(|kind| *kind == "reflected")
        .count();
    assert_eq!(reflections, 1, "only after the step that failed");
    world.end().await;
}

/// S2-11, M-5: words of the requester are read by the step that is carried out, and stands in the turn's own log.
async fn words_that_come_meanwhile_reach_the_step(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[PLAN, ("AGENT__QUEUE_MODE", "steer")], |_| say("没有安排。")).await;
    let slow = Gate::new();
    let script = Script::new()
        .message(planned("整理笔记", &[("读取笔记", &["read_file"]), ("整理", &[])]))
        .then(gated(&slow, say("没有收到补充。")))
        .text("收到补充。")
        .message(goes_on())
        .text("整理好了。")
        .message(goes_on())
        .text("全部完成。");
    world.model.script("整理笔记", script);
    world.say(u, c, "整理笔记", GROUP).await;
    let card = world.plan_card(c).await;
    world.tap(u, c, &card, "approve", None).await;
    slow.reached().await;
    world.say(u, c, "不要写名字", GROUP).await;
    world.hears(c, "全部完成").await;
    let turn = world.api.turn_in(c, "completed").await;
    assert_eq!(turn["plan"]["steps"][0]["result"]["output"], "收到补充。");
    let log = world.api.messages(&turn).await;
    let mail: Vec<&Value> = log
        .iter()
        .filter(|message| message["content"].as_str().is_some_and(|text| text.starts_with("<mailbox>")))
        .collect();
    assert_eq!((mail.len(), &mail[0]["step"]), (1, &Value::Null));
    // Both steps read it, and so do the planner's later calls.
    let read = world
        .model
        .seen_of("整理笔记")
        .iter()
        .filter(|request| request["messages"].to_string().contains("不要写名字"))
        .count();
    assert_eq!(read, 5);
    world.end().await;
}
