//! `write_todos`, `clarify`, `request_user` and the cap on keeping books (rows 2 and 5).

use serde_json::{Value, json};

use super::play::{Play, three_steps};
use crate::domain::{DecisionKind, Event, GateKind, Outbound, Phase, ResumedReason, Role, StepStatus, TodoStatus, TurnReason, TurnStatus};
use crate::reducer::Effect;

fn todos(items: &[(&str, &str)]) -> Value {
    let items: Vec<_> = items
        .iter()
        .map(|(id, status)| json!({"id": id, "content": format!("do {id}"), "status": status}))
        .collect();
    json!({"todos": items})
}

/// S1-1, S1-3, S1-4: a snapshot replaces the list; the result counts; nothing runs.
#[test]
fn todos_replace_the_list() {
    let mut play = Play::new();
    play.calls("write_todos", todos(&[("a", "pending"), ("b", "in_progress")]));
    let told: Value = serde_json::from_str(play.told()).unwrap();
    assert_eq!(told, json!({"ok": true, "revision": 1, "todoCount": 2, "inProgress": "b"}));
    play.calls(
        "write_todos",
        json!({"todos": [{"id": "c", "content": "x", "status": "completed"}], "focus": "c", "note": "tidy"}),
    );
    let told: Value = serde_json::from_str(play.told()).unwrap();
    assert_eq!(told, json!({"ok": true, "revision": 2, "todoCount": 1, "inProgress": null}));
    let state = play.state();
    assert_eq!((state.todos.items.len(), state.todos.items[0].status), (1, TodoStatus::Completed));
    assert!(
        play.all.iter().all(|effect| matches!(effect, Effect::Emit { .. })),
        "no side effect"
    );
}

/// S1-2: the limits of the schema, each at its border.
#[test]
fn todos_hold_to_their_schema() {
    let item = |id: &str, content: &str| json!({"id": id, "content": content, "status": "pending"});
    let long = |count: usize| "字".repeat(count);
    let good = [
        json!({"todos": (0..8).map(|at| item(&at.to_string(), "x")).collect::<Vec<_>>()}),
        json!({"todos": [item(&long(40), &long(140))], "focus": long(40), "note": long(200)}),
    ];
    let bad = [
        json!({"todos": (0..9).map(|at| item(&at.to_string(), "x")).collect::<Vec<_>>()}),
        json!({"todos": []}),
        json!({"todos": [item("", "x")]}),
        json!({"todos": [item(&long(41), "x")]}),
        json!({"todos": [item("a", &long(141))]}),
        json!({"todos": [item("a", "")]}),
        json!({"todos": [{"id": "a", "content": "x", "status": "done"}]}),
        json!({"todos": [{"id": "a", "content": "x"}]}),
        json!({"todos": [item("a", "x"), item("a", "y")]}),
        json!({"todos": [item("a", "x")], "focus": long(41)}),
        json!({"todos": [item("a", "x")], "note": long(201)}),
        json!({"todos": [item("a", "x")], "extra": 1}),
    ];
    for arguments in good {
        let mut play = Play::new();
        play.calls("write_todos", arguments.clone());
        assert_eq!(play.state().todos.revision, 1, "{arguments} {}", play.told());
    }
    for arguments in bad {
        let mut play = Play::new();
        play.calls("write_todos", arguments.clone());
        assert_eq!(
            (play.state().todos.revision, play.told().starts_with("error: ")),
            (0, true),
            "{arguments}"
        );
        play.calls_model();
    }
}

/// S1-5, S1-T: a mixed batch: the list is acknowledged, the other calls run, answers come in call order.
#[test]
fn todos_ride_along() {
    let mut play = Play::new();
    play.reply(
        "",
        &[("read_file", json!({"path": "a"})), ("write_todos", todos(&[("a", "pending")]))],
    );
    assert_eq!(play.running(), ["read_file"]);
    play.tools_answer("text");
    let told = play.log(Role::Tool);
    assert!(told[0].starts_with("[tool_result:read_file]"), "{told:?}");
    let acknowledged: Value = serde_json::from_str(told[1]).unwrap();
    assert_eq!(acknowledged, json!({"ok": true, "revision": 1, "todoCount": 1, "inProgress": null}));
}

/// C2: a step has one of five statuses; the model's own list takes three of them, and `plan_progress` says the other two.
#[test]
fn one_vocabulary_of_statuses() {
    use StepStatus::{Completed, Failed, InProgress, Pending, Skipped};
    let names = [Pending, InProgress, Completed, Failed, Skipped].map(|status| json!(status));
    assert_eq!(
        names,
        ["pending", "in_progress", "completed", "failed", "skipped"].map(|name| json!(name))
    );
    for (name, taken) in names.iter().zip([true, true, true, false, false]) {
        let mut play = Play::at_work();
        play.calls("write_todos", todos(&[("a", name.as_str().unwrap())]));
        assert_eq!(play.told().contains("\"ok\":true"), taken, "{name}: {}", play.told());
    }
    for (said, status) in [("failed", Failed), ("skipped", Skipped)] {
        let mut play = Play::at_work();
        play.calls("plan_progress", json!({"step_id": "1", "step_status": said}));
        assert_eq!(play.state().plan.as_ref().unwrap().steps[0].status, status);
    }
}

/// design: equal ids are mirrored to the plan's steps, status only; digest and grant stay.
#[test]
fn todos_mirror_their_status() {
    let mut play = Play::at_work();
    let digest = play.state().plan.as_ref().unwrap().digest();
    play.calls("write_todos", todos(&[("1", "completed"), ("2", "in_progress"), ("zz", "pending")]));
    let plan = play.state().plan.as_ref().unwrap();
    let statuses: Vec<_> = plan.steps.iter().map(|step| step.status).collect();
    assert_eq!(statuses, [StepStatus::Completed, StepStatus::InProgress, StepStatus::Pending]);
    assert_eq!(
        (
            plan.steps[0].content.as_str(),
            plan.digest(),
            play.state().approval().unwrap().grants.len()
        ),
        ("read", digest, 1)
    );
    assert!(play.last.contains(&Effect::Progress));
    play.calls("write_todos", todos(&[("1", "completed"), ("2", "completed"), ("3", "completed")]));
    assert!(play.state().plan.as_ref().unwrap().done, "all steps completed by tool");
}

/// interface: before a plan is approved no step of it is reported or ticked, by `plan_progress` or by the list.
#[test]
fn nothing_is_ticked_before_the_approval() {
    let mut play = Play::new();
    play.calls("plan", three_steps()).decides(DecisionKind::Revise, Some("why?"));
    for arguments in [
        json!({"plan_status": "completed"}),
        json!({"step_id": "1"}),
        json!({"next_step": "2"}),
    ] {
        play.calls("plan_progress", arguments);
        assert!(play.told().starts_with("error: plan_not_approved"), "{}", play.told());
    }
    play.calls("write_todos", todos(&[("1", "completed"), ("2", "in_progress")]));
    let plan = play.state().plan.as_ref().unwrap();
    assert!(
        plan.steps.iter().all(|step| step.status == StepStatus::Pending) && !plan.done,
        "{plan:?}"
    );
    assert_eq!(play.state().todos.items.len(), 2, "the list itself is kept");
    play.says("Because.").approves();
    play.calls("plan_progress", json!({"step_id": "1"}));
    assert_eq!(play.state().plan.as_ref().unwrap().steps[0].status, StepStatus::Completed);
}

/// S1-6: two iterations of bookkeeping, the third is answered with the error; nothing of it is applied.
#[test]
fn keeping_books_is_capped() {
    let mut play = Play::at_work();
    play.calls("write_todos", todos(&[("a", "pending")]))
        .calls("plan_progress", json!({"next_step": "2"}));
    play.calls("write_todos", todos(&[("b", "pending")]));
    assert!(
        play.told().starts_with("error: planner_overuse_execute_next_step"),
        "{}",
        play.told()
    );
    assert_eq!(play.state().todos.items[0].id, "a");
    play.calls("read_file", json!({"path": "a"}))
        .tools_answer("x")
        .calls("write_todos", todos(&[("c", "pending")]));
    assert_eq!(play.state().todos.items[0].id, "c", "an action resets the count");
}

/// C9: a call that completes a step or the plan is progress, so is `clarify`.
#[test]
fn what_resets_the_cap() {
    let full = || {
        let mut play = Play::at_work();
        play.calls("write_todos", todos(&[("a", "pending")]))
            .calls("write_todos", todos(&[("b", "pending")]));
        assert_eq!(play.state().budget.planner_only.used, 2);
        play
    };
    for (name, arguments) in [
        ("plan_progress", json!({"step_id": "1"})),
        ("plan_progress", json!({"plan_status": "completed"})),
        ("clarify", json!({"task_goal_ui": "next"})),
        ("write_todos", todos(&[("1", "completed")])),
        ("plan", three_steps()),
    ] {
        let mut play = full();
        play.calls(name, arguments.clone());
        assert_eq!(
            (play.state().budget.planner_only.used, play.told().contains("planner_overuse")),
            (0, false),
            "{name} {arguments}"
        );
    }
    let mut play = full();
    play.calls("plan_progress", json!({"step_id": "1"}))
        .calls("plan_progress", json!({"step_id": "1"}))
        .calls("plan_progress", json!({"step_id": "1"}));
    play.calls("plan_progress", json!({"step_id": "1"}));
    assert!(
        play.told().contains("planner_overuse"),
        "completing the same step again is bookkeeping"
    );
}

/// design row 5: `request_user` opens a question; any text, verbatim, is the answer of its call.
#[test]
fn a_question_is_answered_verbatim() {
    let mut play = Play::new();
    play.calls(
        "request_user",
        json!({"message": "Which month?", "title": "Month", "reason": "two reports"}),
    );
    play.waits_for(GateKind::Question);
    let Outbound::QuestionCard(card) = &play.gate().card else {
        panic!("a question")
    };
    assert_eq!(
        (card.question.as_str(), card.title.as_deref(), card.reason.as_deref()),
        ("Which month?", Some("Month"), Some("two reports"))
    );
    play.decides(DecisionKind::Revise, Some("不行，  十月\n的"));
    play.calls_model();
    assert_eq!(play.told(), "不行，  十月\n的");
    let reason = play.events().iter().find_map(|event| match event {
        Event::TurnResumed { resumed_reason, .. } => Some(*resumed_reason),
        _ => None,
    });
    assert_eq!(reason, Some(ResumedReason::Answered));
}

/// design row 5: `clarify(needs_user_input)` asks too, and counts as the declaration.
#[test]
fn clarify_may_ask() {
    let mut play = Play::new();
    play.calls("plan", three_steps()).approves();
    play.calls(
        "clarify",
        json!({"task_goal_ui": "x", "needs_user_input": true, "question_to_user": "Which?"}),
    );
    play.waits_for(GateKind::Question);
    play.decides(DecisionKind::Approve, Some("ok"))
        .calls("read_file", json!({"path": "a"}));
    assert_eq!(play.running(), ["read_file"]);
}

/// design: only `/stop` cancels a question; expiry ends the turn.
#[test]
fn questions_end_the_turn_when_nobody_answers() {
    for (kind, reason) in [
        (DecisionKind::Cancel, TurnReason::Cancelled),
        (DecisionKind::Expire, TurnReason::Expired),
    ] {
        let mut play = Play::new();
        play.calls("request_user", json!({"message": "?"})).decides(kind, None);
        play.ended(TurnStatus::Cancelled, reason);
    }
}

/// S1-9: reasoning that a server left in a reply stands in no reflection, in no log and in no answer; the flagged last call's neither.
#[test]
fn reasoning_shows_nowhere() {
    let mut play = Play::new();
    play.reply("<think>canary one</think>Reading first.", &[("read_file", json!({"path": "a.md"}))]);
    play.tools_answer("x").says("canary two\n</think>\n\nDone.");
    assert_eq!(play.answer().text, "Done.");
    let mut last = Play::with(|policy| policy.max_iterations = 1);
    last.calls("read_file", json!({"path": "a.md"}))
        .says("<think>canary three</think>So far.");
    assert_eq!(last.answer().text, "So far.");
    for play in [play, last] {
        assert!(!format!("{:?} {:?}", play.all, play.turn).contains("canary"));
    }
}

/// S1-8, S1-9, S1-11, S1-12, S1-T: phases are tagged on the timeline and not in the log; a reflection is one short sentence of the
/// model's own text.
#[test]
fn phases_are_tagged() {
    let mut play = Play::at_work();
    play.reply(
        "The report a.md is short. It needs more.",
        &[("write_todos", todos(&[("a", "pending")])), ("read_file", json!({"path": "a.md"}))],
    );
    play.tools_answer("line one\nline two");
    let summaries: Vec<_> = play
        .all
        .iter()
        .filter_map(|effect| match effect {
            Effect::Emit { summary, event, iteration } => Some((event.phase(), summary.as_str(), *iteration)),
            _ => None,
        })
        .collect();
    for expected in [
        (Some(Phase::Plan), "[Plan] 3 steps", 1),
        (Some(Phase::Plan), "[Plan] 1 todos", 3),
        (Some(Phase::Act), "[Act] read_file a.md", 3),
        (Some(Phase::Obs), "[Obs] read_file: line one line two", 3),
        (Some(Phase::Reflect), "[Reflect] The report a.md is short.", 3),
    ] {
        assert!(summaries.contains(&expected), "{expected:?} in {summaries:?}");
    }
    for tag in ["[Plan]", "[Act]", "[Obs]", "[Reflect]"] {
        assert!(play.turn.log.iter().all(|message| !message.content.contains(tag)), "{tag}");
    }
}
