//! What was said in a console chat, put together from what came in and what went out.

use std::collections::HashSet;

use countersign_agent::domain::{Conversation, Millis, Outbound, OutboxOp};

use super::Result;
use super::arg::args;
use super::inbox::InboxRow;
use super::page::{Cursor, Page};
use super::sql::decode;
use super::transaction::Read;
use crate::store::keys;

/// What was said in a console chat.
#[derive(Clone, Debug, PartialEq)]
pub enum ChatEntry {
    /// By a person.
    User(InboxRow),
    /// By the bot: the post, with the newest patch applied.
    Bot {
        /// Outbox id.
        id: i64,
        /// Key of the row.
        key: String,
        /// Thread.
        thread: String,
        /// What.
        content: Outbound,
        /// Platform message id.
        message_id: Option<String>,
        /// When.
        at: Millis,
    },
}

impl Read {
    /// A page of what was said in a console chat, newest first.
    pub async fn chat_entries(&mut self, chat: &str, limit: i64, after: Option<&Cursor>) -> Result<Page<ChatEntry>> {
        let chat = keys::without_nul(chat);
        let before = after.map_or(i64::MAX, |cursor| cursor.at);
        let heard = self
            .all(
                "SELECT id, state, received_at, payload FROM inbox WHERE channel = 'console' AND kind = 'message' AND chat = $1 AND id < $2
                 ORDER BY id DESC LIMIT $3",
                args![&*chat, before, limit + 1],
            )
            .await?;
        let posted = self
            .all(
                "SELECT id, key, conversation, body, platform_id, created_at,
                   (SELECT repaint.body FROM outbox AS repaint WHERE repaint.target = outbox.key AND repaint.state IN ('sent', 'waiting')
                    ORDER BY repaint.id DESC LIMIT 1) AS newest
                 FROM outbox WHERE channel = 'console' AND op = 'post' AND chat = $1 AND state IN ('sent', 'waiting') AND id < $2
                 ORDER BY id DESC LIMIT $3",
                args![&*chat, before, limit + 1],
            )
            .await?;
        // Both kinds of ids come from one rising sequence: they tell the order.
        let mut entries: Vec<(i64, ChatEntry)> = Vec::with_capacity(heard.len() + posted.len());
        // Copies of what is not handled yet may be among them: the first stands.
        let mut events = HashSet::new();
        for row in self.readable(&heard)?.into_iter().rev() {
            if events.insert(row.inbound.event_key.clone()) {
                entries.push((row.id, ChatEntry::User(row)));
            }
        }
        for row in &posted {
            let shown: OutboxOp = match row.get::<Option<String>>("newest")? {
                Some(newest) => decode("body", &newest)?,
                None => row.json("body")?,
            };
            let place: Conversation = row.json("conversation")?;
            let id = row.int("id")?;
            let (OutboxOp::Post { content, .. } | OutboxOp::Patch { content, .. }) = shown else {
                continue;
            };
            entries.push((
                id,
                ChatEntry::Bot {
                    id,
                    key: row.get("key")?,
                    thread: place.thread,
                    content,
                    message_id: row.get("platform_id")?,
                    at: row.get("created_at")?,
                },
            ));
        }
        entries.sort_by_key(|(id, _)| std::cmp::Reverse(*id));
        let limit = usize::try_from(limit).unwrap_or(0);
        let is_last = entries.len() <= limit;
        entries.truncate(limit);
        let next = entries.last().filter(|_| !is_last).map(|(id, _)| Cursor::new(Millis(*id), ""));
        Ok(Page {
            items: entries.into_iter().map(|(_, entry)| entry).collect(),
            next,
        })
    }
}
