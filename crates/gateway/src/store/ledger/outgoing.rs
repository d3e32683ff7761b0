//! Files that go out: their bytes, from the call that sends them to the platform that has them.
//!
//! An earlier version also had rows for cards that Lark kept, and the column `whole_until` for them. Nothing reads these any more.

use countersign_agent::domain::{Outbound, OutboxOp};

use super::Result;
use super::arg::args;
use super::outbox::{NewOutbox, untouched};
use super::transaction::{Read, Tx};
use crate::store::{StoreError, keys};

/// How a post stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PostState {
    /// It goes out, now or later.
    Waiting,
    /// The platform has it.
    Sent,
    /// It was given up, for this reason.
    Failed(String),
}

/// Where the bytes of a file are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutgoingFile {
    /// Here.
    Bytes(Vec<u8>),
    /// With the platform, which calls them by this id.
    Uploaded(String),
}

impl Read {
    /// How the post with this key stands, and what it says.
    pub async fn post_state(&mut self, key: &str) -> Result<Option<(PostState, Outbound)>> {
        let row = self
            .maybe("SELECT state, error, body FROM outbox WHERE key = $1 AND op = 'post'", args![key])
            .await?;
        let Some(row) = row else { return Ok(None) };
        let state = match row.text("state")?.as_str() {
            "waiting" => PostState::Waiting,
            "sent" => PostState::Sent,
            _ => PostState::Failed(row.get::<Option<String>>("error")?.unwrap_or_default()),
        };
        match row.json("body")? {
            OutboxOp::Post { content, .. } => Ok(Some((state, content))),
            OutboxOp::Patch { .. } | OutboxOp::React { .. } | OutboxOp::Session { .. } => {
                Err(StoreError::Corrupt(format!("the post {key} is none")))
            }
        }
    }

    /// The file of the post with this key. `None` means that it is needed no more.
    pub async fn outgoing_file(&mut self, key: &str) -> Result<Option<OutgoingFile>> {
        let row = self.maybe("SELECT upload FROM outbox_files WHERE key = $1", args![key]).await?;
        let Some(row) = row else { return Ok(None) };
        if let Some(upload) = row.get::<Option<String>>("upload")? {
            return Ok(Some(OutgoingFile::Uploaded(upload)));
        }
        let row = self.one("SELECT bytes FROM outbox_files WHERE key = $1", args![key]).await?;
        Ok(Some(OutgoingFile::Bytes(row.get::<Vec<u8>>("bytes")?)))
    }
}

impl Tx {
    /// Enqueues the post of a file with its bytes. The same key is no second post, and the bytes of the first stay.
    pub async fn enqueue_file(&mut self, new: &NewOutbox, bytes: &[u8]) -> Result<()> {
        if self.post_state(&new.key).await?.is_some() {
            return Ok(());
        }
        self.run(
            "INSERT INTO outbox_files (key, bytes) VALUES ($1, $2) ON CONFLICT (key) DO NOTHING",
            args![&new.key, bytes],
        )
        .await?;
        self.enqueue(new).await
    }

    /// The platform has the bytes, and calls them `upload`.
    pub async fn file_uploaded(&mut self, key: &str, upload: &str) -> Result<()> {
        self.run(
            "UPDATE outbox_files SET upload = $1 WHERE key = $2",
            args![keys::without_nul(upload), key],
        )
        .await?;
        Ok(())
    }

    /// The platform has no use for what it was given: it gets the bytes anew.
    pub(super) async fn forget_upload(&mut self, key: &str) -> Result<()> {
        self.run("UPDATE outbox_files SET upload = NULL WHERE key = $1", args![key]).await?;
        Ok(())
    }

    /// Takes back a post that cannot have arrived and that nobody is sending. Gives whether it was.
    pub async fn withdraw(&mut self, key: &str, why: &str) -> Result<bool> {
        let withdrawn = self
            .run(
                concat!(
                    "UPDATE outbox SET state = 'failed', error = $1 WHERE key = $2 AND op = 'post' AND ",
                    untouched!()
                ),
                args![why, key],
            )
            .await?;
        if withdrawn > 0 {
            // What waits behind it may go.
            self.effects.outbox = true;
            self.drop_file(key).await?;
        }
        Ok(withdrawn > 0)
    }

    /// Nobody sends the file any more.
    pub(super) async fn drop_file(&mut self, key: &str) -> Result<()> {
        self.run("DELETE FROM outbox_files WHERE key = $1", args![key]).await?;
        Ok(())
    }
}
