//! Redis: a look-up of pending reviews that expires, and wake-ups between processes. The database knows everything that it knows.
//!
//! One task writes the reviews, after the commit and in order. What Redis refuses, loses or answers late costs a query: triage asks it
//! first and the database next. Only a hit is used, and the database says what it is worth.

mod review;
mod wakes;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use countersign_agent::domain::{GateId, LaneId};
use parking_lot::Mutex;
use redis::Value;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::AbortOnDropHandle;

pub(super) use review::ReviewChange;
pub(super) use wakes::Ready;

use crate::config::RedisAddress;
use crate::store::StoreError;
use wakes::Wakes;
use wire::{BACKGROUND, RedisTrouble, RedisWire};

/// A look-up waits so long for Redis; then the connection is cut, and the next look-ups go to the database at once.
const LOOK_UP: Duration = Duration::from_millis(250);
/// Writes that may wait for their turn: a Redis that does not answer must not fill our memory.
const MAX_JOBS: usize = 4096;
/// Between two looks at how Redis stands.
const ROUND: Duration = Duration::from_secs(1);
/// The start waits so long for the first connection, so that the first review finds one.
const FIRST_CONNECTION: Duration = Duration::from_millis(500);
/// Milliseconds after which the key that shows that Redis takes writes expires.
const PROBE_TTL: i64 = 5_000;

/// How the coordination stands, for `/readyz`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CoordinationHealth {
    /// Something is to be mended.
    pub degraded: bool,
    /// In words.
    pub message: String,
}

/// Work of the background task.
#[derive(Debug)]
enum RedisJob {
    Write(ReviewChange),
    /// Everything before it is done.
    Finish(oneshot::Sender<()>),
}

/// The writes that wait for their turn.
#[derive(Debug)]
pub(super) struct Jobs(mpsc::Receiver<RedisJob>);

/// One Redis, as this process uses it.
#[derive(Debug)]
pub(super) struct Redis {
    wire: Arc<RedisWire>,
    prefix: String,
    jobs: mpsc::Sender<RedisJob>,
    /// Wake-ups from and for other processes.
    pub(super) wakes: Arc<Wakes>,
    /// Why it does not do what it is asked for.
    trouble: Mutex<Option<RedisTrouble>>,
}

/// The background tasks of one Redis; they end with this.
#[derive(Debug)]
pub(super) struct RedisTasks {
    redis: Arc<Redis>,
    tasks: Vec<AbortOnDropHandle<()>>,
}

impl RedisTasks {
    /// Waits until everything is written, 1 s at most, and ends the tasks.
    pub(super) async fn finish(&self) {
        self.redis.finish().await;
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl Redis {
    /// The handle, and the writes that [`Redis::start`] does.
    ///
    /// # Errors
    /// `Unusable` for an address that cannot be meant.
    pub(super) fn new(url: &SecretString, prefix: &str) -> Result<(Arc<Self>, Jobs), StoreError> {
        let address = RedisAddress::parse(url.expose_secret()).map_err(|why| StoreError::Unusable(format!("store.redis_url: {why}")))?;
        let (jobs, list) = mpsc::channel(MAX_JOBS);
        let wire = Arc::new(RedisWire::new(address));
        let redis = Self {
            wakes: Arc::new(Wakes::new(Arc::clone(&wire), prefix)),
            wire,
            prefix: prefix.to_owned(),
            jobs,
            trouble: Mutex::default(),
        };
        Ok((Arc::new(redis), Jobs(list)))
    }

    /// Connects, and starts the background tasks; `wake_here` is called for what other processes commit. A Redis that is down does not
    /// hold up the start.
    pub(super) async fn start(self: &Arc<Self>, jobs: Jobs, wake_here: impl Fn(Ready) + Send + Sync + 'static) -> RedisTasks {
        let _late = tokio::time::timeout(FIRST_CONNECTION, self.wire.connect()).await;
        let tasks = [
            tokio::spawn(work(Arc::clone(self), jobs)),
            tokio::spawn(Arc::clone(&self.wakes).listen(wake_here)),
            tokio::spawn(keep(Arc::clone(self))),
        ];
        RedisTasks {
            redis: Arc::clone(self),
            tasks: tasks.into_iter().map(AbortOnDropHandle::new).collect(),
        }
    }

    /// The review that may be pending in this lane. `None` says nothing: Redis may be down, empty or late.
    pub(super) async fn find(&self, lane: &LaneId) -> Option<GateId> {
        let mut command = redis::cmd("HGET");
        command.arg(self.key(lane)).arg(review::ID);
        match self.wire.ask("find", &[command], LOOK_UP).await.as_deref() {
            Ok([Value::BulkString(id)]) => String::from_utf8(id.clone()).ok().map(GateId::new),
            _ => None,
        }
    }

    /// Queues this write. It is dropped when the queue is full.
    pub(super) fn write(&self, change: ReviewChange) {
        let _full = self.jobs.try_send(RedisJob::Write(change));
    }

    /// Waits until everything is written, 1 s at most.
    async fn finish(&self) {
        let (done, finished) = oneshot::channel();
        let _full = self.jobs.try_send(RedisJob::Finish(done));
        // What is not written in time expires.
        let _late = tokio::time::timeout(BACKGROUND, finished).await;
    }

    /// How it stands.
    pub(super) fn standing(&self) -> CoordinationHealth {
        let trouble = self.trouble.lock();
        CoordinationHealth {
            degraded: trouble.is_some(),
            message: trouble.as_ref().map_or_else(
                || "redis".to_owned(),
                |trouble| format!("redis: {trouble}; the ledger is asked instead, work of other processes is found within a second"),
            ),
        }
    }

    /// Connects if there is no connection, and does what it is there for.
    async fn probe(&self) -> Result<(), RedisTrouble> {
        if !self.wire.is_up() {
            self.wire.connect().await?;
        }
        // Both, each time: a server that is full still passes messages on.
        let (written, told) = (self.write_probe().await, self.wakes.beat().await);
        written.and(told)
    }

    /// Writes: a server that is full, or a replica, only answers reads.
    async fn write_probe(&self) -> Result<(), RedisTrouble> {
        let mut probe = redis::cmd("SET");
        probe.arg(format!("{}:probe", self.prefix)).arg(1).arg("PX").arg(PROBE_TTL);
        self.wire.ask("probe", &[probe], BACKGROUND).await.map(drop)
    }

    fn note(&self, trouble: Option<RedisTrouble>) {
        let mut noted = self.trouble.lock();
        // Once a change, not once a second.
        match &trouble {
            Some(trouble) if *noted != Some(trouble.clone()) => {
                tracing::error!(%trouble, "redis is degraded; work goes on by the ledger");
            }
            None if noted.is_some() => tracing::info!("redis works again"),
            Some(_) | None => (),
        }
        *noted = trouble;
    }

    fn key(&self, lane: &LaneId) -> String {
        format!("{}:review:{lane}", self.prefix)
    }
}

/// Tries everything that a running gateway asks of its Redis: writes a key that expires, publishes and subscribes.
///
/// # Errors
/// `Unusable` for an address that cannot be meant, `Unavailable` for a server that is not reached or refuses.
pub async fn try_redis(url: &SecretString, prefix: &str) -> Result<(), StoreError> {
    let (redis, _jobs) = Redis::new(url, prefix)?;
    let tried = async {
        redis.wire.connect().await?;
        redis.wire.refuse_node().await?;
        redis.write_probe().await?;
        redis.wakes.try_both().await
    };
    tried.await.map_err(|trouble| StoreError::Unavailable(format!("redis: {trouble}")))
}

/// Writes and publishes what follows commits, until the ledger is gone.
async fn work(redis: Arc<Redis>, mut jobs: Jobs) {
    loop {
        // Not `biased`: on a busy gateway there is always something to publish, and the writes would wait for ever.
        tokio::select! {
            () = redis.wakes.publishing.notified() => redis.wakes.publish().await,
            job = jobs.0.recv() => match job {
                // Without a connection it fails at once.
                Some(RedisJob::Write(change)) => drop(redis.wire.ask(change.name(), &[change.command(|lane| redis.key(lane))], BACKGROUND).await),
                Some(RedisJob::Finish(done)) => drop(done.send(())),
                None => return,
            },
        }
    }
}

/// Probes Redis once a second.
async fn keep(redis: Arc<Redis>) {
    loop {
        let trouble = redis.probe().await.err();
        let reached = trouble.is_none();
        redis.note(trouble);
        tokio::select! {
            () = tokio::time::sleep(ROUND) => (),
            // A server that was only started anew is back at once. One that refuses to be written to is not asked faster.
            () = redis.wire.cut.notified(), if reached => tokio::time::sleep(ROUND / 10).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// design: what follows commits waits in a queue with a bound while Redis does not answer; what finds no room is not written, and a
    /// process that ends does not wait for it.
    #[tokio::test]
    async fn writes_do_not_pile_up() {
        let (redis, list) = Redis::new(&"redis://127.0.0.1:1/0".into(), "test").unwrap();
        for number in 0..=MAX_JOBS {
            redis.write(ReviewChange::Remove {
                lane: LaneId::new("lane"),
                review: GateId::new(number.to_string()),
            });
        }
        assert_eq!(list.0.len(), MAX_JOBS);
        let _working = AbortOnDropHandle::new(tokio::spawn(work(Arc::clone(&redis), list)));
        redis.finish().await;
        while redis.jobs.capacity() < MAX_JOBS {
            tokio::task::yield_now().await;
        }
    }
}
