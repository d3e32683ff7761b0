//! Settling gates: [`handshake`] judges the act, and this file writes the result down. Text, buttons and the API all come here.

use countersign_agent::domain::handshake::{Act, Actor, Refusal, RowVotes, RowsSettlement, Settlement};
use countersign_agent::domain::{Action, ActionId, Decision, DecisionKind, Gate, GateKind, Millis, Notice, StandingGrant, Vote};
use serde_json::{Value, json};

use crate::store::{GateRecord, Read, StoreError, Tx};

use super::notices::{self, after, done, done_so};
use super::paint;
use super::rights::Rights;

/// What came of an act at a gate.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum GateOutcome {
    Decided(Decision),
    /// One of several approvals.
    Voted {
        /// Different people so far.
        votes: u32,
        quorum: u32,
    },
    /// Some of its rows took such a decision; others wait for other people.
    RowsDecided(DecisionKind),
    /// Somebody was first, with this; or its time was over.
    Already(Decision),
    Refused(Refusal),
}

impl GateOutcome {
    /// What the one who acted is told.
    pub(super) fn notice(&self, record: &GateRecord, rights: &Rights) -> Notice {
        let gate = &record.gate;
        match self {
            Self::Decided(decision) => done(gate.kind, decision),
            Self::Voted { votes, quorum } => Notice::VoteRecorded {
                votes: *votes,
                quorum: *quorum,
            },
            Self::RowsDecided(kind) => done_so(gate.kind, *kind),
            Self::Already(first) => after(first, gate),
            Self::Refused(refusal) => notices::refused(refusal.clone(), record, rights),
        }
    }
}

/// Carries out `act`: a vote, or the decision with its repaint and trail. `words`: what was said, kept with an approval. `record` was read in this
/// transaction, which is the only one of its chat: nobody votes or decides between.
pub(super) async fn settle(
    session: &mut Tx,
    record: &GateRecord,
    act: &Act,
    words: Option<&str>,
    actor: &Actor,
    rights: &Rights,
) -> Result<GateOutcome, StoreError> {
    if record.gate.kind == GateKind::ToolApproval {
        return settle_all_rows(session, record, act, words, actor, rights).await;
    }
    let gate = &record.gate;
    let answer = match rights.settle(record, act, words, actor) {
        Ok(answer) => answer,
        Err(refusal) => return refused(session, gate, refusal, actor).await,
    };
    if let Some(vote) = &answer.vote
        && session.vote(&gate.id, vote).await?
        && gate.quorum > 1
    {
        session.audit_act("vote", gate, None, actor, trail_of(gate, vote));
    }
    match answer.settlement {
        Settlement::Decided(decision) => close(session, gate, decision, actor).await,
        Settlement::Voted { votes } => {
            let counted = counted(session, gate).await?;
            let card = paint::open(session, &counted, &[], rights, actor.now).await?;
            session.repaint_card(gate, &change_of_votes(&counted), card).await?;
            let quorum = gate.quorum;
            Ok(GateOutcome::Voted { votes, quorum })
        }
    }
}

/// What repaints the card for its votes: how many there are, and the newest. Some may have been taken back in between.
fn change_of_votes(record: &GateRecord) -> String {
    let newest = record.votes.last().and_then(|vote| vote.event_id.as_deref()).unwrap_or_default();
    format!("votes {} {newest}", record.votes.len())
}

/// Takes back what `actor` approved by a reaction. Gives `false` when there is nothing of it, or nothing can be taken back any more.
pub(super) async fn withdraw(session: &mut Tx, record: &GateRecord, actor: &Actor, rights: &Rights) -> Result<bool, StoreError> {
    let gate = &record.gate;
    let votes = rights.withdrawn(record, actor).unwrap_or_default();
    for vote in &votes {
        if session.withdraw_vote(&gate.id, vote).await? {
            session.audit_act("vote_withdrawn", gate, vote.row.as_ref(), actor, trail_of(gate, vote));
        }
    }
    if votes.is_empty() {
        return Ok(false);
    }
    let counted = counted(session, gate).await?;
    let rows = session.actions_of_gate(&gate.id).await?;
    let card = paint::open(session, &counted, &rows, rights, actor.now).await?;
    let change = format!("withdrawn {}", actor.event_id.as_deref().unwrap_or_default());
    session.repaint_card(gate, &change, card).await?;
    Ok(true)
}

/// The outcome of an act that is refused, with what follows from it.
async fn refused(session: &mut Tx, gate: &Gate, refusal: Refusal, actor: &Actor) -> Result<GateOutcome, StoreError> {
    match refusal {
        Refusal::Decided => first_decision(session, gate).await,
        Refusal::Lapsed => {
            lapse(session, gate, actor.now).await?;
            first_decision(session, gate).await
        }
        refusal => {
            if refusal == Refusal::NotEntitled {
                session.audit_act("refused", gate, None, actor, json!({}));
            }
            Ok(GateOutcome::Refused(refusal))
        }
    }
}

/// What the trail says of an approval.
fn trail_of(gate: &Gate, vote: &Vote) -> Value {
    json!({"digest": gate.digest, "group": vote.group, "in_place_of": vote.in_place_of})
}

/// The gate with all votes that were given so far.
async fn counted(session: &mut Tx, gate: &Gate) -> Result<GateRecord, StoreError> {
    let counted = session.gate(&gate.id).await?;
    counted.ok_or_else(|| StoreError::Corrupt(format!("gate {} is gone", gate.id)))
}

/// Gives the gate its one decision; its open rows follow it.
pub(super) async fn close(session: &mut Tx, gate: &Gate, decision: Decision, actor: &Actor) -> Result<GateOutcome, StoreError> {
    match session.close_gate(gate, &decision, actor).await? {
        Some(_) => Ok(GateOutcome::Decided(decision)),
        None => first_decision(session, gate).await,
    }
}

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
    Decided(Action),
    /// One of several approvals of the row.
    Voted(RowVotes),
    /// Somebody was first, or the row does not ask.
    Already(Action),
    Refused(Refusal),
}

/// An act at rows of a tool approval.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowsAct<'a> {
    pub(super) act: &'a Act,
    /// What was said, or the reason.
    pub(super) words: Option<&'a str>,
    /// At one row: what its approval allows in the chat from now on.
    pub(super) standing: Option<&'a StandingGrant>,
}

/// Approves or rejects one row; with the last row the gate is settled too.
pub(super) async fn settle_row(
    session: &mut Tx,
    record: &GateRecord,
    row: &Action,
    asked: RowsAct<'_>,
    actor: &Actor,
    rights: &Rights,
) -> Result<RowOutcome, StoreError> {
    let settled = settle_rows(session, record, Some(&row.id), asked, actor, rights).await?;
    match settled {
        Ok(RowsSettlement { mut waiting, .. }) if !waiting.is_empty() => Ok(RowOutcome::Voted(waiting.remove(0))),
        Ok(_) => Ok(RowOutcome::Decided(row_now(session, row).await?)),
        Err(Refusal::Decided | Refusal::Lapsed) => Ok(RowOutcome::Already(row_now(session, row).await?)),
        Err(refusal) => Ok(RowOutcome::Refused(refusal)),
    }
}

async fn row_now(session: &mut Tx, row: &Action) -> Result<Action, StoreError> {
    let found = session.action(&row.id).await?.map(|record| record.action);
    found.ok_or_else(|| StoreError::Corrupt(format!("action {} is gone", row.id)))
}

/// Approves or rejects all rows that wait and that the actor may decide.
async fn settle_all_rows(
    session: &mut Tx,
    record: &GateRecord,
    act: &Act,
    words: Option<&str>,
    actor: &Actor,
    rights: &Rights,
) -> Result<GateOutcome, StoreError> {
    let asked = RowsAct {
        act,
        words,
        standing: None,
    };
    let settled = match settle_rows(session, record, None, asked, actor, rights).await? {
        Ok(settled) => settled,
        Err(refusal) => return refused(session, &record.gate, refusal, actor).await,
    };
    // Of several rows the one is told that misses most.
    let furthest = settled.waiting.iter().max_by_key(|row| row.needed.saturating_sub(row.votes));
    Ok(match (settled.gate, furthest, settled.decided.first()) {
        (Some(decision), _, _) => GateOutcome::Decided(decision),
        (None, Some(row), _) => GateOutcome::Voted {
            votes: row.votes,
            quorum: row.needed,
        },
        (None, None, Some((_, decision))) => GateOutcome::RowsDecided(decision.kind),
        (None, None, None) => GateOutcome::Refused(Refusal::NotEntitled),
    })
}

/// Carries out `act` at the row `one`, or at all rows: votes, decisions of rows and of the gate, the repaint and the trail.
async fn settle_rows(
    session: &mut Tx,
    record: &GateRecord,
    one: Option<&ActionId>,
    RowsAct { act, words, standing }: RowsAct<'_>,
    actor: &Actor,
    rights: &Rights,
) -> Result<Result<RowsSettlement, Refusal>, StoreError> {
    let gate = &record.gate;
    let rows = session.actions_of_gate(&gate.id).await?;
    let mut settled = match rights.settle_rows(record, &rows, one, act, words, actor) {
        Ok(settled) => settled,
        refused => return Ok(refused),
    };
    for vote in &settled.votes {
        if session.vote(&gate.id, vote).await? {
            session.audit_act("vote", gate, vote.row.as_ref(), actor, trail_of(gate, vote));
        }
    }
    for (id, decision) in &mut settled.decided {
        let status = decision.kind.of_open_rows();
        let standing = standing.filter(|_| decision.kind == DecisionKind::Approve);
        decision.standing = standing.map(|grant| Box::new(grant.made()));
        if !session.decide_action(id, status, decision).await? {
            return Ok(Err(Refusal::Decided));
        }
        let details = json!({"status": status, "in_place_of": decision.in_place_of});
        session.audit_act("action_decision", gate, Some(id), actor, details);
        if let Some(grant) = standing
            && session.insert_standing_grant(grant, id).await?
        {
            let details = json!({
                "grant": grant.id, "number": grant.number, "tool": grant.tool, "arguments": grant.arguments, "until": grant.expires_at.rfc3339(),
            });
            session.audit_act("standing_grant_made", gate, Some(id), actor, details);
        }
    }
    match &settled.gate {
        None => repaint(session, gate, rights, actor.now).await?,
        Some(decision) => drop(close(session, gate, decision.clone(), actor).await?),
    }
    Ok(Ok(settled))
}

/// The card of an open tool approval, as its rows stand now.
async fn repaint(session: &mut Tx, gate: &Gate, rights: &Rights, now: Millis) -> Result<(), StoreError> {
    let record = counted(session, gate).await?;
    let rows = session.actions_of_gate(&gate.id).await?;
    let settled = rows.iter().filter(|row| !row.status.waits()).count();
    let change = format!("rows {settled} {}", change_of_votes(&record));
    let card = paint::open(session, &record, &rows, rights, now).await?;
    session.repaint_card(gate, &change, card).await
}
