//! The time that the demo may take, without what its reader takes to think.

use std::time::Duration;

use anyhow::bail;
use tokio::time::{Instant, timeout};

/// Time that is spent on the parts of the demo which need no reader.
pub(super) struct TimeLimit {
    whole: Duration,
    pub(super) spent: Duration,
}

impl TimeLimit {
    pub(super) fn new(whole: Duration) -> Self {
        Self {
            whole,
            spent: Duration::ZERO,
        }
    }

    /// Does a part of the work.
    ///
    /// # Errors
    /// Those of the part, and that it does not end within what is left.
    pub(super) async fn spend<T>(&mut self, part: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
        let began = Instant::now();
        let outcome = timeout(self.whole.saturating_sub(self.spent), part).await;
        self.spent += began.elapsed();
        match outcome {
            Ok(outcome) => outcome,
            Err(_) => bail!("the demo did not finish within {} s", self.whole.as_secs()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::sleep;

    /// design: the demo's own work counts, part by part; what passes between two parts does not.
    #[tokio::test(start_paused = true)]
    async fn time_to_think_does_not_count() {
        let mut limit = TimeLimit::new(Duration::from_secs(30));
        let work = |seconds| async move {
            sleep(Duration::from_secs(seconds)).await;
            Ok(())
        };
        limit.spend(work(20)).await.unwrap();
        sleep(Duration::from_secs(600)).await;
        limit.spend(work(5)).await.unwrap();
        assert_eq!(limit.spent, Duration::from_secs(25));
        let late = limit.spend(work(10)).await.unwrap_err();
        assert_eq!(late.to_string(), "the demo did not finish within 30 s");
    }
}
