//! The rules of settling a gate.

mod keep;
mod away;

use super::*;
use crate::domain::{Action, ActionStatus, EffectClass, StepStatus, TurnId};

const NOW: Millis = Millis(100);

fn person(user: &str) -> Actor {
    Actor::person(user, Via::Text, "evt", NOW)
}

fn token(user: &str) -> Actor {
    Actor {
        by_token: true,
        principal: Some("api".to_owned()),
        via: Via::Api,
        ..person(user)
    }
}

/// A plan of `u1` that needs `quorum` approvals, until 200.
fn plan(quorum: u32, votes: &[Vote]) -> GateStanding<'_> {
    GateStanding {
        away: &[],
        kind: GateKind::PlanReview,
        requester: "u1",
        approvers: &Approvers::Anyone,
        steps: &[],
        quorum,
        expires_at: Millis(200),
        shown_whole: true,
        cut: false,
        votes,
        decided: false,
    }
}

/// `a` and `b` may approve; `m` as a member of `G`; whether `n` is a member of `H` is not known. Where a list is asked: those whom it names.
fn right(user: &str, approvers: &Approvers) -> Right {
    match (approvers, user) {
        (Approvers::Listed(ids), _) if ids.iter().any(|id| id == user) => Right::OWN,
        (Approvers::Listed(ids), "m") if ids.iter().any(|id| id == "G") => Right::through("G"),
        (Approvers::Listed(ids), _) if ids.iter().any(|id| id == "H") => Right::Unknown(vec!["H".to_owned()]),
        (Approvers::Anyone, "a" | "b") => Right::OWN,
        _ => Right::No,
    }
}

fn list(ids: &[&str]) -> Approvers {
    Approvers::Listed(ids.iter().map(|id| (*id).to_owned()).collect())
}

fn says(gate: &GateStanding<'_>, act: &Act, actor: &Actor) -> Result<Settlement, Refusal> {
    settle(gate, act, actor, right, None).map(|answer| answer.settlement)
}

fn vote(actor: &Actor) -> Vote {
    actor.vote(&Right::OWN, None).unwrap()
}

fn makers(settled: Result<Settlement, Refusal>) -> Vec<(String, bool)> {
    match settled {
        Ok(Settlement::Decided(decision)) => decision.approvers.into_iter().map(|one| (one.by, one.through_api)).collect(),
        other => panic!("not decided: {other:?}"),
    }
}

/// design: what each verb means at each kind of gate.
#[test]
fn an_act_means_what_its_gate_can_take() {
    let why = || Some("why".to_owned());
    let change = || Act::Revise("why".to_owned());
    let all = [Act::Approve, change(), Act::Cancel, Act::Reject(why())];
    let at = |kind| all.clone().map(|act| act.at(kind));
    let task = [Some(Act::Approve), Some(change()), Some(Act::Cancel), Some(Act::Cancel)];
    assert_eq!(at(GateKind::PlanReview), task);
    assert_eq!(at(GateKind::Budget), task);
    assert_eq!(at(GateKind::Question), [None, Some(change()), Some(Act::Cancel), Some(Act::Cancel)]);
    let reject = |reason| Some(Act::Reject(reason));
    assert_eq!(
        at(GateKind::ToolApproval),
        [Some(Act::Approve), reject(why()), reject(None), reject(why())]
    );
    assert_eq!(Act::Revise(" ".to_owned()).at(GateKind::ToolApproval), reject(None));
}

/// design: approvers may do everything, a requester who is none may change and refuse, others nothing, the API's token everything.
#[test]
fn rights() {
    let gate = plan(1, &[]);
    let change = Act::Revise("x".to_owned());
    for act in [&Act::Approve, &change, &Act::Cancel] {
        assert!(says(&gate, act, &person("a")).is_ok());
        assert!(says(&gate, act, &token("u9")).is_ok());
        assert_eq!(says(&gate, act, &person("u9")), Err(Refusal::NotEntitled));
        let own = says(&gate, act, &person("u1"));
        assert_eq!(own.is_ok(), *act != Act::Approve, "{own:?}");
    }
}

/// design: a gate is decided once, until its time is over, and only by those who have seen what it is about.
#[test]
fn refusals() {
    let gate = plan(1, &[]);
    let at = |now| Actor { now, ..person("a") };
    assert!(says(&gate, &Act::Approve, &at(Millis(199))).is_ok());
    assert_eq!(says(&gate, &Act::Approve, &at(Millis(200))), Err(Refusal::Lapsed));
    let decided = GateStanding { decided: true, ..gate };
    assert_eq!(says(&decided, &Act::Cancel, &at(Millis(200))), Err(Refusal::Decided));
    let hidden = GateStanding {
        shown_whole: false,
        ..gate
    };
    assert_eq!(says(&hidden, &Act::Approve, &person("a")), Err(Refusal::NotShownWhole));
    assert!(says(&hidden, &Act::Cancel, &person("a")).is_ok());
    assert_eq!(says(&gate, &Act::Revise(" \n".to_owned()), &person("a")), Err(Refusal::NoWords));
}

/// design: so many different people; the holder of the token is one voter in whosever name; a vote of somebody who may not approve any
/// more does not count.
#[test]
fn quorum() {
    let one = [vote(&person("a"))];
    assert_eq!(says(&plan(2, &[]), &Act::Approve, &person("a")), Ok(Settlement::Voted { votes: 1 }));
    assert_eq!(
        says(&plan(2, &one), &Act::Approve, &person("a")),
        Ok(Settlement::Voted { votes: 1 })
    );
    assert_eq!(
        makers(says(&plan(2, &one), &Act::Approve, &person("b"))),
        [("a".to_owned(), false), ("b".to_owned(), false)]
    );
    assert_eq!(
        makers(says(&plan(2, &one), &Act::Approve, &token("b"))),
        [("a".to_owned(), false), ("b".to_owned(), true)]
    );
    assert_eq!(
        says(&plan(2, &one), &Act::Approve, &token("a")),
        Ok(Settlement::Voted { votes: 1 }),
        "they have voted themselves"
    );
    let by_token = [vote(&token("a"))];
    assert_eq!(
        says(&plan(2, &by_token), &Act::Approve, &token("b")),
        Ok(Settlement::Voted { votes: 1 })
    );
    let gone = [vote(&person("c"))];
    assert_eq!(
        says(&plan(2, &gone), &Act::Approve, &person("a")),
        Ok(Settlement::Voted { votes: 1 })
    );
}

/// interface §9: a vote stays when its giver leaves the group; it falls when the group, or the person, is asked no more.
#[test]
fn a_vote_outlives_a_membership() {
    let group = list(&["G", "a"]);
    let through = |by: &str| person(by).vote(&Right::through("G"), None).unwrap();
    let left = [through("gone")];
    let at = |approvers| GateStanding {
        approvers,
        ..plan(2, &left)
    };
    assert_eq!(
        makers(says(&at(&group), &Act::Approve, &person("a"))),
        [("gone".to_owned(), false), ("a".to_owned(), false)]
    );
    let other = list(&["a", "b"]);
    assert_eq!(
        says(&at(&other), &Act::Approve, &person("a")),
        Ok(Settlement::Voted { votes: 1 }),
        "the setting names the group no more"
    );
    let member = says(&at(&group), &Act::Approve, &person("m"));
    assert_eq!(makers(member).len(), 2, "a member decides");
    assert_eq!(person("m").vote(&Right::through("G"), None).unwrap().group.as_deref(), Some("G"));
}

/// Of a group that cannot be looked up nobody is let in; a person who is named decides all the same, and the requester may refuse.
#[test]
fn an_unknown_group_lets_nobody_in() {
    let unknown = list(&["H", "a"]);
    let gate = GateStanding {
        approvers: &unknown,
        ..plan(1, &[])
    };
    let refused = Err(Refusal::GroupUnknown(vec!["H".to_owned()]));
    assert_eq!(says(&gate, &Act::Approve, &person("n")), refused);
    assert_eq!(says(&gate, &Act::Cancel, &person("n")), refused);
    assert_eq!(says(&gate, &Act::Approve, &person("u1")), refused, "the requester may be a member");
    assert!(says(&gate, &Act::Cancel, &person("u1")).is_ok());
    assert!(says(&gate, &Act::Approve, &person("a")).is_ok());
    assert!(says(&gate, &Act::Approve, &token("n")).is_ok());
}

/// Of several rights the better one counts.
#[test]
fn the_better_right() {
    let through = || Right::through("G");
    let unknown = |groups: &[&str]| Right::Unknown(groups.iter().map(|id| (*id).to_owned()).collect());
    assert_eq!(Right::No.or(unknown(&["H"])), unknown(&["H"]));
    assert_eq!(unknown(&["H"]).or(unknown(&["I"])), unknown(&["H", "I"]));
    assert_eq!(unknown(&["H"]).or(through()), through());
    assert_eq!(through().or(Right::OWN), Right::OWN);
    assert!(through().is_given() && !unknown(&["H"]).is_given() && !Right::No.or(Right::No).is_given());
}

/// A gate that was escalated to `d`, an approver's deputy in another matter: `d` decides it, and counts once; no deputy of `d` does.
#[test]
fn an_escalated_gate_is_not_passed_on() {
    fn asked(user: &str, approvers: &Approvers) -> Right {
        let own = right(user, approvers);
        if own.is_given() || user != "d" { own } else { Right::escalated() }
    }
    let (one, away) = (list(&["a"]), away::absences(&[("d", "e"), ("a", "f")]));
    for (user, expected) in [
        ("d", Right::escalated()),
        ("e", Right::No),
        ("f", Right::OWN.in_place_of("a")),
        ("a", Right::OWN),
    ] {
        assert_eq!(may(&Act::Approve, user, "u1", &one, &away, asked), expected, "{user}");
    }
    let given = person("d").vote(&Right::escalated(), None).unwrap();
    assert!(stands(&given, "u1", &one, asked));
    let in_place = person("e").vote(&Right::OWN.in_place_of("d"), None).unwrap();
    assert!(!stands(&in_place, "u1", &one, asked));
}

fn row(id: &str, status: ActionStatus) -> Action {
    Action {
        id: ActionId::new(id),
        turn_id: TurnId::new("t"),
        gate_id: None,
        call_id: String::new(),
        position: 0,
        tool: "write_file".to_owned(),
        effect: EffectClass::Write,
        arguments: serde_json::Value::Null,
        justification: String::new(),
        preview: None,
        edited: None,
        quorum: 0,
        approvers: None,
        status,
        decision: None,
        covered_by: None,
        result: None,
        created_at: NOW,
        expires_at: None,
    }
}

/// Calls of `u1`, each of which needs `quorum` approvals.
fn calls(quorum: u32, votes: &[Vote]) -> GateStanding<'_> {
    GateStanding {
        kind: GateKind::ToolApproval,
        ..plan(quorum, votes)
    }
}

/// What one act does to the rows: those that are approved or rejected, those that wait with their votes, and the gate's decision.
fn rows_after(
    gate: &GateStanding<'_>,
    rows: &mut [Action],
    one: Option<&str>,
    act: &Act,
    actor: &Actor,
) -> Result<RowsSettlement, Refusal> {
    let settled = settle_rows(gate, rows, one.map(ActionId::new).as_ref(), act, actor, right, None)?;
    for (id, decision) in &settled.decided {
        let row = rows.iter_mut().find(|row| row.id == *id).unwrap();
        (row.status, row.decision) = (decision.kind.of_open_rows(), Some(decision.clone()));
    }
    Ok(settled)
}

/// design: with the last row the gate is decided, approved if one row was; its makers are all who approved a row.
#[test]
fn rows_are_settled_one_by_one() {
    let mut rows = [row("1", ActionStatus::Pending), row("2", ActionStatus::Unknown)];
    let gate = calls(1, &[]);
    let first = rows_after(&gate, &mut rows, Some("1"), &Act::Approve, &person("a")).unwrap();
    assert_eq!((first.decided[0].1.kind, &first.gate), (DecisionKind::Approve, &None));
    assert!(first.votes.is_empty(), "one approval is enough: there is nothing to count");
    let again = rows_after(&gate, &mut rows, Some("1"), &Act::Reject(None), &person("b"));
    assert_eq!(again, Err(Refusal::Decided), "it does not wait any more");
    let last = rows_after(&gate, &mut rows, Some("2"), &Act::Reject(Some("no".to_owned())), &person("b")).unwrap();
    let (_, decision) = &last.decided[0];
    assert_eq!((decision.kind, decision.text.as_deref()), (DecisionKind::Reject, Some("no")));
    let gate = last.gate.unwrap();
    assert_eq!((gate.kind, gate.by.as_deref(), gate.text), (DecisionKind::Approve, Some("b"), None));
    assert_eq!(gate.approvers, person("a").approver());
}

/// A word for the whole card is a word for every row that waits; nobody says it about what the card hides.
#[test]
fn a_word_for_all_rows() {
    let two = || [row("1", ActionStatus::Pending), row("2", ActionStatus::Pending)];
    let all = rows_after(&calls(1, &[]), &mut two(), None, &Act::Approve, &person("a")).unwrap();
    assert_eq!(all.decided.len(), 2);
    let gate = all.gate.unwrap();
    assert_eq!((gate.kind, gate.text.as_deref()), (DecisionKind::Approve, Some("OK")));
    let none = rows_after(&calls(1, &[]), &mut two(), None, &Act::Reject(Some("no".to_owned())), &person("a")).unwrap();
    assert_eq!(
        none.gate.map(|gate| (gate.kind, gate.text)),
        Some((DecisionKind::Reject, Some("no".to_owned())))
    );
    let hidden = GateStanding {
        shown_whole: false,
        ..calls(1, &[])
    };
    let refused = rows_after(&hidden, &mut two(), None, &Act::Approve, &person("a"));
    assert_eq!(refused, Err(Refusal::NotShownWhole));
    assert!(rows_after(&hidden, &mut two(), Some("1"), &Act::Approve, &person("a")).is_ok());
    let cut = GateStanding { cut: true, ..hidden };
    let refused = rows_after(&cut, &mut two(), Some("1"), &Act::Approve, &person("a"));
    assert_eq!(refused, Err(Refusal::NotShownWhole), "no press counts where the text was cut");
    assert!(rows_after(&cut, &mut two(), Some("1"), &Act::Reject(None), &person("a")).is_ok());
    let stranger = rows_after(&calls(1, &[]), &mut two(), None, &Act::Approve, &person("u9"));
    assert_eq!(stranger, Err(Refusal::NotEntitled));
}

/// A call needs the larger of the two quorums; approvals are counted for each row; a rejection settles it at once.
#[test]
fn quorum_of_rows() {
    let mut rows = [row("1", ActionStatus::Pending), row("2", ActionStatus::Pending)];
    rows[1].quorum = 2;
    let first = rows_after(&calls(1, &[]), &mut rows, None, &Act::Approve, &person("a")).unwrap();
    assert_eq!(first.decided.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(), ["1"]);
    let waits = |id: &str, votes, needed| RowVotes {
        id: ActionId::new(id),
        votes,
        needed,
    };
    assert_eq!((first.waiting.as_slice(), &first.gate), ([waits("2", 1, 2)].as_slice(), &None));
    let again = rows_after(&calls(1, &first.votes), &mut rows, None, &Act::Approve, &person("a")).unwrap();
    assert_eq!(again.waiting, [waits("2", 1, 2)], "nobody counts twice");
    let last = rows_after(&calls(1, &first.votes), &mut rows, Some("2"), &Act::Approve, &person("b")).unwrap();
    assert_eq!(last.decided[0].1.approvers.len(), 2);
    assert_eq!(last.gate.unwrap().approvers.len(), 2);

    let mut rows = [row("1", ActionStatus::Pending), row("2", ActionStatus::Pending)];
    let on_the_other = [person("a").vote(&Right::OWN, Some(&ActionId::new("1"))).unwrap()];
    let one = rows_after(&calls(2, &on_the_other), &mut rows, Some("2"), &Act::Approve, &person("b")).unwrap();
    assert_eq!(one.waiting, [waits("2", 1, 2)], "a vote for one row is none for another");
    let no = rows_after(&calls(2, &on_the_other), &mut rows, Some("1"), &Act::Reject(None), &person("b")).unwrap();
    assert_eq!(no.decided[0].1.kind, DecisionKind::Reject);
}

/// A row may ask other people than the rest of the card: a word for the card counts where its speaker is asked.
#[test]
fn rows_ask_their_own_people() {
    let rows = || {
        let mut rows = [row("1", ActionStatus::Pending), row("2", ActionStatus::Pending)];
        rows[1].approvers = Some(list(&["chief"]));
        rows
    };
    let mut both = rows();
    let some = rows_after(&calls(1, &[]), &mut both, None, &Act::Approve, &person("a")).unwrap();
    assert_eq!((some.decided.len(), &some.gate), (1, &None));
    let other = rows_after(&calls(1, &[]), &mut both, Some("2"), &Act::Approve, &person("a"));
    assert_eq!(other, Err(Refusal::NotEntitled));
    let chief = rows_after(&calls(1, &[]), &mut both, None, &Act::Approve, &person("chief")).unwrap();
    assert!(chief.gate.is_some());
    let mut both = rows();
    let requester = rows_after(&calls(1, &[]), &mut both, None, &Act::Reject(None), &person("u1")).unwrap();
    assert_eq!(requester.decided.len(), 2, "a requester may refuse every row");
    let mut both = rows();
    both[1].approvers = Some(list(&["H"]));
    let unknown = rows_after(&calls(1, &[]), &mut both, None, &Act::Approve, &person("u9"));
    assert_eq!(unknown, Err(Refusal::GroupUnknown(vec!["H".to_owned()])));
}

/// The card as a whole is decided in somebody's place only if each of its rows is. The makers tell both.
#[test]
fn a_deputy_of_one_row_is_the_approver_of_another() {
    let away = away::absences(&[("a", "d")]);
    for (theirs, whole) in [(None, Some("a")), (Some(0), None), (Some(1), None)] {
        let mut rows = [row("1", ActionStatus::Pending), row("2", ActionStatus::Pending)];
        if let Some(own) = theirs {
            let own: &mut Action = &mut rows[own];
            own.approvers = Some(list(&["d"]));
        }
        let asks_a = list(&["a"]);
        let gate = GateStanding {
            approvers: &asks_a,
            away: &away,
            ..calls(1, &[])
        };
        let decision = rows_after(&gate, &mut rows, None, &Act::Approve, &person("d"))
            .unwrap()
            .gate
            .unwrap();
        assert_eq!(decision.in_place_of.as_deref(), whole);
        assert_eq!(decision.approvers.len(), if theirs.is_some() { 2 } else { 1 });
    }
}
