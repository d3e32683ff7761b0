//! Standing grants of the chat: which calls run under one, and what becomes of a call whose grant ends before it is sent.

use serde_json::{Value, json};

use super::play::Play;
use crate::domain::{
    Action, ActionStatus, ApprovalMode, ArgumentSense, ChannelKind, Conversation, CoverageKind, Demand, Event, GateKind, Millis, Outbound,
    Policy, Rule, Ruling, Scope, StandingGrant, StandingGrants, StandingOffer, Via,
};
use crate::reducer::{Effect, Input, Next};

fn write(path: &str) -> (&'static str, Value) {
    ("write_file", json!({"path": path, "content": "x"}))
}

/// A turn in a chat where `a.md` may be written until a moment far away.
fn play(change: impl FnOnce(&mut Policy)) -> Play {
    let mut play = Play::with(change);
    let spec = play.tools.iter_mut().find(|tool| tool.name == "write_file").unwrap();
    spec.scope = Scope::argument("path", ArgumentSense::Path);
    let offer = StandingOffer::of(spec, write("a.md").1.as_object().unwrap(), 30).unwrap();
    let grant = StandingGrant {
        id: String::from("sg_1"),
        place: Conversation {
            channel: ChannelKind::Lark,
            app: String::new(),
            tenant: String::new(),
            chat: String::from("oc_1"),
            thread: String::new(),
        },
        number: 1,
        tool: offer.call.tool,
        arguments: offer.call.arguments,
        definition: offer.definition,
        by: String::from("ou_u2"),
        created_at: Millis(0),
        expires_at: Millis(i64::MAX),
        revoked_at: None,
        used: 0,
    };
    play.standing = Some(StandingGrants {
        grants: vec![grant],
        days: 30,
    });
    play
}

fn proposed(play: &Play) -> Vec<&Action> {
    let rows = play.all.iter().filter_map(|effect| match effect {
        Effect::Propose(action) => Some(&**action),
        _ => None,
    });
    rows.collect()
}

fn offers(play: &Play) -> Vec<bool> {
    match &play.gate().card {
        Outbound::ApprovalCard(card) => card.actions.iter().map(|row| row.always.is_some()).collect(),
        other => panic!("no approval card: {other:?}"),
    }
}

fn runs(play: &Play) -> bool {
    matches!(play.state().next, Next::RunTools { .. })
}

/// interface §9 H: a call that a grant covers runs without asking. Its row names the grant and who made it.
#[test]
fn a_covered_call_runs() {
    let mut play = play(|_| {});
    play.reply("", &[write("./a.md")]);
    assert!(runs(&play));
    let row = proposed(&play)[0];
    let (decision, covered) = (row.decision.as_ref().unwrap(), row.covered_by.as_ref().unwrap());
    assert_eq!((covered.kind, covered.id.as_str()), (CoverageKind::Standing, "sg_1"));
    assert_eq!((decision.via, decision.by.as_deref()), (Via::Grant, Some("ou_u2")));
}

/// interface §9 H: rules that ask or deny, `approval: always`, a quorum, a changed tool and switched-off grants come first.
#[test]
fn what_comes_before_a_grant() {
    let rule = |then| Rule {
        tool: String::from("write_file"),
        arguments: std::collections::BTreeMap::new(),
        chats: Vec::new(),
        effect: None,
        then,
    };
    let mut asked = play(|_| {});
    asked.rules = vec![rule(Ruling::Ask(Demand::default()))];
    let mut off = play(|_| {});
    off.standing = None;
    let mut changed = play(|_| {});
    changed.tools.iter_mut().for_each(|tool| tool.description.push('!'));
    let cases = [
        asked,
        off,
        changed,
        play(|policy| policy.approval = ApprovalMode::Always),
        play(|policy| policy.approval_quorum = 2),
    ];
    for (case, mut play) in cases.into_iter().enumerate() {
        play.reply("", &[write("a.md")]);
        assert_eq!(play.gate().kind, GateKind::ToolApproval, "case {case}");
        // A changed tool gets a new offer; what asks in any case gets none.
        assert_eq!(offers(&play), [case == 2], "case {case}");
    }
    let mut denied = play(|_| {});
    denied.rules = vec![rule(Ruling::Deny)];
    denied.reply("", &[write("a.md")]);
    assert_eq!(proposed(&denied)[0].status, ActionStatus::Rejected);
}

/// interface §9 H: what destroys is not offered, what writes elsewhere is.
#[test]
fn what_is_offered() {
    let mut play = play(|_| {});
    play.reply("", &[write("b.md"), ("run_bash", json!({"command": "ls"})), write("*.md")]);
    assert_eq!(offers(&play), [true, false, false]);
}

/// interface §9 H: a grant that ends before its call is sent: the row expires, and a person is asked under a new one.
#[test]
fn a_call_whose_grant_ended_asks() {
    let mut play = play(|_| {});
    play.reply("", &[write("a.md")]);
    let call = play.state().calls.open[0].call.id.clone();
    let row = proposed(&play)[0].id.clone();
    play.standing = Some(StandingGrants::default());
    play.feed(Input::Outdated { call_id: call, millis: 1 });
    assert_eq!(play.gate().kind, GateKind::ToolApproval);
    let expired =
        |effect: &Effect| matches!(effect, Effect::ActionMoved { action, status: ActionStatus::Expired } if *action == row.as_str());
    assert!(play.all.iter().any(expired));
    let rows = proposed(&play);
    assert_eq!((rows.len(), rows[1].status, &rows[1].covered_by), (2, ActionStatus::Pending, &None));
    assert_ne!(rows[1].id, row);
    assert_eq!(offers(&play), [true], "it is a question like any other");
}

/// A call whose grant ended, and that another grant covers, runs under a row of its own: a changing call never runs without one.
#[test]
fn a_call_whose_grant_ended_runs_under_another() {
    let mut play = play(|_| {});
    let mut second = play.standing.as_ref().unwrap().grants[0].clone();
    second.id = String::from("sg_2");
    play.reply("", &[write("a.md")]);
    let call = play.state().calls.open[0].call.id.clone();
    play.standing.as_mut().unwrap().grants = vec![second];
    play.feed(Input::Outdated { call_id: call, millis: 1 });
    assert!(runs(&play));
    let rows = proposed(&play);
    let covered = rows.last().unwrap().covered_by.as_ref().unwrap();
    assert_eq!((rows.len(), covered.id.as_str()), (2, "sg_2"));
    let open = &play.state().calls.open[0];
    assert_eq!(open.action.as_deref(), Some(rows[1].id.as_str()));
    let started = |effect: &&Effect| {
        matches!(
            effect,
            Effect::Emit {
                event: Event::ToolStarted { .. },
                ..
            }
        )
    };
    assert_eq!(play.all.iter().filter(started).count(), 1);
}
