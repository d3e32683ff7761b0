//! Settling gates: [`handshake`] judges the act, and this file writes the result down. Text, buttons and the API all come here.

use countersign_agent::domain::handshake::{self, Act, Actor, Refusal, Settlement};
use countersign_agent::domain::{Action, Decision, DecisionKind, Gate, GateKind, Millis, Vote};
use serde_json::json;

use crate::store::{GateRecord, Read, StoreError, Tx};

use super::paint;
use super::rights::Rights;

/// What came of an act at a gate.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum GateOutcome {
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
) -> Result<GateOutcome, StoreError> {
    let gate = &record.gate;
    let mut settled = rights.settle(record, act, words, actor);
    if settled.is_ok() && *act == Act::Approve {
        // A vote is a row of its own: it counts together with those that others gave meanwhile.
        let counted = record_vote(session, record, actor).await?;
        settled = rights.settle(&counted, act, words, actor);
    }
    match settled {
        Ok(Settlement::Decided(decision)) => close(session, gate, decision, actor).await,
        Ok(Settlement::Voted { votes }) => {
            let card = paint::open(&gate.card, votes, &[]);
            session.repaint_card(gate, &format!("votes {votes}"), card).await?;
            let quorum = gate.quorum;
            Ok(GateOutcome::Voted { votes, quorum })
        }
        Err(Refusal::Decided) => first_decision(session, gate).await,
        Err(Refusal::Lapsed) => {
            lapse(session, gate, actor.now).await?;
            first_decision(session, gate).await
        }
        Err(refusal) => {
            if refusal == Refusal::NotEntitled {
                session.audit_act("refused", gate, None, actor, json!({}));
            }
            Ok(GateOutcome::Refused(refusal))
        }
    }
}

/// Records an approval; gives the gate with it.
async fn record_vote(session: &mut Tx, record: &GateRecord, actor: &Actor) -> Result<GateRecord, StoreError> {
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
pub(super) fn count_votes(record: &GateRecord, rights: &Rights) -> u32 {
    let counted = Vote::approvers(&record.votes, |by| rights.approve(by, &record.gate.requester));
    u32::try_from(counted.len()).unwrap_or(u32::MAX)
}

/// Gives the gate its one decision; its open rows follow it.
pub(super) async fn close(session: &mut Tx, gate: &Gate, decision: Decision, actor: &Actor) -> Result<GateOutcome, StoreError> {
    match session.close_gate(gate, &decision, actor).await? {
        Some(_) => Ok(GateOutcome::Decided(decision)),
        None => first_decision(session, gate).await,
    }
}

/// The decision that was first.
async fn first_decision(session: &mut Tx, gate: &Gate) -> Result<GateOutcome, StoreError> {
    let first = session.gate(&gate.id).await?.and_then(|record| record.decision);
    first
        .map(GateOutcome::Already)
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
pub(super) async fn latest_review(session: &mut Tx, record: GateRecord) -> Result<GateRecord, StoreError> {
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

/// What came of an act at one row of a tool approval.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum RowOutcome {
    /// The row took this decision.
    Decided(Action),
    /// Somebody was first, or the row does not ask.
    Already(Action),
    /// The actor may not do this here.
    NotEntitled,
}

/// Approves or rejects one row, for `reason`; with the last row the gate is settled too.
pub(super) async fn settle_row(
    session: &mut Tx,
    record: &GateRecord,
    row: &Action,
    act: &Act,
    reason: Option<String>,
    actor: &Actor,
    rights: &Rights,
) -> Result<RowOutcome, StoreError> {
    let gate = &record.gate;
    if record.decision.is_none() && !rights.may_act(act, actor, gate) {
        return Ok(RowOutcome::NotEntitled);
    }
    let mut settled = None;
    if record.decision.is_none() {
        let rows = session.actions_of_gate(&gate.id).await?;
        settled = handshake::settle_row(&rows, &row.id, *act == Act::Approve, reason, actor);
    }
    if let Some(decided) = &settled {
        let status = decided.row.kind.of_open_rows();
        if session.decide_action(&row.id, status, &decided.row).await? {
            session.audit_act("action_decision", gate, Some(&row.id), actor, json!({"status": status}));
        } else {
            settled = None;
        }
    }
    let rows = session.actions_of_gate(&gate.id).await?;
    let now = rows.iter().find(|other| other.id == row.id).cloned();
    let now = now.ok_or_else(|| StoreError::Corrupt(format!("action {} is gone", row.id)))?;
    let Some(settled) = settled else {
        return Ok(RowOutcome::Already(now));
    };
    match settled.gate {
        None => {
            let card = paint::open(&gate.card, 0, &rows);
            session.repaint_card(gate, &format!("row {}", row.id), card).await?;
        }
        Some(decision) => drop(close(session, gate, decision, actor).await?),
    }
    Ok(RowOutcome::Decided(now))
}
