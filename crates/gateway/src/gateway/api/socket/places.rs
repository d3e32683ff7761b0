//! How many readers of events there may be, and how many of them may look at the ledger, at once.

use std::sync::Arc;

use tokio::sync::Semaphore;

/// So many readers may be there at once; one more is asked to come back.
const MAX_SOCKETS: u32 = 200;
/// So many of them look at once: each look takes one of the ledger's readers, which webhooks and turns need more.
const LOOKS: usize = 2;

/// The readers of events in this process.
#[derive(Debug)]
pub(in crate::gateway) struct Sockets {
    pub(super) places: Arc<Semaphore>,
    pub(super) looks: Semaphore,
}

impl Default for Sockets {
    fn default() -> Self {
        Self {
            places: Arc::new(Semaphore::new(MAX_SOCKETS as usize)),
            looks: Semaphore::new(LOOKS),
        }
    }
}

impl Sockets {
    pub(in crate::gateway) fn open(&self) -> u32 {
        MAX_SOCKETS.saturating_sub(u32::try_from(self.places.available_permits()).unwrap_or(MAX_SOCKETS))
    }

    /// Comes back once there is none.
    pub(in crate::gateway) async fn all_free(&self) {
        // An error means that the semaphore was closed, which never happens.
        let _ = self.places.acquire_many(MAX_SOCKETS).await;
    }
}
