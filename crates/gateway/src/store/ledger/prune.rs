//! Retention: what is done and old goes, the approval trail stays.

use std::time::Duration;

use countersign_agent::domain::Millis;

use super::arg::args;
use super::handle::Ledger;
use super::transaction::Tx;
use super::{Result, postgres};

/// Platforms push an event again for up to 7 h; de-duplication keys are kept this long whatever the retention.
const KEEP_KEYS: Duration = Duration::from_hours(25);
/// Turns of one transaction: webhooks wait behind it.
const TURNS: i64 = 50;
/// Rows without a turn of one transaction.
const ROWS: i64 = 2000;

/// What was removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PruneCounts {
    /// Finished turns, with all their rows.
    pub turns: u64,
    /// Handled inbox rows.
    pub inbox: u64,
    /// Outbox rows that belonged to no turn.
    pub outbox: u64,
    /// Absences that ended.
    pub absences: u64,
    /// Lanes with nothing in them.
    pub lanes: u64,
    /// Standing grants that ended.
    pub standing_grants: u64,
}

impl Ledger {
    /// Removes what was finished before `before`: turns with their rows, handled inbox rows (never younger than 25 h),
    /// standing grants, empty lanes. Never what waits, never the approval trail. Works in small transactions, so that events and turns
    /// go on meanwhile.
    ///
    /// # Errors
    /// Those of [`Ledger::begin`]; what was removed until then stays removed.
    pub async fn prune(&self, before: Millis) -> Result<PruneCounts> {
        let mut pruned = PruneCounts::default();
        loop {
            let mut tx = self.begin_for(postgres::PRUNING).await?;
            let turns = tx.prune_turns(before).await?;
            tx.commit().await?;
            pruned.turns += turns;
            if turns == 0 {
                break;
            }
        }
        // Counted from the oldest event that nobody has looked at: a copy of what is handled may wait behind it.
        let oldest = self.read().await?.oldest_untriaged().await?;
        let seen = oldest.unwrap_or(self.inner.clock.now()).0.min(self.inner.clock.now().0);
        let keys = Millis(seen.saturating_sub(Millis(0).plus(KEEP_KEYS).0).min(before.0));
        pruned.inbox = self
            .prune_rows(
                "DELETE FROM inbox WHERE id IN (SELECT id FROM inbox WHERE state = 'done' AND received_at < $1 LIMIT $2)",
                keys,
            )
            .await?;
        pruned.outbox = self
            .prune_rows(
                "DELETE FROM outbox WHERE id IN
                 (SELECT id FROM outbox WHERE turn_id IS NULL AND state <> 'waiting' AND created_at < $1 LIMIT $2)",
                before,
            )
            .await?;
        pruned.absences = self
            .prune_rows(
                "DELETE FROM absences WHERE person_key IN (SELECT person_key FROM absences WHERE until < $1 LIMIT $2) AND until < $1",
                before,
            )
            .await?;
        // A lane that sleeps for ever: no turn, no task, no worker. Said twice: of a row that was changed while we waited for
        // it, only the outer conditions are looked at again, and a task that has just come must not lose its lane.
        pruned.lanes = self
            .prune_rows(
                "DELETE FROM lanes WHERE id IN (SELECT id FROM lanes WHERE turn_id IS NULL AND owner = '' AND ready_at > $1
                 AND NOT EXISTS (SELECT 1 FROM turns WHERE turns.lane_id = lanes.id)
                 AND NOT EXISTS (SELECT 1 FROM inbox WHERE inbox.lane_id = lanes.id AND inbox.state = 'laned') LIMIT $2)
                 AND turn_id IS NULL AND owner = '' AND ready_at > $1",
                Millis(Millis::NEVER.0 - 1),
            )
            .await?;
        // The newest row of a chat stays: it says which number comes next.
        pruned.standing_grants = self
            .prune_rows(
                "DELETE FROM standing_grants WHERE id IN (SELECT id FROM standing_grants WHERE (expires_at < $1 OR revoked_at < $1)
                 AND number < (SELECT MAX(newest.number) FROM standing_grants AS newest WHERE newest.chat_key = standing_grants.chat_key)
                 LIMIT $2)",
                before,
            )
            .await?;
        Ok(pruned)
    }

    async fn prune_rows(&self, text: &'static str, before: Millis) -> Result<u64> {
        let mut removed = 0;
        loop {
            let mut tx = self.begin_for(postgres::PRUNING).await?;
            let done = tx.run(text, args![before, ROWS]).await?;
            tx.commit().await?;
            removed += done;
            if done == 0 {
                return Ok(removed);
            }
        }
    }
}

impl Tx {
    /// Some finished turns with everything that hangs on them.
    async fn prune_turns(&mut self, before: Millis) -> Result<u64> {
        let old = "SELECT id FROM turns WHERE finished_at IS NOT NULL AND finished_at < $1 ORDER BY finished_at, id LIMIT $2";
        let mut removed = 0;
        for text in [
            format!("DELETE FROM votes WHERE gate_id IN (SELECT id FROM gates WHERE turn_id IN ({old}))"),
            format!("DELETE FROM decisions WHERE gate_id IN (SELECT id FROM gates WHERE turn_id IN ({old}))"),
            format!("DELETE FROM cards WHERE gate IN (SELECT id FROM gates WHERE turn_id IN ({old}))"),
            format!("DELETE FROM gates WHERE turn_id IN ({old})"),
            format!("DELETE FROM actions WHERE turn_id IN ({old})"),
            format!("DELETE FROM signals WHERE turn_id IN ({old})"),
            format!("DELETE FROM messages WHERE turn_id IN ({old})"),
            format!("DELETE FROM events WHERE turn_id IN ({old})"),
            format!("DELETE FROM outbox_files WHERE key IN (SELECT key FROM outbox WHERE turn_id IN ({old}))"),
            format!("DELETE FROM feedback WHERE turn_id IN ({old})"),
            format!("DELETE FROM outbox WHERE turn_id IN ({old})"),
            format!("DELETE FROM turns WHERE id IN ({old})"),
        ] {
            removed = self.run(text, args![before, TURNS]).await?;
        }
        Ok(removed)
    }
}
