//! The ledger as the journal of a turn: every verb is a transaction or a look, every write under the fence of the turn's lane.

mod commit;
mod ears;
mod news;
mod split;
mod successor;

pub(super) use ears::Ears;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use countersign_agent::domain::SignalKind;
use countersign_agent::domain::{ActionId, ActionStatus, Clock, Failpoint, Message, Millis, Policy, SessionMode, ToolResult};
use countersign_agent::engine::{Engine, Entry, Journal, JournalError, News, Sending};
use countersign_agent::model::BoxFuture;
use countersign_agent::reducer::{self, TurnState};
use serde_json::json;
use tracing::info;

use self::commit::repaint;
use super::state;
use crate::config::Settings;
use crate::store::{AuditEntry, GateRecord, Lease, Ledger, StoreError, TurnRow};
use futures_util::TryFutureExt;

/// The journal of one turn in the ledger.
pub(super) struct LedgerJournal {
    ledger: Ledger,
    clock: Clock,
    failpoint: Failpoint,
    /// Between two looks for people's words while a call is out.
    interrupt_poll: Duration,
    ears: Arc<Ears>,
    settings: Settings,
    lease: Lease,
    /// As last committed, but for the state: each step writes that anew, and a turn that waits for a model should not hold it twice.
    row: Mutex<TurnRow>,
}

impl LedgerJournal {
    pub(super) fn new(ledger: &Ledger, engine: &Engine, ears: &Arc<Ears>, settings: &Settings, lease: Lease, row: TurnRow) -> Self {
        Self {
            ledger: ledger.clone(),
            clock: engine.clock.clone(),
            failpoint: engine.failpoint.clone(),
            interrupt_poll: engine.timings.interrupt_poll,
            ears: Arc::clone(ears),
            settings: settings.clone(),
            lease,
            row: Mutex::new(TurnRow {
                state: String::new(),
                ..row
            }),
        }
    }

    fn row(&self) -> MutexGuard<'_, TurnRow> {
        self.row.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn earlier(&self, policy: &Policy) -> Result<Vec<Message>, StoreError> {
        if policy.session_mode == SessionMode::Fresh || policy.history_limit == 0 {
            return Ok(Vec::new());
        }
        let turns = i64::try_from(policy.history_limit.div_ceil(2)).unwrap_or(i64::MAX);
        let mut session = self.ledger.read().await?;
        let earlier = session.earlier_turns(&self.lease.conversation, turns).await?;
        let mut messages = Vec::new();
        for row in earlier.iter().rev() {
            let Ok(state) = state::decode(&row.state) else { continue };
            messages.extend(reducer::memory(&row.text, &state));
        }
        let surplus = messages.len().saturating_sub(policy.history_limit);
        messages.drain(..surplus);
        Ok(messages)
    }

    async fn send(&self, id: &ActionId, begins: bool) -> Result<Sending, StoreError> {
        let mut session = self.ledger.read().await?;
        let record = session.action(id).await?;
        let action = record.ok_or_else(|| StoreError::Corrupt(format!("action {id} is missing")))?.action;
        let sending = match Sending::of(&action, begins) {
            Ok(sending) => sending,
            Err(corrupt) => {
                // A worker that lost its lease finds the row as its successor left it: that is no fault of the row.
                session.refresh(&self.lease).await?;
                return Err(corrupt.into());
            }
        };
        drop(session);
        if sending != Sending::Now {
            return Ok(sending);
        }
        self.failpoint.reach("action_unsent");
        let mut tx = self.ledger.begin_in(&self.lease.conversation).await?;
        tx.move_action(&self.lease, id, ActionStatus::Running, None).await?;
        tx.commit().await?;
        info!(action.id = %id, tool = action.tool, "write call sent");
        self.failpoint.reach("action_sent");
        Ok(sending)
    }

    async fn store_result(&self, id: &ActionId, result: &ToolResult) -> Result<(), StoreError> {
        let status = if result.ok { ActionStatus::Executed } else { ActionStatus::Failed };
        let mut tx = self.ledger.begin_in(&self.lease.conversation).await?;
        let record = tx.action(id).await?;
        let action = record.ok_or_else(|| StoreError::Corrupt(format!("action {id} is missing")))?.action;
        // An earlier try may have been committed, and only its answer lost.
        if action.status == status {
            return Ok(());
        }
        tx.finish_action(&self.lease, id, status, result).await?;
        tx.audit(AuditEntry {
            kind: "action_executed",
            turn_id: Some(action.turn_id),
            gate_id: action.gate_id.clone(),
            action_id: Some(action.id),
            principal: None,
            details: json!({ "tool": action.tool, "ok": result.ok, "result_sha256": sha256(&result.text) }),
        });
        if let Some(gate) = &action.gate_id
            && let Some(GateRecord {
                gate,
                decision: Some(decision),
                ..
            }) = tx.gate(gate).await?
        {
            repaint(&mut tx, &gate, &decision).await?;
        }
        tx.commit().await
    }
}

impl From<StoreError> for JournalError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Stale => Self::Stale,
            StoreError::Corrupt(why) => Self::Corrupt(why),
            StoreError::Unavailable(why) | StoreError::Unusable(why) => Self::Unavailable(why),
            StoreError::Held { .. } => Self::Unavailable(error.to_string()),
        }
    }
}

impl From<JournalError> for StoreError {
    fn from(error: JournalError) -> Self {
        match error {
            JournalError::Stale => Self::Stale,
            JournalError::Unavailable(why) => Self::Unavailable(why),
            JournalError::Corrupt(why) => Self::Corrupt(why),
        }
    }
}

impl Journal for LedgerJournal {
    fn news<'a>(&'a self, state: &'a TurnState) -> BoxFuture<'a, Result<Option<News>, JournalError>> {
        Box::pin(self.look(state).err_into())
    }

    fn edits(&self) -> BoxFuture<'_, Result<Vec<i64>, JournalError>> {
        Box::pin(self.unread_edits().err_into())
    }

    fn commit<'a>(&'a self, entry: Entry<'a>) -> BoxFuture<'a, Result<bool, JournalError>> {
        Box::pin(self.write(entry).err_into())
    }

    fn due<'a>(&'a self, state: &'a TurnState) -> BoxFuture<'a, Result<Millis, JournalError>> {
        Box::pin(self.gate_due(state).err_into())
    }

    fn history<'a>(&'a self, policy: &'a Policy) -> BoxFuture<'a, Result<Vec<Message>, JournalError>> {
        Box::pin(self.earlier(policy).err_into())
    }

    fn heard<'a>(&'a self, kinds: &'a [SignalKind]) -> BoxFuture<'a, ()> {
        Box::pin(self.listen(kinds))
    }

    fn sending<'a>(&'a self, action: &'a ActionId, begins: bool) -> BoxFuture<'a, Result<Sending, JournalError>> {
        Box::pin(self.send(action, begins).err_into())
    }

    fn done<'a>(&'a self, action: &'a ActionId, result: &'a ToolResult) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(self.store_result(action, result).err_into())
    }
}

fn sha256(text: &str) -> String {
    use sha2::Digest;
    hex::encode(sha2::Sha256::digest(text.as_bytes()))
}
