//! Settling single rows of a tool approval; with the last row the gate is settled too.

use serde_json::json;

use crate::domain::{Action, ActionStatus, Approver, Decision, DecisionKind};
use crate::store::{GateRecord, Session, StoreError};

use super::review::{Actor, audit, close};
use super::{paint, say};

/// What came of a word on one row.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum RowSettled {
    /// The row took this decision; `rest` rows still wait.
    Decided(Action),
    /// Somebody was first, or the row does not ask.
    Already(Action),
}

/// Approves or rejects one row. The right to do so was checked.
pub(super) async fn settle_row(
    session: &mut Session,
    record: &GateRecord,
    row: &Action,
    approve: bool,
    reason: Option<String>,
    actor: &Actor,
) -> Result<RowSettled, StoreError> {
    let gate = &record.gate;
    let (status, kind) = if approve {
        (ActionStatus::Approved, DecisionKind::Approve)
    } else {
        (ActionStatus::Rejected, DecisionKind::Reject)
    };
    let decision = Decision {
        approvers: if approve { actor.approver() } else { Vec::new() },
        ..actor.decision(kind, reason)
    };
    let first = session.decide_action(&row.id, status, &decision).await?;
    let rows = session.actions_of_gate(&gate.id).await?;
    let now = rows.iter().find(|other| other.id == row.id).cloned();
    let now = now.ok_or_else(|| StoreError::Corrupt(format!("action {} is gone", row.id)))?;
    if !first {
        return Ok(RowSettled::Already(now));
    }
    audit(session, "action_decision", gate, Some(&row.id), actor, json!({"status": status}));
    let statuses: Vec<ActionStatus> = rows.iter().map(|row| row.status).collect();
    match DecisionKind::by_rows(&statuses) {
        None => {
            let card = paint::open(&gate.card, 0, &rows);
            say::repaint(session, gate, &format!("row {}", row.id), card).await?;
        }
        Some(kind) => {
            let decision = Decision {
                approvers: approvers_of(&rows),
                ..actor.decision(kind, None)
            };
            close(session, gate, decision, actor).await?;
        }
    }
    Ok(RowSettled::Decided(now))
}

/// Everybody who approved one of these rows, in the order of the rows.
fn approvers_of(rows: &[Action]) -> Vec<Approver> {
    let mut all = Vec::new();
    for approver in rows
        .iter()
        .filter_map(|row| row.decision.as_ref())
        .flat_map(|decision| &decision.approvers)
    {
        if !all.contains(approver) {
            all.push(approver.clone());
        }
    }
    all
}
