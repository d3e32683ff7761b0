//! The inbox: rows from `new` over `laned` to `done`, each step taken once.

use countersign_agent::domain::{Conversation, Inbound, InboundBody, LaneId, Millis, Notice};
use serde::{Deserialize, Serialize};

use super::Result;
use super::arg::args;
use super::arrive::{self, NewRow};
use super::lanes::Lease;
use super::page::{Cursor, Page};
use super::sql::{Row, encode};
use super::transaction::{Read, Tx};
use crate::store::{StoreError, keys};

/// One row of the inbox.
#[derive(Clone, Debug, PartialEq)]
pub struct InboxRow {
    /// Process-made, monotone: `ms << 20 | sequence`.
    pub id: i64,
    /// What came in.
    pub inbound: Inbound,
    /// When it was committed.
    pub received_at: Millis,
    /// `new`, `laned`, `done`.
    pub state: InboxState,
    /// Of a `new` row: one of the same event was handled before this look.
    pub is_copy: bool,
}

/// A row that does not read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedRow {
    /// Its id.
    pub id: i64,
    /// What is wrong with it.
    pub why: String,
}

/// A row that was looked at.
type Looked = std::result::Result<InboxRow, DamagedRow>;

/// Where an inbox row stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InboxState {
    /// Committed, not triaged yet.
    New,
    /// A task waiting in its sender's lane.
    Laned,
    /// Handled.
    Done,
}

/// Copies of a row that were looked at before it. Their keys are unique among all that were (`inbox_event`, `inbox_message`).
macro_rules! handled {
    () => {
        "(SELECT 1 FROM inbox AS copy WHERE copy.state <> 'new' AND copy.event_key = inbox.event_key
         UNION ALL SELECT 1 FROM inbox AS copy WHERE copy.state <> 'new' AND copy.message_key = inbox.message_key)"
    };
}

/// Row `$2` as the first of its copies that is looked at.
macro_rules! first {
    () => {
        concat!("id = $2 AND state = 'new' AND NOT EXISTS ", handled!())
    };
}

impl Read {
    /// Rows that wait for triage and have a greater id than `after`, oldest first. A caller that leaves rows where they are (the bot
    /// does not know its own name yet) sees by `after` what is behind them.
    pub async fn untriaged(&mut self, after: i64, limit: i64) -> Result<Vec<Looked>> {
        let rows = self
            .all(
                concat!(
                    "SELECT id, state, received_at, payload, (SELECT COUNT(*) FROM ",
                    handled!(),
                    " AS copies) AS copies FROM inbox WHERE state = 'new' AND id > $1 ORDER BY id LIMIT $2"
                ),
                args![after, limit],
            )
            .await?;
        let untriaged = |row: &Row| {
            let is_copy = row.int("copies")? > 0;
            Ok(look_at(row)?.map(|row| InboxRow { is_copy, ..row }))
        };
        rows.iter().map(untriaged).collect()
    }

    /// Oldest task of the lane, unless an older untriaged row of the same sender and chat exists: that one may be
    /// a `/stop`, or the first of two messages. One that does not read back waits for [`Tx::pass_event_over`].
    pub async fn next_task(&mut self, lease: &Lease) -> Result<Option<Looked>> {
        // A count, not EXISTS: PostgreSQL would join, and read all new rows instead of the few that are older.
        self.maybe(
            "SELECT id, state, received_at, payload FROM inbox WHERE lane_id = $1 AND state = 'laned'
               AND (SELECT COUNT(*) FROM inbox AS older
                 WHERE older.state = 'new' AND older.kind <> 'reaction' AND older.person_key = inbox.person_key AND older.id < inbox.id) = 0
             ORDER BY id LIMIT 1",
            args![lease.lane_id.as_str()],
        )
        .await?
        .map(|row| look_at(&row))
        .transpose()
    }

    /// Those of `rows` that read back. The others are named; whoever works on them passes them over.
    pub(super) fn readable(&self, rows: &[Row]) -> Result<Vec<InboxRow>> {
        let mut readable = Vec::with_capacity(rows.len());
        for row in rows {
            match look_at(row)? {
                Ok(row) => readable.push(row),
                Err(damaged) => self.inner.damage.note("inbox", &damaged.id.to_string(), &damaged.why, self.now()),
            }
        }
        Ok(readable)
    }

    /// Tasks waiting in a lane, oldest first.
    pub async fn queued(&mut self, lane: &LaneId) -> Result<Vec<InboxRow>> {
        let rows = self
            .all(
                "SELECT id, state, received_at, payload FROM inbox WHERE lane_id = $1 AND state = 'laned' ORDER BY id",
                args![lane.as_str()],
            )
            .await?;
        self.readable(&rows)
    }

    /// How many tasks of `user` wait in the chat, in all its lanes.
    pub async fn count_waiting(&mut self, place: &Conversation, user: &str) -> Result<i64> {
        self.one(
            "SELECT COUNT(*) AS waiting FROM inbox WHERE state = 'laned' AND person_key = $1",
            args![keys::person_key(place, user)],
        )
        .await?
        .int("waiting")
    }

    /// The oldest waiting tasks of `user` in the organisation of `place`, in all its chats, oldest first; at most `most`.
    pub async fn queued_of(&mut self, place: &Conversation, user: &str, most: i64) -> Result<Vec<InboxRow>> {
        // `+`: SQLite would walk the whole inbox; few rows wait, and an index has those.
        let rows = self
            .all(
                "SELECT inbox.id, inbox.state, inbox.received_at, inbox.payload FROM inbox JOIN lanes ON lanes.id = inbox.lane_id
                 WHERE inbox.state = 'laned' AND inbox.channel = $1 AND lanes.requester = $2 ORDER BY +inbox.id LIMIT $3",
                args![place.channel.as_str(), encode(user)?, most],
            )
            .await?;
        let mut tasks = self.readable(&rows)?;
        tasks.retain(|row| {
            let there = &row.inbound.conversation;
            (&there.app, &there.tenant) == (&place.app, &place.tenant)
        });
        Ok(tasks)
    }

    /// Tasks waiting in a chat, in all its lanes, oldest first.
    pub async fn queued_in_chat(&mut self, place: &Conversation) -> Result<Vec<InboxRow>> {
        let rows = self
            .all(
                "SELECT id, state, received_at, payload FROM inbox WHERE state = 'laned' AND chat = $1 ORDER BY id",
                args![keys::without_nul(&place.chat)],
            )
            .await?;
        let chat = keys::chat_key(place);
        let mut tasks = self.readable(&rows)?;
        tasks.retain(|row| keys::chat_key(&row.inbound.conversation) == chat);
        Ok(tasks)
    }

    /// What a task asks for. One that repeats another asks for the same.
    pub async fn asked(&mut self, task: &InboxRow) -> Result<String> {
        let repeated = match &task.inbound.body {
            InboundBody::Message(message) => return Ok(message.unaddressed("").text),
            InboundBody::TryAgain { turn, .. } => Some(turn.clone()),
            InboundBody::Again { review, .. } => self.gate(review).await?.map(|record| record.gate.turn_id),
            _ => None,
        };
        let turn = match repeated {
            Some(id) => self.turn_in_brief(&id, 0).await?,
            None => None,
        };
        Ok(turn.map(|turn| turn.text).unwrap_or_default())
    }

    /// A page of the tasks that wait in a lane, oldest first, each with its place there, from 1; those of one chat, or all. A damaged row is
    /// left out.
    pub async fn list_queue(&mut self, chat: Option<&str>, limit: i64, after: Option<&Cursor>) -> Result<Page<(InboxRow, i64)>> {
        let chat = chat.map(keys::without_nul);
        // `+`: SQLite would walk the whole inbox; few rows wait, and an index has those.
        let rows = self.all("SELECT id, state, received_at, payload,
               (SELECT COUNT(*) FROM inbox AS older WHERE older.lane_id = inbox.lane_id AND older.state = 'laned' AND older.id < inbox.id) AS ahead
             FROM inbox WHERE state = 'laned' AND (CAST($1 AS TEXT) IS NULL OR chat = $1) AND +id > $2 ORDER BY +id LIMIT $3", args![chat.as_deref(), after.map_or(0, |cursor| cursor.at), limit + 1]).await?;
        let shown = &rows[..rows.len().min(usize::try_from(limit).unwrap_or(usize::MAX))];
        // The next page begins behind a damaged row, too.
        let last = shown.last().filter(|_| shown.len() < rows.len());
        let next = last.map(|row| row.int("id")).transpose()?.map(|id| Cursor::new(Millis(id), ""));
        let mut items = Vec::with_capacity(shown.len());
        for row in shown {
            let place = row.int("ahead")? + 1;
            items.extend(self.readable(std::slice::from_ref(row))?.into_iter().map(|task| (task, place)));
        }
        Ok(Page { items, next })
    }

    /// The task (untriaged or laned) of this message, which a recall drops and an edit changes.
    pub async fn waiting_message(&mut self, conversation: &Conversation, message_id: &str) -> Result<Option<InboxRow>> {
        // A recall is rare and what waits is short: no index is kept for it on the accept path.
        let rows = self
            .all(
                concat!(
                    "SELECT id, state, received_at, payload FROM inbox WHERE state = 'new' AND chat = $1 AND NOT EXISTS ",
                    handled!(),
                    " UNION ALL SELECT id, state, received_at, payload FROM inbox WHERE state = 'laned' AND chat = $1"
                ),
                args![keys::without_nul(&conversation.chat)],
            )
            .await?;
        let chat = keys::chat_key(conversation);
        let is_it = |row: &InboxRow| {
            matches!(
                row.inbound.body,
                InboundBody::Message(_) | InboundBody::Again { .. } | InboundBody::TryAgain { .. }
            ) && row.inbound.body.message_id() == Some(message_id)
                && keys::chat_key(&row.inbound.conversation) == chat
        };
        Ok(self.readable(&rows)?.into_iter().find(is_it))
    }
}

impl Read {
    /// What was answered to this press when it came before. `None` means a program of another version handled it.
    pub async fn answer_to(&mut self, press: &Inbound) -> Result<Option<Notice>> {
        let row = self
            .maybe(
                "SELECT outcome FROM inbox WHERE event_key = $1 AND state <> 'new'",
                args![keys::event_key(press)],
            )
            .await?;
        Ok(row.and_then(|row| row.maybe_json("outcome").ok().flatten()))
    }
}

impl Tx {
    /// Inserts the row of a press, which this transaction handles. Gives `false` when the press was handled before.
    pub async fn insert_press(&mut self, inbound: &Inbound) -> Result<bool> {
        let row = NewRow::new(inbound)?;
        let read: &mut Read = self;
        arrive::insert_handled(&read.inner, read.conn.lend()?, &row, None).await
    }

    /// Keeps what the one who pressed was told, for the platform's repetition of the press.
    pub async fn note_answer(&mut self, press: &Inbound, notice: &Notice) -> Result<()> {
        self.run(
            "UPDATE inbox SET outcome = $1 WHERE event_key = $2 AND state <> 'new'",
            args![encode(notice)?, keys::event_key(press)],
        )
        .await?;
        Ok(())
    }

    /// Inserts a task of its sender into their lane, and wakes it. Gives `false` when the lane got this task before.
    pub async fn insert_task(&mut self, inbound: &Inbound, lane: &LaneId) -> Result<bool> {
        let row = NewRow::new(inbound)?;
        let read: &mut Read = self;
        if !arrive::insert_handled(&read.inner, read.conn.lend()?, &row, Some(lane)).await? {
            return Ok(false);
        }
        self.make_lane_ready(lane, &inbound.conversation, &inbound.sender).await?;
        Ok(true)
    }

    /// `new` → `done`. Gives `false` when somebody else handled it, or a copy of it.
    pub async fn triaged(&mut self, id: i64, outcome: &str) -> Result<bool> {
        let row = self
            .maybe(
                concat!(
                    "UPDATE inbox SET state = 'done', outcome = $1 WHERE ",
                    first!(),
                    " RETURNING person_key"
                ),
                args![outcome, id],
            )
            .await?;
        self.let_younger_pass(id, row).await
    }

    /// `new` or `laned` → `done` for a row that does not read back: those behind it go on. Gives `false` when somebody else did it.
    pub async fn pass_event_over(&mut self, row: &DamagedRow) -> Result<bool> {
        self.inner.damage.note("inbox", &row.id.to_string(), &row.why, self.now());
        let over = "unreadable";
        Ok(self.triaged(row.id, over).await? || self.drop_copy(row.id).await? || self.finish_task(row.id, over).await?)
    }

    /// `new` → `laned`, as triage read it, creating and waking the lane. Gives `false` when somebody else handled it, or a copy of it.
    pub async fn assign(&mut self, row: &InboxRow, lane: &LaneId) -> Result<bool> {
        let moved = self
            .maybe(
                concat!(
                    "UPDATE inbox SET state = 'laned', lane_id = $1, payload = $3 WHERE ",
                    first!(),
                    " RETURNING person_key"
                ),
                args![lane.as_str(), row.id, encode(&row.inbound)?],
            )
            .await?;
        if !self.let_younger_pass(row.id, moved).await? {
            return Ok(false);
        }
        self.make_lane_ready(lane, &row.inbound.conversation, &row.inbound.sender).await?;
        Ok(true)
    }

    /// Removes a row of which a copy was handled. Gives `false` when it is none, or is gone.
    pub async fn drop_copy(&mut self, id: i64) -> Result<bool> {
        let row = self
            .maybe(
                concat!(
                    "DELETE FROM inbox WHERE id = $1 AND state = 'new' AND EXISTS ",
                    handled!(),
                    " RETURNING person_key"
                ),
                args![id],
            )
            .await?;
        self.let_younger_pass(id, row).await
    }

    /// Wakes lanes whose younger tasks of the same person had to wait until this row was looked at: `next_task`
    /// held them back, and nothing else would look again.
    async fn let_younger_pass(&mut self, id: i64, moved: Option<Row>) -> Result<bool> {
        let Some(moved) = moved else { return Ok(false) };
        let woken = self
            .run(
                "UPDATE lanes SET ready_at = $1, wakes = wakes + 1 WHERE id IN
                 (SELECT lane_id FROM inbox WHERE state = 'laned' AND person_key = $2 AND id > $3)",
                args![self.now(), moved.get::<Vec<u8>>("person_key")?, id],
            )
            .await?;
        self.effects.lanes |= woken > 0;
        Ok(true)
    }

    /// Gives a task that waits in its lane other words. Gives `false` when it waits no more.
    pub async fn reword_task(&mut self, id: i64, inbound: &Inbound) -> Result<bool> {
        let done = self
            .run(
                "UPDATE inbox SET payload = $1 WHERE id = $2 AND state = 'laned'",
                args![encode(inbound)?, id],
            )
            .await?;
        Ok(done > 0)
    }

    /// `laned` → `done`. Gives `false` when somebody else handled it.
    pub async fn finish_task(&mut self, id: i64, outcome: &str) -> Result<bool> {
        let done = self
            .run(
                "UPDATE inbox SET state = 'done', outcome = $1 WHERE id = $2 AND state = 'laned'",
                args![outcome, id],
            )
            .await?;
        Ok(done > 0)
    }
}

/// A row, or what is wrong with it.
fn look_at(row: &Row) -> Result<Looked> {
    let id = row.int("id")?;
    Ok(match read_row(row) {
        Err(StoreError::Corrupt(why)) => Err(DamagedRow { id, why }),
        read => Ok(read?),
    })
}

fn read_row(row: &Row) -> Result<InboxRow> {
    Ok(InboxRow {
        id: row.get("id")?,
        inbound: row.json("payload")?,
        received_at: row.get("received_at")?,
        state: row.named("state")?,
        is_copy: false,
    })
}
