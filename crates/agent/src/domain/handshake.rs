//! Settling a gate: who may do what at it, when its time is over, how many must approve, and what becomes of its calls.
//!
//! Pure, and the only place of these rules: chat messages, buttons, the API and the library ask here, and then write down the answer.

use super::{Action, ActionId, ActionStatus, Approver, Decision, DecisionKind, Gate, GateKind, Millis, Via, Vote};

/// What a person says at an open gate: an approval, a change or a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Go ahead. At a gate of tool calls: with all that wait.
    Approve,
    /// Changes to the plan, or the answer to the question.
    Revise(String),
    /// Give the task up. At a gate of tool calls: run none of those that wait.
    Cancel,
    /// Run none of the calls that wait, for this reason.
    Reject(Option<String>),
}

impl Act {
    /// The act in the terms of this kind of gate. Calls are rejected, never cancelled or revised. At every other gate a refusal
    /// gives the task up. A question cannot be approved: that is `None`.
    pub fn at(self, kind: GateKind) -> Option<Self> {
        Some(match (kind, self) {
            (GateKind::Question, Self::Approve) => return None,
            (GateKind::ToolApproval, Self::Cancel) => Self::Reject(None),
            (GateKind::ToolApproval, Self::Revise(reason)) => Self::Reject(Some(reason).filter(|reason| !reason.trim().is_empty())),
            (GateKind::PlanReview | GateKind::Question | GateKind::Budget, Self::Reject(_)) => Self::Cancel,
            (_, act) => act,
        })
    }

    /// The decision that this makes of a gate once nothing is missing, and its text. `words`: what was said, kept with an approval.
    fn decides(&self, words: Option<&str>) -> (DecisionKind, Option<String>) {
        match self {
            Self::Approve => (DecisionKind::Approve, Some(words.unwrap_or("OK").to_owned())),
            Self::Revise(text) => (DecisionKind::Revise, Some(text.clone())),
            Self::Cancel => (DecisionKind::Cancel, None),
            Self::Reject(reason) => (DecisionKind::Reject, reason.clone()),
        }
    }
}

/// Who acts, and how it reached us.
#[derive(Clone, Debug)]
pub struct Actor {
    /// For whom it counts. `None` for the gateway itself.
    pub user: Option<String>,
    /// The name in the approval trail: the user, or the holder of the API token.
    pub principal: Option<String>,
    /// The holder of the API token acts in the user's name.
    pub by_token: bool,
    /// By message, button or API.
    pub via: Via,
    /// Evidence.
    pub event_id: Option<String>,
    /// Now.
    pub now: Millis,
}

impl Actor {
    /// A person, by a verified event.
    pub fn person(user: &str, via: Via, event_id: &str, now: Millis) -> Self {
        Self {
            user: Some(user.to_owned()),
            principal: Some(user.to_owned()),
            by_token: false,
            via,
            event_id: Some(event_id.to_owned()),
            now,
        }
    }

    /// The gateway itself.
    pub fn system(now: Millis) -> Self {
        Self {
            user: None,
            principal: None,
            by_token: false,
            via: Via::System,
            event_id: None,
            now,
        }
    }

    /// A decision of this actor.
    pub fn decision(&self, kind: DecisionKind, text: Option<String>) -> Decision {
        Decision {
            kind,
            by: self.user.clone(),
            via: self.via,
            through_api: self.by_token,
            text,
            at: self.now,
            event_id: self.event_id.clone(),
            approvers: Vec::new(),
        }
    }

    /// The approval of this actor.
    pub fn vote(&self) -> Option<Vote> {
        let by = self.user.clone()?;
        Some(Vote {
            by,
            via: self.via,
            principal: self.by_token.then(|| super::API_TOKEN.to_owned()),
            at: self.now,
            event_id: self.event_id.clone(),
        })
    }

    fn approver(&self) -> Vec<Approver> {
        let by = self.user.iter();
        by.map(|by| Approver {
            by: by.clone(),
            through_api: self.by_token,
        })
        .collect()
    }
}

/// The part of a gate that the rules read.
#[derive(Clone, Copy, Debug)]
pub struct GateStanding<'a> {
    /// Why it waits.
    pub kind: GateKind,
    /// Whose task it is.
    pub requester: &'a str,
    /// Different people needed to approve a plan.
    pub quorum: u32,
    /// When it lapses.
    pub expires_at: Millis,
    /// The actor was shown everything that is decided about.
    pub shown_whole: bool,
    /// The approvals so far.
    pub votes: &'a [Vote],
    /// It took its decision.
    pub decided: bool,
}

impl<'a> GateStanding<'a> {
    /// A stored gate, of whose card the actor has seen what it shows.
    pub fn of(gate: &'a Gate, votes: &'a [Vote], decided: bool) -> Self {
        Self {
            kind: gate.kind,
            requester: &gate.requester,
            quorum: gate.quorum,
            expires_at: gate.expires_at,
            shown_whole: !gate.card.hides(),
            votes,
            decided,
        }
    }

    /// Different people needed to approve.
    pub fn needed(&self) -> u32 {
        if self.kind == GateKind::PlanReview { self.quorum.max(1) } else { 1 }
    }
}

/// The effect of an act.
#[derive(Clone, Debug, PartialEq)]
pub enum Settlement {
    /// The gate takes this decision.
    Decided(Decision),
    /// One of several approvals: so many count.
    Voted {
        /// With this one.
        votes: u32,
    },
}

/// Why an act has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Somebody was first.
    Decided,
    /// Its time is over.
    Lapsed,
    /// The actor may not do this here.
    NotEntitled,
    /// There is more to decide about than the card shows.
    NotShownWhole,
    /// Changes without words.
    NoWords,
}

/// What `act` of `actor` comes to at `gate`. `approves`: may this person approve here, by the settings of this moment?
///
/// Everybody who may approve may do everything. A requester who may not approve may change and refuse. The holder of the API token may do
/// everything, and is one voter in whosever name it speaks. `words`: what was said, kept with an approval.
pub fn settle(
    gate: &GateStanding<'_>,
    act: &Act,
    actor: &Actor,
    approves: impl Fn(&str) -> bool,
    words: Option<&str>,
) -> Result<Settlement, Refusal> {
    check(gate, act, actor, &approves)?;
    let mut approvers = Vec::new();
    if *act == Act::Approve {
        approvers = actor.approver();
        if gate.needed() > 1 {
            approvers = Vote::approvers(&with_own(gate.votes, actor), approves);
            let counted = u32::try_from(approvers.len()).unwrap_or(u32::MAX);
            if counted < gate.needed() {
                return Ok(Settlement::Voted { votes: counted });
            }
        }
    }
    let (kind, text) = act.decides(words);
    Ok(Settlement::Decided(Decision {
        approvers,
        ..actor.decision(kind, text)
    }))
}

/// The votes with that of `actor`. Everybody has one; a person's own takes the place of one that the API gave in their name.
fn with_own(votes: &[Vote], actor: &Actor) -> Vec<Vote> {
    let mut votes = votes.to_vec();
    if let Some(own) = actor.vote() {
        match votes.iter_mut().find(|vote| vote.by == own.by) {
            Some(earlier) if earlier.principal.is_some() && own.principal.is_none() => *earlier = own,
            Some(_) => (),
            None => votes.push(own),
        }
    }
    votes
}

/// May `actor` do this at `gate` now?
pub fn check(gate: &GateStanding<'_>, act: &Act, actor: &Actor, approves: impl Fn(&str) -> bool) -> Result<(), Refusal> {
    if gate.decided {
        return Err(Refusal::Decided);
    }
    if actor.now >= gate.expires_at {
        return Err(Refusal::Lapsed);
    }
    let user = actor.user.as_deref().unwrap_or_default();
    if !actor.by_token && !may(act, user, gate.requester, approves) {
        return Err(Refusal::NotEntitled);
    }
    match act {
        Act::Approve if !gate.shown_whole => Err(Refusal::NotShownWhole),
        Act::Revise(text) if text.trim().is_empty() => Err(Refusal::NoWords),
        Act::Approve | Act::Revise(_) | Act::Cancel | Act::Reject(_) => Ok(()),
    }
}

/// May `user` do this to what `requester` asked for? A requester who is not an approver may change and refuse, never approve.
pub fn may(act: &Act, user: &str, requester: &str, approves: impl Fn(&str) -> bool) -> bool {
    approves(user) || (user == requester && *act != Act::Approve)
}

/// The effect of approving or rejecting one row of a tool approval.
#[derive(Clone, Debug, PartialEq)]
pub struct RowSettlement {
    /// How the row is decided.
    pub row: Decision,
    /// How its gate is decided, when no other row waits.
    pub gate: Option<Decision>,
}

/// Approves or rejects the row `id` of `rows`, all those of one gate. The right to do so was checked. `None` means it does not wait.
pub fn settle_row(rows: &[Action], id: &ActionId, approve: bool, reason: Option<String>, actor: &Actor) -> Option<RowSettlement> {
    rows.iter().find(|row| row.id == *id && row.status.waits())?;
    let kind = if approve { DecisionKind::Approve } else { DecisionKind::Reject };
    let row = Decision {
        approvers: if approve { actor.approver() } else { Vec::new() },
        ..actor.decision(kind, reason)
    };
    let after: Vec<ActionStatus> = rows
        .iter()
        .map(|other| if other.id == *id { kind.of_open_rows() } else { other.status })
        .collect();
    let gate = DecisionKind::by_rows(&after).map(|kind| {
        let mut approvers = Vec::new();
        for other in rows {
            let decision = if other.id == *id { Some(&row) } else { other.decision.as_ref() };
            for approver in decision.iter().flat_map(|decision| &decision.approvers) {
                if !approvers.contains(approver) {
                    approvers.push(approver.clone());
                }
            }
        }
        Decision {
            approvers,
            ..actor.decision(kind, None)
        }
    });
    Some(RowSettlement { row, gate })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::EffectClass;
    use crate::domain::TurnId;

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
            kind: GateKind::PlanReview,
            requester: "u1",
            quorum,
            expires_at: Millis(200),
            shown_whole: true,
            votes,
            decided: false,
        }
    }

    /// `a` and `b` may approve.
    fn approves(user: &str) -> bool {
        ["a", "b"].contains(&user)
    }

    fn says(gate: &GateStanding<'_>, act: &Act, actor: &Actor) -> Result<Settlement, Refusal> {
        settle(gate, act, actor, approves, None)
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
        let vote = |actor: &Actor| actor.vote().unwrap();
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
        let calls = GateStanding {
            kind: GateKind::ToolApproval,
            ..plan(2, &[])
        };
        assert_eq!(makers(says(&calls, &Act::Approve, &person("a"))), [("a".to_owned(), false)]);
    }

    /// design: with the last row the gate is decided, approved if one row was; its makers are all who approved a row.
    #[test]
    fn rows() {
        let row = |id: &str, status| Action {
            id: ActionId::new(id),
            turn_id: TurnId::new("t"),
            gate_id: None,
            call_id: String::new(),
            position: 0,
            tool: "write_file".to_owned(),
            effect: EffectClass::Write,
            edited: None,
            arguments: serde_json::Value::Null,
            justification: String::new(),
            preview: None,
            status,
            decision: None,
            result: None,
            created_at: NOW,
            expires_at: None,
        };
        let mut rows = [row("1", ActionStatus::Pending), row("2", ActionStatus::Unknown)];
        let first = settle_row(&rows, &ActionId::new("1"), true, None, &person("a")).unwrap();
        assert_eq!((first.row.kind, first.gate), (DecisionKind::Approve, None));
        (rows[0].status, rows[0].decision) = (ActionStatus::Approved, Some(first.row));
        assert_eq!(
            settle_row(&rows, &ActionId::new("1"), false, None, &person("b")),
            None,
            "it does not wait any more"
        );
        let last = settle_row(&rows, &ActionId::new("2"), false, Some("no".to_owned()), &person("b")).unwrap();
        assert_eq!((last.row.kind, last.row.text.as_deref()), (DecisionKind::Reject, Some("no")));
        let gate = last.gate.unwrap();
        assert_eq!((gate.kind, gate.by.as_deref(), gate.text), (DecisionKind::Approve, Some("b"), None));
        assert_eq!(gate.approvers, person("a").approver());
    }
}
