//! Redis: what expires, and what wakes other processes. The ledger knows everything that it knows.
//!
//! A Redis that is down, slow, full, emptied or rolled back costs nobody an approval: what was not written there, or may be
//! lost there, shows in the ledger's *epoch*, without which nobody believes that something is not there (`store::reviews`).

mod inspect;
mod scripts;
mod wakes;
mod wire;

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redis::Value;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::sync::{Notify, mpsc, oneshot};

pub(super) use wakes::{Rung, listen};
pub(super) use wire::Trouble;

use crate::config::RedisAddress;
use crate::domain::{Ids, LaneId, Millis};
use crate::store::StoreError;
use wire::Wire;

/// What a transaction waits for Redis, once; then the line is cut, and the next goes on without.
const IN_THE_WAY: Duration = Duration::from_millis(250);
/// What nobody waits for.
const BEHIND: Duration = Duration::from_secs(1);
/// Errands that wait for their turn at most: a Redis that does not answer must not fill our memory.
const ERRANDS: usize = 4096;
/// A sentinel that nobody renews ends after this.
const SENTINEL: i64 = 30_000;
/// The key that shows that writes go through ends after this.
const PROBE: i64 = 5_000;
/// A rebuild that does not go on for so long is dead.
const BUILDING: i64 = 10_000;
/// How long a note in a chat outlives its gate: more than a sentinel lives, so that a leap of the server's clock which ends
/// a note ends the sentinel, too.
const SLACK: i64 = 60_000;

/// How the coordination stands, for `/readyz`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Something is to be mended.
    pub degraded: bool,
    /// In words.
    pub message: String,
}

/// A review to keep or to drop after the commit.
#[derive(Debug)]
pub(super) enum Errand {
    /// It lapses at another moment.
    Touch {
        lane: LaneId,
        review: String,
        expires_at: Millis,
        now: Millis,
    },
    /// It was decided.
    Remove { lane: LaneId, chat: Vec<u8>, review: String },
    /// Everything before it is done.
    Finish(oneshot::Sender<()>),
}

/// A review as the scripts take it.
pub(super) struct Kept<'a> {
    pub(super) lane: &'a LaneId,
    pub(super) chat: &'a [u8],
    pub(super) review: &'a str,
    pub(super) created_at: Millis,
    pub(super) expires_at: Millis,
    pub(super) fields: &'a [(&'a str, &'a str)],
}

/// What a look into a chat's notes gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Noted {
    /// Something is open.
    Yes,
    /// Nothing is open.
    No,
    /// Ask the ledger.
    Unknown,
}

/// How the sentinel stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sentinel {
    /// This Redis has everything of the epoch.
    InForce,
    /// Somebody is rebuilding.
    Building,
    /// It has to be rebuilt.
    Missing,
}

/// One Redis, as this process uses it.
#[derive(Debug)]
pub(super) struct Redis {
    wire: Wire,
    prefix: String,
    /// This process's name on the channel, so that it ignores its own messages.
    origin: String,
    errands: mpsc::Sender<Errand>,
    /// Bells to ring elsewhere.
    rung: AtomicU8,
    ring: Notify,
    /// An errand failed: what Redis keeps may be stale.
    stale: AtomicBool,
    standing: Mutex<inspect::Findings>,
}

impl Redis {
    /// The handle, and the errands that [`Redis::run_errands`] does.
    pub(super) fn new(url: &str, prefix: &str) -> Result<(Self, mpsc::Receiver<Errand>), StoreError> {
        let address = RedisAddress::parse(url).map_err(|why| StoreError::Unusable(format!("store.redis_url: {why}")))?;
        let (errands, list) = mpsc::channel(ERRANDS);
        let redis = Self {
            wire: Wire::new(address),
            prefix: prefix.to_owned(),
            origin: Ids::random().token(),
            errands,
            rung: AtomicU8::new(0),
            ring: Notify::new(),
            stale: AtomicBool::new(false),
            standing: Mutex::default(),
        };
        Ok((redis, list))
    }

    /// Keeps a review; true: the Redis of this epoch has it. Waits 250 ms at most.
    pub(super) async fn put(&self, kept: &Kept<'_>, now: Millis, epoch: &str) -> bool {
        self.keep(&[kept], now, epoch, IN_THE_WAY).await.is_ok_and(|all| all)
    }

    /// Keeps many reviews in the background.
    pub(super) async fn put_all(&self, kept: &[&Kept<'_>], now: Millis, epoch: &str) -> Result<bool, Trouble> {
        self.keep(kept, now, epoch, BEHIND).await
    }

    async fn keep(&self, kept: &[&Kept<'_>], now: Millis, epoch: &str, limit: Duration) -> Result<bool, Trouble> {
        let ready = self.sentinel();
        let mut commands = Vec::with_capacity(kept.len() * 2);
        for one in kept {
            // Both live until the gate's end at the latest, however little of it is left.
            let ttl = one.expires_at.0.saturating_sub(now.0).max(1);
            let created_at = one.created_at.rfc3339();
            commands.push(scripts::put(&self.review(one.lane), ttl, &created_at, one.fields));
            let chat = self.chat(one.chat);
            let keys = [chat.as_str(), ready.as_str()];
            let keys = if self.wire.is_cluster() { &keys[..1] } else { &keys[..] };
            let until = one.expires_at.0.saturating_add(SLACK);
            commands.push(scripts::note(keys, one.review, until, ttl.saturating_add(SLACK), epoch));
        }
        let answers = self.wire.ask("put", &commands, limit).await?;
        Ok(answers.iter().skip(1).step_by(2).all(|answer| *answer == Value::Int(1)))
    }

    /// Is something open in this chat? Waits 250 ms at most.
    pub(super) async fn look(&self, chat: &[u8], now: Millis, epoch: &str) -> Noted {
        let (chat, ready) = (self.chat(chat), self.sentinel());
        let keys = [chat.as_str(), ready.as_str()];
        // A Cluster has both on different nodes: what is not there was perhaps lost with one of them.
        let keys = if epoch.is_empty() || self.wire.is_cluster() {
            &keys[..1]
        } else {
            &keys[..]
        };
        let asked = self.wire.ask("look", &[scripts::look(keys, now.0, epoch)], IN_THE_WAY).await;
        match asked.as_deref() {
            Ok([Value::Int(1)]) => Noted::Yes,
            Ok([Value::Int(0)]) => Noted::No,
            Ok(_) | Err(_) => Noted::Unknown,
        }
    }

    /// The fields of a review, as `name value name value …`.
    pub(super) async fn find(&self, lane: &LaneId) -> Result<Vec<String>, Trouble> {
        let mut command = redis::cmd("HGETALL");
        command.arg(self.review(lane));
        let answers = self.wire.ask("find", &[command], IN_THE_WAY).await?;
        Ok(answers.iter().flat_map(inspect::texts).collect())
    }

    /// Id and age of the review of a lane.
    pub(super) async fn review_of(&self, lane: &LaneId) -> Result<Option<(String, Millis)>, Trouble> {
        let mut command = redis::cmd("HMGET");
        command.arg(self.review(lane)).arg("review_id").arg("created_at");
        let answers = self.wire.ask("find", &[command], BEHIND).await?;
        let texts: Vec<String> = answers.iter().flat_map(inspect::texts).collect();
        Ok(match texts.as_slice() {
            [id, created_at] => Millis::of_rfc3339(created_at).map(|at| (id.clone(), at)),
            _ => None,
        })
    }

    /// To be done after the commit, in the order of the calls. What finds no room is left to the next rebuild.
    pub(super) fn later(&self, errand: Errand) {
        if self.errands.try_send(errand).is_err() {
            self.mark_stale();
        }
    }

    /// Waits until what was to be done is done, 1 s at most: a process that ends leaves nothing stale.
    pub(super) async fn finish(&self) {
        let (done, finished) = oneshot::channel();
        self.later(Errand::Finish(done));
        // Whether it was done or given up: what is left lapses, or the next process drops it.
        let _late = tokio::time::timeout(BEHIND, finished).await;
    }

    /// Drops reviews that are no more.
    pub(super) async fn remove_all(&self, gone: &[(LaneId, Vec<u8>, String)]) -> Result<(), Trouble> {
        let commands: Vec<_> = gone
            .iter()
            .flat_map(|(lane, chat, review)| self.removal(lane, chat, review))
            .collect();
        self.wire.ask("remove", &commands, BEHIND).await.map(|_| ())
    }

    fn removal(&self, lane: &LaneId, chat: &[u8], review: &str) -> [redis::Cmd; 2] {
        let mut unnote = redis::cmd("ZREM");
        unnote.arg(self.chat(chat)).arg(review);
        [scripts::drop(&self.review(lane), review), unnote]
    }

    /// Makes the connection if there is none.
    pub(super) async fn connect(&self) -> Result<(), Trouble> {
        if self.wire.is_up() { Ok(()) } else { self.wire.connect().await }
    }

    /// Waits until the line is cut.
    pub(super) async fn cut(&self) {
        self.wire.cut.notified().await;
    }

    /// Renews the sentinel. A write goes before it, whatever it says: a server that only answers reads is none.
    pub(super) async fn verify(&self, epoch: &str) -> Result<Sentinel, Trouble> {
        let mut probe = redis::cmd("SET");
        probe.arg(format!("{}:probe", self.prefix)).arg(1).arg("PX").arg(PROBE);
        let verify = scripts::verify(&self.sentinel(), epoch, SENTINEL);
        let answers = self.wire.ask("verify", &[probe, verify], BEHIND).await?;
        Ok(match answers.as_slice() {
            [_, Value::Int(1)] if !epoch.is_empty() => Sentinel::InForce,
            [_, Value::Int(0)] => Sentinel::Building,
            _ => Sentinel::Missing,
        })
    }

    /// Begins a rebuild; false: somebody else is at it.
    pub(super) async fn begin(&self, epoch: &str) -> Result<bool, Trouble> {
        let answers = self
            .wire
            .ask("rebuild", &[scripts::begin(&self.sentinel(), epoch, BUILDING)], BEHIND)
            .await?;
        match answers.as_slice() {
            [Value::Int(-1)] => Err(Trouble::Refused("INFO: its user may not ask for it".to_owned())),
            [Value::Int(1)] => Ok(true),
            _ => Ok(false),
        }
    }

    /// Goes on with a rebuild, or ends it; false: what was put is lost again.
    pub(super) async fn advance(&self, epoch: &str, done: bool) -> Result<bool, Trouble> {
        let (state, ttl) = if done { ("ready", SENTINEL) } else { ("building", BUILDING) };
        let answers = self
            .wire
            .ask("rebuild", &[scripts::advance(&self.sentinel(), state, epoch, ttl)], BEHIND)
            .await?;
        Ok(answers == [Value::Int(1)])
    }

    /// The lanes with a review in Redis, a page at a time; `cursor` 0 begins, and 0 comes back at the end. A Cluster is not looked
    /// through: what is stale there lapses.
    pub(super) async fn lanes(&self, cursor: u64) -> Result<(u64, Vec<LaneId>), Trouble> {
        if self.wire.is_cluster() {
            return Ok((0, Vec::new()));
        }
        let mut command = redis::cmd("SCAN");
        let pattern = format!("{}:review:*", self.prefix);
        command.arg(cursor).arg("MATCH").arg(&pattern).arg("COUNT").arg(500);
        let answers = self.wire.ask("scan", &[command], BEHIND).await?;
        let Some(Value::Array(parts)) = answers.into_iter().next() else {
            return Ok((0, Vec::new()));
        };
        let cursor = parts.first().and_then(|cursor| inspect::texts(cursor).first()?.parse().ok());
        let keys = parts.get(1).map(inspect::texts).unwrap_or_default();
        let lane = |key: &String| key.get(pattern.len() - 1..).map(LaneId::new);
        Ok((cursor.unwrap_or(0), keys.iter().filter_map(lane).collect()))
    }

    /// An errand failed since the last call.
    pub(super) fn take_stale(&self) -> bool {
        self.stale.swap(false, Ordering::SeqCst)
    }

    /// Something in Redis may be stale.
    pub(super) fn mark_stale(&self) {
        self.stale.store(true, Ordering::SeqCst);
    }

    /// Asks the server how it is set up.
    pub(super) async fn inspect(&self) {
        let found = inspect::look(&self.wire).await;
        self.findings(|findings| findings.setup = found);
    }

    /// The server does, or does not do, what it is asked for.
    pub(super) fn note(&self, trouble: Option<&Trouble>) {
        self.findings(|findings| findings.trouble = trouble.map(ToString::to_string));
    }

    /// How it stands.
    pub(super) fn standing(&self) -> Standing {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner).standing()
    }

    fn findings(&self, change: impl FnOnce(&mut inspect::Findings)) {
        let mut findings = self.standing.lock().unwrap_or_else(PoisonError::into_inner);
        let before = findings.standing();
        change(&mut findings);
        let now = findings.standing();
        // Once a change, not once a second.
        if now.degraded && now != before {
            tracing::error!(message = now.message, "coordination is degraded; work goes on by the ledger");
        } else if before.degraded && !now.degraded {
            tracing::info!(message = now.message, "coordination is well again");
        }
    }

    fn sentinel(&self) -> String {
        format!("{}:ready", self.prefix)
    }

    fn review(&self, lane: &LaneId) -> String {
        format!("{}:review:{lane}", self.prefix)
    }

    fn chat(&self, chat: &[u8]) -> String {
        format!("{}:chat:{}", self.prefix, hex::encode(chat))
    }

    fn channel(&self) -> String {
        format!("{}:wake", self.prefix)
    }
}

/// Looks how a Redis stands, beside those who use it. Nothing is written.
///
/// # Errors
/// `Unusable` for an address that cannot be meant, `Unavailable` for a server that is not reached.
pub async fn look_at_redis(url: &SecretString) -> Result<Standing, StoreError> {
    let (redis, _nothing) = Redis::new(url.expose_secret(), "countersign")?;
    let reached = redis.connect().await;
    reached.map_err(|trouble| StoreError::Unavailable(format!("redis: {trouble}")))?;
    redis.inspect().await;
    Ok(redis.standing())
}

/// Does what follows commits, in order, until the ledger is gone.
pub(super) async fn run_errands(redis: Arc<Redis>, mut list: mpsc::Receiver<Errand>) {
    loop {
        tokio::select! {
            biased;
            () = redis.ring.notified() => redis.publish().await,
            errand = list.recv() => match errand {
                Some(errand) => {
                    if !redis.run(errand).await {
                        // What has come after it follows commits, too: the rebuild that mends the one knows of all of them. Tried one by
                        // one, each could wait for a Redis that does not answer.
                        while list.try_recv().is_ok() {}
                        redis.mark_stale();
                    }
                }
                None => return,
            },
        }
    }
}

impl Redis {
    /// `false` means it came to nothing.
    async fn run(&self, errand: Errand) -> bool {
        let (what, commands) = match errand {
            Errand::Touch {
                lane,
                review,
                expires_at,
                now,
            } => {
                let ttl = expires_at.0.saturating_sub(now.0).max(1);
                let touch = scripts::touch(&self.review(&lane), &review, &expires_at.rfc3339(), ttl);
                ("touch", vec![touch])
            }
            Errand::Remove { lane, chat, review } => ("remove", self.removal(&lane, &chat, &review).to_vec()),
            Errand::Finish(done) => {
                let _gone = done.send(());
                return true;
            }
        };
        self.wire.ask(what, &commands, BEHIND).await.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// design: what follows commits waits in a queue with a bound while Redis does not answer; what finds no room, and what waits behind an
    /// errand that failed, is left to a rebuild, and nobody who ends waits for it.
    #[tokio::test]
    async fn errands_do_not_pile_up() {
        let (redis, list) = Redis::new("redis://127.0.0.1:1/0", "test").unwrap();
        let redis = Arc::new(redis);
        let errand = |number: usize| Errand::Remove {
            lane: LaneId::new("lane"),
            chat: Vec::new(),
            review: number.to_string(),
        };
        for number in 0..ERRANDS {
            redis.later(errand(number));
        }
        assert!(!redis.take_stale());
        redis.later(errand(ERRANDS));
        assert_eq!((list.len(), redis.take_stale()), (ERRANDS, true));
        let doing = tokio::spawn(run_errands(Arc::clone(&redis), list));
        redis.finish().await;
        while redis.errands.capacity() < ERRANDS {
            tokio::task::yield_now().await;
        }
        assert!(redis.take_stale());
        // One that failed took all the others with it.
        doing.abort();
    }
}
