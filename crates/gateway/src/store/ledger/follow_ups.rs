//! What is done about a gate that nobody answers: the reminder, and the escalation.

use countersign_agent::domain::{GateId, Millis};

use super::Result;
use super::arg::args;
use super::lanes::Lease;
use super::outbox::outbox_key;
use super::sql::encode;
use super::transaction::Tx;

/// The keys of the messages beside the card that say that it waits.
#[must_use]
pub fn reminder_keys(gate: &GateId) -> [String; 2] {
    ["remind", "escalate"].map(|what| outbox_key(&[what, gate.as_str()]))
}

impl Tx {
    /// Notes that those who may decide `gate` are reminded. Gives `false` when that was done before, or when the gate is decided.
    ///
    /// # Errors
    /// `Stale` when the lease is lost.
    pub async fn mark_reminded(&mut self, lease: &Lease, gate: &GateId, at: Millis) -> Result<bool> {
        self.prove_lease(lease).await?;
        let first = self
            .run(
                "UPDATE gates SET reminded_at = $1 WHERE id = $2 AND status = 'pending' AND reminded_at IS NULL",
                args![at, gate],
            )
            .await?;
        Ok(first > 0)
    }

    /// Notes that these people are asked to decide `gate`, too. Gives `false` as [`Tx::mark_reminded`] does.
    ///
    /// # Errors
    /// `Stale` when the lease is lost.
    pub async fn mark_escalated(&mut self, lease: &Lease, gate: &GateId, to: &[String], at: Millis) -> Result<bool> {
        self.prove_lease(lease).await?;
        let first = self
            .run(
                "UPDATE gates SET escalated_at = $1, escalated_to = $2 WHERE id = $3 AND status = 'pending' AND escalated_at IS NULL",
                args![at, encode(to)?, gate],
            )
            .await?;
        Ok(first > 0)
    }

    /// The gate is decided: words that it waits are not said any more.
    pub(super) async fn drop_reminders(&mut self, gate: &GateId) -> Result<()> {
        for key in reminder_keys(gate) {
            // One that is under way may arrive, but is not tried again.
            self.run(
                "UPDATE outbox SET state = 'superseded' WHERE key = $1 AND state = 'waiting'",
                args![key],
            )
            .await?;
        }
        Ok(())
    }
}
