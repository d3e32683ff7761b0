//! What triage says to a chat: rows of the outbox, each under a key that a second try makes again.

use countersign_agent::domain::{Conversation, InboundBody, Millis, Notice, Outbound, ReactionMark};

use crate::store::{InboxRow, NewOutbox, OutboxOp, StoreError, Tx, outbox_key};

/// Milliseconds.
const MINUTE: i64 = 60_000;

/// A word back, as a reply to the message of `row` if it has one.
pub(super) async fn tell(session: &mut Tx, row: &InboxRow, notice: Notice) -> Result<(), StoreError> {
    tell_as(session, row, notice, outbox_key(&["inbox", &row.id.to_string(), "notice"])).await
}

/// Tells one person in a chat something, at most once a minute: hundreds of messages do not get hundreds of answers.
pub(super) async fn tell_seldom(session: &mut Tx, row: &InboxRow, notice: Notice, now: Millis) -> Result<(), StoreError> {
    let place = &row.inbound.conversation;
    let key = |minute: i64| {
        let (channel, minute) = (place.channel.as_str(), minute.to_string());
        outbox_key(&[
            "seldom",
            channel,
            &place.app,
            &place.tenant,
            &place.chat,
            &row.inbound.sender,
            &minute,
        ])
    };
    let minute = now.0.div_euclid(MINUTE);
    // Within one minute of the clock the key itself allows one; this is for the two around its turn.
    let before = session.enqueued_at(&key(minute - 1)).await?;
    if before.is_some_and(|before| now.0 < before.0.saturating_add(MINUTE)) {
        return Ok(());
    }
    tell_as(session, row, notice, key(minute)).await
}

async fn tell_as(session: &mut Tx, row: &InboxRow, notice: Notice, key: String) -> Result<(), StoreError> {
    let id = row.id.to_string();
    let new = NewOutbox {
        key,
        queue: format!("inbox:{id}"),
        gate_id: None,
        turn_id: None,
        conversation: row.inbound.conversation.clone(),
        op: OutboxOp::Post {
            reply_to: message_id(row).map(str::to_owned),
            content: Outbound::Notice(notice),
        },
    };
    session.enqueue(&new).await
}

/// The mark "seen" on the message of `row`: the sign that somebody is there, seconds before the first words. It has a queue
/// of its own, so that no post waits for it.
pub(super) async fn seen(session: &mut Tx, row: &InboxRow) -> Result<(), StoreError> {
    mark(session, row, "seen", ReactionMark::Seen).await
}

/// The mark on a task that is not done after all.
pub(super) async fn dropped(session: &mut Tx, row: &InboxRow) -> Result<(), StoreError> {
    mark(session, row, "dropped", ReactionMark::Failed).await
}

async fn mark(session: &mut Tx, row: &InboxRow, name: &str, mark: ReactionMark) -> Result<(), StoreError> {
    let Some(message_id) = message_id(row) else {
        return Ok(());
    };
    let id = row.id.to_string();
    let new = NewOutbox {
        key: outbox_key(&["inbox", &id, name]),
        queue: format!("react:{id}"),
        gate_id: None,
        turn_id: None,
        conversation: row.inbound.conversation.clone(),
        op: OutboxOp::React {
            message_id: message_id.to_owned(),
            content: Outbound::Reaction(mark),
        },
    };
    session.enqueue(&new).await
}

/// Welcome, to a chat that the bot was added to.
pub(super) async fn welcome(session: &mut Tx, row: &InboxRow) -> Result<(), StoreError> {
    tell(session, row, Notice::Welcome {}).await
}

/// Does `a` lie in the same chat as `b`, in whatever thread?
pub(super) fn same_chat(a: &Conversation, b: &Conversation) -> bool {
    a.channel == b.channel && a.app == b.app && a.tenant == b.tenant && a.chat == b.chat
}

fn message_id(row: &InboxRow) -> Option<&str> {
    match &row.inbound.body {
        InboundBody::Message(message) => message.message_id.as_deref(),
        InboundBody::Click(_) | InboundBody::Recalled { .. } | InboundBody::Edited { .. } | InboundBody::Joined | InboundBody::Left => None,
    }
}
