//! Wake-ups inside the process: rung after the commit that made work, never before.

use std::sync::Arc;

use tokio::sync::{Notify, watch};

/// One bell for each kind of work. A ring that nobody waits for is kept for the next who does, so that a worker
/// that looks, finds nothing and then waits misses nothing.
#[derive(Debug, Default)]
pub(super) struct Bells {
    pub(super) inbox: Arc<Notify>,
    pub(super) lanes: Arc<Notify>,
    pub(super) outbox: Arc<Notify>,
    /// Counts commits, for those who only look: any number of them, and none takes another's wake-up.
    pub(super) commits: watch::Sender<u64>,
}

/// What a transaction made ready.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Touched {
    pub(super) inbox: bool,
    pub(super) lanes: bool,
    pub(super) outbox: bool,
}

impl Bells {
    pub(super) fn ring(&self, touched: Touched) {
        self.commits.send_modify(|count| *count = count.wrapping_add(1));
        for (yes, bell) in [
            (touched.inbox, &self.inbox),
            (touched.lanes, &self.lanes),
            (touched.outbox, &self.outbox),
        ] {
            if yes {
                bell.notify_one();
            }
        }
    }
}
