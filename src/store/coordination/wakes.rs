//! Wake-ups between processes: the kinds of work that a commit made ready, published to all. A message may be lost: workers look every
//! second anyway.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::StreamExt as _;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::{BACKGROUND, Redis};

/// After a message our workers wait so long for more, and then look once: the process that sent it is already at work.
const GATHER: Duration = Duration::from_millis(15);
/// Every process speaks once a second: one that hears not even that has lost its connection.
const DEAF: Duration = Duration::from_secs(4);
/// Between two tries to subscribe.
const AGAIN: Duration = Duration::from_millis(500);

/// The kinds of work that are ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::store) struct Ready {
    pub(in crate::store) inbox: bool,
    pub(in crate::store) lanes: bool,
    pub(in crate::store) outbox: bool,
    /// Something was committed, whatever it was.
    pub(in crate::store) commit: bool,
}

impl Ready {
    const ALL: Self = Self {
        inbox: true,
        lanes: true,
        outbox: true,
        commit: true,
    };

    fn bits(self) -> u8 {
        [self.inbox, self.lanes, self.outbox, self.commit]
            .iter()
            .enumerate()
            .map(|(at, yes)| u8::from(*yes) << at)
            .sum()
    }

    fn of(bits: u8) -> Self {
        Self {
            inbox: bits & 1 != 0,
            lanes: bits & 2 != 0,
            outbox: bits & 4 != 0,
            commit: bits & 8 != 0,
        }
    }
}

impl Redis {
    /// Has the other processes woken soon. It never waits; what was not published yet becomes one message.
    pub(in crate::store) fn wake(&self, ready: Ready) {
        self.unpublished.fetch_or(ready.bits(), Ordering::SeqCst);
        self.publishing.notify_one();
    }

    pub(super) async fn publish(&self) {
        let bits = self.unpublished.swap(0, Ordering::SeqCst);
        let mut command = redis::cmd("PUBLISH");
        command.arg(self.channel()).arg(format!("{} {bits}", self.origin));
        // Counted as an error; a lost message costs a second.
        let _lost = self.wire.ask("publish", &[command], BACKGROUND).await;
    }

    fn read(&self, word: &str) -> Option<u8> {
        let (origin, bits) = word.split_once(' ')?;
        if origin == self.origin { None } else { bits.parse().ok() }
    }
}

/// Listens to the other processes and calls `wake_here`, for ever.
pub(super) async fn listen(redis: Arc<Redis>, wake_here: impl Fn(Ready) + Send) {
    let mut deaf = false;
    loop {
        match redis.wire.listen(&redis.channel()).await {
            Ok(mut ears) => {
                if deaf {
                    // Something may have been said meanwhile.
                    wake_here(Ready::ALL);
                }
                let mut words = ears.on_message();
                let mut heard = 0;
                let mut due = Instant::now();
                loop {
                    tokio::select! {
                        word = timeout(DEAF, words.next()) => {
                            let Ok(Some(word)) = word else { break };
                            let word = std::str::from_utf8(word.get_payload_bytes()).ok().and_then(|word| redis.read(word));
                            if let Some(bits) = word.filter(|bits| *bits > 0) {
                                if heard == 0 {
                                    due = Instant::now() + GATHER;
                                }
                                heard |= bits;
                            }
                        }
                        () = sleep_until(due), if heard > 0 => wake_here(Ready::of(std::mem::take(&mut heard))),
                    }
                }
            }
            Err(trouble) => tracing::debug!(%trouble, "cannot hear the other processes"),
        }
        deaf = true;
        sleep(AGAIN).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// design: what is said is what is heard.
    #[test]
    fn bells_go_through_their_bits() {
        for bits in 0..16 {
            assert_eq!(Ready::of(bits).bits(), bits);
        }
        assert_eq!(Ready::ALL.bits(), 15);
    }
}
