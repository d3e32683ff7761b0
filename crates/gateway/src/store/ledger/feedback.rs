//! What people think of answers.

use countersign_agent::domain::{Event, FeedbackValue, Millis, TurnId, digest128};

use super::Result;
use super::arg::args;
use super::page::{Cursor, List, ListQuery, Page, page};
use super::sql::Row;
use super::transaction::{Read, Tx};
use super::turns::TurnRow;
use super::wakeups::CountedEnd;
use crate::store::keys;

/// What one person thinks of one answer.
#[derive(Clone, Debug, PartialEq)]
pub struct FeedbackRow {
    /// `fb_…`, from the turn and the person.
    pub id: String,
    /// The turn that was answered.
    pub turn_id: TurnId,
    /// Where.
    pub chat: String,
    /// The person.
    pub user: String,
    /// Their last word.
    pub value: FeedbackValue,
    /// When they said it.
    pub at: Millis,
}

impl Read {
    /// All of it for the API, newest first.
    pub async fn list_feedback(&mut self, query: &ListQuery) -> Result<Page<FeedbackRow>> {
        let list = List {
            select: "SELECT id, turn_id, chat, user_id, value, at FROM feedback",
            only: None,
            // The list has no such filter.
            status: "id",
            chat: "chat",
            user: "user_id",
            turn: "turn_id",
            event: None,
            at: "at",
            id: "id",
        };
        let rows = list.rows(self, query).await?;
        page(&rows, query.limit, read, |row| Cursor::new(row.at, &row.id))
    }
}

impl Tx {
    /// Notes what `user` thinks of the answer of `turn`, which is over. The same word a second time changes nothing.
    pub async fn note_feedback(&mut self, turn: &TurnRow, user: &str, value: FeedbackValue, now: Millis) -> Result<()> {
        let id = format!("fb_{}", hex::encode(digest128(&[turn.id.as_str(), user])));
        let noted = self
            .run(
                "INSERT INTO feedback (id, turn_id, chat, user_id, value, at) VALUES ($1, $2, $3, $4, $5, $6)
                 ON CONFLICT (id) DO UPDATE SET value = excluded.value, at = excluded.at WHERE feedback.value <> excluded.value",
                args![
                    &id,
                    turn.id.as_str(),
                    keys::without_nul(&turn.conversation.chat),
                    keys::without_nul(user),
                    value.as_str(),
                    now
                ],
            )
            .await?;
        if noted == 0 {
            return Ok(());
        }
        let summary = match value {
            FeedbackValue::Up => "The answer helped",
            FeedbackValue::Down => "The answer did not help",
        };
        self.append_after_end(turn, Event::Feedback { value }, summary, now).await?;
        self.effects.ends.push(CountedEnd::Feedback {
            channel: turn.conversation.channel,
            value,
        });
        Ok(())
    }
}

fn read(row: &Row) -> Result<FeedbackRow> {
    Ok(FeedbackRow {
        id: row.get("id")?,
        turn_id: row.get("turn_id")?,
        chat: row.get("chat")?,
        user: row.get("user_id")?,
        value: row.named("value")?,
        at: row.get("at")?,
    })
}
