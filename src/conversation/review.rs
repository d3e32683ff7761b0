//! Settling gates: votes, the one decision, the repaint and the trail. Text, buttons and the API all come here.

use serde_json::json;

use crate::domain::{API_TOKEN, Action, ActionId, Approver, Decision, DecisionKind, Gate, GateKind, Millis, Notice, Via, Vote};
use crate::store::{AuditEntry, GateRecord, Session, StoreError};

use super::rights::Rights;
use super::{paint, say};

/// What somebody wants at a gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// Go ahead. On a tool approval: every open row.
    Approve,
    /// Changes to the plan, or the answer to the question.
    Revise(String),
    /// Give the task up.
    Cancel,
    /// Run none of the open rows, for this reason.
    Reject(Option<String>),
}

impl Act {
    /// The decision that this makes of a gate once nothing is missing, and its text; `words`: what was said, kept with an approval.
    pub(super) fn decides(&self, words: Option<&str>) -> (DecisionKind, Option<String>) {
        match self {
            Self::Approve => (DecisionKind::Approve, Some(words.unwrap_or("OK").to_owned())),
            Self::Revise(text) => (DecisionKind::Revise, Some(text.clone())),
            Self::Cancel => (DecisionKind::Cancel, None),
            Self::Reject(reason) => (DecisionKind::Reject, reason.clone()),
        }
    }
}

/// Who acts, by which road.
#[derive(Clone, Debug)]
pub(super) struct Actor {
    /// For whom it counts. `None` for the gateway itself.
    pub(super) user: Option<String>,
    /// Who is answerable for it in the trail: the user, or the holder of the API token on their behalf.
    pub(super) principal: Option<String>,
    /// The holder of the API token acts in the user's name.
    pub(super) by_token: bool,
    /// The road.
    pub(super) via: Via,
    /// Evidence.
    pub(super) event_id: Option<String>,
    /// Now.
    pub(super) now: Millis,
}

impl Actor {
    /// A person, by a verified event.
    pub(super) fn person(user: &str, via: Via, event_id: &str, now: Millis) -> Self {
        Self {
            user: Some(user.to_owned()),
            principal: Some(user.to_owned()),
            by_token: false,
            via,
            event_id: Some(event_id.to_owned()),
            now,
        }
    }

    /// Ourselves.
    pub(super) fn system(now: Millis) -> Self {
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
    pub(super) fn decision(&self, kind: DecisionKind, text: Option<String>) -> Decision {
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

    /// The approval of this actor alone.
    pub(super) fn approver(&self) -> Vec<Approver> {
        let by = self.user.iter();
        by.map(|by| Approver {
            by: by.clone(),
            through_api: self.by_token,
        })
        .collect()
    }
}

/// What came of an act.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Settled {
    /// The gate took this decision.
    Decided(Decision),
    /// One of several approvals.
    Voted {
        /// Different people so far.
        votes: u32,
        /// Needed.
        quorum: u32,
    },
    /// Somebody was first, with this.
    Already(Decision),
}

/// Carries out `act`, whose right was checked: a vote, or the decision with its repaint and trail.
///
/// `words`: what was said, kept with an approval.
pub(super) async fn settle(
    session: &mut Session,
    record: &GateRecord,
    act: &Act,
    words: Option<&str>,
    actor: &Actor,
    rights: &Rights,
) -> Result<Settled, StoreError> {
    let approvers = match act {
        Act::Approve => match vote(session, record, actor, rights).await? {
            Tally::Enough(approvers) => approvers,
            Tally::Missing { votes, quorum } => return Ok(Settled::Voted { votes, quorum }),
        },
        Act::Revise(_) | Act::Cancel | Act::Reject(_) => Vec::new(),
    };
    let (kind, text) = act.decides(words);
    let decision = Decision {
        approvers,
        ..actor.decision(kind, text)
    };
    close(session, &record.gate, decision, actor).await
}

/// Different people needed to approve at `gate`.
pub(super) fn needed(gate: &Gate) -> u32 {
    if gate.kind == GateKind::PlanReview { gate.quorum.max(1) } else { 1 }
}

/// Those whose votes count at `gate` by the rights of this moment.
pub(super) fn counted(votes: &[Vote], gate: &Gate, rights: &Rights) -> Vec<Approver> {
    Vote::approvers(votes, |by| rights.approve(by, &gate.requester))
}

/// How many votes count, for people to read.
pub(super) fn votes_at(record: &GateRecord, rights: &Rights) -> u32 {
    u32::try_from(counted(&record.votes, &record.gate, rights).len()).unwrap_or(u32::MAX)
}

/// Whether the votes of a gate are enough.
enum Tally {
    /// These approved it.
    Enough(Vec<Approver>),
    /// So many of so many.
    Missing { votes: u32, quorum: u32 },
}

/// Records an approval, and counts.
async fn vote(session: &mut Session, record: &GateRecord, actor: &Actor, rights: &Rights) -> Result<Tally, StoreError> {
    let gate = &record.gate;
    let quorum = needed(gate);
    let Some(user) = actor.user.as_deref() else {
        return Ok(Tally::Enough(Vec::new()));
    };
    let vote = Vote {
        by: user.to_owned(),
        via: actor.via,
        principal: actor.by_token.then(|| API_TOKEN.to_owned()),
        at: actor.now,
        event_id: actor.event_id.clone(),
    };
    let is_new = session.vote(&gate.id, &vote).await?;
    if quorum == 1 {
        return Ok(Tally::Enough(actor.approver()));
    }
    if is_new {
        audit(session, "vote", gate, None, actor, json!({"digest": gate.digest}));
    }
    let votes = session.gate(&gate.id).await?.map(|record| record.votes).unwrap_or_default();
    let approvers = counted(&votes, gate, rights);
    let votes = u32::try_from(approvers.len()).unwrap_or(u32::MAX);
    if votes >= quorum {
        return Ok(Tally::Enough(approvers));
    }
    say::repaint(session, gate, &format!("votes {votes}"), paint::open(&gate.card, votes, &[])).await?;
    Ok(Tally::Missing { votes, quorum })
}

/// Gives the gate its one decision; its open rows follow it.
pub(super) async fn close(session: &mut Session, gate: &Gate, decision: Decision, actor: &Actor) -> Result<Settled, StoreError> {
    if !session.decide(gate, &decision).await? {
        return already(session, gate).await;
    }
    let rows = close_rows(session, gate, &decision, actor).await?;
    say::repaint(session, gate, "decided", paint::decided(&gate.card, &decision, &rows)).await?;
    let details = json!({"kind": decision.kind, "digest": gate.digest});
    audit(session, "decision", gate, None, actor, details);
    Ok(Settled::Decided(decision))
}

/// Settles the rows that still wait when their gate is decided, so that none stays open behind a closed gate.
async fn close_rows(session: &mut Session, gate: &Gate, decision: &Decision, actor: &Actor) -> Result<Vec<Action>, StoreError> {
    if gate.kind != GateKind::ToolApproval {
        return Ok(Vec::new());
    }
    let status = decision.kind.of_open_rows();
    for row in session.actions_of_gate(&gate.id).await? {
        if row.status.waits() && session.decide_action(&row.id, status, decision).await? {
            audit(session, "action_decision", gate, Some(&row.id), actor, json!({"status": status}));
        }
    }
    session.actions_of_gate(&gate.id).await
}

/// The decision that was first.
async fn already(session: &mut Session, gate: &Gate) -> Result<Settled, StoreError> {
    let first = session.gate(&gate.id).await?.and_then(|record| record.decision);
    first
        .map(Settled::Already)
        .ok_or_else(|| StoreError::Corrupt(format!("gate {} has no decision that could have been first", gate.id)))
}

/// Closes a gate whose time is over; later answers are told so.
pub(super) async fn lapse(session: &mut Session, gate: &Gate, now: Millis) -> Result<(), StoreError> {
    let actor = Actor::system(now);
    let decision = actor.decision(DecisionKind::Expire, None);
    close(session, gate, decision, &actor).await.map(drop)
}

/// Adds to the trail.
pub(super) fn audit(
    session: &mut Session,
    kind: &'static str,
    gate: &Gate,
    action: Option<&ActionId>,
    actor: &Actor,
    mut details: serde_json::Value,
) {
    details["via"] = json!(actor.via);
    details["event_id"] = json!(actor.event_id);
    if actor.by_token {
        details["on_behalf_of"] = json!(actor.user);
    }
    let entry = AuditEntry {
        kind,
        turn_id: Some(gate.turn_id.clone()),
        gate_id: Some(gate.id.clone()),
        action_id: action.cloned(),
        principal: actor.principal.clone(),
        details,
    };
    session.audit(entry);
}

/// The gate that takes what is said at `record` now: itself; or, when words about its plan were a question and the review opened again, the
/// latest review of the same plan. So a person can approve on the card that they have read.
pub(super) async fn current(session: &mut Session, record: GateRecord) -> Result<GateRecord, StoreError> {
    if !was_revised(&record) {
        return Ok(record);
    }
    let mut same = session.gates_after(&record.gate).await?;
    same.retain(|gate| gate.asks_the_same(&record.gate));
    let replaced = |gate: &Gate| same.iter().any(|later| later.replaces.as_ref() == Some(&gate.id));
    let latest = same
        .iter()
        .find(|gate| gate.replaces.is_some() && !replaced(gate))
        .map(|gate| gate.id.clone());
    match latest {
        Some(id) => Ok(session.gate(&id).await?.unwrap_or(record)),
        None => Ok(record),
    }
}

/// Words about the plan settled this review.
fn was_revised(record: &GateRecord) -> bool {
    let revised = record
        .decision
        .as_ref()
        .is_some_and(|decision| decision.kind == DecisionKind::Revise);
    revised && record.gate.kind == GateKind::PlanReview
}

/// Somebody's words about the plan settled this review, and the model still works on them.
pub(super) async fn words_under_way(session: &mut Session, record: &GateRecord) -> Result<bool, StoreError> {
    if !was_revised(record) || !session.gates_after(&record.gate).await?.is_empty() {
        return Ok(false);
    }
    let turn = session.turn(&record.gate.turn_id).await?;
    Ok(turn.is_some_and(|turn| !turn.status.is_final()))
}

/// The notice for a person who acts at a closed gate. `under_way`: the model still works on the words that settled it ([`words_under_way`]).
pub(super) fn told(record: &GateRecord, under_way: bool) -> Notice {
    match &record.decision {
        Some(_) if under_way => Notice::WordsFirst {},
        Some(decision) => told_decision(decision, &record.gate),
        None => Notice::UnknownReview {},
    }
}

/// What somebody is told who comes after `decision`.
pub(super) fn told_decision(decision: &Decision, gate: &Gate) -> Notice {
    match decision.kind {
        DecisionKind::Expire => Notice::Expired {
            goal: paint::goal(&gate.card),
        },
        DecisionKind::Supersede => Notice::Superseded {},
        DecisionKind::Approve | DecisionKind::Revise | DecisionKind::Cancel | DecisionKind::Reject => Notice::AlreadyDecided {
            kind: decision.kind,
            by: decision.by.clone(),
            through_api: decision.through_api,
            at: decision.at.rfc3339(),
        },
    }
}
