//! Claiming rows of the outbox: which ones a process may send now.
//!
//! Platforms ration repaints by app and posts by chat. So a repaint has the order of its card, behind whose post it waits, and an answer never
//! waits behind the progress before it.

use std::time::Duration;

use countersign_agent::domain::{ChannelKind, GateId, OutboxOp};

use super::Result;
use super::arg::args;
use super::outbox::{OutboxRow, columns, read_row};
use super::sql::{Row, encode};
use super::transaction::Tx;
use crate::store::StoreError;

/// What a platform rations together: how many deliveries of it all processes may take within what time, and how many this process has
/// places for. Posts are counted chat by chat, repaints and marks over all chats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// The platform.
    pub channel: ChannelKind,
    /// Posts, repaints or marks.
    pub kind: LineKind,
    /// So many at most are held of those that were taken [within](Line::within) this time.
    pub most: usize,
    /// A row that was claimed longer ago than this counts no more: its process hangs or is gone.
    pub within: Duration,
    /// So many of the platform's rows may be taken now, of all its lines together.
    pub free: usize,
}

/// Deliveries that a platform rations alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind {
    /// New messages.
    Posts,
    /// Repaints of cards.
    Repaints,
    /// Marks on messages.
    Marks,
}

/// Whether the row `head` is first in its line: behind no post of its queue, or, a patch or a mark, behind no other one of the same target
/// and behind its card's post. A macro, for SQL is put together when it is compiled.
macro_rules! heads {
    () => {
        "(head.target IS NOT NULL OR NOT EXISTS (SELECT 1 FROM outbox AS ahead
            WHERE ahead.queue = head.queue AND ahead.state = 'waiting' AND ahead.target IS NULL AND ahead.id < head.id))
         AND (head.target IS NULL
           OR NOT EXISTS (SELECT 1 FROM outbox AS ahead
             WHERE ahead.target = head.target AND ahead.state = 'waiting' AND ahead.id < head.id)
           AND NOT EXISTS (SELECT 1 FROM outbox AS post WHERE post.key = head.target AND post.state = 'waiting'))"
    };
}
pub(super) use heads;

/// By what the rows of a line are told apart beside channel and kind: posts by their chat.
macro_rules! chat_of {
    ($row:literal) => {
        concat!("CASE WHEN ", $row, ".op = 'post' THEN ", $row, ".chat_key END")
    };
}

impl Tx {
    /// Takes rows that are due and first in their line, those that have been due for longest. Of a platform without `lines` it takes up to
    /// `limit`. Of the others it takes no more than their lines have room for, and the rest keeps its place. A row whose last holder
    /// never said what came of it counts one try more, and is uncertain: it may have arrived.
    ///
    /// The statement has five steps. An example: Slack allows 2 posts a chat (one is on its way in chat A), and this process has 3 places.
    ///
    /// 1. `due` finds the rows that are first in their line, and numbers them within platform, operation and (for posts) chat: A1, A2, A3, B1.
    ///    Words back to a message (`inbox:`) come behind cards and answers.
    /// 2. `busy` counts what processes hold of each such group and took lately: 1 in chat A.
    /// 3. `fit` drops what its line has no room for. A has 2 - 1 = 1 place, so A2 and A3 stay; A1 and B1 remain. It numbers what remains
    ///    by platform, posts first.
    /// 4. `heads` keeps the first 3 of the platform, and locks them. Rows that another process is taking now are passed over.
    /// 5. The update makes these rows ours. They are chosen once, before it: a server may choose anew for each row, and take more than `limit`.
    pub async fn claim_outbox(&mut self, owner: &str, hold_ms: i64, limit: i64, lines: &[Line]) -> Result<Vec<OutboxRow>> {
        let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        let now = self.now().0;
        let until = now.saturating_add(hold_ms);
        let as_row = |line: &Line| {
            // Every process holds rows for the same time: a row that is held until later was taken later.
            let lately = until
                .saturating_sub(i64::try_from(line.within.as_millis()).unwrap_or(i64::MAX))
                .max(now);
            (line.channel.as_str(), op_of(line.kind), count(line.most), lately, count(line.free))
        };
        let lines: Vec<_> = lines.iter().map(as_row).collect();
        let text = self.claiming(
            concat!(
                "WITH due AS (SELECT head.id, head.ready_at, head.channel, head.op, ",
                chat_of!("head"),
                " AS chat, ROW_NUMBER() OVER (PARTITION BY head.channel, head.op, ",
                chat_of!("head"),
                " ORDER BY CASE WHEN substr(head.queue, 1, 6) = 'inbox:' THEN 1 ELSE 0 END, head.ready_at, head.id) AS place FROM outbox AS head
                 WHERE head.state = 'waiting' AND head.ready_at <= $4 AND head.held_until <= $4 AND ",
                heads!(),
                "),
                 busy AS (SELECT held.channel, held.op, ",
                chat_of!("held"),
                " AS chat, COUNT(*) AS held FROM outbox AS held CROSS JOIN {each} AS line
                 WHERE held.state = 'waiting' AND held.owner <> '' AND held.channel = line.value ->> 0 AND held.op = line.value ->> 1
                   AND held.held_until > CAST(line.value ->> 3 AS BIGINT)
                 GROUP BY held.channel, held.op, ",
                chat_of!("held"),
                "),
                   fit AS (SELECT due.id, due.ready_at, COALESCE(CAST(line.value ->> 4 AS BIGINT), $5) AS free,
                       ROW_NUMBER() OVER (PARTITION BY due.channel ORDER BY CASE due.op WHEN 'post' THEN 0 ELSE 1 END, due.ready_at, due.id) AS place FROM due
                     LEFT JOIN {each} AS line ON line.value ->> 0 = due.channel AND line.value ->> 1 = due.op
                     LEFT JOIN busy ON busy.channel = due.channel AND busy.op = due.op AND (busy.chat = due.chat OR due.chat IS NULL)
                     WHERE line.value IS NULL OR due.place + COALESCE(busy.held, 0) <= CAST(line.value ->> 2 AS BIGINT)),
                   heads AS MATERIALIZED (SELECT head.id FROM outbox AS head JOIN fit ON fit.id = head.id
                     WHERE head.held_until <= $4 AND fit.place <= fit.free {skip})
                 UPDATE outbox SET owner = $2, held_until = $3, tries = tries + CASE WHEN owner <> '' THEN 1 ELSE 0 END,
                   uncertain = CASE WHEN owner <> '' THEN 1 ELSE uncertain END
                 WHERE id IN (SELECT id FROM heads) AND state = 'waiting' AND held_until <= $4
                 RETURNING ",
                columns!()
            ),
            "head",
        );
        let rows = self.all(text, args![encode(&lines)?, owner, until, now, limit]).await?;
        let mut claimed = Vec::with_capacity(rows.len());
        for row in &rows {
            match self.with_target(row).await {
                Err(StoreError::Corrupt(why)) => self.pass_delivery_over(row.int("id")?, &why).await?,
                row => claimed.push(row?),
            }
        }
        claimed.sort_by_key(|row| row.id);
        Ok(claimed)
    }

    /// A claimed row, with the message that it changes, or the mark in whose place it comes.
    async fn with_target(&mut self, row: &Row) -> Result<OutboxRow> {
        let mut row = read_row(row)?;
        let known = match &row.new.op {
            OutboxOp::Patch { target, .. } => {
                self.maybe("SELECT platform_id, conversation FROM outbox WHERE key = $1", args![target])
                    .await?
            }
            OutboxOp::React { .. } => self.shown_mark(&mut row.new).await?,
            OutboxOp::Post { .. } | OutboxOp::Session { .. } => None,
        };
        if let Some(known) = known {
            row.target_message = known.get::<Option<String>>("platform_id")?;
            // The chat of a direct message is known since it was posted.
            row.new.conversation = known.json("conversation")?;
        }
        Ok(row)
    }

    /// Gives up a row that does not read back: those behind it go on. What hangs on it ends as with any row that is given up.
    async fn pass_delivery_over(&mut self, id: i64, why: &str) -> Result<()> {
        self.inner.damage.note("outbox", &id.to_string(), why, self.now());
        let row = self
            .one(
                "UPDATE outbox SET state = 'failed', owner = '', held_until = 0, error = 'it does not read back' WHERE id = $1
                 RETURNING key, gate_id",
                args![id],
            )
            .await?;
        (self.effects.outbox, self.passed_over) = (true, true);
        let key = row.text("key")?;
        self.drop_file(&key).await?;
        self.drop_patches(&key, "the post was given up").await?;
        match row.get::<Option<String>>("gate_id")? {
            Some(gate) => self.gate_undeliverable(&GateId::new(gate)).await,
            None => Ok(()),
        }
    }
}

/// The column `op`.
fn op_of(kind: LineKind) -> &'static str {
    match kind {
        LineKind::Posts => "post",
        LineKind::Repaints => "patch",
        LineKind::Marks => "react",
    }
}
