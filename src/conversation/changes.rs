//! What happens to messages and chats from outside: recalled, edited, joined, left.

use countersign_agent::domain::SignalKind;
use countersign_agent::domain::handshake::Actor;
use countersign_agent::domain::{DecisionKind, Millis, Notice};

use crate::store::{InboxRow, InboxState, StoreError, Tx};

use super::rights::Rights;
use super::stop::{end_turn, open_gate};
use super::{paint, say};

/// A message was recalled: its task ends, or is dropped while it still waits. Other messages change nothing.
pub(super) async fn handle_recall(session: &mut Tx, row: &InboxRow, message_id: &str, now: Millis) -> Result<&'static str, StoreError> {
    let place = &row.inbound.conversation;
    if let Some(task) = session.waiting_message(place, message_id).await? {
        let dropped = match task.state {
            InboxState::New => session.triaged(task.id, "recalled").await?,
            InboxState::Laned => session.finish_task(task.id, "recalled").await?,
            InboxState::Done => false,
        };
        if dropped {
            return Ok("task dropped");
        }
    }
    let ids = [message_id.to_owned()];
    let turn = session.turn_by_message(place, &ids).await?;
    match turn.filter(|turn| turn.request_message.as_deref() == Some(message_id) && !turn.status.is_final()) {
        Some(turn) => {
            let actor = by_whom(row, now);
            end_turn(session, &turn, DecisionKind::Cancel, &actor).await?;
            Ok("turn cancelled")
        }
        None => Ok("not a request"),
    }
}

/// The request of an unfinished turn was edited: the turn keeps to the words it read, and its card says so.
pub(super) async fn handle_edit(
    session: &mut Tx,
    row: &InboxRow,
    message_id: &str,
    rights: &Rights,
    now: Millis,
) -> Result<&'static str, StoreError> {
    let ids = [message_id.to_owned()];
    let turn = session.turn_by_message(&row.inbound.conversation, &ids).await?;
    let Some(turn) = turn.filter(|turn| turn.request_message.as_deref() == Some(message_id) && !turn.status.is_final()) else {
        return Ok("not a request");
    };
    session.signal(&turn, SignalKind::Edited, None, Some(&row.inbound.sender)).await?;
    if let Some(gate) = open_gate(session, &turn).await?
        && let Some(record) = session.gate(&gate.id).await?
        && let Some(card) = paint::edited(session, &record, rights, now).await?
    {
        session.repaint_card(&gate, &format!("edited {}", row.id), card).await?;
    }
    Ok("edit noted")
}

/// The bot was added to the chat.
pub(super) async fn handle_join(session: &mut Tx, row: &InboxRow) -> Result<&'static str, StoreError> {
    say::tell(session, row, Notice::Welcome {}).await?;
    Ok("welcome")
}

/// The bot may not speak in the chat any more: every task there ends.
pub(super) async fn handle_leave(session: &mut Tx, row: &InboxRow, now: Millis) -> Result<&'static str, StoreError> {
    let actor = Actor::system(now);
    for turn in session.open_turns(&row.inbound.conversation).await? {
        end_turn(session, &turn, DecisionKind::Cancel, &actor).await?;
    }
    for task in session.queued_in_chat(&row.inbound.conversation).await? {
        if task.id < row.id {
            session.finish_task(task.id, "left").await?;
        }
    }
    Ok("chat left")
}

/// The one who recalled, if the platform told who it was. Not their word at the gate: we conclude it.
fn by_whom(row: &InboxRow, now: Millis) -> Actor {
    let mut actor = Actor::system(now);
    if !row.inbound.sender.is_empty() {
        actor.user = Some(row.inbound.sender.clone());
        actor.principal = actor.user.clone();
    }
    actor.event_id = Some(row.inbound.event_key.clone());
    actor
}
