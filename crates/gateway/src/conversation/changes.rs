//! What happens to messages and chats from outside: recalled, edited, joined, left.

use countersign_agent::domain::SignalKind;
use countersign_agent::domain::handshake::Actor;
use countersign_agent::domain::{Addressed, DecisionKind, Inbound, InboundBody, InboundMessage, Millis, Notice, ReactionMark};

use crate::store::{InboxRow, InboxState, StoreError, Tx};

use super::commands::ChatCommand;
use super::phrases::Phrase;
use super::rights::Rights;
use super::route::TEXT_LIMIT;
use super::stop::{end_turn, open_gate, stopped};
use super::{paint, say};

/// A message was recalled: its task ends, or is dropped while it still waits. Other messages change nothing.
pub(super) async fn handle_recall(tx: &mut Tx, row: &InboxRow, message_id: &str, now: Millis) -> Result<&'static str, StoreError> {
    let place = &row.inbound.conversation;
    if let Some(task) = tx.waiting_message(place, message_id).await? {
        let dropped = match task.state {
            InboxState::New => tx.triaged(task.id, "recalled").await?,
            InboxState::Laned => tx.finish_task(task.id, "recalled").await?,
            InboxState::Done => false,
        };
        if dropped {
            return Ok("task dropped");
        }
    }
    let ids = [message_id.to_owned()];
    let turn = tx.turn_by_message(place, &ids).await?;
    match turn.filter(|turn| turn.request_message.as_deref() == Some(message_id) && !turn.status.is_final()) {
        Some(turn) => {
            let actor = by_whom(row, now);
            end_turn(tx, &turn, DecisionKind::Cancel, &actor).await?;
            Ok("turn cancelled")
        }
        None => Ok("not a request"),
    }
}

/// A request was edited. One that waits in its lane gets the new words. A turn keeps to the words that it read, and its card says so.
pub(super) async fn handle_edit(
    tx: &mut Tx,
    row: &InboxRow,
    message_id: &str,
    new: Option<&InboundMessage>,
    rights: &Rights,
    now: Millis,
) -> Result<&'static str, StoreError> {
    // What its author said before was looked at before this: a message that is no task by now becomes none by an edit.
    if let Some(new) = new
        && let Some(task) = tx.waiting_message(&row.inbound.conversation, message_id).await?
        && let InboundBody::Message(old) = &task.inbound.body
        && task.state == InboxState::Laned
        && task.inbound.sender == row.inbound.sender
    {
        return reword(tx, row, &task, old, new).await;
    }
    let ids = [message_id.to_owned()];
    let turn = tx.turn_by_message(&row.inbound.conversation, &ids).await?;
    let Some(turn) = turn.filter(|turn| turn.request_message.as_deref() == Some(message_id) && !turn.status.is_final()) else {
        return Ok("not a request");
    };
    tx.signal(&turn, SignalKind::Edited, None, Some(&row.inbound.sender)).await?;
    if let Some(gate) = open_gate(tx, &turn).await?
        && let Some(record) = tx.gate(&gate.id).await?
        && let Some(card) = paint::edited(tx, &record, rights, now).await?
    {
        tx.repaint_card(&gate, &format!("edited {}", row.id), card).await?;
    }
    Ok("edit noted")
}

/// Gives `task`, which waits, the words of `new` in the place of those of `old`. It was said to us, whomever the new words mention. Without
/// words it is dropped. What is no task, or is not read whole, changes nothing.
async fn reword(
    tx: &mut Tx,
    row: &InboxRow,
    task: &InboxRow,
    old: &InboundMessage,
    new: &InboundMessage,
) -> Result<&'static str, StoreError> {
    // Edits may arrive in any order: a task has the time of the last one that counted.
    if row.inbound.at < task.inbound.at {
        return Ok("an earlier edit");
    }
    if new.truncated {
        say::tell_of(tx, row, task, Notice::TooLong { limit: TEXT_LIMIT }).await?;
        return Ok("too long");
    }
    let bot = tx.fact(&row.inbound.conversation.bot_fact()).await?.unwrap_or_default();
    let said = Addressed {
        to_bot: true,
        ..new.addressed(&bot)
    };
    match ChatCommand::parse(&said) {
        None | Some(ChatCommand::New | ChatCommand::Plan) => (),
        Some(
            ChatCommand::Stop
            | ChatCommand::Status
            | ChatCommand::Away
            | ChatCommand::Back
            | ChatCommand::Grants
            | ChatCommand::Revoke(_)
            | ChatCommand::Help,
        ) => return Ok("an edit is no command"),
    }
    if new.attachment_only || said.task().is_empty() || Phrase::of(&said, false) == Phrase::Ignore {
        if tx.finish_task(task.id, "emptied").await? {
            say::mark(tx, task, ReactionMark::Failed).await?;
            say::tell_of(tx, row, task, stopped(paint::brief(&old.unaddressed("").text))).await?;
        }
        return Ok("task dropped");
    }
    let body = InboundMessage {
        message_id: old.message_id.clone(),
        chat_type: old.chat_type,
        to_bot: old.to_bot,
        replies_to: old.replies_to.clone(),
        ..new.clone()
    };
    let inbound = Inbound {
        at: row.inbound.at,
        body: InboundBody::Message(body),
        ..task.inbound.clone()
    };
    tx.reword_task(task.id, &inbound).await?;
    Ok("task reworded")
}

/// The bot was added to the chat.
pub(super) async fn handle_join(tx: &mut Tx, row: &InboxRow) -> Result<&'static str, StoreError> {
    say::tell(tx, row, Notice::Welcome {}).await?;
    Ok("welcome")
}

/// The bot may not speak in the chat any more: every task there ends.
pub(super) async fn handle_leave(tx: &mut Tx, row: &InboxRow, now: Millis) -> Result<&'static str, StoreError> {
    let actor = Actor::system(now);
    for turn in tx.open_turns(&row.inbound.conversation).await? {
        end_turn(tx, &turn, DecisionKind::Cancel, &actor).await?;
    }
    for task in tx.queued_in_chat(&row.inbound.conversation).await? {
        if task.id < row.id {
            tx.finish_task(task.id, "left").await?;
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
