//! Votes and decisions of gates, and what follows a decision: the rows that still wait, the card, and the trail.
//! They are unique rows that need no lease, so that no answer waits for a running turn.

use countersign_agent::domain::handshake::Actor;
use countersign_agent::domain::{Action, ActionId, AskedAgain, CardState, Decision, DecisionKind, Gate, GateId, GateKind, Millis, Vote};
use serde_json::{Value, json};

use super::Result;
use super::arg::args;
use super::audit::AuditEntry;
use super::gates::GateRecord;
use super::sql::{Row, encode};
use super::transaction::{Read, Tx};
use super::wakeups::CountedEnd;
use crate::store::coordination::ReviewChange;
use crate::store::keys;

impl Read {
    /// The approvals of a gate, oldest first.
    pub(super) async fn votes(&mut self, gate: &GateId) -> Result<Vec<Vote>> {
        let rows = self
            .all(
                "SELECT body, principal FROM votes WHERE gate_id = $1 ORDER BY at, person",
                args![gate.as_str()],
            )
            .await?;
        // Bodies of earlier versions do not tell by whom the API was used; the column does.
        let vote = |row: &Row| {
            let vote: Vote = row.json("body")?;
            let principal = row.get("principal")?;
            Ok(Vote {
                principal: vote.principal.or(principal),
                ..vote
            })
        };
        rows.iter().map(vote).collect()
    }

    /// The decision of a gate, and who had its plan asked for again since.
    pub(super) async fn decision(&mut self, gate: &GateId) -> Result<(Option<Decision>, Option<AskedAgain>)> {
        let row = self
            .maybe("SELECT body, asked_again FROM decisions WHERE gate_id = $1", args![gate.as_str()])
            .await?;
        let Some(row) = row else { return Ok((None, None)) };
        let asked = match row.get::<Option<String>>("asked_again")? {
            Some(_) => Some(row.json("asked_again")?),
            None => None,
        };
        Ok((Some(row.json("body")?), asked))
    }
}

impl Tx {
    /// Adds a vote, once per row and person. Gives `false` when an earlier one stands. Of two that exclude each other the higher one stands
    /// ([`Vote::outranks`]).
    pub async fn vote(&mut self, gate: &GateId, vote: &Vote) -> Result<bool> {
        let mut excluded = self.votes(gate).await?;
        excluded.retain(|earlier| vote.excludes(earlier));
        if excluded.iter().any(|earlier| !vote.outranks(earlier)) {
            return Ok(false);
        }
        for earlier in &excluded {
            self.run(
                "DELETE FROM votes WHERE gate_id = $1 AND person = $2",
                args![gate.as_str(), keys::voter_key(earlier)],
            )
            .await?;
        }
        let added = self
            .run(
                "INSERT INTO votes (gate_id, person, at, body, principal) VALUES ($1, $2, $3, $4, $5)
                 ON CONFLICT (gate_id, person) DO NOTHING",
                args![
                    gate.as_str(),
                    keys::voter_key(vote),
                    vote.at.0,
                    encode(vote)?,
                    vote.principal.as_deref()
                ],
            )
            .await?;
        self.mark_unsealed(gate);
        Ok(added > 0)
    }

    /// Settles a gate once and wakes its lane. Gives `false` when it was settled before.
    pub async fn decide(&mut self, gate: &Gate, decision: &Decision) -> Result<bool> {
        let first = self
            .run(
                "INSERT INTO decisions (gate_id, kind, at, body) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
                args![gate.id.as_str(), decision.kind.as_str(), decision.at.0, encode(decision)?],
            )
            .await?;
        if first == 0 {
            return Ok(false);
        }
        self.mark_unsealed(&gate.id);
        self.run(
            "UPDATE gates SET status = $1, closed_at = $2 WHERE id = $3",
            args![closed(decision.kind), decision.at.0, gate.id.as_str()],
        )
        .await?;
        self.drop_reminders(&gate.id).await?;
        self.drop_direct_cards(&gate.id).await?;
        self.tell_redis(|_| Ok(ReviewChange::remove(gate)))?;
        self.wake_lane(&gate.lane_id).await?;
        self.effects.ends.push(CountedEnd::Gate {
            gate: gate.kind,
            kind: decision.kind,
            via: decision.via,
            waited: decision.at.since(gate.opened_at),
        });
        Ok(true)
    }

    /// Notes who had the plan of an expired review asked for again. Gives `false` when somebody was first: one new review follows, whoever
    /// presses how often.
    pub async fn mark_asked_again(&mut self, gate: &GateId, asked: &AskedAgain) -> Result<bool> {
        let first = self
            .run(
                "UPDATE decisions SET asked_again = $1 WHERE gate_id = $2 AND kind = 'expire' AND asked_again IS NULL",
                args![encode(asked)?, gate.as_str()],
            )
            .await?;
        self.mark_unsealed(gate);
        Ok(first > 0)
    }

    /// Closes `gate`, whose time is over, and gives it as it is then. The stored decision counts, even if somebody was faster.
    pub(crate) async fn lapse_gate(&mut self, gate: &Gate, now: Millis) -> Result<GateRecord> {
        let actor = Actor::system(now);
        self.close_gate(gate, &actor.decision(DecisionKind::Expire, None), &actor).await?;
        self.gate_now(&gate.id).await
    }

    /// Gives `gate` the decision of `actor`; what comes back are its rows as they stand then. `None`: somebody was first.
    pub(crate) async fn close_gate(&mut self, gate: &Gate, decision: &Decision, actor: &Actor) -> Result<Option<Vec<Action>>> {
        if !self.decide(gate, decision).await? {
            return Ok(None);
        }
        let mut rows = Vec::new();
        if gate.kind == GateKind::ToolApproval {
            let status = decision.kind.of_open_rows();
            for row in self.actions_of_gate(&gate.id).await? {
                if row.status.waits() && self.decide_action(&row.id, status, decision).await? {
                    let details = json!({ "status": status, "in_place_of": decision.in_place_of });
                    self.audit_act("action_decision", gate, Some(&row.id), actor, details);
                }
            }
            rows = self.actions_of_gate(&gate.id).await?;
        }
        let state = CardState::Decided {
            decision: decision.clone(),
        };
        self.repaint_card(gate, "decided", gate.card.painted(state, &rows)).await?;
        let details = json!({ "kind": decision.kind, "digest": gate.digest, "in_place_of": decision.in_place_of });
        self.audit_act("decision", gate, None, actor, details);
        Ok(Some(rows))
    }

    /// Adds `kind` to the trail, with who did it and the evidence.
    pub(crate) fn audit_act(&mut self, kind: &'static str, gate: &Gate, action: Option<&ActionId>, actor: &Actor, mut details: Value) {
        details["via"] = json!(actor.via);
        details["event_id"] = json!(actor.event_id);
        if actor.by_token {
            details["on_behalf_of"] = json!(actor.user);
        }
        self.audit(AuditEntry {
            kind,
            turn_id: Some(gate.turn_id.clone()),
            gate_id: Some(gate.id.clone()),
            action_id: action.cloned(),
            principal: actor.principal.clone(),
            details,
        });
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
