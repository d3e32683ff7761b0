//! How the tasks of a thread stand, told where the platform shows it beside their messages.

use countersign_agent::domain::{ReactionMark, SessionStatus, TurnStatus};

use crate::store::{NewOutbox, OutboxOp, StoreError, TurnRow, Tx, outbox_key};

/// Tells how the task stands now, if that changed, where the platform shows it. Its rows hold up nothing else, and what was told last is how things
/// stand in the ledger, whatever dies in between.
pub(super) async fn tell_session(tx: &mut Tx, row: &mut TurnRow, before: TurnStatus, now: TurnStatus) -> Result<(), StoreError> {
    let status = SessionStatus::of(now);
    if status == SessionStatus::of(before) {
        return Ok(());
    }
    // Its end has a mark of its own.
    if row.conversation.channel.shows_typing() && status != Some(SessionStatus::Active) {
        let works = status == Some(SessionStatus::Processing);
        tx.mark_turn(row, works.then_some(ReactionMark::Working)).await?;
    }
    if !row.conversation.channel.has_sessions() {
        return Ok(());
    }
    // The platform shows one status for all tasks of a thread.
    let others = tx.statuses_beside(row).await?;
    let of_all = |own| {
        let each: Vec<_> = others.iter().copied().chain([own]).filter_map(SessionStatus::of).collect();
        let order = [SessionStatus::Processing, SessionStatus::Suspended, SessionStatus::Active];
        order.into_iter().find(|status| each.contains(status))
    };
    let Some(status) = of_all(now).filter(|status| of_all(before) != Some(*status)) else {
        return Ok(());
    };
    row.said += 1;
    let place = &row.conversation;
    let thread = [&place.app, &place.tenant, &place.chat, &place.thread].map(String::as_str);
    tx.enqueue(&NewOutbox {
        key: outbox_key(&["session", row.id.as_str(), &row.said.to_string()]),
        queue: format!("session:{}", outbox_key(&thread)),
        gate_id: None,
        turn_id: Some(row.id.clone()),
        conversation: row.conversation.clone(),
        op: OutboxOp::Session { status },
    })
    .await
}
