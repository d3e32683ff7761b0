//! The keeper of Redis: connects, renews the sentinel, and rebuilds from the ledger what a Redis has lost.
//! See `store::reviews::epoch` for what this is about.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use metrics::counter;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tracing::{info, warn};

use super::{Inner, Ledger, Result};
use crate::domain::{Gate, GateId, Ids, LaneId};
use crate::store::StoreError;
use crate::store::coordination::{Errand, Redis, Rung, Sentinel, Trouble, listen, run_errands};
use crate::store::keys::chat_key;
use crate::store::reviews::{epoch, placed, put_all};

/// Between two looks at the sentinel.
const ROUND: Duration = Duration::from_secs(1);
/// Between two looks at the server's settings.
const INSPECTION: u32 = 10;
/// The first connection is waited for, so that the first plan finds one; a Redis that is down does not hold up the start.
const FIRST: Duration = Duration::from_millis(500);
/// A rebuild that was soon lost again is tried again after a pause that doubles up to this: a server that throws keys away, or
/// another process with another Redis, must not make the ledger read all its gates every second.
const LONGEST_PAUSE: Duration = Duration::from_secs(15);
/// Gates of one page.
const PAGE: i64 = 200;
/// What is in Redis for a gate that the ledger does not know may be of a transaction that is not committed yet.
const UNCOMMITTED: Duration = Duration::from_secs(60);

/// The tasks that go on with one Redis; they end with it.
#[derive(Debug)]
pub(super) struct Keeper(Vec<JoinHandle<()>>);

impl Drop for Keeper {
    fn drop(&mut self) {
        self.end();
    }
}

/// Why a rebuild came to nothing.
#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error("redis: {0}")]
    Redis(#[from] Trouble),
    #[error(transparent)]
    Ledger(#[from] StoreError),
    #[error("redis lost it while it was rebuilt")]
    Lost,
}

impl Keeper {
    pub(super) async fn start(inner: &Arc<Inner>, redis: &Arc<Redis>, errands: mpsc::Receiver<Errand>) -> Arc<Self> {
        // What it says of its trouble is noted by the rounds below; what is to be said of its settings is said from the first.
        let first = async {
            if redis.connect().await.is_ok() {
                redis.inspect().await;
            }
        };
        let _late = tokio::time::timeout(FIRST, first).await;
        let ledger = Ledger {
            inner: Arc::clone(inner),
            acceptor: None,
            keeper: None,
        };
        let bells = Arc::clone(inner);
        Arc::new(Self(vec![
            tokio::spawn(run_errands(Arc::clone(redis), errands)),
            tokio::spawn(listen(Arc::clone(redis), move |rung| bells.bells.sound(rung))),
            tokio::spawn(keep(ledger, Arc::clone(redis))),
        ]))
    }
}

impl Keeper {
    /// Nothing goes on any more.
    pub(super) fn end(&self) {
        for task in &self.0 {
            task.abort();
        }
    }
}

async fn keep(ledger: Ledger, redis: Arc<Redis>) {
    let mut pace = Pace::default();
    let mut round: u32 = 0;
    // Who died before us may have left something that its commit had ended.
    let mut swept = false;
    loop {
        match turn(&ledger, &redis, &mut pace, &mut swept).await {
            Ok(()) => {
                redis.note(None);
                if round.is_multiple_of(INSPECTION) {
                    redis.inspect().await;
                }
                round = round.wrapping_add(1);
            }
            Err(Failed::Redis(trouble)) => {
                redis.note(Some(&trouble));
                // Whoever comes back may have other settings.
                round = 0;
            }
            Err(failed @ (Failed::Ledger(_) | Failed::Lost)) => {
                warn!(%failed, "the look-up of pending reviews could not be rebuilt; trying again");
            }
        }
        // Whoever listens hears at least this.
        redis.wake(Rung::default());
        tokio::select! {
            () = tokio::time::sleep(ROUND) => (),
            // A server that was only started anew is back at once.
            () = redis.cut() => tokio::time::sleep(ROUND / 10).await,
        }
    }
}

async fn turn(ledger: &Ledger, redis: &Redis, pace: &mut Pace, swept: &mut bool) -> std::result::Result<(), Failed> {
    redis.connect().await?;
    let epoch = epoch_now(ledger).await?;
    let sentinel = redis.verify(&epoch).await?;
    let stale = redis.take_stale();
    match sentinel {
        Sentinel::Building => (),
        Sentinel::InForce if !stale => {
            if !std::mem::replace(swept, true) {
                sweep(ledger, redis, &open_now(ledger).await?).await?;
            }
        }
        Sentinel::InForce | Sentinel::Missing => {
            if pace.may_begin() {
                let done = rebuild(ledger, redis).await;
                pace.ended();
                if done.is_err() {
                    redis.mark_stale();
                }
                *swept = true;
                return done;
            }
        }
    }
    if stale {
        redis.mark_stale();
    }
    Ok(())
}

async fn epoch_now(ledger: &Ledger) -> Result<String> {
    let mut read = ledger.read().await?;
    epoch::now(&mut read.tx).await
}

/// Puts everything that is open into Redis, and what is decided out of it.
async fn rebuild(ledger: &Ledger, redis: &Redis) -> std::result::Result<(), Failed> {
    let began = Instant::now();
    let epoch = Ids::random().token();
    // Before the ledger names the epoch: whoever opens a gate in it finds this Redis being built, and the gate counts as known.
    if !redis.begin(&epoch).await? {
        return Ok(());
    }
    let mut tx = ledger.begin().await?;
    let shared = ledger.inner.is_shared();
    epoch::begin(&mut tx.tx, shared, &epoch).await?;
    tx.commit().await?;
    let (mut put, mut after) = (Vec::new(), None);
    loop {
        let gates = page(ledger, after.as_ref()).await?;
        let Some(last) = gates.last() else { break };
        after = Some((last.lane_id.clone(), last.id.clone()));
        let now = ledger.inner.clock.now();
        let kept = gates.iter().map(placed).collect::<Result<Vec<_>>>()?;
        if !put_all(redis, &kept, now, &epoch).await? || !redis.advance(&epoch, false).await? {
            return Err(Failed::Lost);
        }
        put.extend(kept.into_iter().map(|one| (one.lane, one.chat, one.review.review_id)));
    }
    // Whoever decided one of them before it was put had nothing to drop; whoever does so after this look will.
    let open = open_now(ledger).await?;
    let decided: Vec<_> = put.iter().filter(|(_, _, id)| !open.ids.contains(id)).cloned().collect();
    for some in decided.chunks(100) {
        redis.remove_all(some).await?;
    }
    if !redis.advance(&epoch, true).await? {
        return Err(Failed::Lost);
    }
    counter!("countersign_redis_rebuilds_total").increment(1);
    info!(
        open = put.len() - decided.len(),
        ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        "the look-up of pending reviews is rebuilt"
    );
    sweep(ledger, redis, &open).await
}

/// What is open.
#[derive(Debug, Default)]
struct Open {
    lanes: HashSet<LaneId>,
    ids: HashSet<String>,
}

async fn open_now(ledger: &Ledger) -> Result<Open> {
    let (mut open, mut after) = (Open::default(), None);
    loop {
        let gates = page(ledger, after.as_ref()).await?;
        let Some(last) = gates.last() else { return Ok(open) };
        after = Some((last.lane_id.clone(), last.id.clone()));
        for gate in gates {
            open.ids.insert(gate.id.as_str().to_owned());
            open.lanes.insert(gate.lane_id);
        }
    }
}

/// Drops what is in Redis of gates that were decided.
async fn sweep(ledger: &Ledger, redis: &Redis, open: &Open) -> std::result::Result<(), Failed> {
    let mut cursor = 0;
    loop {
        let (next, lanes) = redis.lanes(cursor).await?;
        for lane in lanes.into_iter().filter(|lane| !open.lanes.contains(lane)) {
            let Some((id, created_at)) = redis.review_of(&lane).await? else {
                continue;
            };
            // It may have been opened since, or be about to be.
            let gone = match ledger.read().await?.gate(&GateId::new(&id)).await? {
                Some(record) => record.decision.is_some().then(|| chat_key(&record.gate.conversation)),
                None => (ledger.inner.clock.now().since(created_at) > UNCOMMITTED).then(Vec::new),
            };
            if let Some(chat) = gone {
                redis.remove_all(&[(lane, chat, id)]).await?;
            }
        }
        if next == 0 {
            return Ok(());
        }
        cursor = next;
    }
}

async fn page(ledger: &Ledger, after: Option<&(LaneId, GateId)>) -> Result<Vec<Gate>> {
    ledger.read().await?.open_gates_after(after, PAGE).await
}

/// When the next rebuild may begin.
#[derive(Debug)]
struct Pace {
    not_before: Instant,
    pause: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            not_before: Instant::now(),
            pause: ROUND,
        }
    }
}

impl Pace {
    fn may_begin(&mut self) -> bool {
        let now = Instant::now();
        if now < self.not_before {
            return false;
        }
        // What lasted is over: the next trouble is another one.
        if now > self.not_before + 3 * self.pause {
            self.pause = ROUND;
        }
        true
    }

    fn ended(&mut self) {
        self.not_before = Instant::now() + self.pause;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }
}
