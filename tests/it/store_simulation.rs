//! Random lives of a ledger: whatever crashes when, no task is lost and none runs twice.
#![expect(clippy::unwrap_used, reason = "outside test functions too, a step that fails fails its test")]

use std::collections::BTreeMap;

use countersign_agent::domain::{ActionId, ActionStatus, DecisionKind, GateId, Millis, ToolResult, TurnId, TurnStatus};
use countersign_gateway::store::{Lease, Ledger, StoreError, Tx};
use proptest::prelude::*;

use crate::store_kit::{LEASE_MS, Store, action, all_untriaged, decision, gate, next_task, place, simple, store, turn};
use crate::support::stores::Pairing;

/// One thing that happens.
#[derive(Clone, Debug)]
enum Step {
    /// The platform sends event `event` of `user` (maybe once more).
    Arrive { user: u8, event: u8 },
    /// Some worker looks at one untriaged row; which one is left to chance.
    Triage { pick: u8 },
    /// A worker does the next thing it would do.
    Work { worker: u8 },
    /// A worker forgets everything between two transactions.
    Crash { worker: u8 },
    /// So much time passes that leases end; workers do not know.
    Stall,
    /// Several people answer some open gate.
    Decide { pick: u8 },
    /// The whole process dies and starts again.
    Restart,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..3_u8, 0..12_u8).prop_map(|(user, event)| Step::Arrive { user, event }),
        4 => any::<u8>().prop_map(|pick| Step::Triage { pick }),
        9 => (0..3_u8).prop_map(|worker| Step::Work { worker }),
        1 => (0..3_u8).prop_map(|worker| Step::Crash { worker }),
        1 => Just(Step::Stall),
        2 => any::<u8>().prop_map(|pick| Step::Decide { pick }),
        1 => Just(Step::Restart),
    ];
    proptest::collection::vec(step, 1..90)
}

/// What a worker remembers between two transactions; a crash forgets it.
#[derive(Default)]
struct Worker {
    lease: Option<Lease>,
    /// It journaled `sent` itself, so the tool's outcome is known to it.
    sent: bool,
}

struct World {
    store: Store,
    /// Where many processes share a database: a second one, which does every other thing.
    other: Option<Store>,
    workers: Vec<Worker>,
    /// Inbox ids that were answered with "new".
    accepted: BTreeMap<String, Vec<i64>>,
    /// How often each turn's tool did its work outside.
    ran: BTreeMap<i64, u32>,
    /// How often each gate took a decision.
    decided: BTreeMap<String, u32>,
}

fn names(inbox_id: i64) -> (TurnId, ActionId, GateId) {
    (
        TurnId::new(format!("turn_{inbox_id}")),
        ActionId::new(format!("act_{inbox_id}")),
        GateId::new(format!("rv_{inbox_id}")),
    )
}

impl World {
    async fn new(store: Store) -> Self {
        let other = match Pairing::of_this_run() {
            Pairing::Sqlite => None,
            Pairing::Postgres => Some(store.another(&store.clock).await),
        };
        Self {
            store,
            other,
            workers: (0..3).map(|_| Worker::default()).collect(),
            accepted: BTreeMap::new(),
            ran: BTreeMap::new(),
            decided: BTreeMap::new(),
        }
    }

    fn ledger(&self, turn: usize) -> &Ledger {
        match &self.other {
            Some(other) if turn % 2 == 1 => &other.ledger,
            Some(_) | None => &self.store.ledger,
        }
    }

    async fn take(&mut self, step: &Step) {
        self.store.pass(1);
        match step {
            Step::Arrive { user, event } => {
                let name = format!("{user}_{event}");
                let inbound = simple(&name, &place("oc_1", ""), &format!("ou_{user}"));
                let id = self.ledger(usize::from(*event)).accept(&inbound).await.unwrap();
                self.accepted.entry(name).or_default().push(id);
            }
            Step::Triage { pick } => self.triage(*pick).await,
            Step::Work { worker } => self.work(usize::from(*worker)).await,
            Step::Crash { worker } => self.workers[usize::from(*worker)] = Worker::default(),
            Step::Stall => self.store.pass(LEASE_MS + 1),
            Step::Decide { pick } => self.decide(*pick).await,
            Step::Restart => {
                self.store.restart().await;
                // The others of the dead process wake up later and must find their leases void.
                if let Some(first) = self.workers.first_mut() {
                    *first = Worker::default();
                }
            }
        }
    }

    async fn triage(&mut self, pick: u8) {
        let mut tx = self.ledger(usize::from(pick)).begin().await.unwrap();
        let rows = all_untriaged(&mut tx).await;
        if rows.is_empty() {
            return;
        }
        let row = &rows[usize::from(pick) % rows.len()];
        let lane = row.inbound.conversation.lane(&row.inbound.sender);
        if !tx.assign(row, &lane).await.unwrap() {
            assert!(tx.drop_copy(row.id).await.unwrap(), "nobody else looks");
        }
        tx.commit().await.unwrap();
    }

    async fn decide(&mut self, pick: u8) {
        let mut tx = self.ledger(usize::from(pick)).begin().await.unwrap();
        let open = tx.open_gates(&place("oc_1", "")).await.unwrap();
        if open.is_empty() {
            return;
        }
        let gate = &open[usize::from(pick) % open.len()];
        for by in ["ou_8", "ou_9"] {
            let yes = decision(DecisionKind::Approve, by, self.store.clock.now());
            if tx.decide(gate, &yes).await.unwrap() {
                *self.decided.entry(gate.id.to_string()).or_default() += 1;
            }
        }
        tx.commit().await.unwrap();
    }

    /// One transaction of a worker, then its effect outside if it has one.
    async fn work(&mut self, number: usize) {
        let mut worker = std::mem::take(&mut self.workers[number]);
        let mut tx = self.ledger(number).begin().await.unwrap();
        let outcome = match &worker.lease {
            None => {
                worker.lease = tx.claim_lane(&format!("w{number}"), LEASE_MS, 2).await.unwrap();
                Ok(None)
            }
            Some(_) => Self::step(&mut tx, &mut worker, self.store.clock.now()).await,
        };
        match outcome {
            Ok(effect) => {
                tx.commit().await.unwrap();
                if let Some(inbox_id) = effect {
                    *self.ran.entry(inbox_id).or_default() += 1;
                }
                self.workers[number] = worker;
            }
            Err(StoreError::Stale) => {}
            Err(error) => panic!("{error}"),
        }
    }

    /// The next step of a lane: make a turn with a gate; once decided send its tool; then journal the outcome.
    /// Gives the inbox id whose tool is to run now.
    async fn step(tx: &mut Tx, worker: &mut Worker, now: Millis) -> Result<Option<i64>, StoreError> {
        let lease = tx.refresh(worker.lease.as_ref().unwrap()).await?;
        worker.lease = Some(lease.clone());
        let Some(turn_id) = lease.turn_id.clone() else {
            let Some(task) = next_task(tx, &lease).await else {
                if tx.release(&lease, Millis::NEVER).await? {
                    worker.lease = None;
                }
                return Ok(None);
            };
            let (id, act, rv) = names(task.id);
            let mut row = turn(&lease, "x", task.id, now);
            row.id = id;
            tx.create_turn(&lease, &row).await?;
            tx.insert_action(&lease, &action(&row, act.as_str(), ActionStatus::Pending, now))
                .await?;
            tx.open_gate(&lease, &gate(&row, rv.as_str(), now)).await?;
            assert!(tx.finish_task(task.id, "turn").await?, "a task was taken twice");
            return Ok(None);
        };
        let mut row = tx.turn(&turn_id).await?.unwrap();
        let (_, act, rv) = names(row.inbox_id);
        let status = tx.action(&act).await?.unwrap().action.status;
        match status {
            ActionStatus::Pending => {
                let record = tx.gate(&rv).await?.unwrap();
                match &record.decision {
                    Some(yes) => assert!(tx.decide_action(&act, ActionStatus::Approved, yes).await?),
                    None => {
                        if tx.release(&lease, record.gate.expires_at).await? {
                            worker.lease = None;
                        }
                    }
                }
                Ok(None)
            }
            ActionStatus::Approved => {
                tx.move_action(&lease, &act, ActionStatus::Running).await?;
                worker.sent = true;
                Ok(Some(row.inbox_id))
            }
            ActionStatus::Running => {
                // Whoever did not send it itself cannot know what came of it, and does not send it again.
                let known = std::mem::take(&mut worker.sent);
                let result = ToolResult {
                    text: String::new(),
                    exit_code: None,
                    seconds: 0.0,
                    truncated: false,
                    ok: known,
                    exit: None,
                    attachment: None,
                };
                let end = if known { ActionStatus::Executed } else { ActionStatus::Unknown };
                tx.finish_action(&lease, &act, end, &result).await?;
                row.status = TurnStatus::Completed;
                tx.save_turn(&lease, &row).await?;
                Ok(None)
            }
            other => panic!("an unfinished turn whose action is {other:?}"),
        }
    }

    /// Lets everything come to its end, then compares.
    async fn settle(mut self) {
        for _ in 0..self.accepted.len() * 12 + 40 {
            self.triage(0).await;
            self.decide(0).await;
            for worker in 0..self.workers.len() {
                self.work(worker).await;
            }
            self.store.pass(LEASE_MS / 4);
        }
        let mut read = self.store.ledger.read().await.unwrap();
        assert!(all_untriaged(&mut read).await.is_empty());
        for (name, ids) in &self.accepted {
            let mut turns = Vec::new();
            for id in ids {
                turns.extend(read.turn(&names(*id).0).await.unwrap().map(|turn| (id, turn.status)));
            }
            let [(id, TurnStatus::Completed)] = turns[..] else {
                panic!("of the copies {ids:?} of {name}: {turns:?}");
            };
            let (_, act, rv) = names(*id);
            let ended = read.action(&act).await.unwrap().unwrap().action.status;
            let ran = self.ran.get(id).copied().unwrap_or(0);
            assert_eq!(ran, 1, "task {id} ran {ran} times and ended {ended:?}");
            assert_eq!(self.decided.get(rv.as_str()), Some(&1), "gate {rv}");
        }
        assert_eq!(self.ran.len(), self.accepted.len());
        drop(read);
        self.store.ledger.close().await;
        if let Some(other) = self.other {
            other.ledger.close().await;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20, max_shrink_iters: 200, ..ProptestConfig::default() })]

    /// design: whatever interleaving of arrivals, triage, work, crashes, stalls, decisions and restarts: every accepted
    /// task becomes one turn, each gate takes one decision, and no tool call is sent twice.
    #[test]
    fn nothing_is_lost_and_nothing_runs_twice(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let store = store().await;
            let mut world = World::new(store).await;
            for step in &steps {
                world.take(step).await;
            }
            world.settle().await;
        });
    }
}
