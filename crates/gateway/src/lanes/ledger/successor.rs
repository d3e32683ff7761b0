//! A review that takes the place of an earlier one of its turn: what it takes over, and what the earlier card says from now on.

use countersign_agent::domain::{CardState, DecisionKind, FollowUp, Gate, Outbound, PlanWords, Vote};
use serde_json::json;

use crate::store::{AuditEntry, GateRecord, StoreError, Tx};

/// `gate` takes the place of `older`, whose card says from now on what came of the words that settled it. They were a question if the plan
/// is the same: then those who have approved it have approved this.
pub(super) async fn succeed(tx: &mut Tx, older: &GateRecord, gate: &mut Gate, escalate_to: &[String]) -> Result<(), StoreError> {
    let Some(decision) = older.decision.as_ref().filter(|decision| decision.kind == DecisionKind::Revise) else {
        return Ok(());
    };
    let asked = gate.asks_the_same(&older.gate);
    if asked {
        gate.replaces = Some(older.gate.id.clone());
        // Whether all of them may still approve is asked when the next vote comes, as on every card.
        let votes = u32::try_from(Vote::approvers(&older.votes, |_| true).len()).unwrap_or(u32::MAX);
        gate.card = gate.card.painted(CardState::Open { votes }, &[]);
        // They were asked, and may decide what is the same. Its reminder comes anew, as its time does.
        gate.follow_up = FollowUp {
            reminded_at: None,
            ..older.gate.follow_up.clone()
        };
        // Whom the administrator took off the list gets no new card.
        gate.follow_up.escalated_to.retain(|id| escalate_to.contains(id));
    }
    let Outbound::PlanCard(mut card) = older.gate.card.painted(
        CardState::Decided {
            decision: decision.clone(),
        },
        &[],
    ) else {
        return Ok(());
    };
    card.words = if asked { PlanWords::Question } else { PlanWords::Changes };
    tx.repaint_card(&older.gate, "understood", Outbound::PlanCard(card)).await
}

/// Those who have approved at `older` have approved at `gate`, each with their own evidence.
pub(super) async fn carry_votes(tx: &mut Tx, older: &GateRecord, gate: &Gate) -> Result<(), StoreError> {
    for vote in &older.votes {
        tx.vote(&gate.id, vote).await?;
        let mut details = json!({
            "digest": gate.digest, "via": vote.via, "event_id": vote.event_id, "given_at": older.gate.id, "in_place_of": vote.in_place_of,
        });
        if vote.principal.is_some() {
            details["on_behalf_of"] = json!(vote.by);
        }
        tx.audit(AuditEntry {
            kind: "vote",
            turn_id: Some(gate.turn_id.clone()),
            gate_id: Some(gate.id.clone()),
            action_id: None,
            principal: vote.principal.clone().or_else(|| Some(vote.by.clone())),
            details,
        });
    }
    Ok(())
}
