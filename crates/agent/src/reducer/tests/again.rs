//! A plan whose review expired is asked for again: what the new turn takes over, and what is new.

use serde_json::json;

use super::plan_mode::{approved, asked, executes, reflects, stage, statuses, three};
use super::play::{Play, plan, three_steps, writes};
use crate::domain::{
    ActionStatus, ApprovalMode, DecisionKind, Event, GateKind, Mode, Notice, Outbound, PlanCard, Policy, Role, StepStatus, TurnReason,
    TurnStatus,
};
use crate::reducer::{Input, Next, ReviewOutcome, Stage, begin_again};

impl Play {
    /// The turn that takes up what this one left when its review expired, begun under the settings of now.
    fn again(&self, change: impl FnOnce(&mut Policy)) -> Self {
        let mut play = Self::queued(change, "");
        let policy = play.turn.state.policy;
        play.turn = begin_again(self.turn.clone(), "turn_2".into(), "ffeeddcc".into(), policy, false);
        play.calls = self.calls;
        play.feed(Input::Start);
        play
    }
}

/// A turn whose plan nobody answered in time.
fn expired() -> Play {
    let mut play = Play::new();
    play.reply("先看看笔记。", &[("plan", three_steps())])
        .decides(DecisionKind::Expire, None);
    play.ended(TurnStatus::Cancelled, TurnReason::Expired);
    play
}

fn card(play: &Play) -> &PlanCard {
    match &play.gate().card {
        Outbound::PlanCard(card) => card,
        other => panic!("no plan card: {other:?}"),
    }
}

/// interface 9: the same request, log and plan; a review of the same digest and version under an id of its own; no call of the model before
/// the OK, which has the plan carried out. Limits begin anew.
#[test]
fn the_same_plan_is_reviewed_anew() {
    let old = expired();
    let mut new = old.again(|_| {});
    new.waits_for(GateKind::PlanReview);
    assert_eq!(new.turn.log, old.turn.log, "nothing is added to the log");
    assert_eq!(
        (&new.state().task, &new.state().requester),
        (&old.state().task, &old.state().requester)
    );
    assert_eq!(new.state().plan, old.state().plan);
    let (first, second) = (old.gate(), new.gate());
    assert_eq!((&first.digest, first.plan_version), (&second.digest, second.plan_version));
    assert_ne!(first.id, second.id);
    assert_eq!(second.replaces, None, "the expired review is another turn's");
    let as_before = PlanCard {
        review_id: card(&old).review_id.clone(),
        ..card(&new).clone()
    };
    assert_eq!(as_before, *card(&old), "the card shows the same");
    assert_eq!(new.state().budget.steps.used, 0);
    let events: Vec<String> = new
        .events()
        .iter()
        .map(|event| serde_json::to_value(event).unwrap()["type"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(events, ["turn_started", "plan_created", "turn_paused"]);
    new.approves().calls_model();
    let roles: Vec<Role> = new.turn.log.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool, Role::User]);
    assert!(new.log(Role::User)[1].starts_with("<plan_feedback>\n"));
    new.calls("clarify", json!({"task_goal_ui": "x"}))
        .calls("write_file", json!({"path": "a"}));
    assert_eq!(new.running().len(), 1, "the OK covers what it would have covered");
}

/// The review asks by the settings of now: how many people, for how long, what the OK covers. It opens whatever they say, because a person
/// asked for it.
#[test]
fn the_settings_of_now_hold() {
    let new = expired().again(|policy| (policy.quorum, policy.ttl_ms) = (3, 7_000));
    assert_eq!((new.gate().quorum, card(&new).head.ttl_ms), (3, 7_000));
    for off in [
        expired().again(|policy| policy.review_enabled = false),
        expired().again(|policy| policy.require_confirmation = false),
        expired().again(|policy| policy.approval = ApprovalMode::Always),
    ] {
        off.waits_for(GateKind::PlanReview);
        assert!(off.state().review_pending(), "nothing is changed before the OK");
        assert!(card(&off).grants.is_empty(), "and it grants nothing");
    }
}

/// Words about the plan that expired twice are answered as ever, and a changed plan is a new version.
#[test]
fn the_new_review_takes_every_decision() {
    let mut revised = expired().again(|_| {});
    revised.decides(DecisionKind::Revise, Some("先备份"));
    assert_eq!(revised.state().review.outcome, ReviewOutcome::Revised);
    revised.calls("plan", plan("complex", json!(["back up", "write"])));
    assert_eq!(revised.gate().plan_version, 2);
    let mut cancelled = expired().again(|_| {});
    cancelled
        .decides(DecisionKind::Cancel, None)
        .ended(TurnStatus::Cancelled, TurnReason::Cancelled);
    let mut again = expired().again(|_| {});
    again
        .decides(DecisionKind::Expire, None)
        .ended(TurnStatus::Cancelled, TurnReason::Expired);
    again.again(|_| {}).waits_for(GateKind::PlanReview);
}

/// S2-4: what an earlier plan of the turn had done stays done; in plan mode the work goes on with the first step that waits, each in its log.
/// The mode is the old turn's, whatever is configured by now.
#[test]
fn what_was_done_stays_done() {
    let mut old = approved(three(), |_| {});
    old.says("two notes");
    reflects(&mut old, "expand", json!({"steps": [{"content": "fetch the third", "after": "a"}]}));
    old.decides(DecisionKind::Expire, None);
    let mut new = old.again(|policy| policy.mode = Mode::React);
    assert_eq!((stage(&new), new.state().policy.mode), (&Stage::Planning, Mode::Plan));
    assert_eq!(statuses(&new)[..2], [("a", StepStatus::Completed), ("4", StepStatus::Pending)]);
    new.approves();
    assert_eq!(*stage(&new), executes("4"));
    assert!(asked(&new).0[0].content.contains("two notes"), "the step knows what came before");
}

/// A call of the old turn whose outcome is unknown asks in the new one as well, though the plan covers it.
#[test]
fn a_lost_call_stays_lost() {
    let mut old = Play::new();
    let steps = json!([{"content": "write", "calls": [writes("a.md", 9)]}, "check"]);
    old.calls("plan", plan("complex", steps.clone())).approves();
    old.calls("clarify", json!({"task_goal_ui": "x"}))
        .calls("write_file", json!({"path": "a.md"}));
    old.tools_give(|_| None);
    old.settles(&[(ActionStatus::Rejected, None)]);
    old.calls(
        "plan",
        plan(
            "complex",
            json!([{"content": "write it again", "calls": [writes("a.md", 9)]}, "check"]),
        ),
    );
    old.decides(DecisionKind::Expire, None);
    let mut new = old.again(|_| {});
    new.approves()
        .calls("clarify", json!({"task_goal_ui": "x"}))
        .calls("write_file", json!({"path": "a.md"}));
    new.waits_for(GateKind::ToolApproval);
}

/// interface §5: the answer lists what ran under its own OK, and not what ran under the one before.
#[test]
fn the_answer_lists_what_ran_under_the_new_ok() {
    let mut old = Play::new();
    let first = json!([{"content": "write", "calls": [writes("a.md", 1)]}, "check"]);
    old.calls("plan", plan("complex", first)).approves();
    old.calls("clarify", json!({"task_goal_ui": "x"}))
        .calls("write_file", json!({"path": "a.md"}))
        .tools_answer("written");
    let second = json!([{"content": "write another", "calls": [writes("b.md", 1)]}, "check"]);
    old.calls("plan", plan("complex", second)).decides(DecisionKind::Expire, None);
    let mut new = old.again(|_| {});
    new.approves()
        .calls("clarify", json!({"task_goal_ui": "x"}))
        .calls("write_file", json!({"path": "b.md"}))
        .tools_answer("written");
    new.calls("plan_progress", json!({"plan_status": "completed"})).says("done");
    let told: Vec<String> = new.answer().granted.iter().map(ToString::to_string).collect();
    assert_eq!(told, [r#"write_file {"path":"b.md"} × 1"#]);
    assert_eq!(new.state().calls.writes.len(), 2, "the turn still knows both");
}

/// Words that nobody has read yet are read after the OK.
#[test]
fn unread_words_are_taken_over() {
    let mut old = Play::new();
    old.calls("plan", three_steps());
    old.feed(Input::Steer("用中文写".to_owned()));
    old.decides(DecisionKind::Expire, None);
    let mut new = old.again(|_| {});
    assert_eq!(new.state().next, Next::Wait);
    new.approves();
    assert!(
        new.log(Role::User).iter().any(|words| words.contains("用中文写")),
        "{:?}",
        new.log(Role::User)
    );
}

/// The model has said what it is about; it need not say so again.
#[test]
fn the_current_task_stays_declared() {
    let mut old = Play::new();
    old.calls("plan", three_steps()).decides(DecisionKind::Revise, Some("为什么？"));
    old.calls("clarify", json!({"task_goal_ui": "x"})).says("因为要周报。");
    old.decides(DecisionKind::Expire, None);
    let mut new = old.again(|_| {});
    assert_eq!(card(&new).note.as_deref(), Some("因为要周报。"));
    new.approves().calls("write_file", json!({"path": "a"}));
    assert_eq!(new.running().len(), 1);
}

/// Only an expired review has a plan to ask for: an expired question is told without the button.
#[test]
fn an_expired_question_names_no_button() {
    let mut play = Play::new();
    play.calls("request_user", json!({"message": "which one?"}))
        .decides(DecisionKind::Expire, None);
    assert!(matches!(play.notices()[..], [Notice::ReviewExpired { again: false, .. }]));
    assert!(play.events().iter().any(|event| matches!(event, Event::TurnCancelled { .. })));
}
