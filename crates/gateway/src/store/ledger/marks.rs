//! The marks on a request: "seen" while somebody works on it, and in its place how that ended.
//!
//! Where the mark shows somebody who types, it is there only while the task is worked on. It is put there and taken away by rows of one queue,
//! each of which waits for those before it: it is never there twice, and the last row says how the task stands, whatever dies in between.

use std::collections::HashMap;

use countersign_agent::domain::{Conversation, Outbound, OutboxOp, ReactionMark, TurnId};

use super::Result;
use super::outbox::{NewOutbox, outbox_key};
use super::sql::args;
use super::transaction::Tx;
use super::turns::TurnRow;

/// The key of the mark "seen" on the message of this inbox row.
#[must_use]
pub fn seen_key(inbox_id: i64) -> String {
    outbox_key(&["inbox", &inbox_id.to_string(), "seen"])
}

/// The newest mark "seen" of a request.
struct SeenMark {
    key: String,
    /// It shows that the request is worked on.
    working: bool,
    /// Nothing takes it away so far.
    stays: bool,
}

impl Tx {
    /// Puts `end`, a mark, on the message of the inbox row `inbox_id`, and takes the mark "seen" away.
    pub async fn mark_ended(&mut self, inbox_id: i64, end: &NewOutbox) -> Result<()> {
        self.enqueue(end).await?;
        let OutboxOp::React { message_id, .. } = &end.op else {
            return Ok(());
        };
        let seen = self.seen_mark(inbox_id, end.turn_id.as_ref()).await?;
        let place = Place {
            inbox_id,
            turn_id: end.turn_id.clone(),
            conversation: &end.conversation,
            message_id,
        };
        self.enqueue(&place.away(seen.key)).await
    }

    /// Shows on the request of a turn whether it is worked on now: a mark that shows something else goes.
    pub async fn mark_working(&mut self, row: &TurnRow, working: bool) -> Result<()> {
        let Some(message_id) = &row.request_message else { return Ok(()) };
        let seen = self.seen_mark(row.inbox_id, Some(&row.id)).await?;
        let place = Place {
            inbox_id: row.inbox_id,
            turn_id: Some(row.id.clone()),
            conversation: &row.conversation,
            message_id,
        };
        if seen.stays && seen.working == working {
            return Ok(());
        }
        if seen.stays {
            self.enqueue(&place.away(seen.key.clone())).await?;
        }
        if working {
            self.enqueue(&place.typing(&seen.key)).await?;
        }
        Ok(())
    }

    /// The last link of the chain: each key is made from the one before.
    async fn seen_mark(&mut self, inbox_id: i64, turn: Option<&TurnId>) -> Result<SeenMark> {
        let first = seen_key(inbox_id);
        let rows = self
            .all(
                "SELECT key, body FROM outbox WHERE key = $1 OR (turn_id = $2 AND queue = $3 AND op = 'react' AND target IS NULL)",
                args![&first, turn, queue(inbox_id)],
            )
            .await?;
        let mut known = HashMap::new();
        for row in &rows {
            let working = matches!(row.json("body")?, OutboxOp::React { working: true, .. });
            known.insert(row.text("key")?, working);
        }
        let there = known.remove(&first);
        let (mut key, mut working) = (first, there.unwrap_or(false));
        let mut is_there = there.is_some();
        while let Some(shows) = known.remove(&typing_key(&key)) {
            (key, working, is_there) = (typing_key(&key), shows, true);
        }
        let stays = is_there && self.enqueued_at(&away_key(&key)).await?.is_none();
        Ok(SeenMark { key, working, stays })
    }
}

/// All marks "seen" of a request are one queue.
fn queue(inbox_id: i64) -> String {
    format!("react:{inbox_id}")
}

/// The key of the mark after this one.
fn typing_key(before: &str) -> String {
    outbox_key(&["typing", before])
}

fn away_key(mark: &str) -> String {
    outbox_key(&["take away", mark])
}

/// The request that is marked.
struct Place<'a> {
    inbox_id: i64,
    turn_id: Option<TurnId>,
    conversation: &'a Conversation,
    message_id: &'a str,
}

impl Place<'_> {
    fn row(&self, key: String, undoes: Option<String>, working: bool) -> NewOutbox {
        NewOutbox {
            key,
            queue: queue(self.inbox_id),
            gate_id: None,
            turn_id: self.turn_id.clone(),
            conversation: self.conversation.clone(),
            op: OutboxOp::React {
                message_id: self.message_id.to_owned(),
                content: Outbound::Reaction(ReactionMark::Seen),
                undoes,
                working,
            },
        }
    }

    /// Takes the mark with this key away.
    fn away(&self, mark: String) -> NewOutbox {
        self.row(away_key(&mark), Some(mark), false)
    }

    /// The mark after the one with the key `before`.
    fn typing(&self, before: &str) -> NewOutbox {
        self.row(typing_key(before), None, true)
    }
}
