//! Settling single rows of a tool approval; with the last row the gate is settled too.

use countersign_agent::domain::Action;
use countersign_agent::domain::handshake::{self, Actor};
use serde_json::json;

use crate::store::{GateRecord, StoreError, Tx};

use super::paint;
use super::review::close;

/// What came of a word on one row.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum RowSettled {
    /// The row took this decision.
    Decided(Action),
    /// Somebody was first, or the row does not ask.
    Already(Action),
}

/// Approves or rejects one row. The right to do so was checked.
pub(super) async fn settle_row(
    session: &mut Tx,
    record: &GateRecord,
    row: &Action,
    approve: bool,
    reason: Option<String>,
    actor: &Actor,
) -> Result<RowSettled, StoreError> {
    let gate = &record.gate;
    let rows = session.actions_of_gate(&gate.id).await?;
    let settled = handshake::settle_row(&rows, &row.id, approve, reason, actor);
    let mut first = false;
    if let Some(settled) = &settled {
        let status = settled.row.kind.of_open_rows();
        first = session.decide_action(&row.id, status, &settled.row).await?;
        if first {
            session.audit_act("action_decision", gate, Some(&row.id), actor, json!({"status": status}));
        }
    }
    let rows = session.actions_of_gate(&gate.id).await?;
    let now = rows.iter().find(|other| other.id == row.id).cloned();
    let now = now.ok_or_else(|| StoreError::Corrupt(format!("action {} is gone", row.id)))?;
    let Some(settled) = settled.filter(|_| first) else {
        return Ok(RowSettled::Already(now));
    };
    match settled.gate {
        None => {
            let card = paint::open(&gate.card, 0, &rows);
            session.repaint_card(gate, &format!("row {}", row.id), card).await?;
        }
        Some(decision) => drop(close(session, gate, decision, actor).await?),
    }
    Ok(RowSettled::Decided(now))
}
