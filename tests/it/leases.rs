//! Leases while turns wait: prolonged together, however many there are, and let go with the work.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use countersign_agent::domain::{ChannelKind, Failpoint, Ids, Millis};
use countersign_agent::model::{BoxFuture, ChatModel, ChatReply, ChatRequest, ModelError};
use countersign_agent::tools::Toolbox;
use countersign_gateway::config::Settings;
use countersign_gateway::lanes::{ChatTools, Intervals, Runner, RunnerParts, WorkError};
use countersign_gateway::store::{Hold, Lease, StoreError};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::store_kit::{Store, lane_task, place_on, simple, store};
use crate::support::api::eventually;
use crate::triage::cards;

const LEASE: Duration = Duration::from_secs(3);
const LEASE_MS: i64 = 3000;
const LANES: usize = 40;

/// A model that has heard the question and says nothing.
#[derive(Debug)]
struct Silent(Arc<Semaphore>);

impl ChatModel for Silent {
    fn chat<'a>(&'a self, _: &'a ChatRequest) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        self.0.add_permits(1);
        Box::pin(std::future::pending())
    }
}

fn runner(store: &Store, asked: &Arc<Semaphore>) -> Runner {
    let model: Arc<dyn ChatModel> = Arc::new(Silent(Arc::clone(asked)));
    Runner::new(RunnerParts {
        chat_tools: ChatTools::default(),
        ledger: store.ledger.clone(),
        settings: Settings::new(cards::live()),
        clock: store.clock.clone(),
        ids: Ids::random(),
        templates: countersign_gateway::template::load(None).unwrap(),
        tools: Arc::new(Toolbox::new(Vec::new(), &BTreeMap::new())),
        surroundings: None,
        models: Arc::new(move |_| Arc::clone(&model)),
        timings: Intervals {
            lease: LEASE,
            ..Intervals::default()
        },
        failpoint: Failpoint::default(),
        observers: Vec::new(),
    })
}

async fn claim(store: &Store) -> Option<Lease> {
    let mut tx = store.ledger.begin().await.unwrap();
    let lease = tx.claim_lane("w1", LEASE_MS, 4).await.unwrap();
    tx.commit().await.unwrap();
    lease
}

/// Waits until all leases that are held last for a whole one from now on.
async fn prolonged(store: &Store) {
    let end = store.clock.now().plus(LEASE);
    eventually("leases that last", || async {
        let due = store.ledger.read().await.unwrap().next_due().await.unwrap();
        (due == Some(end)).then_some(())
    })
    .await;
}

/// design: issue must-show 6, turns that wait keep their lanes for longer than a lease, by a few transactions for all of them; one that
/// somebody else has taken stops at once, and the lanes of work that was dropped are not prolonged any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_leases_are_prolonged_together() {
    let store = store().await;
    let asked = Arc::new(Semaphore::new(0));
    let runner = runner(&store, &asked);
    let (mut working, mut leases, mut handles) = (JoinSet::new(), Vec::new(), Vec::new());
    for number in 0..LANES {
        lane_task(
            &store,
            &simple(
                &number.to_string(),
                &place_on(ChannelKind::Console, &format!("C{number}"), ""),
                "ou_1",
            ),
        )
        .await;
        let since = Instant::now();
        let lease = claim(&store).await.unwrap();
        leases.push(lease.clone());
        let runner = runner.clone();
        handles.push(working.spawn(async move {
            let lane = lease.lane_id.clone();
            let hold = Hold::since(since, LEASE);
            (lane, runner.work_on_lane(lease, hold, CancellationToken::new()).await)
        }));
    }
    let all = u32::try_from(LANES).unwrap();
    asked.acquire_many(all).await.unwrap().forget();

    let before = *store.ledger.commits().borrow();
    for _ in 0..3 {
        store.pass(LEASE_MS - 1);
        prolonged(&store).await;
    }
    let commits = *store.ledger.commits().borrow() - before;
    assert!(commits <= all.into(), "{commits} commits, three times for each of {LANES} lanes");
    assert!(working.try_join_next().is_none());

    // Somebody else has it: as after a takeover.
    let mut tx = store.ledger.begin().await.unwrap();
    assert!(tx.release(&leases[0], Millis::NEVER).await.unwrap());
    tx.commit().await.unwrap();
    let (lane, ended) = working.join_next().await.unwrap().unwrap();
    assert_eq!(lane, leases[0].lane_id);
    assert!(matches!(ended, Err(WorkError::Store(StoreError::Stale))), "{ended:?}");

    for dropped in &handles[2..] {
        dropped.abort();
    }
    while working.len() > 1 {
        working.join_next().await;
    }
    store.pass(LEASE_MS - 1);
    let mut commits = store.ledger.commits();
    commits.mark_unchanged();
    commits.changed().await.unwrap();
    store.pass(1);
    let mut free = HashSet::new();
    while let Some(lease) = claim(&store).await {
        free.insert(lease.lane_id);
    }
    let dropped: HashSet<_> = leases[2..].iter().map(|lease| lease.lane_id.clone()).collect();
    assert_eq!(free, dropped);
}
