//! What people think of an answer: the pair of buttons under it.

use countersign_agent::domain::handshake::Right;
use countersign_agent::domain::{Barrier, Conversation, FeedbackValue, Inbound, Millis, Notice, TurnId, TurnReason};

use crate::store::{StoreError, Tx};

use super::rights::Rights;

/// Notes what the sender of `press` thinks of the answer of `turn`; gives what they are told. `None` means that no message of ours in
/// this chat has such a button.
pub(super) async fn note(
    session: &mut Tx,
    press: &Inbound,
    turn: &TurnId,
    value: FeedbackValue,
    rights: impl Fn(&Conversation) -> Rights,
    now: Millis,
) -> Result<Option<Notice>, StoreError> {
    let Some(turn) = session.turn(turn).await? else {
        return Ok(None);
    };
    if !press.conversation.may_be(&turn.conversation) || turn.reason != Some(TurnReason::FinalAnswer) {
        return Ok(None);
    }
    if let Some(barred) = barrier(&rights(&turn.conversation), press, &turn.conversation) {
        return Ok(Some(barred));
    }
    session.note_feedback(&turn, &press.sender, value, now).await?;
    Ok(Some(Notice::FeedbackNoted {}))
}

/// What a person is told whom a rule of the settings keeps from being heard in `place`. `None` means no rule does.
pub(super) fn barrier(rights: &Rights, press: &Inbound, place: &Conversation) -> Option<Notice> {
    if let Some(barrier) = rights.closed(place, &press.sender_teams) {
        return Some(Notice::NotServed { barrier });
    }
    match rights.hears(&press.sender) {
        Right::Given(_) => None,
        Right::No => Some(Notice::NotServed { barrier: Barrier::Person }),
        Right::Unknown(groups) => Some(Notice::GroupUnknown { groups }),
    }
}
