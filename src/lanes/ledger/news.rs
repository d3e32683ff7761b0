//! What people (or time) did to a turn since its last step: signals, the gate's decision, expiry.

use countersign_agent::domain::SignalKind;
use countersign_agent::domain::handshake::Actor;
use countersign_agent::domain::{Decision, DecisionKind, GateKind, Millis, TurnReason};
use countersign_agent::engine::{News, left, verdicts};
use countersign_agent::reducer::{Input, TurnState};

use super::LedgerJournal;
use crate::store::{GateRecord, StoreError};

impl LedgerJournal {
    /// The next input from outside the turn, if there is one. A stop is read before a decision: a person
    /// who says OK and then stop gets the stop.
    pub(super) async fn look(&self, state: &TurnState) -> Result<Option<News>, StoreError> {
        let turn = self.row().id.clone();
        let mut session = self.ledger.read().await?;
        let signals = session.signals(&turn).await?;
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
                left: left(state, &session.actions_of_turn(&turn).await?),
            };
            return Ok(Some(News {
                input,
                heard: signals.iter().map(|signal| signal.id).collect(),
            }));
        }
        // Before a decision too: one that ends the turn must leave no words unread.
        if let Some(steer) = signals.iter().find(|signal| signal.kind == SignalKind::Steer) {
            let input = Input::Steer(steer.text.clone().unwrap_or_default());
            return Ok(Some(News {
                input,
                heard: vec![steer.id],
            }));
        }
        if let Some(open) = &state.gate {
            let record = session
                .gate(&open.id)
                .await?
                .ok_or_else(|| StoreError::Corrupt(format!("gate {} is missing", open.id)))?;
            let undeliverable = record.decision.is_none() && session.is_undeliverable(&open.id).await?;
            drop(session);
            if undeliverable {
                return Ok(Some(News {
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
                    verdicts(self.ledger.read().await?.actions_of_gate(&record.gate.id).await?)
                } else {
                    Vec::new()
                };
                return Ok(Some(News {
                    input: Input::Decided { decision, rows },
                    heard: Vec::new(),
                }));
            }
            return Ok(None);
        }
        Ok(None)
    }

    /// Unread edits of the request. They need no step of their own: the next one takes them along, so that a card that it
    /// draws knows of them. The card that waits is triage's business.
    pub(super) async fn unread_edits(&self) -> Result<Vec<i64>, StoreError> {
        let turn = self.row().id.clone();
        let signals = self.ledger.read().await?.signals(&turn).await?;
        let edits = signals.iter().filter(|signal| signal.kind == SignalKind::Edited);
        Ok(edits.map(|signal| signal.id).collect())
    }

    /// When the open gate lapses.
    pub(super) async fn gate_due(&self, state: &TurnState) -> Result<Millis, StoreError> {
        let Some(open) = &state.gate else {
            return Ok(Millis::NEVER);
        };
        let record = self.ledger.read().await?.gate(&open.id).await?;
        Ok(record.map_or(Millis::NEVER, |record| record.gate.expires_at))
    }

    /// Settles a lapsed gate. The stored decision counts, even if somebody was faster.
    async fn expire(&self, record: &GateRecord) -> Result<Decision, StoreError> {
        let gate = &record.gate;
        let mut tx = self.ledger.begin_in(&gate.conversation).await?;
        let actor = Actor::system(self.clock.now());
        let lapsed = actor.decision(DecisionKind::Expire, None);
        let decision = match tx.close_gate(gate, &lapsed, &actor).await? {
            Some(_) => lapsed,
            None => {
                let stored = tx.gate(&gate.id).await?.and_then(|record| record.decision);
                stored.ok_or_else(|| StoreError::Corrupt(format!("gate {} is decided without a decision", gate.id)))?
            }
        };
        tx.commit().await?;
        Ok(decision)
    }
}
