//! Standing grants: what people allowed in a chat until a date.

use countersign_agent::domain::{ActionId, Arguments, Conversation, Millis, StandingGrant};
use serde::{Deserialize, Serialize};

use super::Result;
use super::arg::args;
use super::audit::AuditEntry;
use super::page::{Cursor, List, ListQuery, Page, page};
use super::sql::{Row, encode};
use super::transaction::{Read, Tx};
use crate::store::keys;

/// Named one by one: a statement that is prepared must give the same when a newer program has added a column.
const COLUMNS: &str = "SELECT id, number, body, created_at, expires_at, revoked_at, used FROM standing_grants";

/// The part of a grant that never changes.
#[derive(Serialize, Deserialize)]
struct Body {
    place: Conversation,
    tool: String,
    arguments: Arguments,
    definition: String,
    by: String,
}

impl Read {
    /// Those of the chat that hold at `now`, oldest first; [`StandingGrant::MOST`] at most.
    pub async fn standing_grants(&mut self, place: &Conversation, now: Millis) -> Result<Vec<StandingGrant>> {
        let text = format!("{COLUMNS} WHERE chat_key = $1 AND revoked_at IS NULL AND expires_at > $2 ORDER BY number LIMIT $3");
        let rows = self.all(text, args![keys::chat_key(place), now, StandingGrant::MOST]).await?;
        rows.iter().map(read).collect()
    }

    /// The one of this number in the chat.
    pub async fn standing_grant_numbered(&mut self, place: &Conversation, number: u32) -> Result<Option<StandingGrant>> {
        let text = format!("{COLUMNS} WHERE chat_key = $1 AND number = $2");
        let row = self.maybe(text, args![keys::chat_key(place), number]).await?;
        row.as_ref().map(read).transpose()
    }

    /// One of them.
    pub async fn standing_grant(&mut self, id: &str) -> Result<Option<StandingGrant>> {
        let text = format!("{COLUMNS} WHERE id = $1");
        let row = self.maybe(text, args![keys::without_nul(id)]).await?;
        row.as_ref().map(read).transpose()
    }

    /// The number that a new one of the chat gets. The row of the highest number is never removed, so no number comes twice.
    pub async fn next_standing_number(&mut self, place: &Conversation) -> Result<u32> {
        let row = self
            .one(
                "SELECT COALESCE(MAX(number), 0) + 1 AS next FROM standing_grants WHERE chat_key = $1",
                args![keys::chat_key(place)],
            )
            .await?;
        row.get("next")
    }

    /// All of them for the API, newest first.
    pub async fn list_standing_grants(&mut self, query: &ListQuery) -> Result<Page<StandingGrant>> {
        let list = List {
            select: COLUMNS,
            only: None,
            // The list is filtered by chat alone.
            status: "id",
            chat: "chat",
            user: "id",
            turn: "id",
            event: None,
            at: "created_at",
            id: "id",
        };
        let rows = list.rows(self, query).await?;
        page(&rows, query.limit, read, |grant| Cursor::new(grant.created_at, &grant.id))
    }
}

impl Tx {
    /// Stores a grant that was made with the approval of `action`. Gives `false` when the ledger has it already.
    pub async fn insert_standing_grant(&mut self, grant: &StandingGrant, action: &ActionId) -> Result<bool> {
        let body = Body {
            place: grant.place.clone(),
            tool: grant.tool.clone(),
            arguments: grant.arguments.clone(),
            definition: grant.definition.clone(),
            by: grant.by.clone(),
        };
        let made = self.run("INSERT INTO standing_grants (id, chat_key, channel, chat, number, action_id, body, created_at, expires_at, revoked_at, used)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, NULL, 0) ON CONFLICT (id) DO NOTHING", args![&grant.id, keys::chat_key(&grant.place), grant.place.channel.as_str(), keys::without_nul(&grant.place.chat), i64::from(grant.number), action.as_str(), encode(&body)?, grant.created_at, grant.expires_at]).await?;
        Ok(made > 0)
    }

    /// Takes a grant back. `false` means that somebody did before, or that there is none. `by`: who, `via`: by which road.
    pub async fn revoke_standing_grant(&mut self, grant: &StandingGrant, by: &str, via: &str, now: Millis) -> Result<bool> {
        let revoked = self
            .run(
                "UPDATE standing_grants SET revoked_at = $1 WHERE id = $2 AND revoked_at IS NULL",
                args![now, &grant.id],
            )
            .await?;
        let revoked = revoked > 0;
        if revoked {
            self.audit(AuditEntry {
                kind: "standing_grant_revoked",
                turn_id: None,
                gate_id: None,
                action_id: None,
                principal: Some(by.to_owned()),
                details: serde_json::json!({ "grant": grant.id, "number": grant.number, "via": via }),
            });
        }
        Ok(revoked)
    }

    /// Counts a use of the grant by a call that is sent with this commit. `false` means that it does not hold at `now`.
    pub async fn use_standing_grant(&mut self, id: &str, now: Millis) -> Result<bool> {
        let used = self
            .run(
                "UPDATE standing_grants SET used = used + 1 WHERE id = $1 AND revoked_at IS NULL AND expires_at > $2",
                args![id, now],
            )
            .await?;
        Ok(used > 0)
    }
}

fn read(row: &Row) -> Result<StandingGrant> {
    let body: Body = row.json("body")?;
    Ok(StandingGrant {
        id: row.get("id")?,
        place: body.place,
        number: row.get("number")?,
        tool: body.tool,
        arguments: body.arguments,
        definition: body.definition,
        by: body.by,
        created_at: row.get("created_at")?,
        expires_at: row.get("expires_at")?,
        revoked_at: row.get("revoked_at")?,
        used: row.get("used")?,
    })
}
