//! The button of an expired review: its plan waits anew, in a turn of its own of the same lane, without a call of the model.

use std::time::Duration;

use countersign_agent::domain::handshake::Actor;
use countersign_agent::domain::{AskedAgain, DecisionKind, GateKind, Inbound, InboundBody, Notice};
use serde_json::json;

use crate::lanes::plan_of;
use crate::store::{GateRecord, StoreError, Tx};

use super::notices::asked_before;
use super::paint;
use super::route::QUEUE_LIMIT;

/// For this long after a gate closed, a listed word is still taken as an answer to it, and the plan of an expired review can be asked for
/// again.
pub(super) const LATE: Duration = Duration::from_hours(24);

/// May the plan of this closed gate be asked for again at all?
pub(super) fn has_button(record: &GateRecord) -> bool {
    let expired = record
        .decision
        .as_ref()
        .is_some_and(|decision| decision.kind == DecisionKind::Expire);
    expired && record.gate.kind == GateKind::PlanReview
}

/// Asks for the plan of `record`, an expired review, again; gives what to tell the one who did. The requester stays the owner of the new turn,
/// whoever asks. `reviews`: plans are reviewed in this channel.
pub(super) async fn ask_again(tx: &mut Tx, record: &GateRecord, actor: &Actor, reviews: bool) -> Result<Notice, StoreError> {
    let gate = &record.gate;
    if let Some(first) = &record.asked_again {
        return Ok(asked_before(first));
    }
    let closed_at = record.decision.as_ref().map_or(gate.expires_at, |decision| decision.at);
    if actor.now.since(closed_at) > LATE {
        return Ok(Notice::TooOldToAsk {});
    }
    if !reviews {
        return Ok(Notice::NoReviews {});
    }
    let turn = tx.turn(&gate.turn_id).await?;
    let plan = turn.as_ref().and_then(plan_of);
    // A plan of an earlier version may have another digest by now: nobody would be asked for the same.
    if plan.is_none_or(|plan| plan.digest() != gate.digest) {
        return Ok(Notice::UnknownReview {});
    }
    let waiting = tx.count_waiting(&gate.conversation, &gate.requester).await?;
    if waiting >= i64::from(QUEUE_LIMIT) {
        return Ok(Notice::QueueFull { limit: QUEUE_LIMIT });
    }
    let before = tasks_before(tx, record).await?;
    let asked = AskedAgain {
        by: actor.user.clone().unwrap_or_default(),
        through_api: actor.by_token,
        at: actor.now,
        event_id: actor.event_id.clone(),
    };
    if !tx.mark_asked_again(&gate.id, &asked).await? {
        let first = tx.gate(&gate.id).await?.and_then(|record| record.asked_again);
        return Ok(first.as_ref().map_or(Notice::UnknownReview {}, asked_before));
    }
    let request = Inbound {
        event_key: gate.id.to_string(),
        message_key: None,
        conversation: gate.conversation.clone(),
        sender: gate.requester.clone(),
        sender_teams: Vec::new(),
        at: actor.now,
        body: InboundBody::Again {
            review: gate.id.clone(),
            message_id: gate.request_message.clone(),
        },
    };
    tx.insert_task(&request, &gate.lane_id).await?;
    if let Some(decision) = &record.decision {
        let card = paint::decided(&gate.card, decision, Some(&asked), &[]);
        tx.repaint_card(gate, "asked again", card).await?;
    }
    tx.audit_act("asked_again", gate, None, actor, json!({ "digest": gate.digest }));
    Ok(Notice::AskingAgain { before })
}

/// How many tasks of the lane come before one that is added now. The turn of `record` is over, or ends as soon as it is looked at.
async fn tasks_before(tx: &mut Tx, record: &GateRecord) -> Result<u32, StoreError> {
    let lane = &record.gate.lane_id;
    let queued = tx.queued(lane).await?.len();
    let running = tx.turn_of_lane(lane).await?.is_some_and(|turn| turn != record.gate.turn_id);
    Ok(u32::try_from(queued).unwrap_or(u32::MAX).saturating_add(u32::from(running)))
}
