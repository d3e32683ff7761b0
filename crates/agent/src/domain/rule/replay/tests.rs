//! What is counted as what.

use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::domain::{ActionId, ArgumentSense, Decision, Demand, EffectClass, GateId, TurnId};

fn rule(tool: &str, path: Option<&str>, then: Ruling) -> Rule {
    Rule {
        tool: tool.to_owned(),
        arguments: path.map(|path| ("path".to_owned(), json!(path))).into_iter().collect(),
        chats: Vec::new(),
        effect: None,
        then,
    }
}

/// A call of `tool` on `path`; `by`: who decided it.
fn call(tool: &str, path: &str, asked: bool, status: ActionStatus, via: Via) -> RecordedCall {
    let kind = if status == ActionStatus::Rejected {
        DecisionKind::Reject
    } else {
        DecisionKind::Approve
    };
    RecordedCall {
        chat: "oc_1".to_owned(),
        action: Action {
            id: ActionId::new(format!("act_{path}")),
            turn_id: TurnId::new("turn_1"),
            gate_id: asked.then(|| GateId::new("rv_1")),
            call_id: String::new(),
            tool: tool.to_owned(),
            effect: EffectClass::Write,
            arguments: json!({"content": "long ".repeat(40), "path": path}),
            justification: String::new(),
            preview: None,
            edited: None,
            quorum: 1,
            approvers: None,
            status,
            position: 0,
            created_at: Millis(1),
            expires_at: None,
            decision: Some(Decision {
                in_place_of: None,
                kept: Vec::new(),
                kind,
                by: (via == Via::Button).then(|| "boss\u{202e}".to_owned()),
                via,
                through_api: false,
                text: None,
                at: Millis(1),
                event_id: None,
                approvers: Vec::new(),
                standing: None,
            }),
            covered_by: None,
            result: None,
        },
    }
}

/// design: a call counts as asked less, asked more, denied or let through by what happened to it and what would have.
#[test]
fn each_call_is_counted_as_what_would_change() {
    use ActionStatus::{Executed, Rejected};
    let spec = ToolSpec {
        name: "write_file".to_owned(),
        description: String::new(),
        parameters: json!({}).into(),
        effect: EffectClass::Write,
        scope: Scope::argument("path", ArgumentSense::Path),
    };
    let rules = [
        rule("write_file", Some("out/*"), Ruling::Allow),
        rule("write_file", Some("hr/*"), Ruling::Ask(Demand::default())),
        rule("*", Some("secret"), Ruling::Deny),
    ];
    let specs = [spec];
    let mut replay = Replay::new(&rules, &specs);
    for (tool, path, asked, status, via) in [
        ("write_file", "./out/a", true, Executed, Via::Button),
        ("write_file", "out/b", true, Rejected, Via::Button),
        ("write_file", "out/c", false, Executed, Via::Grant),
        ("write_file", "out/d", false, Rejected, Via::Rule),
        ("write_file", "hr/a", false, Executed, Via::Grant),
        ("write_file", "hr/b", true, Executed, Via::Button),
        ("write_file", "secret", true, Executed, Via::Button),
        ("x", "secret", false, Rejected, Via::Rule),
        ("x", "else", false, Executed, Via::Rule),
        ("x", "other", true, Rejected, Via::Button),
    ] {
        assert!(replay.add(&call(tool, path, asked, status, via), || false).is_continue());
    }
    let report = replay.report();
    let counts = |calls, asked_less, asked_more, denied, let_through| ReplayCounts {
        calls,
        asked_less,
        asked_more,
        denied,
        let_through,
    };
    let of_rules: Vec<ReplayCounts> = report.rules.iter().map(|(_, counts)| *counts).collect();
    assert_eq!(of_rules, [counts(4, 2, 0, 0, 2), counts(2, 0, 1, 0, 0), counts(2, 0, 0, 1, 0)]);
    let tools = [
        ("write_file".to_owned(), counts(7, 2, 1, 1, 2)),
        ("x".to_owned(), counts(3, 0, 1, 0, 0)),
    ];
    assert_eq!(report.tools, BTreeMap::from(tools));
    assert_eq!(report.all, counts(10, 2, 2, 1, 2));
    let told: Vec<(&str, Option<&str>, &str)> = report
        .let_through
        .iter()
        .map(|one| (one.action.as_str(), one.by.as_deref(), &one.arguments[..13]))
        .collect();
    assert_eq!(
        told,
        [
            ("act_out/b", Some("boss\u{fffd}"), "path: \"out/b\""),
            ("act_out/d", None, "path: \"out/d\"")
        ]
    );
    assert!(
        report
            .let_through
            .iter()
            .all(|one| one.rule == rules[0].id() && one.arguments.chars().count() == ARGUMENTS)
    );
}

/// design: the report names some refusals and counts all.
#[test]
fn many_refusals_are_counted() {
    let rules = [rule("*", None, Ruling::Allow)];
    let mut replay = Replay::new(&rules, &[]);
    for _ in 0..NAMED + 5 {
        assert!(
            replay
                .add(&call("x", "a", true, ActionStatus::Rejected, Via::Button), || false)
                .is_continue()
        );
    }
    let report = replay.report();
    assert_eq!((report.all.let_through, report.let_through.len()), (NAMED as u64 + 5, NAMED));
}

/// interface §10: a replay ends within a call, before the next rule. That call does not count.
#[test]
fn many_rules_can_be_broken_off() {
    let rules = [
        rule("a", None, Ruling::Deny),
        rule("*", None, Ruling::Deny),
        rule("b", None, Ruling::Deny),
    ];
    let mut replay = Replay::new(&rules, &[]);
    let mut asked = 0;
    let mut over = || {
        asked += 1;
        asked > 4
    };
    let call = call("x", "a", true, ActionStatus::Executed, Via::Button);
    assert!(replay.add(&call, &mut over).is_continue());
    assert!(replay.add(&call, &mut over).is_break());
    assert_eq!((replay.report().all.calls, asked), (1, 5));
}
