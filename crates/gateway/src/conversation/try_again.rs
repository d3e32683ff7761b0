//! The button under a task that ended because the model's server was away: a turn of its own, of the same lane, goes on from there.

use countersign_agent::domain::handshake::{Actor, Right};
use countersign_agent::domain::{Inbound, InboundBody, Millis, Notice, TurnId};
use serde_json::json;

use crate::lanes::ended_by_outage;
use crate::store::{AuditEntry, StoreError, TurnRow, Tx};

use super::Conversations;
use super::again::LATE;
use super::api::DecideError;
use super::rights::Rights;
use super::route::QUEUE_LIMIT;

/// A turn that goes on from one that ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retry {
    /// The new turn. It begins when the lane comes to it.
    pub turn: TurnId,
    /// So many tasks of the lane come before it.
    before: u32,
}

impl Retry {
    /// For the one who asked for it.
    pub fn notice(&self) -> Notice {
        Notice::TryingAgain { before: self.before }
    }
}

/// Did `turn` end in a way that lets people try it again, and no longer ago than that goes?
pub fn is_open_to_retry(turn: &TurnRow, now: Millis) -> bool {
    ended_by_outage(turn) && turn.finished_at.is_some_and(|at| now.since(at) <= LATE)
}

/// Continues `turn`. Without a new turn, the one who asks is told why. The requester stays the owner, whoever asks.
pub(super) async fn try_again(tx: &mut Tx, turn: &TurnRow, actor: &Actor, rights: &Rights) -> Result<Result<Retry, Notice>, StoreError> {
    match rights.may_restart(actor.user.as_deref().unwrap_or_default(), &turn.user) {
        _ if actor.by_token => (),
        Right::Given(_) => (),
        Right::Unknown(groups) => return Ok(Err(Notice::GroupUnknown { groups })),
        Right::No => {
            note(tx, "refused", turn, actor, None);
            let requester = turn.user.clone();
            return Ok(Err(Notice::NotEntitled { requester }));
        }
    }
    if !ended_by_outage(turn) {
        return Ok(Err(Notice::UnknownReview {}));
    }
    if !is_open_to_retry(turn, actor.now) {
        return Ok(Err(Notice::TooOldToTry {}));
    }
    let waiting = tx.count_waiting(&turn.conversation, &turn.user).await?;
    if waiting >= i64::from(QUEUE_LIMIT) {
        return Ok(Err(Notice::QueueFull { limit: QUEUE_LIMIT }));
    }
    let queued = u32::try_from(tx.queued(&turn.lane_id).await?.len()).unwrap_or(u32::MAX);
    let running = tx.turn_of_lane(&turn.lane_id).await?.is_some();
    let request = Inbound {
        event_key: turn.id.to_string(),
        message_key: None,
        conversation: turn.conversation.clone(),
        sender: turn.user.clone(),
        sender_teams: Vec::new(),
        at: actor.now,
        body: InboundBody::TryAgain {
            turn: turn.id.clone(),
            message_id: turn.request_message.clone(),
        },
    };
    if !tx.insert_task(&request, &turn.lane_id).await? {
        return Ok(Err(Notice::TriedBefore {}));
    }
    let retry = Retry {
        turn: turn.id.next_try(),
        before: queued.saturating_add(u32::from(running)),
    };
    note(tx, "tried_again", turn, actor, Some(&retry.turn));
    Ok(Ok(retry))
}

fn note(tx: &mut Tx, kind: &'static str, turn: &TurnRow, actor: &Actor, new: Option<&TurnId>) {
    let mut details = json!({ "via": actor.via, "event_id": actor.event_id });
    if let Some(new) = new {
        details["new_turn"] = json!(new);
    }
    if actor.by_token {
        details["on_behalf_of"] = json!(actor.user);
    }
    tx.audit(AuditEntry {
        kind,
        turn_id: Some(turn.id.clone()),
        gate_id: None,
        action_id: None,
        principal: actor.principal.clone(),
        details,
    });
}

impl Conversations {
    /// Continues a turn that ended because the model's server was away or gave no answer in time. Without a new turn, the one who asks is told why.
    ///
    /// # Errors
    /// As for [`Conversations::decide_review`].
    pub async fn try_again(&self, id: &TurnId, user: &str, principal: &str) -> Result<Result<Retry, Notice>, DecideError> {
        let mut tx = self.begin_at(id).await?;
        let turn = tx.turn(id).await?.ok_or(DecideError::NotFound)?;
        let actor = self.api_actor(turn.conversation.channel, user, principal);
        let rights = self
            .rights_of(&mut tx, &turn.conversation, actor.user.as_deref().unwrap_or_default())
            .await?;
        let asked = try_again(&mut tx, &turn, &actor, &rights).await?;
        // A refusal is in the trail, too.
        tx.commit().await?;
        Ok(asked)
    }
}
