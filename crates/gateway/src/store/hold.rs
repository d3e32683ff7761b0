//! How long what was claimed is ours, by the monotonic clock.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use parking_lot::Mutex;
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
        *self.end.lock() = end(asked, span);
    }

    /// Its time is over; whatever was under it is being dropped.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.left().is_zero()
    }

    /// What is left of it.
    fn left(&self) -> Duration {
        let end = *self.end.lock();
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
mod tests {
    use std::future::pending;

    use super::*;

    const SPAN: Duration = Duration::from_secs(30);

    /// F-P4: work that is ready to go on is not carried on when the claim's time is over, and none of it is done.
    #[tokio::test]
    async fn nothing_moves_after_the_end() {
        let long_ago = Instant::now().checked_sub(SPAN).unwrap();
        let hold = Hold::since(long_ago, SPAN);
        let mut done = false;
        let outcome = hold.guard(async { done = true }).await;
        assert!(matches!(outcome, Err(StoreError::Stale)));
        assert!(!done);
    }

    /// F-P4: work in the middle is dropped when the time is over, and goes on when it was prolonged.
    #[tokio::test]
    async fn work_ends_with_the_claim_and_not_before() {
        let almost = Instant::now().checked_sub(SPAN * 19 / 20 - Duration::from_millis(30)).unwrap();
        let hold = Hold::since(almost, SPAN);
        assert!(matches!(hold.guard(pending::<()>()).await, Err(StoreError::Stale)));
        hold.prolong(Instant::now(), SPAN);
        let work = async {
            tokio::task::yield_now().await;
            7
        };
        assert_eq!(hold.guard(work).await.unwrap(), 7);
    }
}
