//! A claim that is over moves nothing any more.

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
