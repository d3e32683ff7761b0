//! What people (or time) did to a turn since its last step: signals, the gate's decision, expiry.

use super::drive::Run;
use super::{Runner, WorkError};
use crate::agent::{CallOutcome, Input, RowVerdict};
use crate::domain::{Action, ActionStatus, Decision, DecisionKind, GateKind, Millis, TurnReason};
use crate::store::{GateRecord, SignalKind, StoreError};

/// One input that came from outside, with the signals that it uses up.
pub(super) struct News {
    pub(super) input: Input,
    pub(super) signals: Vec<i64>,
}

impl Runner {
    /// The next input from outside the turn, if there is one. A stop is read before a decision: whoever says
    /// OK and then stop gets the stop.
    pub(super) async fn news(&self, run: &Run) -> Result<Option<News>, WorkError> {
        let mut session = self.ledger.read().await?;
        let signals = session.signals(&run.row.id).await?;
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
                left: left(run, &session.actions_of_turn(&run.row.id).await?),
            };
            return Ok(Some(News {
                input,
                signals: signals.iter().map(|signal| signal.id).collect(),
            }));
        }
        // Before a decision too: one that ends the turn must not find words that nobody has read.
        if let Some(steer) = signals.iter().find(|signal| signal.kind == SignalKind::Steer) {
            let input = Input::Steer(steer.text.clone().unwrap_or_default());
            return Ok(Some(News {
                input,
                signals: vec![steer.id],
            }));
        }
        if let Some(open) = &run.turn.state.gate {
            let record = session
                .gate(&open.id)
                .await?
                .ok_or_else(|| StoreError::Corrupt(format!("gate {} is missing", open.id)))?;
            let undeliverable = record.decision.is_none() && session.is_undeliverable(&open.id).await?;
            drop(session);
            if undeliverable {
                return Ok(Some(News {
                    input: Input::Undeliverable,
                    signals: Vec::new(),
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
                    self.verdicts(&record).await?
                } else {
                    Vec::new()
                };
                return Ok(Some(News {
                    input: Input::Decided { decision, rows },
                    signals: Vec::new(),
                }));
            }
            return Ok(None);
        }
        Ok(None)
    }

    /// Unread edits of the request. They need no step of their own: the next one takes them along, so that a card that it
    /// draws knows of them. The card that waits is triage's business.
    pub(super) async fn edits(&self, run: &Run) -> Result<Vec<i64>, WorkError> {
        let signals = self.ledger.read().await?.signals(&run.row.id).await?;
        let edits = signals.iter().filter(|signal| signal.kind == SignalKind::Edited);
        Ok(edits.map(|signal| signal.id).collect())
    }

    /// When the open gate lapses.
    pub(super) async fn gate_due(&self, run: &Run) -> Result<Millis, WorkError> {
        let Some(open) = &run.turn.state.gate else {
            return Ok(Millis::NEVER);
        };
        let record = self.ledger.read().await?.gate(&open.id).await?;
        Ok(record.map_or(Millis::NEVER, |record| record.gate.expires_at))
    }

    /// Settles a lapsed gate. Whoever was faster wins: the stored decision is the one that counts.
    async fn expire(&self, record: &GateRecord) -> Result<Decision, WorkError> {
        let gate = &record.gate;
        let mut tx = self.ledger.begin_in(&gate.conversation).await?;
        let decision = match super::commit::close_gate(&mut tx, gate, DecisionKind::Expire, self.clock.now()).await? {
            Some(lapsed) => lapsed,
            None => {
                let stored = tx.gate(&gate.id).await?.and_then(|record| record.decision);
                stored.ok_or_else(|| StoreError::Corrupt(format!("gate {} is decided without a decision", gate.id)))?
            }
        };
        tx.commit().await?;
        Ok(decision)
    }

    async fn verdicts(&self, record: &GateRecord) -> Result<Vec<RowVerdict>, WorkError> {
        let actions = self.ledger.read().await?.actions_of_gate(&record.gate.id).await?;
        let verdict = |action: Action| RowVerdict {
            action: action.id.to_string(),
            // A gate may be settled as a whole before its last row is written only by a bug; fail closed.
            status: if matches!(
                action.status,
                ActionStatus::Approved | ActionStatus::Rejected | ActionStatus::Expired
            ) {
                action.status
            } else {
                ActionStatus::Rejected
            },
            reason: action.decision.and_then(|decision| decision.text),
        };
        Ok(actions.into_iter().map(verdict).collect())
    }
}

/// What is known of the calls that were sent and whose outcome the turn has not read: a process died in between, or the call did not
/// end when it was told to. The rows say it, whichever process asks.
fn left(run: &Run, rows: &[Action]) -> Vec<CallOutcome> {
    let open = run.turn.state.open_calls.iter().filter(|call| call.answer.is_none());
    let rows = open.filter_map(|call| rows.iter().find(|row| Some(row.id.as_str()) == call.action.as_deref()));
    let sent = rows.filter(|row| matches!(row.status, ActionStatus::Running | ActionStatus::Executed | ActionStatus::Failed));
    sent.map(|row| CallOutcome {
        call_id: row.call_id.clone(),
        result: row.result.clone(),
    })
    .collect()
}
