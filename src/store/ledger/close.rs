//! A gate takes its one decision: the rows that still wait follow it, its card shows it, and the trail has both.

use countersign_agent::domain::handshake::Actor;
use countersign_agent::domain::{Action, ActionId, CardState, Decision, Gate, GateKind, Outbound};
use serde_json::{Value, json};

use super::{Result, Tx};
use crate::store::{AuditEntry, NewOutbox, OutboxOp, outbox_key};

impl Tx {
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
                    let details = json!({ "status": status });
                    self.audit_act("action_decision", gate, Some(&row.id), actor, details);
                }
            }
            rows = self.actions_of_gate(&gate.id).await?;
        }
        let state = CardState::Decided {
            decision: decision.clone(),
        };
        self.repaint_card(gate, "decided", gate.card.painted(state, &rows)).await?;
        let details = json!({ "kind": decision.kind, "digest": gate.digest });
        self.audit_act("decision", gate, None, actor, details);
        Ok(Some(rows))
    }

    /// Repaints the card of `gate`; `change` names what happened, so that the same change repaints once. It takes its place among
    /// the turn's own posts, so that it never overtakes or trails the turn's progress.
    pub(crate) async fn repaint_card(&mut self, gate: &Gate, change: &str, content: Outbound) -> Result<()> {
        let new = NewOutbox {
            key: outbox_key(&["repaint", gate.id.as_str(), change]),
            queue: gate.turn_id.to_string(),
            gate_id: None,
            turn_id: Some(gate.turn_id.clone()),
            conversation: gate.conversation.clone(),
            op: OutboxOp::Patch {
                target: outbox_key(&["gate", gate.id.as_str()]),
                content,
            },
        };
        self.enqueue(&new).await
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
