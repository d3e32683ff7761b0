//! Cards that a platform keeps apart from their messages, and that it calls by an id of its own: the id is a row beside those of files, from
//! before the post until its turn is removed. Without a row the message holds the card itself.

use countersign_agent::domain::{Outbound, OutboxOp};

use super::Result;
use super::outbox::OutboxRow;
use super::sql::args;
use super::transaction::{Read, Tx};
use crate::store::keys;

/// Numbers of updates that a row has: one a try.
const TRIES: i64 = 1000;

/// A kept card, as one try of an update finds it.
#[derive(Clone, Debug, PartialEq)]
pub struct KeptCard {
    /// What the platform calls it.
    pub id: String,
    /// Rises with every row that changes the card, and with every try of a row.
    pub sequence: i64,
    /// What it shows, where that is known for sure.
    pub shown: Option<Outbound>,
}

impl Read {
    /// The kept card that `row` changes. `None` means that its message holds the card itself.
    pub async fn kept_card(&mut self, row: &OutboxRow) -> Result<Option<KeptCard>> {
        let OutboxOp::Patch { target, .. } = &row.new.op else {
            return Ok(None);
        };
        let kept = self
            .maybe(
                "SELECT upload, whole_until FROM outbox_files WHERE key = $1 AND upload IS NOT NULL",
                args![target],
            )
            .await?;
        let Some(kept) = kept else { return Ok(None) };
        let before = self
            .one(
                "SELECT CAST(COUNT(*) AS BIGINT) AS changes FROM outbox WHERE target = $1 AND id <= $2",
                args![target, row.id],
            )
            .await?;
        // A try before this one may have arrived.
        let sure = row.tries == 0 && !row.uncertain;
        let shown = match sure {
            true => self.shown_by(target, row.id, kept.int("whole_until")?).await?,
            false => None,
        };
        Ok(Some(KeptCard {
            id: kept.text("upload")?,
            sequence: before.int("changes")? * TRIES + row.tries.clamp(0, TRIES - 1),
            shown,
        }))
    }

    /// What the card `target` shows before the row `id`. `None` where something may have come in between: a row that was not written down as
    /// sent, or an answer to a press, which was given before `whole_until`.
    async fn shown_by(&mut self, target: &str, id: i64, whole_until: i64) -> Result<Option<Outbound>> {
        let last = self.maybe("SELECT id, body FROM outbox WHERE (key = $1 OR target = $1) AND state = 'sent' AND id < $2 AND id > $3 ORDER BY id DESC LIMIT 1", args![target, id, whole_until]).await?;
        let Some(last) = last else { return Ok(None) };
        let doubtful = self
            .maybe(
                "SELECT id FROM outbox WHERE target = $1 AND id > $2 AND id < $3 AND state <> 'sent'
                 AND (tries > 0 OR uncertain = 1 OR owner <> '') LIMIT 1",
                args![target, last.int("id")?, id],
            )
            .await?;
        if doubtful.is_some() {
            return Ok(None);
        }
        match last.json("body")? {
            OutboxOp::Post { content, .. } | OutboxOp::Patch { content, .. } => Ok(Some(content)),
            OutboxOp::React { .. } | OutboxOp::Session { .. } => Ok(None),
        }
    }
}

impl Tx {
    /// The platform keeps the card of the post with this key, and calls it `id`.
    pub async fn card_kept(&mut self, key: &str, id: &str) -> Result<()> {
        self.run(
            "INSERT INTO outbox_files (key, bytes, upload) VALUES ($1, $2, $3) ON CONFLICT (key) DO UPDATE SET upload = excluded.upload",
            args![key, &[][..], keys::without_nul(id)],
        )
        .await?;
        Ok(())
    }

    /// The platform takes no update of the kept card any more: the message holds the card itself from now on.
    pub async fn card_let_go(&mut self, key: &str) -> Result<()> {
        self.drop_file(key).await
    }

    /// A moment among the rows of the outbox: those that are enqueued later have a higher id.
    pub fn moment(&self) -> i64 {
        self.next_id()
    }

    /// The card of the post with this key was shown by an answer to a press, which is no row: what was enqueued before `moment`, or was tried
    /// before now, does not tell any more what it shows.
    pub async fn card_answered(&mut self, key: &str, moment: i64) -> Result<()> {
        // Another process whose clock is ahead may have enqueued a row that was sent before the press, with a higher id than `moment`.
        let tried = self
            .one(
                "SELECT COALESCE(MAX(id), 0) AS last FROM outbox
                 WHERE (key = $1 OR target = $1) AND (state = 'sent' OR owner <> '' OR tries > 0)",
                args![key],
            )
            .await?;
        self.run(
            "UPDATE outbox_files SET whole_until = $1 WHERE key = $2 AND whole_until < $1",
            args![moment.max(tried.int("last")?), key],
        )
        .await?;
        Ok(())
    }
}
