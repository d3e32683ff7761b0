//! Votes and decisions: unique rows that need no lease, so that no answer waits for a running turn.

use countersign_agent::domain::{Decision, DecisionKind, Gate, GateId, Vote};

use super::sql::{Columns, encode};
use super::wakeups::Settled;
use super::{Read, Result, Tx};
use crate::store::coordination::Change;
use crate::store::keys;

impl Read {
    /// The approvals of a gate, oldest first.
    pub(super) async fn votes(&mut self, gate: &GateId) -> Result<Vec<Vote>> {
        let rows = sqlx::query("SELECT body, principal FROM votes WHERE gate_id = $1 ORDER BY at, person")
            .bind(gate.as_str())
            .fetch_all(&mut *self.conn)
            .await?;
        // Bodies of earlier versions do not tell by whom the API was used; the column does.
        let vote = |row| {
            let vote: Vote = Columns::json(row, "body")?;
            let principal = Columns::maybe_text(row, "principal")?;
            Ok(Vote {
                principal: vote.principal.or(principal),
                ..vote
            })
        };
        rows.iter().map(vote).collect()
    }

    /// The decision of a gate.
    pub(super) async fn decision(&mut self, gate: &GateId) -> Result<Option<Decision>> {
        sqlx::query("SELECT body FROM decisions WHERE gate_id = $1")
            .bind(gate.as_str())
            .fetch_optional(&mut *self.conn)
            .await?
            .map(|row| row.json("body"))
            .transpose()
    }
}

impl Tx {
    /// Adds a vote, once per person; false: an earlier one stands. A person's own vote takes the place of one that the API gave in
    /// their name.
    pub async fn vote(&mut self, gate: &GateId, vote: &Vote) -> Result<bool> {
        let added = sqlx::query(
            "INSERT INTO votes (gate_id, person, at, body, principal) VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT (gate_id, person) DO UPDATE SET at = excluded.at, body = excluded.body, principal = NULL
               WHERE votes.principal IS NOT NULL AND excluded.principal IS NULL",
        )
        .bind(gate.as_str())
        .bind(keys::voter_key(&vote.by))
        .bind(vote.at.0)
        .bind(encode(vote)?)
        .bind(vote.principal.as_deref())
        .execute(&mut *self.conn)
        .await?;
        self.mark_unsealed(gate);
        Ok(added.rows_affected() > 0)
    }

    /// Settles a gate once and wakes its lane; false: it was settled before.
    pub async fn decide(&mut self, gate: &Gate, decision: &Decision) -> Result<bool> {
        let first = sqlx::query("INSERT INTO decisions (gate_id, kind, at, body) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING")
            .bind(gate.id.as_str())
            .bind(decision.kind.as_str())
            .bind(decision.at.0)
            .bind(encode(decision)?)
            .execute(&mut *self.conn)
            .await?;
        if first.rows_affected() == 0 {
            return Ok(false);
        }
        self.mark_unsealed(&gate.id);
        sqlx::query("UPDATE gates SET status = $1, closed_at = $2 WHERE id = $3")
            .bind(closed(decision.kind))
            .bind(decision.at.0)
            .bind(gate.id.as_str())
            .execute(&mut *self.conn)
            .await?;
        self.tell_redis(|_| Ok(Change::remove(gate)))?;
        self.wake_lane(&gate.lane_id).await?;
        self.touched.settled.push(Settled::Gate {
            gate: gate.kind,
            kind: decision.kind,
            via: decision.via,
            waited: decision.at.since(gate.opened_at),
        });
        Ok(true)
    }
}

/// Status of a closed gate, as the API's lists name it.
fn closed(kind: DecisionKind) -> &'static str {
    match kind {
        DecisionKind::Approve => "approved",
        DecisionKind::Revise => "revised",
        DecisionKind::Cancel => "cancelled",
        DecisionKind::Reject => "rejected",
        DecisionKind::Expire => "expired",
        DecisionKind::Supersede => "superseded",
    }
}
