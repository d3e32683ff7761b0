//! Wake-ups between processes: the kinds of work that a commit made ready, published to all. A message may be lost: workers look every
//! second anyway.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use countersign_agent::domain::Ids;
use futures_util::StreamExt as _;
use parking_lot::Mutex;
use redis::aio::PubSub;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::wire::{BACKGROUND, RedisTrouble, RedisWire};

/// After a message our workers wait so long for more, and then look once: the process that sent it is already at work.
const GATHER: Duration = Duration::from_millis(15);
/// Every process publishes once a second. One that hears nothing for so long has lost its connection.
const SILENCE: Duration = Duration::from_secs(4);
/// Between two tries to subscribe. It grows while we may not.
const AGAIN: Duration = Duration::from_millis(500);
/// It grows so far.
const AGAIN_AT_MOST: Duration = Duration::from_secs(30);

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

/// What this process tells the others, and what it hears from them.
#[derive(Debug)]
pub(in crate::store) struct Wakes {
    wire: Arc<RedisWire>,
    channel: String,
    /// This process's name on the channel, so that it ignores its own messages.
    origin: String,
    unpublished: AtomicU8,
    /// Notified when there is something to publish.
    pub(super) publishing: Notify,
    /// May we subscribe? `None` before the first try has ended.
    may_hear: Mutex<Option<Result<(), RedisTrouble>>>,
}

impl Wakes {
    pub(super) fn new(wire: Arc<RedisWire>, prefix: &str) -> Self {
        Self {
            wire,
            channel: format!("{prefix}:wake"),
            origin: Ids::random().token(),
            unpublished: AtomicU8::new(0),
            publishing: Notify::new(),
            may_hear: Mutex::default(),
        }
    }

    /// Has the other processes woken soon. It never waits; what was not published yet becomes one message.
    pub(in crate::store) fn wake(&self, ready: Ready) {
        self.unpublished.fetch_or(ready.bits(), Ordering::SeqCst);
        self.publishing.notify_one();
    }

    pub(super) async fn publish(&self) {
        let bits = self.unpublished.swap(0, Ordering::SeqCst);
        // Counted as an error; a lost message costs a second.
        let _lost = self.tell(bits).await;
    }

    /// Publishes an empty wake-up: a process that hears none knows that it is cut off. Tells also when we may not publish or not subscribe.
    pub(super) async fn beat(&self) -> Result<(), RedisTrouble> {
        let told = self.tell(0).await;
        let may_hear = self.may_hear.lock().clone();
        // One missing right bars both as a rule, and is told once: what we cannot hear counts.
        may_hear.map_or(Ok(()), |may_hear| may_hear.and(told))
    }

    /// Publishes and subscribes once.
    pub(super) async fn try_both(&self) -> Result<(), RedisTrouble> {
        self.hear().await?;
        self.tell(0).await
    }

    async fn tell(&self, bits: u8) -> Result<(), RedisTrouble> {
        let mut command = redis::cmd("PUBLISH");
        command.arg(&self.channel).arg(format!("{} {bits}", self.origin));
        let told = self.wire.ask("publish", &[command], BACKGROUND).await;
        told.map(drop).map_err(|trouble| self.named("publish to", trouble))
    }

    async fn hear(&self) -> Result<PubSub, RedisTrouble> {
        let heard = self.wire.listen(&self.channel).await;
        heard.map_err(|trouble| self.named("subscribe to", trouble))
    }

    /// A refusal for want of a right, with what it is about.
    fn named(&self, act: &str, trouble: RedisTrouble) -> RedisTrouble {
        match trouble {
            RedisTrouble::Refused(why) if why.starts_with("NOPERM") => RedisTrouble::Barred(format!("{act} {}: {why}", self.channel)),
            other => other,
        }
    }

    /// What another process made ready; nothing of our own messages.
    fn foreign_bits(&self, message: &[u8]) -> Option<u8> {
        let (origin, bits) = std::str::from_utf8(message).ok()?.split_once(' ')?;
        if origin == self.origin { None } else { bits.parse().ok() }
    }

    /// Listens to the other processes and calls `wake_here`, for ever.
    pub(super) async fn listen(self: Arc<Self>, wake_here: impl Fn(Ready) + Send) {
        let mut may_have_missed = false;
        let mut pause = AGAIN;
        loop {
            let heard = self.hear().await;
            // Only a missing right: whether there is a connection is asked elsewhere.
            let barred = heard.as_ref().err().filter(|trouble| matches!(trouble, RedisTrouble::Barred(_)));
            pause = if barred.is_some() { (pause * 2).min(AGAIN_AT_MOST) } else { AGAIN };
            *self.may_hear.lock() = Some(barred.cloned().map_or(Ok(()), Err));
            match heard {
                Ok(mut subscription) => {
                    if may_have_missed {
                        wake_here(Ready::ALL);
                    }
                    self.pass_on(&mut subscription, &wake_here).await;
                }
                Err(trouble) => tracing::debug!(%trouble, "cannot hear the other processes"),
            }
            may_have_missed = true;
            sleep(pause).await;
        }
    }

    /// Passes on what comes, until the connection is lost.
    async fn pass_on(&self, subscription: &mut PubSub, wake_here: &(impl Fn(Ready) + Send)) {
        let mut messages = subscription.on_message();
        let mut gathered = 0;
        let mut due = Instant::now();
        loop {
            tokio::select! {
                message = timeout(SILENCE, messages.next()) => {
                    let Ok(Some(message)) = message else { return };
                    if let Some(bits) = self.foreign_bits(message.get_payload_bytes()).filter(|bits| *bits > 0) {
                        if gathered == 0 {
                            due = Instant::now() + GATHER;
                        }
                        gathered |= bits;
                    }
                }
                () = sleep_until(due), if gathered > 0 => wake_here(Ready::of(std::mem::take(&mut gathered))),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// design: what one process publishes is what the others read.
    #[test]
    fn kinds_of_work_go_through_their_bits() {
        for bits in 0..16 {
            assert_eq!(Ready::of(bits).bits(), bits);
        }
        assert_eq!(Ready::ALL.bits(), 15);
    }
}
