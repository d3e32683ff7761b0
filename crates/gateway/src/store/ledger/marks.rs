//! The mark on a request is a state. The newest replaces those that still wait. One that is delivered takes the place of the newest that was
//! sent, whatever died in between.

use countersign_agent::domain::{Conversation, OutboxOp, ReactionMark, TurnId};

use super::Result;
use super::arg::args;
use super::outbox::{NewOutbox, mark_target, outbox_key};
use super::sql::Row;
use super::transaction::Tx;
use super::turns::TurnRow;

impl Tx {
    /// From now on a message has this mark alone, also when a later inbox row asked for the same message once more. `inbox_id`: of the row
    /// that is marked.
    pub async fn mark_request(
        &mut self,
        inbox_id: i64,
        turn_id: Option<&TurnId>,
        conversation: &Conversation,
        message_id: &str,
        mark: Option<ReactionMark>,
    ) -> Result<()> {
        let queue = format!("{QUEUE}{inbox_id}");
        let target = mark_target(conversation, message_id);
        let op = OutboxOp::React {
            message_id: message_id.to_owned(),
            mark,
            shown: None,
        };
        let newest = self
            .maybe(
                "SELECT key, body FROM outbox WHERE target = $1 ORDER BY id DESC LIMIT 1",
                args![&target],
            )
            .await?;
        let before = match &newest {
            Some(row) if row.json::<OutboxOp>("body")? == op => return Ok(()),
            Some(row) => row.text("key")?,
            None => String::new(),
        };
        self.enqueue(&NewOutbox {
            key: outbox_key(&["mark", &target, &before]),
            queue,
            gate_id: None,
            turn_id: turn_id.cloned(),
            conversation: conversation.clone(),
            op,
        })
        .await
    }

    /// From now on the request of a turn, if it is a message, has this mark alone.
    pub async fn mark_turn(&mut self, turn: &TurnRow, mark: Option<ReactionMark>) -> Result<()> {
        match &turn.request_message {
            Some(message) => {
                self.mark_request(turn.inbox_id, Some(&turn.id), &turn.conversation, message, mark)
                    .await
            }
            None => Ok(()),
        }
    }

    /// The row of the mark that the platform shows, in whose place `new` comes.
    pub(super) async fn shown_mark(&mut self, new: &mut NewOutbox) -> Result<Option<Row>> {
        // An earlier version had rows that took a mark away. Its rows had their queue as target, or none: it knew the first by its key, the others
        // by their turn.
        if let OutboxOp::React { mark, shown, .. } = &mut new.op
            && shown.take().is_some()
        {
            *mark = None;
        }
        let target = match &new.op {
            OutboxOp::React { message_id, .. } => mark_target(&new.conversation, message_id),
            OutboxOp::Post { .. } | OutboxOp::Patch { .. } | OutboxOp::Session { .. } => return Ok(None),
        };
        let first = new.queue.strip_prefix(QUEUE).map(|inbox| outbox_key(&["inbox", inbox, "seen"]));
        self.maybe(
            "SELECT platform_id, conversation FROM outbox
             WHERE (target IN ($1, $4) OR key = $2 OR (turn_id = $3 AND queue = $4)) AND op = 'react' AND state = 'sent' ORDER BY id DESC LIMIT 1",
            args![target, first, new.turn_id.as_ref(), &new.queue],
        )
        .await
    }
}

/// What the queue of a request's marks begins with.
const QUEUE: &str = "react:";
