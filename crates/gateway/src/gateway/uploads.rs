//! The first half of a file's delivery: the platform takes the bytes, and the ledger notes what it calls them.

use std::sync::Arc;

use bytes::Bytes;
use countersign_agent::domain::{FileView, Outbound};
use tokio::sync::Semaphore;

use super::state::Gateway;
use crate::channels::{Delivery, DeliveryError, FileUpload};
use crate::store::{OutboxOp, OutboxRow, OutgoingFile, StoreError};

/// Files in memory at a time, of all platforms.
const AT_A_TIME: usize = 4;

/// Room for files on their way to a platform.
#[derive(Clone, Debug)]
pub(super) struct Uploads(Arc<Semaphore>);

impl Default for Uploads {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(AT_A_TIME)))
    }
}

/// The file that `row` posts, if it posts one.
fn file_of(row: &OutboxRow) -> Option<&FileView> {
    match &row.new.op {
        OutboxOp::Post {
            content: Outbound::File(file),
            ..
        } => Some(file),
        OutboxOp::Post { .. } | OutboxOp::Patch { .. } | OutboxOp::React { .. } | OutboxOp::Session { .. } => None,
    }
}

impl Uploads {
    /// Has the platform have the bytes of the file that `delivery`, made of `row`, names; nothing if it names none.
    pub(super) async fn prepare(&self, gateway: &Gateway, row: &OutboxRow, delivery: &mut Delivery) -> Result<(), DeliveryError> {
        let Some(file) = file_of(row) else { return Ok(()) };
        let (id, is_new) = self.have(gateway, row, file).await?;
        delivery.upload = Some(id);
        if is_new {
            // No earlier try can have posted what the platform took just now.
            delivery.again = false;
        }
        Ok(())
    }

    /// What the platform calls the file of `row`, and whether it took the bytes just now: it is given them if it does not have them.
    async fn have(&self, gateway: &Gateway, row: &OutboxRow, file: &FileView) -> Result<(String, bool), DeliveryError> {
        let _room = self.0.acquire().await;
        let key = &row.new.key;
        let stored = async { gateway.ledger.read().await?.outgoing_file(key).await };
        let bytes = match stored.await.map_err(|error| unstored(&error))? {
            Some(OutgoingFile::Uploaded(id)) => return Ok((id, false)),
            Some(OutgoingFile::Bytes(bytes)) => bytes,
            None => return Err(DeliveryError::Gone(String::from("its bytes are gone"))),
        };
        let upload = FileUpload {
            name: file.name.clone(),
            media_type: file.media_type.clone(),
            bytes: Bytes::from(bytes),
        };
        let taken = gateway.channels.out(row.new.conversation.channel).upload(upload).await;
        let id = taken.map_err(unseen)?;
        gateway.failpoint.reach("file_uploaded");
        let noted = async {
            let mut tx = gateway.ledger.begin_in(&row.new.conversation).await?;
            tx.file_uploaded(key, &id).await?;
            tx.commit().await
        };
        noted.await.map_err(|error| unstored(&error))?;
        gateway.failpoint.reach("file_upload_noted");
        Ok((id, true))
    }
}

/// Whatever became of an upload, nothing is in the chat yet. The task waits: it hears at once of a permission that an admin has to give.
fn unseen(error: DeliveryError) -> DeliveryError {
    match error {
        DeliveryError::Retry { reason, after, .. } => DeliveryError::Retry {
            reason,
            after,
            uncertain: false,
        },
        DeliveryError::Forbidden(reason) => DeliveryError::Gone(reason),
        DeliveryError::Content(_) | DeliveryError::Gone(_) => error,
    }
}

fn unstored(error: &StoreError) -> DeliveryError {
    DeliveryError::Retry {
        reason: error.to_string(),
        after: None,
        uncertain: false,
    }
}
