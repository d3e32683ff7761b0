//! Rules of the administrator: what they do to the calls of a turn, and when they are asked.

use serde_json::{Value, json};

use super::play::Play;
use crate::domain::{
    Action, ActionStatus, ApprovalMode, Approvers, ArgumentSense, CoverageKind, Decision, DecisionKind, Demand, EffectClass, Event,
    GateKind, Rule, Ruling, Scope, Via,
};
use crate::reducer::{Effect, Input, Next};

fn rule(tool: &str, arguments: Value, then: Ruling) -> Rule {
    Rule {
        tool: tool.to_owned(),
        arguments: serde_json::from_value(arguments).unwrap(),
        chats: Vec::new(),
        effect: None,
        then,
    }
}

fn ask() -> Ruling {
    Ruling::Ask(Demand::default())
}

/// A turn under these rules, whose settings are these.
fn under(rules: &[Rule], approval: ApprovalMode) -> Play {
    let mut play = Play::with(|policy| policy.approval = approval);
    play.rules = rules.to_vec();
    for tool in &mut play.tools {
        if tool.name.ends_with("_file") {
            tool.scope = Scope::argument("path", ArgumentSense::Path);
        }
    }
    play
}

/// The rows of the turn, as they were proposed.
fn proposed(play: &Play) -> Vec<&Action> {
    let rows = play.all.iter().filter_map(|effect| match effect {
        Effect::Propose(action) => Some(&**action),
        _ => None,
    });
    rows.collect()
}

fn write(path: &str) -> (&'static str, Value) {
    ("write_file", json!({"path": path, "content": "x"}))
}

/// interface §9 H: `allow` spares asking, also under `approval: always`; the row says which rule.
#[test]
fn allow_spares_asking() {
    for approval in [ApprovalMode::Always, ApprovalMode::Write, ApprovalMode::Never] {
        let allow = rule("write_file", json!({"path": "out/*"}), Ruling::Allow);
        let mut play = under(std::slice::from_ref(&allow), approval);
        play.reply("", &[write("./out/a.md")]);
        assert!(matches!(play.state().next, Next::RunTools { .. }), "{approval:?}");
        let row = proposed(&play)[0];
        let decision = row.decision.as_ref().unwrap();
        assert_eq!(
            (row.status, decision.kind, decision.via),
            (ActionStatus::Approved, DecisionKind::Approve, Via::Rule)
        );
        assert_eq!(
            (decision.by.as_deref(), decision.event_id.as_deref()),
            (None, Some(allow.id().as_str()))
        );
        let covered = row.covered_by.as_ref().unwrap();
        assert_eq!((covered.kind, &covered.id), (CoverageKind::Rule, &allow.id()));
    }
    let mut play = under(&[rule("write_file", json!({"path": "out/*"}), Ruling::Allow)], ApprovalMode::Write);
    play.reply("", &[write("out/../secret.md")]);
    play.waits_for(GateKind::ToolApproval);
}

/// interface §9 H: `ask` beats `approval: never` and what an approved plan declares; reads ask too.
#[test]
fn ask_beats_what_covers() {
    let mut play = under(&[rule("write_file", json!({}), ask())], ApprovalMode::Never);
    play.reply("", &[write("a.md")]);
    play.waits_for(GateKind::ToolApproval);
    let mut play = under(&[rule("read_*", json!({"path": "hr/**"}), ask())], ApprovalMode::Never);
    play.calls("read_file", json!({"path": "hr/pay.csv"}));
    play.waits_for(GateKind::ToolApproval);
    assert_eq!(proposed(&play)[0].effect, EffectClass::Read);
    play.approves();
    assert!(matches!(play.state().next, Next::RunTools { .. }));
    play.tools_answer("1").calls_model();
}

/// interface §9 H: `deny` beats everything. The model hears that nobody can allow it; the row is rejected by the rule.
#[test]
fn deny_answers_at_once() {
    let deny = rule("*", json!({"path": "secrets/**"}), Ruling::Deny);
    let rules = [
        rule("write_file", json!({}), Ruling::Allow),
        deny.clone(),
        rule("*", json!({}), ask()),
    ];
    let mut play = under(&rules, ApprovalMode::Never);
    play.reply("", &[write("secrets/a"), ("read_file", json!({"path": "secrets/b"}))]);
    play.calls_model();
    let answers: Vec<&str> = play.turn.log.iter().rev().take(2).map(|message| message.content.as_str()).collect();
    assert!(
        answers
            .iter()
            .all(|answer| answer.contains("a rule of the administrator forbids this call")),
        "{answers:?}"
    );
    let rows = proposed(&play);
    assert_eq!(rows.len(), 2);
    for row in rows {
        let decision = row.decision.as_ref().unwrap();
        assert_eq!(
            (row.status, decision.kind, decision.via),
            (ActionStatus::Rejected, DecisionKind::Reject, Via::Rule)
        );
        assert_eq!(decision.event_id.as_deref(), Some(deny.id().as_str()));
        assert_eq!((&row.covered_by, &row.gate_id), (&None, &None));
    }
    let rejected = |effect: &&Effect| {
        matches!(
            effect,
            Effect::Emit {
                event: Event::ActionStatus {
                    status: ActionStatus::Rejected,
                    ..
                },
                ..
            }
        )
    };
    assert_eq!(play.all.iter().filter(rejected).count(), 2);
}

/// interface §9 H: a `deny` that was saved while people were asked counts when they have approved.
#[test]
fn deny_beats_an_approval() {
    let mut play = under(&[], ApprovalMode::Write);
    play.reply("", &[write("a.md"), write("b.md")]);
    play.waits_for(GateKind::ToolApproval);
    play.rules = vec![rule("write_file", json!({"path": "a.md"}), Ruling::Deny)];
    play.approves();
    let Next::RunTools { calls } = &play.state().next else {
        panic!("b.md runs")
    };
    assert_eq!(calls.len(), 1);
    let denied: Vec<&Decision> = play
        .all
        .iter()
        .filter_map(|effect| match effect {
            Effect::ActionDenied { decision, .. } => Some(&**decision),
            _ => None,
        })
        .collect();
    assert_eq!((denied.len(), denied[0].via), (1, Via::Rule));
    play.tools_answer("done").calls_model();
    assert!(
        play.turn
            .log
            .iter()
            .any(|message| message.content.contains("a rule of the administrator forbids"))
    );
}

/// interface §9 H: a `deny` that is saved when the call is about to be sent counts too; a lost call is told as such, and is not asked about again.
#[test]
fn deny_is_checked_when_the_call_is_sent() {
    let deny = || vec![rule("write_file", json!({}), Ruling::Deny)];
    let mut play = under(&[], ApprovalMode::Never);
    play.reply("", &[write("a.md")]);
    let Next::RunTools { calls } = play.state().next.clone() else {
        panic!("it runs")
    };
    play.rules = deny();
    play.feed(Input::Outdated {
        call_id: calls[0].clone(),
        millis: 1,
    });
    play.calls_model();
    let mut play = under(&[], ApprovalMode::Never);
    play.reply("", &[write("a.md")]).tools_give(|_| None);
    play.waits_for(GateKind::ToolApproval);
    play.rules = deny();
    play.approves();
    play.calls_model();
    let answer = &play.turn.log.last().unwrap().content;
    assert!(
        answer.contains("may or may not have run") && answer.contains("a rule of the administrator forbids"),
        "{answer}"
    );
}

/// A call that may have run already is for a person to weigh, whatever a rule allows.
#[test]
fn allow_does_not_repeat_a_lost_call() {
    let mut play = under(&[rule("write_file", json!({}), Ruling::Allow)], ApprovalMode::Write);
    play.reply("", &[write("a.md")]).tools_give(|_| None);
    play.waits_for(GateKind::ToolApproval);
    play.decides(DecisionKind::Reject, None);
    play.reply("", &[write("a.md")]);
    play.waits_for(GateKind::ToolApproval);
}

/// A lost call asks the people of the rules of now, not those whom it was first asked with.
#[test]
fn a_lost_call_asks_whom_the_rules_say_now() {
    let mut play = under(&[], ApprovalMode::Never);
    play.reply("", &[write("a.md")]);
    let two = Demand {
        approvers: Some(Approvers::NotRequester),
        quorum: Some(2),
    };
    play.rules = vec![rule("write_file", json!({}), Ruling::Ask(two.clone()))];
    play.tools_give(|_| None);
    play.waits_for(GateKind::ToolApproval);
    let reopened = play.all.iter().find_map(|effect| match effect {
        Effect::ActionReopened { demand, .. } => Some(demand),
        _ => None,
    });
    assert_eq!(reopened, Some(&two));
}
