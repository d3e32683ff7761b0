//! Turns and their messages. Writes prove the lease first.

use countersign_agent::domain::{Conversation, LaneId, Message, Millis, TurnId, TurnReason, TurnStatus};
use serde::{Deserialize, Serialize};

use super::Result;
use super::arg::args;
use super::lanes::Lease;
use super::page::{Cursor, List, ListQuery, Page, page};
use super::sql::{Row, encode};
use super::transaction::{Read, Tx};
use super::wakeups::CountedEnd;
use crate::store::{StoreError, keys};

/// A turn as stored.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnRow {
    /// `turn_…`.
    pub id: TurnId,
    /// Its lane.
    pub lane_id: LaneId,
    /// Where it was asked.
    pub conversation: Conversation,
    /// The person who asked.
    pub user: String,
    /// What was asked.
    pub text: String,
    /// The request's message id.
    pub request_message: Option<String>,
    /// Inbox row it came from; `/stop` and `/new` act on turns with a smaller one.
    pub inbox_id: i64,
    /// The event that asked for it. `None` in turns of earlier versions.
    pub event_id: Option<String>,
    /// Status, for lists.
    pub status: TurnStatus,
    /// Why it ended.
    pub reason: Option<TurnReason>,
    /// Reducer state, as JSON text: a turn that waits holds it, and as a tree it would be five times as large.
    pub state: String,
    /// Messages journaled so far.
    pub messages: i64,
    /// Events journaled so far (`seq` of the last one).
    pub events: i64,
    /// Outbox rows made so far.
    pub said: i64,
    /// Times.
    pub created_at: Millis,
    /// First work.
    pub started_at: Option<Millis>,
    /// End.
    pub finished_at: Option<Millis>,
}

/// Named one by one: a statement that is prepared must give the same when a newer program has added a column.
macro_rules! columns {
    () => {
        "id, lane_id, request, inbox_id, event_id, status, reason, state, messages, events, said, created_at, started_at, finished_at"
    };
}

/// The SELECT of whole rows; `$rest` is what follows the name of the table.
macro_rules! select {
    ($rest:literal) => {
        concat!("SELECT ", columns!(), " FROM turns ", $rest)
    };
}

/// What never changes about a turn.
#[derive(Serialize, Deserialize)]
struct Request {
    conversation: Conversation,
    user: String,
    text: String,
    message: Option<String>,
}

impl Read {
    /// `finished_at` is set exactly when the status is final: indexes and pruning rely on it.
    fn end_of(&self, turn: &TurnRow) -> Option<i64> {
        turn.status.is_final().then(|| turn.finished_at.unwrap_or_else(|| self.now()).0)
    }

    /// One turn.
    pub async fn turn(&mut self, id: &TurnId) -> Result<Option<TurnRow>> {
        self.maybe(select!("WHERE id = $1"), args![keys::without_nul(id.as_str())])
            .await?
            .map(|row| read(&row))
            .transpose()
    }

    /// One turn; its state is empty when it is longer than `most` bytes, and is not read then.
    pub async fn turn_in_brief(&mut self, id: &TurnId, most: i64) -> Result<Option<TurnRow>> {
        self.maybe("SELECT id, lane_id, request, inbox_id, event_id, status, reason, CASE WHEN OCTET_LENGTH(state) <= $2 THEN state ELSE '' END AS state,
               messages, events, said, created_at, started_at, finished_at FROM turns WHERE id = $1", args![id.as_str(), most]).await?
        .map(|row| read(&row))
        .transpose()
    }

    /// The whole log.
    pub async fn messages(&mut self, turn: &TurnId) -> Result<Vec<Message>> {
        let rows = self
            .all("SELECT body FROM messages WHERE turn_id = $1 ORDER BY seq", args![turn.as_str()])
            .await?;
        rows.iter().map(|row| row.json("body")).collect()
    }

    /// Unfinished turns of a chat (recall, leave, `/stop` look here), all threads, oldest first.
    pub async fn open_turns(&mut self, conversation: &Conversation) -> Result<Vec<TurnRow>> {
        let rows = self
            .all(
                select!("WHERE chat_key = $1 AND finished_at IS NULL ORDER BY created_at, id"),
                args![keys::chat_key(conversation)],
            )
            .await?;
        rows.iter().map(read).collect()
    }

    /// How the other unfinished turns of the thread of `row` stand.
    pub async fn statuses_beside(&mut self, row: &TurnRow) -> Result<Vec<TurnStatus>> {
        let rows = self
            .all(
                "SELECT status FROM turns WHERE chat_key = $1 AND finished_at IS NULL AND conversation_key = $2 AND id <> $3",
                args![
                    keys::chat_key(&row.conversation),
                    keys::conversation_key(&row.conversation),
                    row.id.as_str()
                ],
            )
            .await?;
        rows.iter().map(|row| row.named("status")).collect()
    }

    /// The newest unfinished turns of `user` in the organisation of `place`, in all its chats, newest first; at most `most`. Their states are not
    /// read.
    pub async fn open_turns_of(&mut self, place: &Conversation, user: &str, most: i64) -> Result<Vec<TurnRow>> {
        let rows = self.all("SELECT id, lane_id, request, inbox_id, event_id, status, reason, '' AS state, messages, events, said, created_at, started_at, finished_at
             FROM turns WHERE finished_at IS NULL AND channel = $1 AND user_id = $2 ORDER BY +created_at DESC, id DESC LIMIT $3", args![place.channel.as_str(), keys::without_nul(user), most]).await?;
        let mut turns: Vec<TurnRow> = rows.iter().map(read).collect::<Result<_>>()?;
        turns.retain(|turn| (&turn.conversation.app, &turn.conversation.tenant) == (&place.app, &place.tenant));
        Ok(turns)
    }

    /// The turns of `user` in the organisation of `place` that ended since then, the last to end first; at most `most`.
    pub async fn ended_turns_of(&mut self, place: &Conversation, user: &str, since: Millis, most: i64) -> Result<Vec<TurnRow>> {
        let rows = self
            .all(
                select!("WHERE finished_at >= $1 AND channel = $2 AND user_id = $3 ORDER BY finished_at DESC, id DESC LIMIT $4"),
                args![since, place.channel.as_str(), keys::without_nul(user), most],
            )
            .await?;
        let mut turns: Vec<TurnRow> = rows.iter().map(read).collect::<Result<_>>()?;
        turns.retain(|turn| (&turn.conversation.app, &turn.conversation.tenant) == (&place.app, &place.tenant));
        Ok(turns)
    }

    /// Finished turns of the conversation, newest first (shared sessions).
    pub async fn earlier_turns(&mut self, conversation: &Conversation, limit: i64) -> Result<Vec<TurnRow>> {
        let rows = self
            .all(
                select!("WHERE conversation_key = $1 AND finished_at IS NOT NULL ORDER BY created_at DESC, id DESC LIMIT $2"),
                args![keys::conversation_key(conversation), limit],
            )
            .await?;
        rows.iter().map(read).collect()
    }

    /// The turn (newest first) one of whose posts or whose request has one of these message ids.
    pub async fn turn_by_message(&mut self, conversation: &Conversation, message_ids: &[String]) -> Result<Option<TurnRow>> {
        let mut newest: Option<TurnRow> = None;
        for id in message_ids {
            let found = self
                .maybe(
                    select!(
                        "WHERE id IN (SELECT id FROM turns WHERE request_ref = $1
                           UNION SELECT turn_id FROM outbox WHERE message_ref = $1 AND turn_id IS NOT NULL)
                         ORDER BY created_at DESC, id DESC LIMIT 1"
                    ),
                    args![keys::message_ref(conversation, id)],
                )
                .await?;
            if let Some(found) = found {
                let found = read(&found)?;
                if newest.as_ref().is_none_or(|turn| turn.created_at < found.created_at) {
                    newest = Some(found);
                }
            }
        }
        Ok(newest)
    }

    /// Turns for the API, newest first.
    pub async fn list_turns(&mut self, query: &ListQuery) -> Result<Page<TurnRow>> {
        let list = List {
            select: concat!("SELECT ", columns!(), " FROM turns"),
            only: None,
            status: "status",
            chat: "chat",
            user: "user_id",
            turn: "id",
            event: Some("event_id"),
            at: "created_at",
            id: "id",
        };
        let rows = list.rows(self, query).await?;
        page(&rows, query.limit, read, |turn| Cursor::new(turn.created_at, turn.id.as_str()))
    }
}

impl Tx {
    /// A new turn; becomes its lane's turn.
    ///
    /// # Errors
    /// `Stale` when the lease is lost; `Corrupt` when the lane has an unfinished turn already.
    pub async fn create_turn(&mut self, lease: &Lease, turn: &TurnRow) -> Result<()> {
        self.prove_lease(lease).await?;
        let place = &turn.conversation;
        self.run(
            "INSERT INTO turns (id, lane_id, chat_key, conversation_key, request_ref, channel, chat, user_id, request, inbox_id,
               status, reason, state, messages, events, said, created_at, started_at, finished_at, event_id)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)",
            args![
                turn.id.as_str(),
                turn.lane_id.as_str(),
                keys::chat_key(place),
                keys::conversation_key(place),
                turn.request_message.as_deref().map(|id| keys::message_ref(place, id)),
                place.channel.as_str(),
                keys::without_nul(&place.chat),
                keys::without_nul(&turn.user),
                encode(&Request {
                    conversation: place.clone(),
                    user: turn.user.clone(),
                    text: turn.text.clone(),
                    message: turn.request_message.clone(),
                })?,
                turn.inbox_id,
                turn.status.as_str(),
                turn.reason.map(TurnReason::as_str),
                &turn.state,
                turn.messages,
                turn.events,
                turn.said,
                turn.created_at,
                turn.started_at,
                self.end_of(turn),
                turn.event_id.as_deref().map(keys::without_nul)
            ],
        )
        .await?;
        if turn.status.is_final() {
            return Ok(());
        }
        // Deaths over what was read for this task stay counted until its first step.
        let taken = self
            .run(
                "UPDATE lanes SET turn_id = $1, gathering = NULL, crashes = CASE WHEN gathering = $3 THEN crashes ELSE 0 END
                 WHERE id = $2 AND turn_id IS NULL",
                args![turn.id.as_str(), lease.lane_id.as_str(), turn.inbox_id],
            )
            .await?;
        if taken == 0 {
            return Err(StoreError::Corrupt("the lane has an unfinished turn already".to_owned()));
        }
        Ok(())
    }

    /// Saves state, status, reason, counters and times; a final status frees the lane and answers the turn's
    /// signals.
    ///
    /// # Errors
    /// `Stale` when the lease is lost.
    pub async fn save_turn(&mut self, lease: &Lease, turn: &TurnRow) -> Result<()> {
        self.prove_lease(lease).await?;
        let saved = self.run("UPDATE turns SET status = $1, reason = $2, state = $3, messages = $4, events = $5, said = $6, started_at = $7, finished_at = $8
             WHERE id = $9 AND lane_id = $10", args![turn.status.as_str(), turn.reason.map(TurnReason::as_str), &turn.state, turn.messages, turn.events, turn.said, turn.started_at, self.end_of(turn), turn.id.as_str(), lease.lane_id.as_str()]).await?;
        if saved == 0 {
            return Err(StoreError::Corrupt("the lane has no such turn".to_owned()));
        }
        self.clear_crashes(lease).await?;
        if turn.status.is_final() {
            self.effects.ends.push(CountedEnd::Turn {
                channel: turn.conversation.channel,
                status: turn.status,
                reason: turn.reason,
            });
            self.run(
                "UPDATE lanes SET turn_id = NULL WHERE id = $1 AND turn_id = $2",
                args![lease.lane_id.as_str(), turn.id.as_str()],
            )
            .await?;
            self.drop_signals(&turn.id).await?;
        }
        Ok(())
    }

    /// Appends to the log at `from` (0-based).
    ///
    /// # Errors
    /// `Stale` when the lease is lost; `Corrupt` when one of the places is taken: the log only grows.
    pub async fn append_messages(&mut self, lease: &Lease, turn: &TurnId, from: i64, messages: &[Message]) -> Result<()> {
        self.prove_lease(lease).await?;
        for (seq, message) in (from..).zip(messages) {
            self.run(
                "INSERT INTO messages (turn_id, seq, body) VALUES ($1, $2, $3)",
                args![turn.as_str(), seq, encode(message)?],
            )
            .await?;
        }
        Ok(())
    }
}

fn read(row: &Row) -> Result<TurnRow> {
    let request: Request = row.json("request")?;
    Ok(TurnRow {
        id: row.get("id")?,
        lane_id: row.get("lane_id")?,
        conversation: request.conversation,
        user: request.user,
        text: request.text,
        request_message: request.message,
        inbox_id: row.get("inbox_id")?,
        event_id: row.get("event_id")?,
        status: row.named("status")?,
        reason: row.maybe_named("reason")?,
        state: row.get("state")?,
        messages: row.get("messages")?,
        events: row.get("events")?,
        said: row.get("said")?,
        created_at: row.get("created_at")?,
        started_at: row.get("started_at")?,
        finished_at: row.get("finished_at")?,
    })
}
