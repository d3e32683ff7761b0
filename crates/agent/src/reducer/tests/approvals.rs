//! Tool calls that ask a person (row 6): rows, verdicts, grants, lost outcomes.

use serde_json::json;

use super::play::{Play, ok, plan, stopped, writes};
use crate::domain::{
    Action, ActionStatus, ApprovalMode, CallEdit, DecisionKind, Demand, EffectClass, Event, GateKind, Outbound, ResumedReason, Role,
    ToolResult, TurnReason, TurnStatus, Via,
};
use crate::reducer::calls::justification;
use crate::reducer::{CallOutcome, Effect, Input, Next};

fn write(path: &str) -> (&str, serde_json::Value) {
    ("write_file", json!({"path": path, "content": "x"}))
}

/// S4-2, S4-4, S4-5, S4-12: reads run at once and loop back; the rest waits in one card, a row a call, with the model's words.
#[test]
fn reads_run_and_writes_wait() {
    let mut play = Play::new();
    play.reply(
        "I will write two files.",
        &[
            write("a"),
            ("read_file", json!({"path": "r"})),
            ("run_bash", json!({"command": "ls -l"})),
        ],
    );
    assert_eq!(play.running(), ["read_file"]);
    assert!(play.gates().is_empty(), "the card comes after the reads");
    play.tools_answer("text");
    play.waits_for(GateKind::ToolApproval);
    let Outbound::ApprovalCard(card) = &play.gate().card else {
        panic!("an approval card")
    };
    let rows: Vec<_> = card
        .actions
        .iter()
        .map(|row| (row.tool.as_str(), row.justification.as_str(), row.effect, row.status))
        .collect();
    let expected = [
        ("write_file", "Write: a (1 bytes)", EffectClass::Write, ActionStatus::Pending),
        ("run_bash", "Run: ls -l", EffectClass::Destructive, ActionStatus::Pending),
    ];
    assert_eq!(rows, expected, "S4-12");
    assert_eq!(card.note.as_deref(), Some("I will write two files."));
    assert!(card.actions[0].arguments.contains("\"path\": \"a\""));
    let proposed = play.actions();
    let shape = |action: &&Action| {
        (
            action.status,
            action.gate_id.clone(),
            action.position,
            action.expires_at.is_some(),
            action.decision.is_some(),
        )
    };
    let gate = Some(play.gate().id.clone());
    assert_eq!(
        proposed.iter().map(shape).collect::<Vec<_>>(),
        [
            (ActionStatus::Pending, gate.clone(), 0, true, false),
            (ActionStatus::Pending, gate, 2, true, false)
        ]
    );
    assert!(
        proposed
            .iter()
            .all(|action| action.id.as_str().starts_with("act_") && action.id.as_str().len() == 36)
    );
    let paused = |event: &&&Event| {
        matches!(
            event,
            Event::TurnPaused {
                pending_action_count: 2,
                gate: GateKind::ToolApproval,
                gate_id: Some(_),
                steps_used: 1,
                steps_remaining: 49,
            }
        )
    };
    assert_eq!(play.events().iter().filter(paused).count(), 1, "S4-5");
}

/// S4-12: what a call does is said by its primary argument, on one line, however long; a call that we know nothing of, or that lacks
/// its argument, is proposed by the model.
#[test]
fn calls_are_justified_by_their_primary_argument() {
    let said = |tool: &str, arguments| justification(tool, &arguments);
    let long = "很".repeat(2000);
    for (words, expected) in [
        (said("run_bash", json!({"command": "ls -l\nrm x"})), "Run: ls -l rm x".to_owned()),
        (
            said("web_fetch", json!({"url": "https://example.org/"})),
            "Fetch: https://example.org/".to_owned(),
        ),
        (
            said("write_file", json!({"path": "a/b.md", "content": "é"})),
            "Write: a/b.md (2 bytes)".to_owned(),
        ),
        (said("write_file", json!({"path": "a"})), "Proposed by planning model.".to_owned()),
        (
            said("mail__send", json!({"path": "a", "command": "b"})),
            "Proposed by planning model.".to_owned(),
        ),
    ] {
        assert_eq!(words, expected);
    }
    let words = said("write_file", json!({"path": long, "content": "x"}));
    assert!(words.ends_with("… (1 bytes)") && words.chars().count() < 320, "{words}");
    assert!(said("run_bash", json!({"command": long})).ends_with('…'));
}

/// C7, S4-5, S4-7, S4-8, S4-11: approved rows run in call order, the results answer their calls; no further user message.
#[test]
fn approved_rows_run_in_call_order() {
    let mut play = Play::new();
    play.reply(
        "",
        &[
            write("a"),
            ("read_file", json!({"path": "r"})),
            ("run_bash", json!({"command": "ls"})),
        ],
    )
    .tools_answer("text");
    play.approves();
    assert_eq!(play.running(), ["write_file", "run_bash"]);
    play.tools_give(|name| {
        Some(match name {
            "run_bash" => ToolResult {
                exit_code: Some(0),
                seconds: 1.24,
                ..ok("a\nb\n")
            },
            _ => ok("written"),
        })
    });
    play.calls_model();
    assert_eq!(
        play.log(Role::Tool),
        [
            "[tool_result:write_file] written",
            "[tool_result:read_file] text",
            "[tool_result:run_bash] a\nb\nexit: 0 (1.2s)"
        ]
    );
    assert_eq!(play.log(Role::User).len(), 1);
    let resumed = |event: &&&Event| {
        matches!(
            event,
            Event::TurnResumed {
                resumed_reason: ResumedReason::AllActionsResolved,
                steps_remaining: 49,
            }
        )
    };
    assert_eq!(play.events().iter().filter(resumed).count(), 1);
    assert_eq!(play.state().calls.written(), ["write_file a", "run_bash ls"]);
}

/// design: rejected, expired and failed are different words; a rejected row does not stop the others (test 18).
#[test]
fn verdicts_are_told_apart() {
    let mut play = Play::new();
    play.reply("", &[write("a"), write("b"), write("c"), write("d")]);
    play.settles(&[
        (ActionStatus::Rejected, Some("not that one")),
        (ActionStatus::Approved, None),
        (ActionStatus::Expired, None),
        (ActionStatus::Approved, None),
    ]);
    assert_eq!(play.running(), ["write_file", "write_file"]);
    let count = std::cell::Cell::new(0);
    play.tools_give(|_| {
        count.set(count.get() + 1);
        Some(ToolResult {
            ok: count.get() == 2,
            ..ok("disk full")
        })
    });
    let told = play.log(Role::Tool);
    assert_eq!(
        told[0],
        "[tool_result:write_file] error: rejected: a person refused this call, so it was not run. reason: not that one"
    );
    assert_eq!(
        told[2],
        "[tool_result:write_file] error: expired: nobody answered in time, so it was not run"
    );
    assert_eq!(
        (told[1], told[3]),
        ("[tool_result:write_file] disk full", "[tool_result:write_file] error: disk full")
    );
    play.calls_model();
}

/// S4-15: an expired card counts as resolved: the turn goes on and the model is told.
#[test]
fn expiry_resumes_the_turn() {
    let mut play = Play::new();
    play.reply("", &[write("a"), write("b")]).decides(DecisionKind::Expire, None);
    play.calls_model();
    assert!(play.log(Role::Tool).iter().all(|text| text.contains("error: expired")));
    let moved = |event: &&&Event| {
        matches!(
            event,
            Event::ActionStatus {
                status: ActionStatus::Expired,
                ..
            }
        )
    };
    assert_eq!(play.events().iter().filter(moved).count(), 2);
}

/// design: refusing words reject every row with that reason; nothing runs.
#[test]
fn refusal_rejects_all() {
    let mut play = Play::new();
    play.reply("", &[write("a"), write("b")])
        .decides(DecisionKind::Reject, Some("wrong folder"));
    play.calls_model();
    assert!(
        play.log(Role::Tool)
            .iter()
            .all(|text| text.ends_with("error: rejected: a person refused this call, so it was not run. reason: wrong folder"))
    );
}

/// S4-12, design: a granted call runs without asking and is listed with its grant; an undeclared one asks.
#[test]
fn grants_cover_declared_tools_only() {
    let mut play = Play::at_work();
    play.reply(
        "",
        &[
            write("a"),
            ("web_fetch", json!({"url": "http://x"})),
            ("run_bash", json!({"command": "ls"})),
        ],
    );
    assert_eq!(play.running(), ["write_file"]);
    let granted = play.actions()[0].clone();
    let decision = granted.decision.clone().unwrap();
    assert_eq!(
        (granted.status, granted.gate_id, decision.via, decision.by.as_deref()),
        (ActionStatus::Approved, None, Via::Grant, Some("ou_u1"))
    );
    play.tools_answer("written");
    play.waits_for(GateKind::ToolApproval);
    assert_eq!(play.rows().len(), 2);
    assert_eq!(play.actions()[1].justification, "Fetch: http://x");
}

/// design: destructive calls ask even when the plan declares them; `always` asks for every write, `never` for none.
#[test]
fn approval_modes() {
    let steps = json!([{"content": "x", "tools": ["run_bash"], "calls": [writes("a", 1)]}]);
    for (mode, runs) in [
        (ApprovalMode::Write, true),
        (ApprovalMode::Always, false),
        (ApprovalMode::Never, true),
    ] {
        let mut play = Play::with(|policy| policy.approval = mode);
        play.calls("plan", plan("simple", steps.clone())).approves();
        play.reply("", &[write("a")]);
        assert_eq!(play.running().len(), usize::from(runs), "{mode:?}");
        if runs {
            play.tools_answer("x");
        } else {
            play.approves().tools_answer("x");
        }
        play.calls("run_bash", json!({"command": "ls"}));
        play.waits_for(GateKind::ToolApproval);
    }
    let mut unasked = Play::with(|policy| policy.approval = ApprovalMode::Never);
    unasked.reply("", &[write("a")]);
    assert_eq!(
        unasked.actions()[0].decision.as_ref().unwrap().via,
        Via::System,
        "no plan granted it"
    );
}

/// design: an outcome lost in a crash is a person's question; approve runs it again, reject does not.
#[test]
fn a_lost_outcome_is_asked_about() {
    let lost = || {
        let mut play = Play::at_work();
        play.reply("", &[write("a"), ("read_file", json!({"path": "r"}))])
            .tools_give(|name| (name == "read_file").then(|| ok("text")));
        play.waits_for(GateKind::ToolApproval);
        play
    };
    let mut play = lost();
    let Outbound::ApprovalCard(card) = &play.gate().card else {
        panic!("a card")
    };
    assert_eq!((card.actions.len(), card.actions[0].status), (1, ActionStatus::Unknown));
    let row = play.actions()[0].id.as_str().to_owned();
    let moved = Effect::ActionReopened {
        action: row.clone(),
        gate: play.gate().id.clone(),
        demand: Demand {
            approvers: None,
            quorum: Some(1),
        },
    };
    assert!(play.last.contains(&moved));
    assert_eq!(
        (play.rows(), play.state().calls.written()),
        (vec![row], vec!["write_file a (?)".to_owned()])
    );
    play.approves();
    assert_eq!(play.running(), ["write_file"]);
    play.tools_answer("written");
    assert_eq!(
        (play.actions().len(), play.state().calls.written()),
        (1, vec!["write_file a".to_owned()]),
        "the same row"
    );
    let mut play = lost();
    play.decides(DecisionKind::Reject, None);
    play.calls_model();
    assert!(
        play.log(Role::Tool)
            .iter()
            .any(|text| text.contains("error: unknown: it was sent and not answered, and may or may not have run"))
    );
}

/// design: a read without a result is simply told; it never asks.
#[test]
fn a_lost_read_is_told() {
    let mut play = Play::new();
    play.calls("read_file", json!({"path": "r"})).tools_give(|_| None);
    play.calls_model();
    assert!(play.told().contains("error: no answer"));
}

/// F-H18: a stop between two calls: what ran is journaled and told, what did not run stays to be run until the stop arrives.
#[test]
fn results_may_come_in_parts() {
    let mut play = Play::at_work();
    play.reply("", &[write("a"), write("b")]);
    let Next::RunTools { calls } = play.state().next.clone() else {
        panic!("two calls")
    };
    let outcomes = vec![CallOutcome {
        call_id: calls[0].clone(),
        result: Some(ok("written")),
    }];
    play.feed(Input::ToolResults { outcomes, millis: 1 });
    assert_eq!(
        play.state().next,
        Next::RunTools {
            calls: calls[1..].to_vec()
        }
    );
    let started = |event: &&&Event| matches!(event, Event::ToolStarted { .. });
    assert_eq!(
        (play.events().iter().filter(started).count(), play.actions().len()),
        (2, 2),
        "announced once"
    );
    // The second was sent, too, and did not end when it was told to.
    play.feed(Input::Cancel {
        by: None,
        reason: TurnReason::Cancelled,
        left: vec![CallOutcome {
            call_id: calls[1].clone(),
            result: None,
        }],
    });
    assert_eq!(
        play.notices(),
        [&stopped(&play, vec!["write_file a".into(), "write_file b (?)".into()])]
    );
}

/// S2-13: a tool may end the turn once the batch is answered; words that wait for the model come first.
#[test]
fn a_tool_may_end_the_turn() {
    let exit = |text: &str| ToolResult {
        exit: Some(text.to_owned()),
        ..ok("bye")
    };
    let mut play = Play::new();
    let batch = [write("a"), ("read_file", json!({"path": "r"}))];
    play.reply("", &batch).tools_give(|_| Some(exit("The end.")));
    play.waits_for(GateKind::ToolApproval);
    play.decides(DecisionKind::Reject, None);
    play.ended(TurnStatus::Completed, TurnReason::FinalAnswer);
    assert_eq!(play.answer().text, "The end.");
    let mut play = Play::new();
    play.calls("read_file", json!({"path": "r"}))
        .feed(Input::Steer("wait".into()))
        .tools_give(|_| Some(exit("The end.")));
    play.calls_model();
    assert!(play.log(Role::User)[1].contains("  wait\n"));
}

/// S4-6, S4-T: pause, approve, run, resume, pause, approve, resume, answer; the budget is one (test 17, F-H21).
#[test]
fn the_worked_example() {
    let mut play = Play::new();
    for round in 1..=3 {
        play.reply("", &[write("a")]);
        play.waits_for(GateKind::ToolApproval);
        play.approves().tools_answer("written");
        assert_eq!((u64::from(play.state().pauses), play.state().budget.steps.used), (round, round));
    }
    play.says("Synthesis.");
    play.ended(TurnStatus::Completed, TurnReason::FinalAnswer);
    assert_eq!(play.state().next, Next::Nothing);
    let told: Vec<_> = play
        .events()
        .into_iter()
        .map(|event| serde_json::to_value(event).unwrap()["type"].clone())
        .collect();
    for (kind, times) in [
        ("turn_started", 1),
        ("tool_planned", 3),
        ("action_proposed", 3),
        ("turn_paused", 3),
        ("turn_resumed", 3),
        ("assistant_text", 1),
        ("turn_completed", 1),
    ] {
        assert_eq!(told.iter().filter(|one| **one == kind).count(), times, "{kind} in {told:?}");
    }
    let moved = told.iter().filter(|one| **one == "action_status").count();
    assert!(moved >= 3, "every row's way is told: {told:?}");
}

/// interface (H): a call runs with the arguments of the person who approved it. The model hears so before the answer, its own call stays in the log,
/// and the digest of what would be replaced is the one of the edit; when the call asks again, the edit stays.
#[test]
fn an_edited_call_runs_as_it_was_edited() {
    let mut play = Play::new();
    play.reply("", &[write("a")]);
    let edit = CallEdit {
        by: Some("ou_u1".into()),
        through_api: false,
        at: crate::domain::Millis(7),
        original: json!({"path": "a", "content": "x"}),
        base: Some("b0".into()),
    };
    let theirs = json!({"path": "b </mailbox>", "content": "y"});
    play.edits(&theirs, &edit);
    assert_eq!(play.running(), ["write_file"]);
    let open = &play.turn.state.calls.open[0];
    assert_eq!(
        (open.call.arguments.clone(), open.base.as_deref()),
        (theirs.to_string(), Some("b0"))
    );
    play.feed(Input::Outdated {
        call_id: open.call.id.clone(),
        millis: 0,
    });
    play.waits_for(GateKind::ToolApproval);
    let again = play.actions().last().copied().cloned().unwrap();
    assert_eq!((&again.arguments, again.edited.as_ref()), (&theirs, Some(&edit)));
    play.turn.state.calls.open[0].base = Some("b1".into());
    play.edits(&theirs, &edit);
    assert_eq!(play.turn.state.calls.open[0].base.as_deref(), Some("b1"), "what the person saw now");
    play.tools_answer("written");
    let told = &play.turn.log.last().unwrap().content;
    let head = "[tool_result:write_file] edited: a person changed the arguments of this call";
    assert!(
        told.starts_with(head) && told.contains("b &lt;/mailbox&gt;") && told.contains("\nwritten"),
        "{told}"
    );
    let own = play.turn.log.iter().find(|message| message.role == Role::Assistant).unwrap();
    assert!(own.calls[0].arguments.contains("\"a\""), "{own:?}");
    assert!(
        play.turn.state.calls.written()[0].contains("write_file b"),
        "{:?}",
        play.turn.state.calls.written()
    );
}
