//! What observers are told, in order, with plan mode and without it; and how an objection ends a turn.

use serde_json::json;

use super::plan_mode::{approved, goes_on, planner, reflects, three};
use super::play::{Play, ok, plan, three_steps};
use crate::domain::{ChangeKind, DecisionKind, GateKind, Notice, Reflection, Role, TurnReason, TurnStatus};
use crate::reducer::{CallOutcome, Input, MessageKind, Next, Observed};

/// One line for each thing told since `from`; of our own words only the first line.
fn lines(play: &Play, from: usize) -> Vec<String> {
    play.watch.told[from..].iter().map(line).collect()
}

fn line(one: &Observed) -> String {
    match one {
        Observed::PlanCreated(plan) => format!("created with {}", plan.steps.len()),
        Observed::StepStarted(step) => format!("{} started", step.id),
        Observed::StepCompleted(step) => format!("{} {:?}", step.id, step.status),
        Observed::StepsUpdated(changes) => {
            let told = changes.iter().map(|change| {
                let step = change.new.as_ref().or(change.old.as_ref()).unwrap();
                format!("{:?} {} at {}: {}", change.kind, step.id, change.at, change.description)
            });
            told.collect::<Vec<_>>().join(", ")
        }
        Observed::Message(message) => {
            let first = message.content.lines().next().unwrap_or_default();
            let words = if message.kind == MessageKind::System { "" } else { first };
            format!("{} {:?} {words}", message.step_id.as_deref().unwrap_or("-"), message.kind)
        }
        Observed::PlanCompleted(ending) => {
            let (status, reason) = (ending.status, ending.reason.unwrap());
            format!("{status:?} {reason:?} {}", ending.result.as_deref().unwrap_or_default())
        }
    }
}

/// S2-7, S2-8, S2-9: a plan in plan mode as observers hear it: created, each step with what is said in its log, what a reflection makes of
/// the plan, the end.
#[test]
fn plan_mode_is_told() {
    let mut play = planner(|policy| policy.review_enabled = false);
    play.reply("I make a plan.", &[("plan", plan("complex", three()))]);
    assert_eq!(
        lines(&play, 0),
        [
            "- System ",
            "- Thought I make a plan.",
            r#"- Action plan {"complexity":"complex","internal_plan":[{"content":"read the notes","id":"a","intent":"to know them","tools":["read_file"]},{"calls":[{"arguments":{"path":"**"},"times":1000,"tool":"write_file"}],"content":"write the report","id":"b"},{"content":"check it","id":"c"}],"overall_goal_ui":"Weekly report"}"#,
            "created with 3",
            "a started",
            "a System "
        ]
    );
    let from = play.watch.told.len();
    play.reply("Let me see.", &[("read_file", json!({"path": "notes"}))])
        .tools_answer("two notes")
        .says("There are two notes.");
    reflects(
        &mut play,
        "refine",
        json!({"steps": [{"id": "b", "content": "write both"}, {"content": "sort them", "after": "a"}], "skipped": [{"id": "c"}]}),
    );
    assert_eq!(
        lines(&play, from),
        [
            "a Thought Let me see.",
            r#"a Action read_file {"path":"notes"}"#,
            "a Response There are two notes.",
            "a Completed",
            "- System ",
            r#"- Thought {"outcome":"refine","reason":"because","skipped":[{"id":"c"}],"steps":[{"content":"write both","id":"b"},{"after":"a","content":"sort them"}]}"#,
            "Added 4 at 1: sort them, Updated b at 2: write the report → write both",
            "c Skipped",
            "4 started",
            "4 System "
        ]
    );
    let from = play.watch.told.len();
    play.calls("plan_progress", json!({"step_status": "failed", "step_summary": "disk full"}));
    reflects(&mut play, "complete", json!({}));
    play.says("All of it is done.");
    assert_eq!(
        lines(&play, from),
        [
            r#"4 Action plan_progress {"step_status":"failed","step_summary":"disk full"}"#,
            "4 Failed",
            "- System ",
            r#"- Thought {"outcome":"complete","reason":"because"}"#,
            "b Skipped",
            "- System ",
            "- Response All of it is done.",
            "Completed FinalAnswer All of it is done."
        ]
    );
}

/// S2-7, S2-9: outside plan mode, too, where all is said in one log; a step that the model reports at once has begun and ended.
#[test]
fn one_log_is_told() {
    let mut play = Play::new();
    play.calls("plan", three_steps());
    assert_eq!(
        lines(&play, 3),
        Vec::<String>::new(),
        "the request, the call and the plan; no step begins before people say so"
    );
    play.approves();
    assert_eq!(lines(&play, 3), ["- System ", "1 started"]);
    let from = play.watch.told.len();
    play.calls("plan_progress", json!({"step_id": "2", "next_step": "3"}));
    assert_eq!(lines(&play, from)[1..], ["2 started", "2 Completed", "3 started"]);
    let from = play.watch.told.len();
    play.calls("plan_progress", json!({"plan_status": "completed"}));
    assert_eq!(lines(&play, from)[1..], ["1 Completed", "3 Completed"]);
    let from = play.watch.told.len();
    play.says("Done.");
    assert_eq!(lines(&play, from), ["- Response Done.", "Completed FinalAnswer Done."]);
}

/// S2-8: a plan made anew is told as changes of the one before, with the whole steps: words, tools, order, what came and went.
#[test]
fn a_new_plan_is_told_as_changes() {
    let mut play = Play::new();
    play.calls("plan", three_steps()).decides(DecisionKind::Revise, Some("other order"));
    let from = play.watch.told.len();
    let steps =
        json!([{"id": "3", "content": "tell"}, {"id": "4", "content": "ask"}, {"id": "2", "content": "write", "tools": ["read_file"]}]);
    play.calls("plan", plan("complex", steps));
    let told = lines(&play, from);
    assert_eq!(
        told[1..],
        ["Removed 1 at 0: read, Updated 3 at 0: tell, Added 4 at 1: ask, Updated 2 at 2: write"]
    );
    let Some(Observed::StepsUpdated(changes)) = play.watch.told.last() else {
        panic!("{:?}", play.watch.told.last())
    };
    assert_eq!(changes[0].kind, ChangeKind::Removed);
    let tools = |step: &Option<crate::domain::Step>| step.as_ref().unwrap().tools.clone();
    assert_eq!(
        (tools(&changes[3].old), tools(&changes[3].new)),
        (vec![String::from("write_file")], vec![String::from("read_file")])
    );
}

/// S2-7: a step that failed and is tried again is told as one that waits anew, then begins, then ends; without reflections the next
/// one begins with the end of the one before.
#[test]
fn a_second_try_is_told() {
    let mut play = approved(three(), |policy| policy.reflection = Reflection::OnFailure);
    let from = play.watch.told.len();
    play.calls("plan_progress", json!({"step_status": "failed", "step_summary": "gone"}));
    reflects(&mut play, "refine", json!({"steps": [{"id": "a"}]}));
    play.says("read");
    let told = lines(&play, from);
    let moves: Vec<&String> = told
        .iter()
        .filter(|line| !line.contains("System") && !line.contains("Thought"))
        .collect();
    assert_eq!(
        moves[1..],
        [
            "a Failed",
            "Updated a at 0: read the notes",
            "a started",
            "a Response read",
            "a Completed",
            "b started"
        ]
    );
    assert_eq!(told.last().unwrap(), "b System ", "its brief stands in its own log");
}

/// S2-7: a turn without a plan tells what is said and nothing of a plan; one that is stopped tells how its plan ended.
#[test]
fn ends_are_told() {
    let mut play = Play::new();
    play.says("Hello.");
    assert_eq!(lines(&play, 0), ["- System ", "- Response Hello."]);
    let mut play = approved(three(), |_| {});
    goes_on(play.says("read"));
    play.feed(Input::Cancel {
        by: None,
        reason: TurnReason::Cancelled,
        left: Vec::new(),
    });
    assert_eq!(lines(&play, 0).last().unwrap(), "Cancelled Cancelled ");
}

/// S2-7: an objection ends the turn: it has failed, its gate is closed, people are told with a number for the admin, and what had run
/// by then is named.
#[test]
fn an_objection_ends_the_turn() {
    let objects = |left: Vec<CallOutcome>| Input::HookFailed {
        incident: "inc7".into(),
        left,
    };
    let mut play = Play::new();
    play.calls("plan", three_steps());
    play.waits_for(GateKind::PlanReview);
    play.feed(objects(Vec::new()));
    play.ended(TurnStatus::Failed, TurnReason::Hook);
    assert!(play.state().gate.is_none() && play.state().next == Next::Nothing);
    let answer = play.answer();
    assert_eq!(answer.problem, Some(Notice::HookFailed { done: Vec::new() }));
    assert_eq!(
        (answer.reason, answer.incident.as_deref(), answer.open_steps.len()),
        (TurnReason::Hook, Some("inc7"), 3)
    );
    assert_eq!(lines(&play, 0).last().unwrap(), "Failed Hook ");

    let mut play = Play::at_work();
    let write = |path: &str| ("write_file", json!({"path": path}));
    play.reply("", &[write("a"), write("b")]);
    let Next::RunTools { calls } = play.state().next.clone() else {
        panic!("{:?}", play.state().next)
    };
    let outcome = |call: &String, result| CallOutcome {
        call_id: call.clone(),
        result,
    };
    play.feed(objects(vec![outcome(&calls[0], Some(ok("written"))), outcome(&calls[1], None)]));
    play.ended(TurnStatus::Failed, TurnReason::Hook);
    let done = vec![String::from("write_file a"), String::from("write_file b (?)")];
    assert_eq!(play.answer().problem, Some(Notice::HookFailed { done }));
    let told = play.log(Role::Tool);
    assert!(
        told[told.len() - 2].contains("written") && told[told.len() - 1].contains("may or may not have run"),
        "{told:?}"
    );
}
