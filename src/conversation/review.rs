//! Settling gates: the act is judged by [`handshake`], and written down here. Text, buttons and the API all come here.

use countersign_agent::domain::handshake::{self, Act, Actor, Refusal};
use countersign_agent::domain::{Decision, DecisionKind, Gate, GateKind, Millis, Notice, Vote};
use serde_json::json;

use crate::store::{GateRecord, Read, StoreError, Tx};

use super::paint;
use super::rights::Rights;

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
    /// Somebody was first, with this; or its time was over.
    Already(Decision),
    /// It has no effect.
    Refused(Refusal),
}

/// Carries out `act`: a vote, or the decision with its repaint and trail. `words`: what was said, kept with an approval.
pub(super) async fn settle(
    session: &mut Tx,
    record: &GateRecord,
    act: &Act,
    words: Option<&str>,
    actor: &Actor,
    rights: &Rights,
) -> Result<Settled, StoreError> {
    let gate = &record.gate;
    let mut settled = rights.settle(record, act, words, actor);
    if settled.is_ok() && *act == Act::Approve {
        // A vote is a row of its own: it counts together with those that others gave meanwhile.
        let counted = vote(session, record, actor).await?;
        settled = rights.settle(&counted, act, words, actor);
    }
    match settled {
        Ok(handshake::Settled::Decided(decision)) => close(session, gate, decision, actor).await,
        Ok(handshake::Settled::Voted { votes }) => {
            let card = paint::open(&gate.card, votes, &[]);
            session.repaint_card(gate, &format!("votes {votes}"), card).await?;
            let quorum = gate.quorum;
            Ok(Settled::Voted { votes, quorum })
        }
        Err(Refusal::Decided) => already(session, gate).await,
        Err(Refusal::Lapsed) => {
            lapse(session, gate, actor.now).await?;
            already(session, gate).await
        }
        Err(refusal) => {
            if refusal == Refusal::NotEntitled {
                session.audit_act("refused", gate, None, actor, json!({}));
            }
            Ok(Settled::Refused(refusal))
        }
    }
}

/// Records an approval; gives the gate with it.
async fn vote(session: &mut Tx, record: &GateRecord, actor: &Actor) -> Result<GateRecord, StoreError> {
    let gate = &record.gate;
    if let Some(vote) = actor.vote()
        && session.vote(&gate.id, &vote).await?
        && gate.quorum > 1
    {
        session.audit_act("vote", gate, None, actor, json!({"digest": gate.digest}));
    }
    let counted = session.gate(&gate.id).await?;
    counted.ok_or_else(|| StoreError::Corrupt(format!("gate {} is gone", gate.id)))
}

/// How many votes count by the rights of this moment, for people to read.
pub(super) fn votes_at(record: &GateRecord, rights: &Rights) -> u32 {
    let counted = Vote::approvers(&record.votes, |by| rights.approve(by, &record.gate.requester));
    u32::try_from(counted.len()).unwrap_or(u32::MAX)
}

/// Gives the gate its one decision; its open rows follow it.
pub(super) async fn close(session: &mut Tx, gate: &Gate, decision: Decision, actor: &Actor) -> Result<Settled, StoreError> {
    match session.close_gate(gate, &decision, actor).await? {
        Some(_) => Ok(Settled::Decided(decision)),
        None => already(session, gate).await,
    }
}

/// The decision that was first.
async fn already(session: &mut Read, gate: &Gate) -> Result<Settled, StoreError> {
    let first = session.gate(&gate.id).await?.and_then(|record| record.decision);
    first
        .map(Settled::Already)
        .ok_or_else(|| StoreError::Corrupt(format!("gate {} has no decision that could have been first", gate.id)))
}

/// Closes a gate whose time is over; later answers are told so.
pub(super) async fn lapse(session: &mut Tx, gate: &Gate, now: Millis) -> Result<(), StoreError> {
    let actor = Actor::system(now);
    let decision = actor.decision(DecisionKind::Expire, None);
    close(session, gate, decision, &actor).await.map(drop)
}

/// The gate that takes what is said at `record` now: itself; or, when words about its plan were a question and the review opened again, the
/// latest review of the same plan. So a person can approve on the card that they have read.
pub(super) async fn current(session: &mut Read, record: GateRecord) -> Result<GateRecord, StoreError> {
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
pub(super) async fn words_under_way(session: &mut Read, record: &GateRecord) -> Result<bool, StoreError> {
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
