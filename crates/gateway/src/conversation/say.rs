//! What triage says to a chat: rows of the outbox, each under a key that a second try makes again.

use countersign_agent::domain::handshake::Act;
use countersign_agent::domain::{Conversation, Gate, GateKind, Millis, Notice, Outbound, ReactionMark};

use crate::store::{InboxRow, NewOutbox, OutboxOp, StoreError, Tx, outbox_key};

/// How long the same word back is not said to a person again, in milliseconds; and that the queue is full.
const SELDOM: i64 = 5_000;
const MINUTE: i64 = 60_000;
/// Characters of words that may have been meant as a yes.
const FEW: usize = 12;

/// A word back, as a reply to the message of `row` if it has one.
pub(super) async fn tell(tx: &mut Tx, row: &InboxRow, notice: Notice) -> Result<(), StoreError> {
    tell_as(tx, row, notice, outbox_key(&["inbox", &row.id.to_string(), "notice"])).await
}

/// A word back about `task`, which `row` changed: as a reply to the message of the task.
pub(super) async fn tell_of(tx: &mut Tx, row: &InboxRow, task: &InboxRow, notice: Notice) -> Result<(), StoreError> {
    tell_as(tx, task, notice, outbox_key(&["inbox", &row.id.to_string(), "notice"])).await
}

/// Tells one person in a chat the same thing at most once in five seconds: hundreds of messages do not get hundreds of answers.
pub(super) async fn tell_seldom(tx: &mut Tx, row: &InboxRow, notice: Notice, now: Millis) -> Result<(), StoreError> {
    let place = &row.inbound.conversation;
    let kind = kind(&notice);
    let pause = match notice {
        Notice::QueueFull { .. } => MINUTE,
        _ => SELDOM,
    };
    let key = |span: i64| {
        outbox_key(&[
            "seldom",
            place.channel.as_str(),
            &place.app,
            &place.tenant,
            &place.chat,
            &row.inbound.sender,
            &kind,
            &span.to_string(),
        ])
    };
    let span = now.0.div_euclid(pause);
    // Within one span of the clock the key itself allows one; this is for the two around its turn.
    let before = tx.enqueued_at(&key(span - 1)).await?;
    if before.is_some_and(|before| now.0 < before.0.saturating_add(pause)) {
        return Ok(());
    }
    tell_as(tx, row, notice, key(span)).await
}

/// What makes two words back the same thing. What the person chose freely does not count, or each would be another thing.
fn kind(notice: &Notice) -> String {
    match notice {
        Notice::NoSuchGrant { .. } => notice.key(),
        Notice::Away { deputy, changed, .. } => format!("{} {deputy} {changed}", notice.key()),
        _ => serde_json::to_string(notice).unwrap_or_default(),
    }
}

/// The hint that a few words to a plan get, once for each gate and person, before such words cost a round: they may have been meant as a
/// yes. Gives `false` where they count as changes.
pub(super) async fn hint(tx: &mut Tx, row: &InboxRow, gate: &Gate, act: &Act) -> Result<bool, StoreError> {
    let Act::Revise(words) = act else { return Ok(false) };
    if gate.kind != GateKind::PlanReview || words.trim().chars().count() > FEW {
        return Ok(false);
    }
    let key = outbox_key(&["hint", gate.id.as_str(), &row.inbound.sender]);
    if tx.enqueued_at(&key).await?.is_some() {
        return Ok(false);
    }
    tell_as(tx, row, Notice::FewWords {}, key).await?;
    Ok(true)
}

async fn tell_as(tx: &mut Tx, row: &InboxRow, notice: Notice, key: String) -> Result<(), StoreError> {
    let op = OutboxOp::Post {
        reply_to: row.inbound.body.message_id().map(str::to_owned),
        content: Outbound::Notice(notice),
    };
    let new = NewOutbox {
        key,
        queue: format!("inbox:{}", row.id),
        gate_id: None,
        turn_id: None,
        conversation: row.inbound.conversation.clone(),
        op,
    };
    tx.enqueue(&new).await
}

/// Marks the message of `row`, if it has one. "Seen" is the sign that somebody is there, seconds before the first words.
pub(super) async fn mark(tx: &mut Tx, row: &InboxRow, mark: ReactionMark) -> Result<(), StoreError> {
    match row.inbound.body.message_id() {
        Some(message) => tx.mark_request(row.id, None, &row.inbound.conversation, message, Some(mark)).await,
        None => Ok(()),
    }
}

/// Does `a` lie in the same chat as `b`, in whatever thread?
pub(super) fn same_chat(a: &Conversation, b: &Conversation) -> bool {
    a.channel == b.channel && a.app == b.app && a.tenant == b.tenant && a.chat == b.chat
}
