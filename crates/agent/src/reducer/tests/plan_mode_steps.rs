//! Plan mode: what happens within a step.

use serde_json::json;

use super::plan_mode::{approved, asked, executes, goes_on, outcomes, planner, stage, statuses, steps, three};
use super::play::{Play, plan};
use crate::domain::{ApprovalMode, GateKind, Reflection, StepStatus, TurnReason, TurnStatus};
use crate::reducer::{Input, ModelReply, Next, Stage, open_steps};

/// S2-4: without a review the steps begin at once; the tool that no approval covers asks from within its step.
#[test]
fn approvals_inside_a_step_are_the_ordinary_gate() {
    let mut play = planner(|policy| policy.review_enabled = false);
    play.calls("plan", plan("complex", three()));
    assert_eq!(stage(&play), &executes("a"));
    play.reply("I fetch it.", &[("web_fetch", json!({"url": "http://x"}))]);
    play.waits_for(GateKind::ToolApproval);
    play.settles(&[(crate::domain::ActionStatus::Approved, None)]);
    assert_eq!(play.running(), ["web_fetch"]);
    play.tools_answer("page");
    assert_eq!(stage(&play), &executes("a"));
    play.calls("run_bash", json!({"command": "ls"}));
    play.settles(&[(crate::domain::ActionStatus::Rejected, Some("not now"))]);
    assert!(play.told().contains("not now"));
    let (messages, _) = asked(&play);
    assert_eq!(messages.len(), 5, "{messages:#?}");
}

/// S2-T: a step past its limit of model calls has failed, its error says so, the plan goes on and later briefs tell of it.
#[test]
fn a_step_has_a_limit_of_its_own() {
    let mut play = approved(three(), |policy| policy.reflection = Reflection::Off);
    for round in 0..16 {
        assert_eq!(stage(&play), &executes("a"), "round {round}");
        play.calls("read_file", json!({"path": round.to_string()})).tools_answer("text");
    }
    assert_eq!(stage(&play), &executes("b"), "the next step has a limit of its own");
    assert_eq!(steps(&play)[0].status, StepStatus::Failed);
    let error = steps(&play)[0].error.as_deref().unwrap();
    assert!(error.contains("16 model calls"), "{error}");
    assert_eq!(steps(&play)[0].result.as_ref().unwrap().tool_calls.len(), 16);
    assert!(asked(&play).0[0].content.contains(&format!("error: {error}")));
    play.says("b is done").says("c is done");
    assert_eq!(stage(&play), &Stage::Concluding);
    play.says("Two of three.");
    play.ended(TurnStatus::Completed, TurnReason::FinalAnswer);
    assert_eq!(play.answer().open_steps, ["✗ 1. read the notes"]);
    assert!(outcomes(&play).is_empty());
}

/// S2-T: a call that a step has made is not run again while nothing has changed; a change, or another step, makes it a new one.
#[test]
fn repeated_calls_are_not_run() {
    let mut play = approved(three(), |policy| {
        policy.reflection = Reflection::Off;
        policy.approval = ApprovalMode::Never;
    });
    let read = || json!({"path": "notes"});
    play.calls("read_file", read()).tools_answer("text");
    play.calls("read_file", json!(r#"{ "path": "notes" }"#));
    assert!(play.running().is_empty() && play.told().contains("repeated: "), "{}", play.told());
    play.calls("write_file", json!({"path": "w", "content": "1"}))
        .tools_answer("written");
    play.calls("write_file", json!({"path": "w", "content": "1"}));
    assert!(play.running().is_empty(), "a write neither");
    play.reply("", &[("read_file", read()), ("read_file", read())]);
    assert_eq!(play.running(), ["read_file"], "once after the change, and once within a reply");
    play.tools_answer("text");
    play.reply("", &[("write_file", json!({"path": "w", "content": "2"})), ("read_file", read())])
        .tools_answer("text");
    play.calls("read_file", read());
    assert_eq!(play.running(), ["read_file"], "a look beside a change may be from before it");
    play.tools_give(|_| None);
    play.calls("read_file", read());
    assert_eq!(play.running(), ["read_file"], "what was not answered may be asked again");
    play.tools_answer("text").says("done");
    assert_eq!(stage(&play), &executes("b"));
    play.calls("read_file", read());
    assert_eq!(play.running(), ["read_file"], "another step knows nothing of it");
}

/// S2-4, S4-3: an approved plan allows a write to the step that declares it, and to no other.
#[test]
fn a_grant_is_of_its_step() {
    let mut play = approved(three(), |policy| policy.reflection = Reflection::Off);
    play.calls("write_file", json!({"path": "w", "content": "1"}));
    let gate = play.state().gate.as_ref().unwrap();
    assert_eq!(gate.kind, GateKind::ToolApproval, "step a declares read_file");
}

/// S2-T, S2-2: a step is skipped with a reason; its report names no other step and not the whole plan.
#[test]
fn a_step_is_skipped_with_a_reason() {
    let mut play = approved(three(), |policy| policy.reflection = Reflection::OnFailure);
    play.calls("plan_progress", json!({"step_id": "b"}));
    assert!(play.told().contains("the step that is carried out now is `1`"), "{}", play.told());
    play.calls("plan_progress", json!({"plan_status": "completed"}));
    assert!(play.told().contains("not yours to tell"), "{}", play.told());
    play.calls(
        "plan_progress",
        json!({"step_id": "a", "step_status": "skipped", "step_summary": "there are no notes"}),
    );
    assert_eq!(stage(&play), &executes("b"), "nothing failed, so nothing is looked at");
    assert_eq!(steps(&play)[0].status, StepStatus::Skipped);
    assert_eq!(steps(&play)[0].result.as_ref().unwrap().output, "there are no notes");
    assert!(
        asked(&play).0[0]
            .content
            .contains("[skipped] 1. read the notes\n      reason: there are no notes")
    );
    play.calls("plan_progress", json!({"step_summary": "written"}))
        .says("checked")
        .says("Done.");
    play.ended(TurnStatus::Completed, TurnReason::FinalAnswer);
    assert_eq!(play.answer().open_steps, ["– 1. read the notes"], "the last word names it");
    assert!(open_steps(play.state()).is_empty() && play.state().plan.as_ref().unwrap().done);
}

/// S1-5, S2-4: a step's own list of todos changes no step of the plan, whatever ids it has.
#[test]
fn todos_of_a_step_are_its_own() {
    let mut play = approved(three(), |_| {});
    let todos = json!({"todos": [{"id": "a", "content": "x", "status": "completed"}, {"id": "c", "content": "y", "status": "completed"}]});
    play.calls("write_todos", todos);
    assert_eq!(statuses(&play)[0], ("a", StepStatus::InProgress));
    assert_eq!((statuses(&play)[2], play.state().todos.revision), (("c", StepStatus::Pending), 1));
}

/// S2-T: a model that says nothing twice has failed the step.
#[test]
fn silence_fails_a_step() {
    let mut play = approved(three(), |policy| policy.reflection = Reflection::Off);
    play.says("").says("");
    assert_eq!((steps(&play)[0].status, stage(&play)), (StepStatus::Failed, &executes("b")));
    play.says("").says("b").says("c").says("").says("");
    play.ended(TurnStatus::Completed, TurnReason::FinalAnswer);
    assert!(
        play.answer().text.contains("✗ 1. read the notes"),
        "the plan speaks for itself: {}",
        play.answer().text
    );
}

/// S3-8, S2-4: a step whose model says CONTINUE goes on; its JSON is nobody's to see.
#[test]
fn a_signal_keeps_a_step_open() {
    let mut play = approved(three(), |_| {});
    play.says(r#"Half of it. {"continuation": {"status": "CONTINUE"}}"#);
    assert_eq!(stage(&play), &executes("a"));
    let (messages, _) = asked(&play);
    assert_eq!(messages.len(), 3, "{messages:#?}");
    play.says("All of it.");
    assert_eq!(steps(&play)[0].status, StepStatus::Completed);
}

/// S2-11: words of the requester go to the turn's own log; the step that is carried out and all later ones read them.
#[test]
fn words_that_come_meanwhile_are_read() {
    let mut play = approved(three(), |_| {});
    play.calls("read_file", json!({"path": "notes"}));
    play.feed(Input::Steer("leave out the <b>names</b>".into()));
    play.tools_answer("text");
    let read = |play: &Play| {
        asked(play)
            .0
            .iter()
            .filter(|message| message.content.starts_with("<mailbox>\n"))
            .count()
    };
    assert_eq!(read(&play), 1, "the step");
    assert_eq!(play.turn.log.last().unwrap().step, None, "it is said to the turn");
    play.says("done");
    assert_eq!(read(&play), 1, "the reflection");
    goes_on(&mut play);
    assert_eq!(read(&play), 1, "the next step");
    play.feed(Input::Steer("and the dates".into()));
    assert_eq!(read(&play), 2);
    assert_eq!(stage(&play), &executes("b"));
}

/// S2-T, C14: at the turn's limit the last call knows what came of the steps; granted more, the step goes on in its own log.
#[test]
fn the_turns_limit_holds_in_a_step() {
    let mut play = approved(three(), |policy| policy.max_iterations = 4);
    play.says("two notes");
    goes_on(&mut play);
    play.calls("read_file", json!({"path": "x"}));
    assert_eq!(play.state().next, Next::CallModel { last: true });
    let (messages, tools) = asked(&play);
    assert!(tools.is_empty() && messages.iter().all(|message| message.step.is_none()));
    let block = &messages.last().unwrap().content;
    assert!(
        block.starts_with("<turn-limit>\n") && block.contains("result: two notes"),
        "{block}"
    );
    play.says("One step is done.");
    play.waits_for(GateKind::Budget);
    play.approves();
    assert_eq!(stage(&play), &executes("b"));
    let (messages, _) = asked(&play);
    assert!(messages.last().unwrap().content.starts_with("<turn-limit>\n"), "{messages:#?}");
    assert!(messages.iter().any(|message| message.content.contains("budget_exhausted")));
    play.calls("read_file", json!({"path": "x"}));
    assert_eq!(play.running(), ["read_file"], "it has never run, so it is no repetition");
    play.tools_answer("text");
    play.says("b").says("{\"outcome\": \"complete\"}").says("Done.");
    play.ended(TurnStatus::Completed, TurnReason::FinalAnswer);
}

/// S1-13, S2-4: calls where words are asked for are not even recorded, whatever a server makes of a request without tools.
#[test]
fn calls_are_not_taken_where_words_are_asked_for() {
    let mut play = approved(three(), |_| {});
    play.says("done");
    let call = crate::domain::ToolCall {
        id: "x".into(),
        name: "write_file".into(),
        arguments: "{}".into(),
    };
    let reply = |text: &str| {
        Input::Reply(ModelReply {
            text: text.into(),
            calls: vec![call.clone()],
            ..ModelReply::default()
        })
    };
    play.feed(reply(r#"{"outcome": "complete"}"#));
    assert_eq!(stage(&play), &Stage::Concluding);
    play.feed(reply("Done."));
    play.ended(TurnStatus::Completed, TurnReason::FinalAnswer);
    assert!(
        play.turn
            .log
            .iter()
            .all(|message| message.calls.iter().all(|known| known.id != "x"))
    );
}
