//! Random play: whatever model, tools and people do, the invariants of `play.rs` hold and nothing panics.

use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::play::{Play, ok, plan, three_steps};
use crate::domain::{ActionStatus, ApprovalMode, DecisionKind, Mode, Notice, Policy, Reflection, Role, ToolCall, ToolResult, TurnReason};
use crate::reducer::{CallOutcome, FailedTry, Input, ModelReply, Next, RowVerdict, progress, view};

const DECISIONS: [DecisionKind; 6] = [
    DecisionKind::Approve,
    DecisionKind::Approve,
    DecisionKind::Revise,
    DecisionKind::Reject,
    DecisionKind::Expire,
    DecisionKind::Cancel,
];

const TEXTS: [&str; 10] = [
    r#"{"outcome": "continue"}"#,
    r#"{"outcome": "expand", "steps": [{"content": "<plan-step> more", "tools": ["write_file"]}]}"#,
    r#"{"outcome": "refine", "steps": [{"id": "2", "content": "other"}], "removed": ["3"], "skipped": ["1"]}"#,
    r#"{"outcome": "refined_done", "removed": ["2"]}"#,
    "",
    "words",
    "</plan_feedback>",
    " ",
    r#"{"response": "{\"continuation\": {\"status\": \"CONTINUE\"}}", "continuation": {"status": "CONTINUE", "reason": "<mailbox>"}}"#,
    r#"so far {"continuation": {"status": "TERMINATE", "next_action": {"tool": "run_bash"}}}"#,
];

/// A call of the model's; `pick` chooses which, good or bad.
fn call(pick: u8) -> (&'static str, Value) {
    match pick % 24 {
        0 => ("plan", three_steps()),
        1 => ("plan", plan("simple", json!([]))),
        2 => (
            "plan",
            plan("simple", json!([{"content": "x", "tools": ["write_file", "run_bash"]}])),
        ),
        3 => ("plan", plan("complex", json!("1. a [tools: web_fetch]\n2. b"))),
        4 => ("plan", json!("{")),
        5 | 6 => ("clarify", json!({"task_goal_ui": "t"})),
        7 => (
            "clarify",
            json!({"task_goal_ui": "t", "needs_user_input": true, "question_to_user": "?"}),
        ),
        8 => ("request_user", json!({"message": "?"})),
        9 => ("plan_progress", json!({"step_id": "1"})),
        10 => ("plan_progress", json!({"next_step": "2"})),
        11 => ("plan_progress", json!({"plan_status": "completed"})),
        12 => ("plan_progress", json!({"step_status": "failed"})),
        13 | 14 => (
            "write_todos",
            json!({"todos": [{"id": "1", "content": "x", "status": "completed"}]}),
        ),
        15 => ("write_todos", json!({"todos": []})),
        16 | 17 => ("read_file", json!({"path": "r"})),
        18 | 19 => ("write_file", json!({"path": "w", "content": "<plan_feedback>"})),
        20 => ("web_fetch", json!({"url": "http://x"})),
        21 => ("run_bash", json!({"command": "ls"})),
        22 => ("no such tool", json!({})),
        _ => ("write_file", json!([1])),
    }
}

fn reply(bytes: &[u8]) -> Input {
    let calls = bytes.iter().skip(2).enumerate().map(|(at, pick)| {
        let (name, arguments) = call(*pick);
        ToolCall {
            // Ids repeat from reply to reply, and now and then within one.
            id: format!("c{}", at % 3),
            name: name.into(),
            arguments: arguments.as_str().map_or_else(|| arguments.to_string(), str::to_owned),
        }
    });
    let count = usize::from(bytes[0] % 4);
    Input::Reply(ModelReply {
        text: TEXTS[usize::from(bytes[1] % 10)].into(),
        calls: calls.take(count).collect(),
        behind_links: Vec::new(),
        raw: (bytes[1] > 200).then(|| json!({"reasoning": "opaque"})),
        tokens: u64::from(bytes[1]),
        millis: u64::from(bytes[0]),
        cut_call: bytes[1] % 16 == 3,
    })
}

fn results(calls: &[String], bytes: &[u8]) -> Input {
    let outcomes = calls
        .iter()
        .zip(bytes.iter().cycle())
        .filter(|(_, pick)| **pick != 7)
        .map(|(id, pick)| CallOutcome {
            call_id: id.clone(),
            result: (pick % 8 != 1).then(|| ToolResult {
                ok: !pick.is_multiple_of(3),
                exit: (*pick == 44).then(|| String::from("bye")),
                exit_code: pick.is_multiple_of(5).then_some(i32::from(*pick)),
                ..ok("output")
            }),
        });
    Input::ToolResults {
        outcomes: outcomes.collect(),
        millis: u64::from(bytes[0]),
    }
}

fn decided(play: &Play, bytes: &[u8]) -> Input {
    let statuses = [
        ActionStatus::Approved,
        ActionStatus::Approved,
        ActionStatus::Rejected,
        ActionStatus::Expired,
        ActionStatus::Running,
    ];
    let rows = play
        .state()
        .calls
        .open
        .iter()
        .filter_map(|open| open.action.clone())
        .zip(bytes.iter().skip(2));
    let rows = rows.filter(|(_, pick)| **pick > 60).map(|(action, pick)| RowVerdict {
        edited: None,
        action,
        status: statuses[usize::from(pick % 5)],
        reason: None,
    });
    let mut decision = super::play::decision(DECISIONS[usize::from(bytes[0] % 6)], bytes[1].is_multiple_of(2).then_some("words"));
    // Now and then changes are a choice of steps, which need not be steps of this plan.
    if decision.kind == DecisionKind::Revise && bytes[1].is_multiple_of(3) {
        decision.kept = (0..6).filter(|number| bytes[2] >> number & 1 == 1).collect();
    }
    Input::Decided {
        decision,
        rows: rows.collect(),
    }
}

/// The next input: one that fits most of the time, any other now and then.
fn input(play: &Play, bytes: &[u8]) -> Input {
    match bytes[0] {
        0 => Input::Cancel {
            by: None,
            reason: TurnReason::Superseded,
            left: vec![CallOutcome {
                call_id: "c1".into(),
                result: bytes[1].is_multiple_of(2).then(|| ok("ran")),
            }],
        },
        1 if bytes[1] < 40 => Input::HookFailed {
            incident: "i".into(),
            left: vec![CallOutcome {
                call_id: "c0".into(),
                result: bytes[2].is_multiple_of(2).then(|| ok("ran")),
            }],
        },
        1 => Input::Undeliverable,
        2 | 3 => Input::Steer("<mailbox> more".into()),
        4 if bytes[1] < 60 => Input::ModelAway(FailedTry {
            wait: bytes[1].is_multiple_of(3).then(|| Duration::from_secs(u64::from(bytes[2]))),
            patience: Duration::from_secs(u64::from(bytes[3])),
            error: "HTTP 503".into(),
            incident: "i".into(),
            millis: 5,
            tokens: 5,
        }),
        4 if bytes[1] < 90 => Input::Tick,
        4 => Input::Start,
        5 => Input::ModelFailed {
            notice: Notice::ModelTimeout {},
            error: "HTTP 500".into(),
            incident: "i".into(),
            millis: 5,
        },
        6 => reply(&bytes[1..]),
        7 => decided(play, &bytes[1..]),
        8 => results(&["c0".into(), "ghost".into()], &bytes[1..]),
        _ => match &play.state().next {
            Next::Start | Next::GoOn | Next::Nothing => Input::Start,
            Next::CallModel { .. } => reply(&bytes[1..]),
            Next::RunTools { calls } if bytes[1].is_multiple_of(7) => Input::Outdated {
                call_id: calls[0].clone(),
                millis: 1,
            },
            Next::RunTools { calls } => results(calls, &bytes[1..]),
            Next::Wait => decided(play, &bytes[1..]),
        },
    }
}

fn fits(input: &Input, play: &Play) -> bool {
    let next = &play.state().next;
    match input {
        Input::Start => matches!(next, Next::Start | Next::GoOn),
        Input::Reply(_) | Input::ModelFailed { .. } | Input::ModelAway(_) | Input::Tick => matches!(next, Next::CallModel { .. }),
        Input::ToolResults { .. } | Input::Outdated { .. } => matches!(next, Next::RunTools { .. }),
        Input::Decided { .. } | Input::Undeliverable => *next == Next::Wait,
        Input::Steer(_) | Input::Cancel { .. } | Input::Edited | Input::HookFailed { .. } | Input::Crashed { .. } => *next != Next::Nothing,
    }
}

fn change(policy: &mut Policy, bytes: &[u8]) {
    policy.review_enabled = !bytes[0].is_multiple_of(4);
    policy.require_confirmation = !bytes[1].is_multiple_of(4);
    policy.approval = [ApprovalMode::Write, ApprovalMode::Always, ApprovalMode::Never][usize::from(bytes[2] % 3)];
    policy.max_iterations = u64::from(bytes[3] % 24) + 1;
    policy.max_tokens = if bytes[4].is_multiple_of(4) { 900 } else { 0 };
    policy.timeout_ms = if bytes[5].is_multiple_of(4) { 1500 } else { 300_000 };
    policy.mode = if bytes[4].is_multiple_of(3) { Mode::Plan } else { Mode::React };
    policy.reflection = [Reflection::PerStep, Reflection::PerStep, Reflection::OnFailure, Reflection::Off][usize::from(bytes[5] % 4)];
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    /// design §2, S2-7, S2-8: total, replayable from its journal, calls paired, no write without a person's or a plan's leave,
    /// limits kept, one end; after a twin's JSON round trip every step is the same; what observers are told adds up to the plan.
    #[test]
    fn anything_may_happen(setting in prop::array::uniform6(any::<u8>()), script in prop::collection::vec(prop::array::uniform8(any::<u8>()), 1..60)) {
        let mut play = Play::queued(|policy| change(policy, &setting), "task");
        play.feed(Input::Start);
        for bytes in &script {
            let before = play.turn.clone();
            let next = input(&play, bytes);
            let fits = fits(&next, &play);
            play.feed(next);
            prop_assert!(fits || (play.last.is_empty() && play.turn == before), "what does not fit changes nothing");
            prop_assert!(before.log.len() <= play.turn.log.len(), "the log only grows");
            prop_assert_eq!(&play.turn.log[..before.log.len()], &before.log[..], "what is logged is not rewritten");
            let _ = progress(&play.turn);
            let said = play.turn.log.iter().filter(|message| message.role == Role::Assistant);
            prop_assert!(said.into_iter().all(|message| !message.content.contains("\"continuation\"")), "no JSON of the protocol is shown");
        }
        prop_assert!(view(&play.turn, &play.env(), "extra").len() > play.turn.log.len());
        let sent = play.request().0;
        // Plan mode sends one log of several.
        prop_assert!(sent.len() > play.turn.log.len() || play.state().run.is_some());
        if matches!(play.state().next, Next::CallModel { .. }) {
            super::pairing::assert_paired(&sent);
        }
    }
}
