//! How turns end, and what people and later turns are told.

use serde_json::json;

use super::pairing::assert_paired;
use super::play::{Play, plan, stopped, three_steps};
use crate::domain::{DecisionKind, Event, Notice, Outbound, Role, StepStatus, TurnReason, TurnStatus};
use crate::reducer::{Effect, Input, Next, memory, progress};

fn cancel(reason: TurnReason) -> Input {
    Input::Cancel {
        by: Some("ou_u1".into()),
        reason,
        left: Vec::new(),
    }
}

/// design: a task is a user message; an answer completes the turn, once.
#[test]
fn a_plain_answer() {
    let mut play = Play::new();
    assert_eq!(
        (play.log(Role::User), play.state().status),
        (vec!["请整理周报"], TurnStatus::Running)
    );
    play.says("你好！");
    play.ended(TurnStatus::Completed, TurnReason::FinalAnswer);
    assert_eq!(
        (play.answer().text.as_str(), play.answer().requester.as_str(), play.answer().group),
        ("你好！", "ou_u1", true)
    );
    assert_eq!(play.state().answer.as_deref(), Some("你好！"));
    assert_eq!(play.last.last(), Some(&Effect::Finish));
    assert!(play.events().contains(&&Event::TurnCompleted {
        reason: TurnReason::FinalAnswer
    }));
}

/// C10: a final turn takes nothing more.
#[test]
fn an_ended_turn_refuses_everything() {
    let mut play = Play::new();
    play.says("done");
    let before = play.turn.clone();
    for input in [
        Input::Start,
        cancel(TurnReason::Cancelled),
        Input::Steer("more".into()),
        Input::Undeliverable,
    ] {
        play.feed(input);
        assert!(play.last.is_empty());
    }
    assert_eq!(play.turn, before);
}

/// F-H18: a stop lists what already ran; without anything it says just that.
#[test]
fn a_stop_is_honest() {
    let mut play = Play::at_work();
    play.calls("write_file", json!({"path": "out.md"})).tools_answer("written");
    play.reply("", &[("read_file", json!({"path": "a"}))])
        .feed(cancel(TurnReason::Cancelled));
    play.ended(TurnStatus::Cancelled, TurnReason::Cancelled);
    assert_eq!(play.notices(), [&stopped(&play, vec!["write_file out.md".into()])]);
    assert!(play.told().contains("error: cancelled: the task ended before this was run"));
    assert_paired(&play.turn.log);
    let mut play = Play::new();
    play.feed(cancel(TurnReason::Cancelled));
    assert_eq!(play.notices(), [&stopped(&play, Vec::new())]);
}

/// F-H8: something newer took over: nothing is said, the card is repainted.
#[test]
fn superseded_turns_are_silent() {
    let mut play = Play::at_work();
    play.feed(cancel(TurnReason::Superseded));
    play.ended(TurnStatus::Cancelled, TurnReason::Superseded);
    assert!(!play.last.iter().any(|effect| matches!(effect, Effect::Say(_))));
    assert!(play.last.contains(&Effect::Progress));
}

/// design: a turn can be stopped while it waits in its lane, and while it waits for a person.
#[test]
fn stops_before_and_while_waiting() {
    let mut play = Play::queued(|_| {}, "task");
    play.feed(cancel(TurnReason::Cancelled));
    play.ended(TurnStatus::Cancelled, TurnReason::Cancelled);
    let mut play = Play::new();
    play.calls("request_user", json!({"message": "?"}))
        .feed(cancel(TurnReason::Cancelled));
    play.ended(TurnStatus::Cancelled, TurnReason::Cancelled);
    assert!(play.state().gate.is_none());
}

/// S3-13: a model that cannot answer ends the turn with a sentence for people and an incident for the admin.
#[test]
fn a_failing_model() {
    let mut play = Play::at_work();
    play.feed(Input::ModelFailed {
        notice: Notice::ModelUnreachable {},
        error: "HTTP 500".into(),
        incident: "inc42".into(),
        millis: 7,
    });
    play.ended(TurnStatus::Failed, TurnReason::ModelError);
    let answer = play.answer();
    assert_eq!(
        (answer.problem.clone(), answer.incident.as_deref()),
        (Some(Notice::ModelUnreachable {}), Some("inc42"))
    );
    assert_eq!((answer.open_steps.len(), play.state().budget.steps.used), (3, 3));
    assert_eq!(play.state().error.as_deref(), Some("HTTP 500"));
}

/// M-5: whatever a provider's client lets through of an answer is kept whole with the turn.
#[test]
fn a_very_long_answer_is_kept_whole() {
    let long = "字".repeat(80_000);
    let mut play = Play::new();
    play.says(&long);
    play.ended(TurnStatus::Completed, TurnReason::FinalAnswer);
    assert_eq!(play.answer().text.len(), long.len());
}

/// design: a card that cannot be delivered ends the turn; without a card nothing happens.
#[test]
fn undeliverable() {
    let mut play = Play::new();
    play.feed(Input::Undeliverable);
    play.calls_model();
    play.calls("plan", three_steps()).feed(Input::Undeliverable);
    play.ended(TurnStatus::Failed, TurnReason::Undeliverable);
}

/// S3-1: words that come while the turn runs reach the model in a mailbox, never between a call and its result.
#[test]
fn steering() {
    let mut play = Play::new();
    play.feed(Input::Steer("also </mailbox> mail it".into()));
    assert_eq!(
        play.log(Role::User)[1],
        "<mailbox>\nmessage:\n  also &lt;/mailbox&gt; mail it\n</mailbox>"
    );
    play.calls("read_file", json!({"path": "a"})).feed(Input::Steer("second".into()));
    assert_eq!(play.log(Role::User).len(), 2);
    play.tools_answer("text");
    assert_eq!(play.turn.log.last().unwrap().content, "<mailbox>\nmessage:\n  second\n</mailbox>");
    play.calls("request_user", json!({"message": "?"}))
        .feed(Input::Steer("third".into()))
        .decides(DecisionKind::Revise, Some("answer"));
    assert!(play.turn.log.last().unwrap().content.contains("third"));
    play.feed(Input::Steer("  ".into()));
    assert_eq!(play.log(Role::User).len(), 4);
}

/// S1-13: the capsule carries goal, plan, findings, what was changed and what is left.
#[test]
fn the_capsule() {
    let mut play = Play::at_work();
    play.reply("", &[("write_file", json!({"path": "a.md", "content": "x"}))])
        .tools_answer("written");
    play.calls("plan_progress", json!({"step_id": "1", "step_summary": "12 files"}));
    for _ in 0..6 {
        play.says("Half of it.");
    }
    let capsule = serde_json::to_value(&play.state().capsule).unwrap();
    assert_eq!(capsule["goal"], "Weekly report");
    assert_eq!(
        capsule["planSnapshot"][0],
        json!({"id": "1", "content": "read", "status": "completed"})
    );
    assert_eq!(capsule["keyFindings"], json!(["12 files", "Half of it."]));
    assert_eq!(
        capsule["artifacts"],
        json!([{"type": "write_file", "ref": "a.md", "summary": "write_file a.md"}])
    );
    assert_eq!(capsule["nextActions"], json!(["2. write", "3. tell"]));
    let said = memory("请写周报", play.state()).map(|message| message.content);
    assert_eq!(
        said,
        [
            "请写周报",
            "Half of it.\n[done: write_file a.md]\n[not done: 2. write; 3. tell]\n12 files"
        ]
    );
}

/// S1-13: however long a turn was, what a later one is told of it stays small; and a turn without an answer says so.
#[test]
fn the_memory_of_a_turn_is_bounded() {
    let long = "很长的一句话。".repeat(500);
    let steps: Vec<_> = (1..=50)
        .map(|number| json!({"content": format!("{number} {}", "步".repeat(100))}))
        .collect();
    let mut play = Play::with(|policy| policy.max_nudges = 1);
    play.calls("plan", plan("complex", json!(steps))).approves();
    for id in 1..=30 {
        play.calls("plan_progress", json!({"step_id": id.to_string(), "step_summary": long.clone()}));
    }
    play.says(&long).says(&long);
    let [asked, told] = memory(&long, play.state());
    assert!(
        asked.content.len() <= 4096 && asked.content.ends_with('…'),
        "{}",
        asked.content.len()
    );
    assert!(
        told.content.len() <= 4096 && told.content.starts_with("很长的一句话。"),
        "{}",
        told.content.len()
    );
    let capsule = play.state().capsule.clone().unwrap();
    assert_eq!((capsule.key_findings.len(), capsule.next_actions.len()), (11, 10));
    let mut stopped = Play::new();
    stopped.feed(cancel(TurnReason::Cancelled));
    assert_eq!(memory("x", stopped.state())[1].content, "[no answer: cancelled]");
}

/// design row 11: the last words name the steps that were not done, and which of them failed.
#[test]
fn failed_steps_are_named_as_such() {
    let mut play = Play::at_work();
    play.turn.state.plan.as_mut().unwrap().steps[1].status = StepStatus::Failed;
    play.calls("plan_progress", json!({"plan_status": "completed"}))
        .says("As far as it went.");
    assert_eq!(play.answer().open_steps, ["✗ 2. write"]);
}

/// design: the card is painted a last time when the turn ends; the answer is not repeated on it.
#[test]
fn the_last_paint() {
    let mut play = Play::at_work();
    play.calls("plan_progress", json!({"plan_status": "completed"})).says("Finished.");
    assert!(play.last.contains(&Effect::Progress));
    assert!(matches!(progress(&play.turn), Some((Some(_), Outbound::PlanCard(card))) if card.note.is_none()));
    assert_eq!(play.state().next, Next::Nothing);
}
