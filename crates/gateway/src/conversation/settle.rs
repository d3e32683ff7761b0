//! Settling gates: [`handshake`](countersign_agent::domain::handshake) judges the act, and this file writes the result down.

use countersign_agent::domain::handshake::{Act, Actor, Refusal};
use countersign_agent::domain::{
    Action, ActionId, CallDraft, Decision, DecisionKind, Gate, GateKind, Millis, NotEditable, Notice, StandingGrant, Vote,
};
use serde_json::{Value, json};

use crate::store::{GateRecord, Read, StoreError, Tx};

use super::paint;
use super::rights::{Rights, Settled};

/// What came of an answer to a gate, or to one call that it asks about.
#[derive(Clone, Debug, PartialEq)]
pub enum GateOutcome {
    /// The gate, or the call that was answered alone, took this decision.
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
    /// It answers an earlier question about a call that is asked about again.
    Outdated,
    /// The arguments that it brings cannot take the place of the call's.
    NotEditable(NotEditable),
    /// What came of asking for the plan of an expired review again.
    AskedAgain(Notice),
    /// A rule of the settings keeps the person from answering.
    Barred(Notice),
    /// It says nothing that counts here, for the reason of the notice.
    Told(Notice),
}

/// An act, with what its approval brings along.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settling<'a> {
    pub(super) act: &'a Act,
    /// What was said, kept with an approval.
    pub(super) words: Option<&'a str>,
    /// At one call: what its approval allows in the chat from now on.
    pub(super) standing: Option<&'a StandingGrant>,
    /// At one call: the arguments with which it is approved. [`CallDraft::check`] said that they may be.
    pub(super) edit: Option<&'a CallDraft>,
}

/// Carries out an act at the gate, or at its call `row` alone: a vote, or the decision with its repaint and trail. `record` was read in this
/// transaction, which is the only one of its chat: nobody votes or decides between.
pub(super) async fn settle(
    tx: &mut Tx,
    record: &GateRecord,
    row: Option<&Action>,
    settling: Settling<'_>,
    actor: &Actor,
    rights: &Rights,
) -> Result<GateOutcome, StoreError> {
    let gate = &record.gate;
    let rows = rows_of(tx, gate).await?;
    let settled = rights.settle(record, &rows, row.map(|row| &row.id), settling.act, settling.words, actor);
    let mut settled = match settled {
        Ok(settled) => settled,
        Err(Refusal::Decided | Refusal::Lapsed) => return first_decision(tx, gate).await,
        Err(refusal) => return Ok(GateOutcome::Refused(refusal)),
    };
    if let (Some(row), Some(draft)) = (row, settling.edit) {
        edit(tx, gate, row, draft, actor).await?;
    }
    for vote in &settled.votes {
        if tx.vote(&gate.id, vote).await? && (vote.row.is_some() || gate.quorum > 1) {
            tx.audit_act("vote", gate, vote.row.as_ref(), actor, trail_of(gate, vote));
        }
    }
    for (id, decision) in &mut settled.decided {
        let standing = settling.standing.filter(|_| decision.kind == DecisionKind::Approve);
        decision.standing = standing.map(|grant| Box::new(grant.made()));
        if !decide_row(tx, gate, id, decision, standing, actor).await? {
            return first_decision(tx, gate).await;
        }
    }
    match &settled.gate {
        None => {
            let (now, rows) = (tx.gate_now(&gate.id).await?, rows_of(tx, gate).await?);
            let change = change_of(&now, &rows);
            repaint(tx, &now, &rows, &change, rights, actor.now).await?;
        }
        Some(decision) => {
            if tx.close_gate(gate, decision, actor).await?.is_none() {
                return first_decision(tx, gate).await;
            }
        }
    }
    Ok(outcome_of(settled, row.is_some()))
}

/// What came of an act at a gate, or at `one` of its calls alone.
fn outcome_of(mut settled: Settled, one: bool) -> GateOutcome {
    match (settled.gate, settled.waits, settled.decided.pop()) {
        (Some(decision), _, _) if !one => GateOutcome::Decided(decision),
        (_, Some((votes, quorum)), _) => GateOutcome::Voted { votes, quorum },
        (_, None, Some((_, decision))) if one => GateOutcome::Decided(decision),
        (_, None, Some((_, decision))) => GateOutcome::RowsDecided(decision.kind),
        (_, None, None) => GateOutcome::Refused(Refusal::NotEntitled),
    }
}

/// Gives the call `id` its decision, with what an approval allows from now on. Gives `false` when somebody was first.
async fn decide_row(
    tx: &mut Tx,
    gate: &Gate,
    id: &ActionId,
    decision: &Decision,
    standing: Option<&StandingGrant>,
    actor: &Actor,
) -> Result<bool, StoreError> {
    let status = decision.kind.of_open_rows();
    if !tx.decide_action(id, status, decision).await? {
        return Ok(false);
    }
    let details = json!({"status": status, "in_place_of": decision.in_place_of});
    tx.audit_act("action_decision", gate, Some(id), actor, details);
    if let Some(grant) = standing
        && tx.insert_standing_grant(grant, id).await?
    {
        let details = json!({
            "grant": grant.id, "number": grant.number, "tool": grant.tool, "arguments": grant.arguments, "until": grant.expires_at.rfc3339(),
        });
        tx.audit_act("standing_grant_made", gate, Some(id), actor, details);
    }
    Ok(true)
}

/// Writes the call with a person's arguments in the place of the model's, in the transaction of their approval.
async fn edit(tx: &mut Tx, gate: &Gate, row: &Action, draft: &CallDraft, actor: &Actor) -> Result<(), StoreError> {
    let mut edited = row.clone();
    draft.clone().put_into(&mut edited, &actor.decision(DecisionKind::Approve, None));
    if tx.edit_action(&edited).await? {
        let details = json!({ "tool": row.tool, "before": row.arguments, "after": edited.arguments });
        tx.audit_act("action_edited", gate, Some(&row.id), actor, details);
    }
    Ok(())
}

/// Takes back what `actor` approved by a reaction. Gives `false` when there is nothing of it, or nothing can be taken back any more.
pub(super) async fn withdraw(tx: &mut Tx, record: &GateRecord, actor: &Actor, rights: &Rights) -> Result<bool, StoreError> {
    let gate = &record.gate;
    let votes = rights.withdrawn(record, actor).unwrap_or_default();
    for vote in &votes {
        if tx.withdraw_vote(&gate.id, vote).await? {
            tx.audit_act("vote_withdrawn", gate, vote.row.as_ref(), actor, trail_of(gate, vote));
        }
    }
    if votes.is_empty() {
        return Ok(false);
    }
    let (now, rows) = (tx.gate_now(&gate.id).await?, rows_of(tx, gate).await?);
    let change = format!("withdrawn {}", actor.event_id.as_deref().unwrap_or_default());
    repaint(tx, &now, &rows, &change, rights, actor.now).await?;
    Ok(true)
}

/// The card of an open gate, as it stands now.
async fn repaint(tx: &mut Tx, now: &GateRecord, rows: &[Action], change: &str, rights: &Rights, at: Millis) -> Result<(), StoreError> {
    let card = paint::open(tx, now, rows, rights, at).await?;
    tx.repaint_card(&now.gate, change, card).await
}

/// What repaints the card: how many calls are decided, how many votes there are, and the newest. Some may have been taken back in between.
fn change_of(record: &GateRecord, rows: &[Action]) -> String {
    let newest = record.votes.last().and_then(|vote| vote.event_id.as_deref()).unwrap_or_default();
    let votes = format!("votes {} {newest}", record.votes.len());
    if record.gate.kind != GateKind::ToolApproval {
        return votes;
    }
    let decided = rows.iter().filter(|row| !row.status.waits()).count();
    format!("rows {decided} {votes}")
}

/// What the trail says of an approval.
fn trail_of(gate: &Gate, vote: &Vote) -> Value {
    json!({"digest": gate.digest, "group": vote.group, "in_place_of": vote.in_place_of})
}

async fn first_decision(read: &mut Read, gate: &Gate) -> Result<GateOutcome, StoreError> {
    let first = read.gate_now(&gate.id).await?.decision;
    first
        .map(GateOutcome::Already)
        .ok_or_else(|| StoreError::Corrupt(format!("gate {} has no decision that could have been first", gate.id)))
}

/// The calls that `gate` asks about.
async fn rows_of(read: &mut Read, gate: &Gate) -> Result<Vec<Action>, StoreError> {
    match gate.kind {
        GateKind::ToolApproval => read.actions_of_gate(&gate.id).await,
        GateKind::PlanReview | GateKind::Question | GateKind::Budget => Ok(Vec::new()),
    }
}
