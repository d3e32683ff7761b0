//! Row 1: batches that break a rule. Every call gets an error, nothing is applied.

use serde_json::{Value, json};

use super::play::{Play, plan, three_steps};
use crate::domain::{GateKind, Role, ToolCall};
use crate::reducer::{Input, ModelReply, Next};

/// Plays `calls` on a fresh plan at work; gives the tool messages they were answered with. Nothing but
/// the log and the budget may have changed.
#[track_caller]
fn refused(mut play: Play, calls: &[(&str, Value)]) -> Vec<String> {
    let (before, answered) = (play.state().clone(), play.log(Role::Tool).len());
    play.reply("", calls);
    play.calls_model();
    let after = play.state();
    assert_eq!(
        (&after.plan, &after.todos, &after.clarified_version, after.gate.is_none()),
        (&before.plan, &before.todos, &before.clarified_version, true)
    );
    assert!(play.actions().is_empty());
    let told: Vec<_> = play.log(Role::Tool)[answered..].iter().map(|text| (*text).to_owned()).collect();
    assert_eq!(told.len(), calls.len(), "an error for every call");
    assert!(told.iter().all(|text| text.contains("error: ")), "{told:?}");
    told
}

/// S0-T7, S0-19: `plan_progress` must be alone, in the words of the seed; the other calls are not run either.
#[test]
fn plan_progress_is_solo() {
    let told = refused(
        Play::at_work(),
        &[("plan_progress", json!({"step_id": "1"})), ("read_file", json!({"path": "a"}))],
    );
    assert!(told[0].starts_with("error: plan_progress() 必须单独调用。"), "{told:?}");
    assert!(told[1].starts_with("[tool_result:read_file] error: not run"), "{told:?}");
}

/// C8: `plan`, `clarify` and `request_user` must be alone too; a plan beside a write runs neither.
#[test]
fn solo_tools_are_alone() {
    for (name, arguments) in [
        ("plan", three_steps()),
        ("clarify", json!({"task_goal_ui": "x"})),
        ("request_user", json!({"message": "?"})),
    ] {
        let told = refused(Play::at_work(), &[("write_file", json!({"path": "a"})), (name, arguments)]);
        assert!(told[1].contains(&format!("{name}() must be the only call")), "{told:?}");
    }
}

/// S0-T5, S0-19: `plan_progress` and `clarify` need a plan.
#[test]
fn some_tools_need_a_plan() {
    for (name, arguments) in [
        ("plan_progress", json!({"step_id": "1"})),
        ("clarify", json!({"task_goal_ui": "x"})),
    ] {
        let told = refused(Play::new(), &[(name, arguments)]);
        assert!(told[0].contains("needs a plan: call plan() first"), "{told:?}");
    }
}

/// S0-12: under a complex plan the first action needs `clarify`, reads too; it holds until the next `plan()`.
#[test]
fn clarify_comes_before_the_first_action() {
    let mut play = Play::new();
    play.calls("plan", three_steps()).approves();
    let told = refused(play, &[("read_file", json!({"path": "a"}))]);
    assert!(told[0].contains("call clarify() first"), "{told:?}");
    let mut play = Play::at_work();
    for _ in 0..2 {
        play.calls("read_file", json!({"path": "a"})).tools_answer("text");
    }
    play.calls("plan", three_steps());
    let told = refused(play, &[("read_file", json!({"path": "a"}))]);
    assert!(told[0].contains("call clarify() first"), "a new version needs its own");
}

/// S0-T6: `plan_progress` is allowed without a prior `clarify`; a simple plan needs none at all.
#[test]
fn what_needs_no_clarify() {
    let mut play = Play::new();
    play.calls("plan", three_steps())
        .approves()
        .calls("plan_progress", json!({"step_id": "1"}));
    assert!(play.told().starts_with("Step 1 is recorded"));
    let mut play = Play::new();
    play.calls("plan", plan("simple", json!(["read"])))
        .calls("read_file", json!({"path": "a"}));
    assert_eq!(play.running(), ["read_file"]);
}

/// design row 1: acting without any plan is legal: reads run, writes ask.
#[test]
fn acting_without_a_plan() {
    let mut play = Play::new();
    play.reply("", &[("read_file", json!({"path": "a"})), ("write_file", json!({"path": "b"}))]);
    assert_eq!(play.running(), ["read_file"]);
    play.tools_answer("text");
    play.waits_for(GateKind::ToolApproval);
}

/// S1-7, S0-13: schema errors of every state tool and of action tools say what to mend.
#[test]
fn schema_errors_are_tool_results() {
    let cases = [
        ("plan", json!({"overall_goal_ui": "g"}), "`complexity` is required"),
        (
            "plan",
            json!({"overall_goal_ui": "g", "complexity": "complex", "memory": []}),
            "unknown parameter `memory`",
        ),
        ("clarify", json!({"task_goal_ui": 5}), "`task_goal_ui` must be a string"),
        (
            "clarify",
            json!({"task_goal_ui": "x", "needs_user_input": true}),
            "`question_to_user` is required",
        ),
        ("request_user", json!({}), "`message` is required"),
        ("plan_progress", json!({"plan_status": "done"}), "must be one of \"completed\""),
        ("plan_progress", json!({"step_id": 1}), "`step_id` must be a string"),
        ("plan_progress", json!("{not json"), "not valid JSON"),
        ("write_todos", json!({"todos": []}), "at least 1"),
        ("read_file", json!({"file": "a"}), "`path` is required"),
        ("read_file", json!("[1]"), "must be one JSON object"),
        ("read_file", json!(""), "`path` is required"),
        (
            "rm_rf",
            json!({}),
            "there is no tool rm_rf; there are: plan, clarify, request_user, plan_progress, write_todos, read_file",
        ),
    ];
    for (name, arguments, expected) in cases {
        let told = refused(Play::at_work(), &[(name, arguments)]);
        assert!(told[0].contains(expected), "{name}: {told:?}");
    }
}

/// S0-16: an unknown step is an error that lists the known ones; a step may be named by its words.
#[test]
fn steps_are_checked_against_the_plan() {
    let told = refused(Play::at_work(), &[("plan_progress", json!({"step_id": "9"}))]);
    assert!(told[0].contains("there is no step `9`; steps: 1, 2, 3"), "{told:?}");
    let mut play = Play::at_work();
    play.calls("plan_progress", json!({"step_id": "write", "run_id": "mine"}));
    assert!(play.told().starts_with("Step 2 is recorded as completed (1 of 3)."));
}

/// F-L4: ids that are not unique are made so, odd names and broken arguments go into the log in a form every server takes.
#[test]
fn odd_calls_are_made_orderly() {
    let mut play = Play::new();
    let call = |id: &str, name: &str, arguments: &str| ToolCall {
        id: id.into(),
        name: name.into(),
        arguments: arguments.into(),
    };
    for _ in 0..2 {
        let calls = vec![
            call("call_0", "read_file", "{\"path\":\"a\"}"),
            call("call_0", "read_file", "{\"path\":\"b\"}"),
            call("", "read_file", "{\"path\":\"c\"}"),
        ];
        play.feed(Input::Reply(ModelReply {
            calls,
            ..ModelReply::default()
        }));
        assert!(matches!(&play.state().next, Next::RunTools { calls } if calls.len() == 3));
        play.tools_answer("text");
    }
    let calls = vec![call("x", "bad name</x>", "{broken"), call("y", "", "")];
    play.feed(Input::Reply(ModelReply {
        calls,
        ..ModelReply::default()
    }));
    let last = play.turn.log.iter().rev().find(|message| message.role == Role::Assistant).unwrap();
    let shown: Vec<_> = last
        .calls
        .iter()
        .map(|call| (call.name.as_str(), call.arguments.as_str()))
        .collect();
    assert_eq!(shown, [("bad_name__x_", r#"{"malformed_arguments":"{broken"}"#), ("unnamed", "{}")]);
}

/// F-L4: hundreds of calls in one reply are refused as a whole.
#[test]
fn too_many_calls() {
    let calls: Vec<_> = (0..33).map(|at| ("read_file", json!({"path": at.to_string()}))).collect();
    let told = refused(Play::new(), &calls);
    assert!(told[32].contains("send at most 32"));
}

/// design: no more changes at once than an approval card shows, so that an OK covers nothing unseen.
#[test]
fn too_many_changes() {
    let write = |at: usize| ("write_file", json!({"path": at.to_string(), "content": "x"}));
    let told = refused(Play::new(), &(0..9).map(write).collect::<Vec<_>>());
    assert!(told[8].contains("send at most 8"), "{told:?}");
}
