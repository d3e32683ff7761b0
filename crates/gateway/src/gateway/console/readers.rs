//! How many pages of the console may wait for news, and be drawn, at once.

use tokio::sync::Semaphore;

/// So many pages may wait at once; one more is asked to come back.
const WAITING: usize = 100;
/// So many of them are drawn at once: each takes a reader of the ledger and its share of a processor, both of which
/// webhooks and turns need more.
const DRAWING: usize = 2;

/// The pages that wait for news.
#[derive(Debug)]
pub(in crate::gateway) struct Readers {
    pub(super) waiting: Semaphore,
    pub(super) drawing: Semaphore,
}

impl Default for Readers {
    fn default() -> Self {
        Self {
            waiting: Semaphore::new(WAITING),
            drawing: Semaphore::new(DRAWING),
        }
    }
}
