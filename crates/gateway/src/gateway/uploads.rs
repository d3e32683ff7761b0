//! The first half of some deliveries: the platform takes the bytes of a file or keeps a card, and the ledger notes what it calls them.

use std::sync::Arc;

use bytes::Bytes;
use countersign_agent::domain::{FileView, Outbound};
use tokio::sync::Semaphore;
use tracing::info;

use super::state::Gateway;
use crate::channels::{CardUpdate, Delivery, DeliveryError, FileUpload, Receipt};
use crate::store::{KeptCard, OutboxOp, OutboxRow, OutgoingFile, StoreError};

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
pub(super) fn file_of(row: &OutboxRow) -> Option<&FileView> {
    match &row.new.op {
        OutboxOp::Post {
            content: Outbound::File(file),
            ..
        } => Some(file),
        OutboxOp::Post { .. } | OutboxOp::Patch { .. } | OutboxOp::React { .. } | OutboxOp::Session { .. } => None,
    }
}

impl Uploads {
    /// Has the platform have what `delivery`, made of `row`, names: the bytes of a file, or a card that it keeps.
    pub(super) async fn prepare(&self, gateway: &Gateway, row: &OutboxRow, delivery: &mut Delivery) -> Result<(), DeliveryError> {
        if let Some(file) = file_of(row) {
            let (id, is_new) = self.have(gateway, row, file).await?;
            delivery.upload = Some(id);
            if is_new {
                // No earlier try can have posted what the platform took just now.
                delivery.again = false;
            }
            return Ok(());
        }
        let channel = gateway.channels.out(row.new.conversation.channel);
        match &row.new.op {
            OutboxOp::Post { content, .. } if !row.plain && channel.keeps_card(content) => {
                delivery.upload = kept(gateway, row, delivery).await?;
            }
            // Also where what it shows now has no steps to tick: the message shows the kept card.
            OutboxOp::Patch { .. } if !row.plain => {
                let known = async { gateway.ledger.read().await?.kept_card(row).await };
                let known = known.await.map_err(|error| unstored(&error))?;
                delivery.update = known.map(|KeptCard { id, sequence, shown }| CardUpdate { card: id, sequence, shown });
            }
            OutboxOp::Post { .. } | OutboxOp::Patch { .. } | OutboxOp::React { .. } | OutboxOp::Session { .. } => (),
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

/// What the platform calls the card of `row`, which it keeps. `None`: the message holds it, in every later try as well. One that is there
/// under the key of this row cannot become the other kind.
async fn kept(gateway: &Gateway, row: &OutboxRow, delivery: &Delivery) -> Result<Option<String>, DeliveryError> {
    let key = &row.new.key;
    let stored = async { gateway.ledger.read().await?.outgoing_file(key).await };
    if let Some(OutgoingFile::Uploaded(id)) = stored.await.map_err(|error| unstored(&error))? {
        return Ok(Some(id));
    }
    if row.tries > 0 || row.uncertain {
        return Ok(None);
    }
    let channel = gateway.channels.out(row.new.conversation.channel);
    let Some(id) = channel.keep_card(delivery).await else {
        return Ok(None);
    };
    gateway.failpoint.reach("card_kept");
    let noted = async {
        let mut tx = gateway.ledger.begin_in(&row.new.conversation).await?;
        tx.card_kept(key, &id).await?;
        tx.commit().await
    };
    noted.await.map_err(|error| unstored(&error))?;
    gateway.failpoint.reach("card_noted");
    Ok(Some(id))
}

/// Carries `delivery`, made of `row`. If the platform refuses the card that it keeps, the message holds the card from now on. That is noted
/// first: a later try must not find the kept card, which no message shows. A chat that is gone, or credentials that are refused, say nothing
/// about the card.
pub(super) async fn carry(gateway: &Gateway, row: &OutboxRow, delivery: &mut Delivery) -> Result<Receipt, DeliveryError> {
    let channel = gateway.channels.out(row.new.conversation.channel);
    let outcome = channel.deliver(delivery).await;
    let names_card = delivery.update.is_some() || (delivery.upload.is_some() && file_of(row).is_none());
    let why = match outcome {
        // A post that may have arrived shows the kept card: under its key no other kind comes.
        Err(DeliveryError::Content(why)) if names_card && !(row.uncertain && delivery.upload.is_some()) => why,
        outcome => return outcome,
    };
    info!(
        outbox.id = row.id,
        why, "a kept card was refused; its message holds the card from now on"
    );
    let key = match &row.new.op {
        OutboxOp::Patch { target, .. } => target,
        OutboxOp::Post { .. } | OutboxOp::React { .. } | OutboxOp::Session { .. } => &row.new.key,
    };
    let noted = async {
        let mut tx = gateway.ledger.begin_in(&row.new.conversation).await?;
        tx.card_let_go(key).await?;
        tx.commit().await
    };
    noted.await.map_err(|error| unstored(&error))?;
    (delivery.upload, delivery.update) = (None, None);
    channel.deliver(delivery).await
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
