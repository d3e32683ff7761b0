//! How long what was claimed is ours, by the monotonic clock.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use tokio::time::Instant;

use super::StoreError;

/// The claim on a lane or on rows of the outbox, as the process that holds it sees it. The ledger's fence refuses what a late
/// process writes, but it cannot take back what such a process sends elsewhere. A process that stood still, or that cannot reach
/// the ledger, does not know whether somebody has taken over; so it stops by itself when the claim's time is over.
#[derive(Clone, Debug)]
pub struct Hold {
    end: Arc<Mutex<Instant>>,
}

impl Hold {
    /// A claim for `span`, asked of the ledger at `asked`: the moment before the question, so that it ends here before it ends
    /// there.
    #[must_use]
    pub fn since(asked: Instant, span: Duration) -> Self {
        Self {
            end: Arc::new(Mutex::new(end(asked, span))),
        }
    }

    /// The ledger has granted `span` anew, asked at `asked`.
    pub fn prolong(&self, asked: Instant, span: Duration) {
        *self.end.lock().unwrap_or_else(PoisonError::into_inner) = end(asked, span);
    }

    /// Its time is over; whatever was under it is being dropped.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.left().is_zero()
    }

    /// What is left of it.
    fn left(&self) -> Duration {
        let end = *self.end.lock().unwrap_or_else(PoisonError::into_inner);
        end.saturating_duration_since(Instant::now())
    }

    /// Carries `work` on as long as the claim holds. It is asked before every move, not only when a timer fires: of a process that
    /// wakes after a long stop, the timer may come second.
    ///
    /// # Errors
    /// `Stale` when the claim's time was over first; `work` is dropped then.
    pub async fn guard<F: Future>(&self, work: F) -> Result<F::Output, StoreError> {
        let mut work = pin!(work);
        loop {
            let moves = poll_fn(|context| {
                if self.left().is_zero() {
                    return Poll::Ready(Err(StoreError::Stale));
                }
                work.as_mut().poll(context).map(Ok)
            });
            // The time may have been prolonged meanwhile: then on with it.
            if let Ok(outcome) = tokio::time::timeout(self.left(), moves).await {
                return outcome;
            }
        }
    }
}

/// A little before the ledger's end of it: two processes do not measure the server's time to the same millisecond.
fn end(asked: Instant, span: Duration) -> Instant {
    asked + span - span / 20
}

#[cfg(test)]
mod tests;
