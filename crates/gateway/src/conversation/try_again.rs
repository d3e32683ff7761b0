//! The button under a task that ended because the model's server was away: a turn of its own, of the same lane, goes on from there.

use countersign_agent::domain::handshake::{Actor, Right};
use countersign_agent::domain::{Inbound, InboundBody, Millis, Notice, TurnId};
use serde_json::json;

use crate::lanes::ended_by_outage;
use crate::store::{AuditEntry, StoreError, TurnRow, Tx};

use super::Conversations;
use super::again::LATE;
use super::api::DecideError;
use super::feedback::barrier;
use super::rights::Rights;
use super::route::QUEUE_LIMIT;

/// A turn that goes on from one that ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Retry {
    /// The new turn. It begins when the lane comes to it.
    pub(super) turn: TurnId,
    /// So many tasks of the lane come before it.
    pub(super) before: u32,
}

/// Did `turn` end in a way that lets people try it again, and no longer ago than that goes?
pub fn is_open_to_retry(turn: &TurnRow, now: Millis) -> bool {
    ended_by_outage(turn) && turn.finished_at.is_some_and(|at| now.since(at) <= LATE)
}

/// Continues `turn`. Without a new turn, the one who asks is told why. The requester stays the owner, whoever asks.
pub(super) async fn try_again(
    session: &mut Tx,
    turn: &TurnRow,
    actor: &Actor,
    rights: &Rights,
) -> Result<Result<Retry, Notice>, StoreError> {
    match rights.may_restart(actor.user.as_deref().unwrap_or_default(), &turn.user) {
        _ if actor.by_token => (),
        Right::Given(_) => (),
        Right::Unknown(groups) => return Ok(Err(Notice::GroupUnknown { groups })),
        Right::No => {
            note(session, "refused", turn, actor, None);
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
    let waiting = session.count_waiting(&turn.conversation, &turn.user).await?;
    if waiting >= i64::from(QUEUE_LIMIT) {
        return Ok(Err(Notice::QueueFull { limit: QUEUE_LIMIT }));
    }
    let queued = u32::try_from(session.queued(&turn.lane_id).await?.len()).unwrap_or(u32::MAX);
    let running = session.turn_of_lane(&turn.lane_id).await?.is_some();
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
    if !session.insert_task(&request, &turn.lane_id).await? {
        return Ok(Err(Notice::TriedBefore {}));
    }
    let retry = Retry {
        turn: turn.id.next_try(),
        before: queued.saturating_add(u32::from(running)),
    };
    note(session, "tried_again", turn, actor, Some(&retry.turn));
    Ok(Ok(retry))
}

fn note(session: &mut Tx, kind: &'static str, turn: &TurnRow, actor: &Actor, new: Option<&TurnId>) {
    let mut details = json!({ "via": actor.via, "event_id": actor.event_id });
    if let Some(new) = new {
        details["new_turn"] = json!(new);
    }
    if actor.by_token {
        details["on_behalf_of"] = json!(actor.user);
    }
    session.audit(AuditEntry {
        kind,
        turn_id: Some(turn.id.clone()),
        gate_id: None,
        action_id: None,
        principal: actor.principal.clone(),
        details,
    });
}

impl Conversations {
    /// The press `inbound` of `actor` on the button of the turn `id`; gives what they are told. `None` means
    /// that no message of ours in this chat has such a button.
    pub(super) async fn pressed_try_again(
        &self,
        session: &mut Tx,
        inbound: &Inbound,
        actor: &Actor,
        id: &TurnId,
    ) -> Result<Option<Notice>, StoreError> {
        let turn = session.turn(id).await?;
        let Some(turn) = turn.filter(|turn| inbound.conversation.may_be(&turn.conversation)) else {
            return Ok(None);
        };
        let rights = self.rights_of(session, &turn.conversation, &inbound.sender).await?;
        if let Some(barred) = barrier(&rights, inbound, &turn.conversation) {
            return Ok(Some(barred));
        }
        Ok(Some(match try_again(session, &turn, actor, &rights).await? {
            Ok(retry) => Notice::TryingAgain { before: retry.before },
            Err(notice) => notice,
        }))
    }

    /// Continues a turn that ended because the model's server was away or gave no answer in time; gives what the one who asks is told.
    pub async fn told_to_try_again(&self, id: &TurnId, user: &str, principal: &str) -> Result<Notice, DecideError> {
        let asked = self.asked_to_try_again(id, user, principal).await?;
        Ok(asked.map_or_else(|notice| notice, |retry| Notice::TryingAgain { before: retry.before }))
    }

    /// Continues a turn that ended in this way; gives the new turn, which begins when its lane comes to it.
    ///
    /// # Errors
    /// As for [`Conversations::decide_review`]; [`DecideError::NotAgain`] when nothing can be continued.
    pub async fn try_again(&self, id: &TurnId, user: &str, principal: &str) -> Result<TurnId, DecideError> {
        let asked = self.asked_to_try_again(id, user, principal).await?;
        asked.map(|retry| retry.turn).map_err(|notice| match notice {
            Notice::NotEntitled { .. } => DecideError::Forbidden,
            Notice::GroupUnknown { groups } => DecideError::GroupUnknown(groups),
            Notice::TriedBefore {} => DecideError::NotAgain("it was tried again before"),
            Notice::QueueFull { .. } => DecideError::NotAgain("too many tasks of this person wait in this chat"),
            _ => DecideError::NotAgain(
                "only a turn that ended because the model's server was away, or gave no answer in time, is tried again, within 24 hours",
            ),
        })
    }

    async fn asked_to_try_again(&self, id: &TurnId, user: &str, principal: &str) -> Result<Result<Retry, Notice>, DecideError> {
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
