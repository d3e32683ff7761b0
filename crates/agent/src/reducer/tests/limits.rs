//! Limits: steps, time and tokens, the flagged last call, the budget gate.

use serde_json::json;

use super::play::{Play, ok, plan, stopped, three_steps};
use crate::domain::{
    ActionStatus, DecisionKind, Event, GateKind, Limit, Notice, Outbound, ResumedReason, Role, ToolResult, TurnReason, TurnStatus,
};
use crate::reducer::{CallOutcome, Effect, Input, ModelReply, Next};

/// design: an answer that arrives on the last step is an answer.
#[test]
fn the_last_step_may_answer() {
    let mut play = Play::with(|policy| policy.max_iterations = 2);
    play.calls("read_file", json!({"path": "a"})).tools_answer("x").says("Answer.");
    play.ended(TurnStatus::Completed, TurnReason::FinalAnswer);
}

/// C14, S4-10: at the limit open calls get `budget_exhausted`, one flagged call without tools follows, its text is taken.
#[test]
fn one_last_call_without_tools() {
    let mut play = Play::with(|policy| policy.max_iterations = 2);
    play.calls("read_file", json!({"path": "a"}))
        .tools_answer("x")
        .calls("read_file", json!({"path": "b"}));
    assert_eq!(play.state().next, Next::CallModel { last: true });
    assert!(play.told().starts_with("[tool_result:read_file] error: budget_exhausted"));
    let (messages, tools) = play.request();
    assert!(tools.is_empty());
    assert!(messages.last().unwrap().content.starts_with("<turn-limit>\n") && messages.last().unwrap().role == Role::System);
    play.reply("One file is read.", &[("read_file", json!({"path": "c"}))]);
    play.ended(TurnStatus::Completed, TurnReason::BudgetExhausted);
    assert_eq!(
        (play.answer().text.as_str(), play.answer().problem.clone()),
        ("One file is read.", Some(Notice::BudgetExhausted {}))
    );
    assert_eq!(play.state().budget.steps.used, 3);
}

fn at_the_limit() -> Play {
    let mut play = Play::with(|policy| (policy.max_iterations, policy.max_nudges) = (2, 50));
    play.calls("plan", three_steps()).approves().says("nudge me");
    assert_eq!(play.state().next, Next::CallModel { last: true });
    play.says("Nothing is done yet.");
    play
}

/// design: with an open plan a budget gate asks; OK grants the original limit once more.
#[test]
fn a_person_may_extend_the_limit() {
    let mut play = at_the_limit();
    play.waits_for(GateKind::Budget);
    let Outbound::BudgetCard(card) = &play.gate().card else {
        panic!("a budget card")
    };
    assert_eq!(
        (card.summary.as_str(), card.open_steps.len(), card.steps_used),
        ("Nothing is done yet.", 3, 3)
    );
    play.approves();
    play.calls_model();
    let budget = play.state().budget;
    assert_eq!((budget.steps.used, budget.steps.limit, budget.top_ups.used), (3, 5, 1));
    let extended = |event: &&Event| {
        matches!(
            event,
            Event::TurnResumed {
                resumed_reason: ResumedReason::BudgetExtended,
                steps_remaining: 2
            }
        )
    };
    assert!(play.events().into_iter().any(|event| extended(&event)));
    play.calls("plan_progress", json!({"plan_status": "completed"})).says("Done now.");
    play.ended(TurnStatus::Completed, TurnReason::FinalAnswer);
}

/// design: the OK grants once more what is reached, and the card says what that is; other limits stay where they are.
#[test]
fn only_what_is_reached_is_granted_again() {
    let card = |play: &Play| match &play.gate().card {
        Outbound::BudgetCard(card) => card.reached.clone(),
        other => panic!("a budget card: {other:?}"),
    };
    let limits = |play: &Play| {
        let budget = play.state().budget;
        (budget.steps.limit, budget.millis.limit, budget.tokens.limit)
    };
    let mut play = Play::with(|policy| (policy.max_iterations, policy.max_tokens, policy.max_nudges) = (2, 1000, 50));
    play.calls("plan", three_steps()).approves().says("nudge me").says("Nothing yet.");
    assert_eq!((card(&play), limits(&play)), (vec![Limit::Steps], (2, 300_000, 1000)));
    play.approves();
    assert_eq!(limits(&play), (5, 300_000, 1000));
    // Two at once: the last call, too, costs time and tokens.
    let mut play = Play::with(|policy| (policy.timeout_ms, policy.max_tokens, policy.max_nudges) = (200, 30, 50));
    play.calls("plan", three_steps()).approves().says("nudge me").says("Nothing yet.");
    assert_eq!((card(&play), limits(&play)), (vec![Limit::Time, Limit::Tokens], (50, 200, 30)));
    play.approves();
    assert_eq!(limits(&play), (50, 500, 60));
}

/// design: three top-ups at most; then the text of the last call ends the turn.
#[test]
fn three_top_ups() {
    let mut play = at_the_limit();
    for _ in 0..3 {
        play.approves().says("again").says("again").says("Still nothing.");
    }
    play.ended(TurnStatus::Failed, TurnReason::BudgetExhausted);
    assert_eq!(
        (
            play.answer().text.as_str(),
            play.gates().iter().filter(|gate| gate.kind == GateKind::Budget).count()
        ),
        ("Still nothing.", 3)
    );
}

/// design: refusal or expiry is `Failed(budget_exhausted)` with the last text; other words ask again.
#[test]
fn the_limit_may_be_kept() {
    for kind in [DecisionKind::Cancel, DecisionKind::Reject, DecisionKind::Expire] {
        let mut play = at_the_limit();
        play.decides(kind, None);
        play.ended(TurnStatus::Failed, TurnReason::BudgetExhausted);
        assert_eq!(
            (play.answer().text.as_str(), play.answer().open_steps.len()),
            ("Nothing is done yet.", 3)
        );
    }
    let mut play = at_the_limit();
    play.decides(DecisionKind::Revise, Some("why?"));
    play.waits_for(GateKind::Budget);
    let gates = play.gates();
    assert_eq!(gates[gates.len() - 1].replaces.as_ref(), Some(&gates[gates.len() - 2].id));
}

/// design: with a done plan the last text completes the turn.
#[test]
fn a_done_plan_completes_at_the_limit() {
    let mut play = Play::with(|policy| policy.max_iterations = 2);
    play.calls("plan", three_steps())
        .approves()
        .calls("plan_progress", json!({"plan_status": "completed"}));
    assert_eq!(play.state().next, Next::CallModel { last: true });
    play.says("All done.");
    play.ended(TurnStatus::Completed, TurnReason::BudgetExhausted);
}

/// design: working time and tokens are limits too; waiting for people costs nothing.
#[test]
fn time_and_tokens() {
    let mut time = Play::with(|policy| policy.timeout_ms = 120);
    time.calls("read_file", json!({"path": "a"})).tools_answer("x");
    assert_eq!(
        time.state().next,
        Next::CallModel { last: true },
        "100 ms of thinking and 50 of reading"
    );
    assert_eq!(time.told(), "[tool_result:read_file] x", "what ran is told");
    let mut tokens = Play::with(|policy| policy.max_tokens = 10);
    tokens.calls("plan", three_steps());
    tokens.waits_for(GateKind::PlanReview);
    tokens.approves();
    assert_eq!(tokens.state().next, Next::CallModel { last: true });
}

/// design: working time runs out in the middle of a model call, as it nearly always does: that is the limit, with its last call and
/// its question to people, and no failure of the model.
#[test]
fn time_runs_out_in_a_call() {
    let mut play = Play::with(|policy| policy.timeout_ms = 1000);
    play.calls("plan", three_steps()).approves();
    let cut_off = |millis| Input::ModelFailed {
        notice: Notice::ModelTimeout {},
        error: "HTTP 500".into(),
        incident: "inc1".into(),
        millis,
    };
    play.feed(cut_off(1000));
    assert_eq!(play.state().next, Next::CallModel { last: true });
    play.says("step 1 is done").waits_for(GateKind::Budget);
    play.approves();
    assert_eq!(play.state().next, Next::CallModel { last: false }, "the limit once more");
    play.feed(cut_off(50));
    play.ended(TurnStatus::Failed, TurnReason::ModelError);
}

/// design: the limit is looked at before people are asked to approve what could not run any more.
#[test]
fn nobody_approves_in_vain() {
    let mut play = Play::with(|policy| policy.max_iterations = 1);
    play.reply("", &[("write_file", json!({"path": "a"}))]);
    assert!(play.gates().is_empty() && play.actions().is_empty());
    assert!(play.told().contains("budget_exhausted"));
}

/// Two granted writes; of the first nobody knows whether it ran, and meanwhile the time is up.
fn lost_at_the_limit() -> Play {
    let mut play = Play::with(|policy| (policy.timeout_ms, policy.max_nudges) = (330, 50));
    play.calls("plan", three_steps())
        .approves()
        .calls("clarify", json!({"task_goal_ui": "first"}));
    let write = |path| ("write_file", json!({"path": path, "content": "x"}));
    play.reply("", &[write("a"), write("b")]);
    let Next::RunTools { calls } = play.state().next.clone() else {
        panic!("two calls")
    };
    let outcomes = vec![CallOutcome {
        call_id: calls[0].clone(),
        result: None,
    }];
    play.feed(Input::ToolResults { outcomes, millis: 50 });
    play
}

/// F-K14, S4-10, design: a write of unknown outcome is asked about at a limit as well, before the last call: whatever is said and even
/// when nothing is said, the model never hears that it was not run, and it does not run again past the limit.
#[test]
fn a_lost_write_is_asked_about_at_the_limit() {
    for (kind, told) in [
        (DecisionKind::Reject, "may or may not have run; it was not run again"),
        (DecisionKind::Expire, "may or may not have run; it was not run again"),
        (
            DecisionKind::Approve,
            "may or may not have run; a person allowed to run it again, but it was not run again: budget_exhausted",
        ),
    ] {
        let mut play = lost_at_the_limit();
        play.waits_for(GateKind::ToolApproval);
        let row = play.rows();
        assert_eq!(row.len(), 1, "the one that never ran asks nobody");
        play.decides(kind, None);
        assert_eq!(play.state().next, Next::CallModel { last: true }, "{kind:?}");
        let log = play.log(Role::Tool);
        assert!(log[log.len() - 2].contains(told), "{kind:?}: {log:?}");
        assert!(log[log.len() - 1].contains("error: budget_exhausted: not run"), "{log:?}");
        let unknown = play.last.contains(&Effect::ActionMoved {
            action: row[0].clone(),
            status: ActionStatus::Unknown,
        });
        assert_eq!(
            unknown,
            kind == DecisionKind::Approve,
            "consent that came to nothing leaves the row as it was"
        );
        play.says("a may be written").waits_for(GateKind::Budget);
        play.approves();
        play.calls_model();
        // Called again just so it asks, whatever the plan grants; it is a call of its own, and both are told at the end.
        play.calls("write_file", json!({"content": "x", "path": "a"}));
        play.waits_for(GateKind::ToolApproval);
        play.approves().tools_answer("written").says("done");
        assert_eq!(play.state().calls.written(), ["write_file a (?)", "write_file a"]);
    }
}

/// F-H18, design: a stop while that question is open names the call as one that may have run.
#[test]
fn a_stop_at_the_limit_names_the_lost_write() {
    let mut play = lost_at_the_limit();
    play.feed(Input::Cancel {
        by: None,
        reason: TurnReason::Cancelled,
        left: Vec::new(),
    });
    let done = vec!["write_file a (?)".into()];
    assert_eq!(play.notices(), [&stopped(&play, done)]);
    let log = play.log(Role::Tool);
    assert!(log[log.len() - 2].ends_with("it was sent and may or may not have run"), "{log:?}");
}

/// S2-13, design: a tool that ends the turn does so at a limit as well: nothing more is asked of the model.
#[test]
fn a_tool_may_end_the_turn_at_the_limit() {
    let mut play = Play::with(|policy| policy.timeout_ms = 120);
    play.calls("read_file", json!({"path": "a"})).tools_give(|_| {
        Some(ToolResult {
            exit: Some("The end.".into()),
            ..ok("x")
        })
    });
    play.ended(TurnStatus::Completed, TurnReason::FinalAnswer);
}

/// design: a last call that fails or is silent still ends with honest text of ours.
#[test]
fn a_silent_last_call_is_honest() {
    let mut play = Play::with(|policy| policy.max_iterations = 3);
    play.calls("plan", three_steps())
        .approves()
        .calls("plan_progress", json!({"step_id": "1"}))
        .says("hm");
    play.feed(Input::ModelFailed {
        notice: Notice::ModelTimeout {},
        error: "HTTP 500".into(),
        incident: "inc1".into(),
        millis: 30_000,
    });
    play.waits_for(GateKind::Budget);
    assert_eq!(play.state().answer.as_deref(), Some("✓ 1. read\n○ 2. write\n○ 3. tell"));
    let mut play = Play::with(|policy| policy.max_iterations = 1);
    play.calls("read_file", json!({"path": "a"}))
        .feed(Input::Reply(ModelReply::default()));
    play.ended(TurnStatus::Completed, TurnReason::BudgetExhausted);
    assert_eq!(
        (play.answer().text.as_str(), play.answer().problem.clone()),
        ("", Some(Notice::BudgetExhausted {}))
    );
}

/// S0-10, C5: the budget of steps is one over all pauses and plans.
#[test]
fn pauses_give_nothing_back() {
    let mut play = Play::with(|policy| policy.max_iterations = 3);
    play.calls("plan", three_steps()).decides(DecisionKind::Revise, Some("no"));
    play.calls("plan", plan("complex", json!(["a"])))
        .decides(DecisionKind::Revise, Some("no"));
    play.calls("plan", plan("complex", json!(["b"]))).approves();
    assert_eq!(play.state().next, Next::CallModel { last: true });
}

/// design: of the calls that may run, those that a limit or the end of the task comes before are `expired`, not `approved` for ever; of one
/// that was sent before it stays known that it may have run.
#[test]
fn calls_that_never_run_lapse() {
    let moved = |play: &Play| {
        let moved = play.all.iter().filter_map(|effect| match effect {
            Effect::ActionMoved { action, status } => Some((action.clone(), *status)),
            Effect::ActionReopened { action, .. } => Some((action.clone(), ActionStatus::Unknown)),
            _ => None,
        });
        moved.collect::<Vec<_>>()
    };
    let begun = || {
        let mut play = Play::at_work();
        let write = |path: &str| ("write_file", json!({"path": path, "content": "x"}));
        play.reply("", &[write("a"), write("b")]);
        let Next::RunTools { calls } = play.state().next.clone() else {
            panic!("two calls")
        };
        let rows: Vec<String> = play.actions().iter().map(|row| row.id.to_string()).collect();
        let done = CallOutcome {
            call_id: calls[0].clone(),
            result: Some(ok("written")),
        };
        (play, calls, rows, done)
    };
    let (mut play, _, rows, done) = begun();
    play.feed(Input::ToolResults {
        outcomes: vec![done],
        millis: 300_000,
    });
    assert_eq!(play.state().next, Next::CallModel { last: true });
    assert_eq!(moved(&play), [(rows[1].clone(), ActionStatus::Expired)]);
    let (mut play, calls, rows, done) = begun();
    let cancel = |left| Input::Cancel {
        by: None,
        reason: TurnReason::Cancelled,
        left,
    };
    play.feed(cancel(vec![done]));
    assert_eq!(moved(&play), [(rows[1].clone(), ActionStatus::Expired)]);
    // A person allowed to run it again, and it was not: what is known of it stays.
    let (mut play, _, rows, _) = begun();
    let lost = CallOutcome {
        call_id: calls[0].clone(),
        result: None,
    };
    play.feed(Input::ToolResults {
        outcomes: vec![lost],
        millis: 1,
    });
    play.approves().feed(cancel(Vec::new()));
    assert_eq!(
        moved(&play)[1..],
        [(rows[0].clone(), ActionStatus::Unknown), (rows[1].clone(), ActionStatus::Expired)]
    );
}
