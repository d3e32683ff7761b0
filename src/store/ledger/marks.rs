//! The marks on a request: "seen" while somebody works on it, and in its place how that ended.

use countersign_agent::domain::{Outbound, OutboxOp, ReactionMark};

use super::Result;
use super::outbox::{NewOutbox, outbox_key};
use super::transaction::Tx;

/// The key of the mark "seen" on the message of this inbox row.
#[must_use]
pub fn seen_key(inbox_id: i64) -> String {
    outbox_key(&["inbox", &inbox_id.to_string(), "seen"])
}

impl Tx {
    /// Puts `end`, a mark, on the message of the inbox row `inbox_id`, and takes the mark "seen" away.
    pub async fn mark_ended(&mut self, inbox_id: i64, end: &NewOutbox) -> Result<()> {
        self.enqueue(end).await?;
        let OutboxOp::React { message_id, .. } = &end.op else {
            return Ok(());
        };
        let seen = seen_key(inbox_id);
        let key = outbox_key(&["take away", &seen]);
        let away = NewOutbox {
            queue: key.clone(),
            key,
            op: OutboxOp::React {
                message_id: message_id.clone(),
                content: Outbound::Reaction(ReactionMark::Seen),
                undoes: Some(seen),
            },
            ..end.clone()
        };
        self.enqueue(&away).await
    }
}
