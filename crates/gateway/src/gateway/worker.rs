//! The workers: triage, lanes, dispatcher, the bot's identity, sockets, upkeep of the store and of metrics.
//!
//! Each loop sleeps until the ledger wakes it, until something is due, or for one poll. A wake-up may be missed, work may not.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use countersign_agent::domain::ChannelKind;
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{error, info, warn};

use super::dispatch::Dispatcher;
use super::outages::Lasting;
use super::sockets::{CONNECTIONS, keep_socket};
use super::state::Gateway;
use crate::channels::DeliveryError;
use crate::lanes::{Runner, WorkError};
use crate::store::{AuditHead, Hold, Lease, StoreError};

/// Lanes worked on at a time. Most of them wait for the model, which costs memory only (docs/performance.md); more than these wait in the
/// ledger, where they cost nothing.
const LANES: usize = 1024;
/// Leased lanes of one chat.
const LANES_PER_CHAT: i64 = 4;
/// Half of the first wait for the bot's id.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The longest pause between two requests for the bot's identity while the platform cannot be reached, so that it is known soon afterwards.
const UNREACHABLE_PAUSE: Duration = Duration::from_secs(2);
/// The pause between two tries while the platform refuses us: an admin must act first.
const REFUSED_PAUSE: Duration = Duration::from_secs(60);
/// Between two foldings of the metrics.
const UPKEEP: Duration = Duration::from_secs(5);
/// Before somebody, perhaps a newer version of this program, looks again at a turn that cannot be read here.
const UNREADABLE_PAUSE: Duration = Duration::from_secs(5);
/// After a store failure, so that a broken disk does not become a busy loop.
const FAILURE_PAUSE: Duration = Duration::from_millis(500);

/// The running loops, and what each of them needs.
#[derive(Clone, Debug)]
pub struct Workers {
    stop: Stop,
    tasks: TaskTracker,
    gateway: Gateway,
    /// Our name on the lanes that we work on.
    owner: String,
}

/// How a stop goes: first nothing new is begun, later what still runs is dropped.
#[derive(Clone, Debug, Default)]
struct Stop {
    soon: CancellationToken,
    now: CancellationToken,
}

impl Workers {
    /// Takes no new work and waits up to `grace` for what runs. What is not over then is dropped, and its lanes are given
    /// back within `tail`: another process goes on from the journal at once, and asks about a write call that was under way.
    pub async fn stop(self, grace: Duration, tail: Duration) {
        self.gateway.drain();
        self.stop.soon.cancel();
        self.tasks.close();
        // At once: a second signal, or a write call that does not end, leaves no time for it later.
        let noted = async {
            let mut tx = self.gateway.ledger.begin().await?;
            tx.note_stopping(&self.owner).await?;
            tx.commit().await
        };
        let ended = async {
            let (noted, ()) = tokio::join!(noted, self.tasks.wait());
            if let Err(error) = noted {
                warn!(%error, "whoever takes up our turns may take this stop for a death");
            }
        };
        if tokio::time::timeout(grace, ended).await.is_ok() {
            return;
        }
        warn!("work was still going on after the grace; whoever takes it up goes on from the journal");
        self.stop.now.cancel();
        if tokio::time::timeout(tail, self.tasks.wait()).await.is_err() {
            warn!("a lane could not be given back; it is free when its lease runs out");
        }
    }
}

/// Starts the loops of this process's roles.
#[must_use]
pub fn start_workers(gateway: &Gateway) -> Workers {
    let workers = Workers {
        stop: Stop::default(),
        tasks: TaskTracker::new(),
        gateway: gateway.clone(),
        // Unique per process start, so that a fast restart never passes for its predecessor.
        owner: format!("w_{}", gateway.ids.token()),
    };
    let (tasks, stop) = (&workers.tasks, &workers.stop.soon);
    tasks.spawn(upkeep_loop(gateway.clone(), stop.clone()));
    if gateway.roles.webhooks {
        for platform in &gateway.channels.sockets {
            for _ in 0..CONNECTIONS {
                let (gateway, platform, stop) = (gateway.clone(), Arc::clone(platform), stop.clone());
                let keep = move || keep_socket(gateway.clone(), Arc::clone(&platform), stop.clone());
                tasks.spawn(supervise("sockets", keep));
            }
        }
    }
    if !gateway.roles.workers {
        // What is accepted here others find; clicks are decided in the request, and who the bot is stands in the ledger.
        return workers;
    }
    tasks.spawn(supervise("lanes", {
        let workers = workers.clone();
        move || lane_loop(workers.clone())
    }));
    tasks.spawn(supervise("dispatch", {
        let workers = workers.clone();
        move || dispatch_loop(workers.clone())
    }));
    tasks.spawn(supervise("triage", {
        let workers = workers.clone();
        move || triage_loop(workers.clone())
    }));
    for kind in ChannelKind::PLATFORMS {
        tasks.spawn(identity_loop(gateway.clone(), stop.clone(), kind));
    }
    tasks.spawn(prune_loop(gateway.clone(), stop.clone()));
    workers
}

/// Keeps a loop alive: a panic in it is a bug, and must not leave accepted events without triage.
async fn supervise<F>(what: &'static str, start: impl Fn() -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    while let Err(died) = tokio::spawn(start()).await {
        error!(what, %died, "a worker loop panicked; it starts again");
        tokio::time::sleep(FAILURE_PAUSE).await;
    }
}

/// Runs `work` until it finds nothing, then waits; `work` says how much it found.
async fn repeat<F>(workers: &Workers, wakeup: &Notify, what: &'static str, mut work: impl FnMut() -> F)
where
    F: Future<Output = Result<usize, StoreError>>,
{
    let (gateway, stop) = (&workers.gateway, &workers.stop.soon);
    let subject = ("worker", what);
    while !stop.is_cancelled() {
        let done = work().await;
        if done.is_ok()
            && let Some(Lasting { seconds, tries }) = gateway.outages().ended(subject, Instant::now())
        {
            info!(what, seconds, tries, "the ledger works again");
        }
        match done {
            Ok(0) => {
                tokio::select! {
                    () = stop.cancelled() => (),
                    () = wakeup.notified() => (),
                    () = tokio::time::sleep(gateway.timings.poll) => (),
                }
            }
            Ok(_) => (),
            Err(error) => {
                if let Some(Lasting { seconds, tries }) = gateway.outages().failed(subject, Instant::now()) {
                    error!(%error, what, seconds, tries, "a worker met a failing ledger; trying again");
                }
                tokio::time::sleep(FAILURE_PAUSE).await;
            }
        }
    }
}

async fn triage_loop(workers: Workers) {
    let gateway = &workers.gateway;
    let wakeup = gateway.ledger.inbox_wakeup();
    repeat(&workers, &wakeup, "triage", || async {
        let handled = gateway.conversations.triage_until(|| workers.stop.soon.is_cancelled()).await?;
        if handled > 0 {
            gateway.failpoint.reach("triaged");
        }
        Ok(handled)
    })
    .await;
}

async fn dispatch_loop(workers: Workers) {
    let wakeup = workers.gateway.ledger.outbox_wakeup();
    let dispatcher = Dispatcher::new(workers.gateway.clone(), workers.owner.clone(), workers.tasks.clone());
    repeat(&workers, &wakeup, "dispatch", || dispatcher.dispatch()).await;
}

async fn lane_loop(workers: Workers) {
    let gateway = &workers.gateway;
    let wakeup = gateway.ledger.lane_wakeup();
    let room = Arc::new(Semaphore::new(LANES));
    let lease_ms = i64::try_from(gateway.timings.lease.as_millis()).unwrap_or(i64::MAX);
    repeat(&workers, &wakeup, "lanes", || async {
        let Ok(place) = Arc::clone(&room).acquire_owned().await else {
            return Ok(0);
        };
        let asked = Instant::now();
        let mut tx = gateway.ledger.begin().await?;
        let Some(lease) = tx.claim_lane(&workers.owner, lease_ms, LANES_PER_CHAT).await? else {
            return Ok(usize::from(tx.end_of_claim().await?));
        };
        tx.commit().await?;
        let hold = Hold::since(asked, gateway.timings.lease);
        let (runner, stop, wakeup) = (gateway.runner.clone(), workers.stop.clone(), Arc::clone(&wakeup));
        workers.tasks.spawn(async move {
            finish_or_give_back(&runner, lease, hold, &stop).await;
            drop(place);
            // A free place, or a free slot of that chat, may be what another lane waits for.
            wakeup.notify_one();
        });
        Ok(1)
    })
    .await;
}

/// Works on a leased lane, and gives it back however that ends. Only the leases of a process that died have to run out.
async fn finish_or_give_back(runner: &Runner, lease: Lease, hold: Hold, stop: &Stop) {
    let lane = &lease.lane_id;
    let pause = tokio::select! {
        outcome = Box::pin(runner.work_on_lane(lease.clone(), hold, stop.soon.clone())) => match outcome {
            Ok(()) => return,
            Err(WorkError::Store(StoreError::Stale)) => return info!(%lane, "lease lost; somebody else goes on"),
            Err(WorkError::Store(error @ StoreError::Unavailable(_))) => {
                warn!(%lane, %error, "work on a lane broke off; it is taken up again when the ledger answers");
                tokio::time::sleep(FAILURE_PAUSE).await;
                Duration::ZERO
            }
            Err(error) => {
                error!(%lane, %error, "work on a lane failed");
                UNREADABLE_PAUSE
            }
        },
        () = stop.now.cancelled() => Duration::ZERO,
    };
    Box::pin(runner.give_back(&lease, pause)).await;
}

/// Asks the platform who the bot is, once it is enabled and until it tells; until then group messages wait in the inbox.
async fn identity_loop(gateway: Gateway, stop: CancellationToken, kind: ChannelKind) {
    let fact = gateway.bot_fact(kind);
    // An edit of the configuration may enable it at any time.
    tokio::select! {
        () = gateway.settings.until(|live| live.is_enabled(kind)) => (),
        () = stop.cancelled() => return,
    }
    let mut pause = FIRST_PAUSE;
    let subject = ("identity", kind.as_str());
    loop {
        let asked = tokio::select! {
            asked = gateway.channels.out(kind).identity() => asked,
            () = stop.cancelled() => return,
        };
        match asked {
            Ok(id) => {
                let stored = async {
                    let mut tx = gateway.ledger.begin().await?;
                    tx.set_fact(&fact, &id).await?;
                    tx.commit().await
                };
                match stored.await {
                    Ok(()) => {
                        gateway.note_identity(kind, None);
                        let away = gateway.outages().ended(subject, Instant::now());
                        let (seconds, tries) = away.map(|away| (away.seconds, away.tries)).unzip();
                        info!(channel = kind.as_str(), bot = id, seconds, tries, "the bot knows itself");
                        gateway.ledger.inbox_wakeup().notify_one();
                        return;
                    }
                    Err(error) => warn!(%error, "the bot's identity could not be stored"),
                }
            }
            Err(error) => {
                // It may be known from an earlier start; that the platform refuses us is worth telling all the same.
                if let Some(Lasting { seconds, tries }) = gateway.outages().failed(subject, Instant::now()) {
                    warn!(channel = kind.as_str(), %error, seconds, tries, "the platform does not tell who the bot is");
                }
                gateway.note_identity(kind, Some(error.to_string()));
                pause = next_pause(pause, &error);
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(pause) => (),
        }
    }
}

/// How long to wait before the bot's id is asked for again.
fn next_pause(pause: Duration, error: &DeliveryError) -> Duration {
    let longest = match error {
        DeliveryError::Retry { .. } => UNREACHABLE_PAUSE,
        DeliveryError::Content(_) | DeliveryError::Gone(_) | DeliveryError::Forbidden(_) => REFUSED_PAUSE,
    };
    (pause * 2).min(longest)
}

async fn head_of_trail(gateway: &Gateway) -> Result<AuditHead, StoreError> {
    gateway.ledger.read().await?.audit_head().await
}

/// Folds samples of the metrics even when no scraper comes.
async fn upkeep_loop(gateway: Gateway, stop: CancellationToken) {
    while tokio::time::timeout(UPKEEP, stop.cancelled()).await.is_err() {
        gateway.meters.upkeep();
    }
}

/// Once a day, from the start on: tells the log where the approval trail stands, and removes what is old.
async fn prune_loop(gateway: Gateway, stop: CancellationToken) {
    loop {
        match head_of_trail(&gateway).await {
            Ok(head) if head.seq == 0 => (),
            // In a log that is kept elsewhere it shows later that the trail was not written anew: `audit verify --expect`.
            Ok(head) => info!(%head, "the approval trail"),
            Err(error) => warn!(%error, "the head of the approval trail cannot be read"),
        }
        let before = countersign_agent::domain::Millis(
            gateway
                .clock
                .now()
                .0
                .saturating_sub(i64::try_from(gateway.retention.as_millis()).unwrap_or(i64::MAX)),
        );
        if let Err(error) = gateway.ledger.prune(before).await {
            warn!(%error, "old rows could not be removed; trying again tomorrow");
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(Duration::from_hours(24)) => (),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// design: a platform that comes back after an outage of any length is asked within two seconds; one that refuses us, once a minute.
    #[test]
    fn who_comes_back_is_asked_soon() {
        let unreachable = DeliveryError::Retry {
            reason: String::from("no connection"),
            after: None,
            uncertain: false,
        };
        let after = |error: &DeliveryError| (0..20).fold(FIRST_PAUSE, |pause, _| next_pause(pause, error));
        assert_eq!(after(&unreachable), Duration::from_secs(2));
        assert_eq!(
            after(&DeliveryError::Forbidden(String::from("invalid_auth"))),
            Duration::from_secs(60)
        );
        assert_eq!(next_pause(FIRST_PAUSE, &unreachable), Duration::from_millis(500));
    }
}
