//! The ledger as the journal of a turn: every verb is a transaction or a look, every write under the fence of the turn's lane.

mod commit;
mod follow_up;
mod delegated;
mod session;
mod signal_watch;
mod split;
mod successor;

pub(super) use signal_watch::SignalWatch;

use std::sync::Arc;
use std::time::Duration;

use countersign_agent::domain::{
    ActionId, ActionStatus, Clock, CoverageKind, Decision, Event, Failpoint, GateKind, Message, Millis, Policy, SessionMode, SignalKind,
    StandingGrants, ToolResult, TurnReason,
};
use countersign_agent::engine::{Engine, Journal, JournalError, OutsideInput, Sending, StepRecord, row_verdicts, unread_outcomes};
use countersign_agent::model::BoxFuture;
use countersign_agent::reducer::{self, Effect, Input, TurnState};
use metrics::counter;
use parking_lot::{Mutex, MutexGuard};
use serde_json::json;
use tokio::time::Instant;
use tracing::info;

use self::commit::{is_overtaken, repaint, write_step};
use super::state;
use crate::config::Settings;
use crate::store::{AuditEntry, GateRecord, Lease, Ledger, StoreError, TurnRow};

/// The journal of one turn in the ledger.
pub(super) struct LedgerJournal {
    ledger: Ledger,
    clock: Clock,
    failpoint: Failpoint,
    /// Between two looks for people's words while a call is out.
    interrupt_poll: Duration,
    signal_watch: Arc<SignalWatch>,
    settings: Settings,
    lease: Lease,
    /// The chat as rules name it.
    chat: String,
    /// As last committed, but for the state: each step writes that anew, and a turn that waits for a model should not hold it twice.
    row: Mutex<TurnRow>,
}

impl LedgerJournal {
    pub(super) fn new(
        ledger: &Ledger,
        engine: &Engine,
        signal_watch: &Arc<SignalWatch>,
        settings: &Settings,
        lease: Lease,
        row: TurnRow,
    ) -> Self {
        Self {
            ledger: ledger.clone(),
            clock: engine.clock.clone(),
            failpoint: engine.failpoint.clone(),
            interrupt_poll: engine.timings.interrupt_poll,
            signal_watch: Arc::clone(signal_watch),
            settings: settings.clone(),
            chat: lease.conversation.chat_name(),
            lease,
            row: Mutex::new(TurnRow {
                state: String::new(),
                ..row
            }),
        }
    }

    fn row(&self) -> MutexGuard<'_, TurnRow> {
        self.row.lock()
    }

    /// Settles a lapsed gate. The stored decision counts, even if somebody was faster.
    async fn expire(&self, record: &GateRecord) -> Result<Decision, StoreError> {
        let gate = &record.gate;
        let mut tx = self.ledger.begin_in(&gate.conversation).await?;
        let lapsed = tx.lapse_gate(gate, self.clock.now()).await?.decision;
        let decision = lapsed.ok_or_else(|| StoreError::Corrupt(format!("gate {} is decided without a decision", gate.id)))?;
        tx.commit().await?;
        Ok(decision)
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
    /// A stop is read before a decision: a person who says OK and then stop gets the stop.
    fn news<'a>(&'a self, state: &'a TurnState) -> BoxFuture<'a, Result<Option<OutsideInput>, JournalError>> {
        Box::pin(async move {
            let turn = self.row().id.clone();
            let mut read = self.ledger.read().await?;
            let signals = read.signals(&turn).await?;
            let stop = signals
                .iter()
                .find(|signal| matches!(signal.kind, SignalKind::Cancel | SignalKind::Supersede));
            if let Some(stop) = stop {
                let reason = if stop.kind == SignalKind::Cancel {
                    TurnReason::Cancelled
                } else {
                    TurnReason::Superseded
                };
                let input = Input::Cancel {
                    by: stop.by.clone(),
                    reason,
                    left: unread_outcomes(state, &read.actions_of_turn(&turn).await?),
                };
                return Ok(Some(OutsideInput {
                    input,
                    heard: signals.iter().map(|signal| signal.id).collect(),
                }));
            }
            // Before a decision too: one that ends the turn must leave no words unread.
            if let Some(steer) = signals.iter().find(|signal| signal.kind == SignalKind::Steer) {
                let input = Input::Steer(steer.text.clone().unwrap_or_default());
                return Ok(Some(OutsideInput {
                    input,
                    heard: vec![steer.id],
                }));
            }
            let Some(open) = &state.gate else { return Ok(None) };
            let record = read
                .gate(&open.id)
                .await?
                .ok_or_else(|| StoreError::Corrupt(format!("gate {} is missing", open.id)))?;
            let undeliverable = record.decision.is_none() && read.is_undeliverable(&open.id).await?;
            drop(read);
            if undeliverable {
                return Ok(Some(OutsideInput {
                    input: Input::Undeliverable,
                    heard: Vec::new(),
                }));
            }
            let decision = match record.decision.clone() {
                Some(decision) => Some(decision),
                None if record.gate.expires_at <= self.clock.now() => Some(self.expire(&record).await?),
                None => None,
            };
            if let Some(decision) = decision {
                self.failpoint.reach("decision_read");
                let rows = if open.kind == GateKind::ToolApproval {
                    row_verdicts(self.ledger.read().await?.actions_of_gate(&record.gate.id).await?)
                } else {
                    Vec::new()
                };
                return Ok(Some(OutsideInput {
                    input: Input::Decided { decision, rows },
                    heard: Vec::new(),
                }));
            }
            Ok(None)
        })
    }

    fn chat(&self) -> &str {
        &self.chat
    }

    /// Read from the settings and the ledger at every step: somebody may have taken one back. Where nobody may approve what they asked for
    /// themselves, nobody's own grant covers their calls either.
    fn standing(&self) -> BoxFuture<'_, Result<Option<StandingGrants>, JournalError>> {
        Box::pin(async move {
            let live = self.settings.current();
            if !live.agent.standing_grants {
                return Ok(None);
            }
            let place = &self.lease.conversation;
            let mut grants = self.ledger.read().await?.standing_grants(place, self.clock.now()).await?;
            let four_eyes = live
                .in_chat(place.channel, &place.chat)
                .approvers_of(GateKind::ToolApproval)
                .bars_requester();
            if four_eyes {
                let user = self.row().user.clone();
                let requester = place.channel.person(&user);
                grants.retain(|grant| grant.by != requester);
            }
            Ok(Some(StandingGrants {
                grants,
                days: live.agent.standing_grant_days,
            }))
        })
    }

    /// The card that waits for an edit is triage's business.
    fn edits(&self) -> BoxFuture<'_, Result<Vec<i64>, JournalError>> {
        Box::pin(async move {
            let turn = self.row().id.clone();
            let signals = self.ledger.read().await?.signals(&turn).await?;
            let edits = signals.iter().filter(|signal| signal.kind == SignalKind::Edited);
            Ok(edits.map(|signal| signal.id).collect())
        })
    }

    /// One transaction under the fence of the lease.
    fn commit<'a>(&'a self, entry: StepRecord<'a>) -> BoxFuture<'a, Result<bool, JournalError>> {
        Box::pin(async move {
            let mut row = self.row().clone();
            let mut tx = self.ledger.begin_in(&self.lease.conversation).await?;
            // After the wait for the chat's lock: events are stamped shortly before they can be read.
            let now = self.clock.now();
            if is_overtaken(&mut tx, &row, &entry).await? {
                return Ok(false);
            }
            let opened = entry.effects.iter().any(|effect| matches!(effect, Effect::OpenGate(_)));
            let finished = entry.effects.iter().any(|effect| matches!(effect, Effect::Finish));
            let live = self.settings.current();
            let place = &self.lease.conversation;
            let live = live.in_chat(place.channel, &place.chat);
            let events = write_step(&mut tx, &self.lease, &mut row, entry, live, now).await?;
            tx.commit().await?;
            row.state = String::new();
            *self.row() = row;
            for stored in &events {
                let kind = match stored.event {
                    Event::PlanContinuation { .. } => "nudge",
                    Event::ContinuationProgress { .. } => "signal",
                    _ => continue,
                };
                counter!("countersign_continuations_total", "kind" => kind).increment(1);
            }
            if opened {
                self.failpoint.reach("gate_journaled");
            }
            if finished {
                self.failpoint.reach("finish_journaled");
            }
            Ok(true)
        })
    }

    fn due<'a>(&'a self, state: &'a TurnState) -> BoxFuture<'a, Result<Millis, JournalError>> {
        Box::pin(async move {
            let Some(open) = &state.gate else {
                return Ok(Millis::NEVER);
            };
            match self.ledger.read().await?.gate(&open.id).await? {
                Some(record) => Ok(self.follow_up(record, state).await?),
                None => Ok(Millis::NEVER),
            }
        })
    }

    fn history<'a>(&'a self, policy: &'a Policy) -> BoxFuture<'a, Result<Vec<Message>, JournalError>> {
        Box::pin(async move {
            if policy.session_mode == SessionMode::Fresh || policy.history_limit == 0 {
                return Ok(Vec::new());
            }
            let turns = i64::try_from(policy.history_limit.div_ceil(2)).unwrap_or(i64::MAX);
            let mut read = self.ledger.read().await?;
            let earlier = read.earlier_turns(&self.lease.conversation, turns).await?;
            let mut messages = Vec::new();
            for row in earlier.iter().rev() {
                let Ok(state) = state::decode(&row.state) else { continue };
                messages.extend(reducer::memory(&row.text, &state));
            }
            let surplus = messages.len().saturating_sub(policy.history_limit);
            messages.drain(..surplus);
            Ok(messages)
        })
    }

    /// New words for the model are worth a new call: an answer that did not know them would only have to be put right.
    fn heard<'a>(&'a self, kinds: &'a [SignalKind]) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            // What was unread before may have been read since.
            let begun = Instant::now();
            let turn = self.row().id.clone();
            loop {
                tokio::time::sleep(self.interrupt_poll).await;
                if self.is_unread(&turn, kinds, begun).await {
                    return;
                }
            }
        })
    }

    fn sending<'a>(&'a self, id: &'a ActionId, begins: bool) -> BoxFuture<'a, Result<Sending, JournalError>> {
        Box::pin(async move {
            let mut read = self.ledger.read().await?;
            let record = read.action(id).await?;
            let action = record.ok_or_else(|| StoreError::Corrupt(format!("action {id} is missing")))?.action;
            let sending = match Sending::of(&action, begins) {
                Ok(sending) => sending,
                Err(corrupt) => {
                    // A worker that lost its lease finds the row as its successor left it: that is no fault of the row.
                    read.refresh(&self.lease).await?;
                    return Err(corrupt);
                }
            };
            drop(read);
            if sending != Sending::Now {
                return Ok(sending);
            }
            self.failpoint.reach("action_unsent");
            let mut tx = self.ledger.begin_in(&self.lease.conversation).await?;
            // Once a person was asked about the call, it runs under their word.
            let standing = action
                .covered_by
                .as_ref()
                .filter(|by| by.kind == CoverageKind::Standing && action.gate_id.is_none());
            if let Some(by) = standing
                && !tx.use_standing_grant(&by.id, self.clock.now()).await?
            {
                return Ok(Sending::Not);
            }
            tx.move_action(&self.lease, id, ActionStatus::Running).await?;
            tx.commit().await?;
            info!(action.id = %id, tool = action.tool, "write call sent");
            self.failpoint.reach("action_sent");
            Ok(sending)
        })
    }

    fn done<'a>(&'a self, id: &'a ActionId, result: &'a ToolResult) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async move {
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
            Ok(tx.commit().await?)
        })
    }
}

fn sha256(text: &str) -> String {
    use sha2::Digest;
    hex::encode(sha2::Sha256::digest(text.as_bytes()))
}
