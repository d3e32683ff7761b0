//! The loop over one lane of the ledger: begin its next task, or have its turn taken on until it waits or ends.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use countersign_agent::domain::{Clock, Failpoint, Ids, Millis, Policy, ServerHealth, ToolSpec};
use countersign_agent::engine::ModelHealth;
use countersign_agent::engine::{CallSetup, Engine, RETRY, RunEnd};
use countersign_agent::engine::{Journal, StepRecord};
use countersign_agent::engine::{Observer, Observers};
use countersign_agent::model::ChatModel;
use countersign_agent::reducer::{self, Beginning, Env, Input, Turn};
use countersign_agent::template::Templates;
use countersign_agent::tools::Toolbox;
use futures_util::FutureExt;
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, error, info_span, warn};

use super::chat_tools::ChatTools;
use super::leases::Leases;
use super::ledger::{LedgerJournal, SignalWatch};
use super::left_out::{left_out, listed};
use super::state::read;
use super::surroundings::Surroundings;
use super::{Intervals, WorkError};
use crate::config::Settings;
use crate::store::{Hold, Lease, Ledger, MAX_CRASHES, StoreError};

/// Bytes of the state of a turn that is given up, of which a plan card can be repainted. No plan takes more.
const READ_AT_THE_END: i64 = 256 << 10;

/// Before a task whose step panicked is taken up again.
const PANIC_PAUSE: Duration = Duration::from_secs(1);

/// How work on a lane ended that was not done.
#[derive(Clone, Copy)]
enum WorkBreak {
    /// By an error, or by a stop.
    InOrder,
    Panic,
}

/// Works on lanes of the ledger, one leased lane at a time, until the lane has nothing to do. Everything it writes carries the
/// lease's fence; when the lease is lost it stops without another effect.
#[derive(Clone)]
pub struct Runner {
    pub(super) engine: Engine,
    pub(super) settings: Settings,
    pub(super) chat_tools: ChatTools,
    pub(super) ledger: Ledger,
    pub(super) surroundings: Option<Arc<dyn Surroundings>>,
    signal_watch: Arc<SignalWatch>,
    leases: Arc<Leases>,
    lease: Duration,
}

impl fmt::Debug for Runner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runner").field("engine", &self.engine).finish_non_exhaustive()
    }
}

/// Gives the model that the settings in force name for a profile, or for all; asked anew for every call.
pub type ModelSource = Arc<dyn Fn(Option<&str>) -> Arc<dyn ChatModel> + Send + Sync>;

/// The parts that the composition root picks.
#[derive(Clone)]
pub struct RunnerParts {
    pub ledger: Ledger,
    pub settings: Settings,
    pub clock: Clock,
    pub ids: Ids,
    pub templates: Arc<Templates>,
    pub tools: Arc<Toolbox>,
    /// What reads the surroundings of a request. Without it a task begins with its words alone.
    pub surroundings: Option<Arc<dyn Surroundings>>,
    /// Action tools of a task's chat.
    pub chat_tools: ChatTools,
    pub models: ModelSource,
    pub timings: Intervals,
    /// Where a test lets the process die.
    pub failpoint: Failpoint,
    /// The observers, in the order in which they are asked.
    pub observers: Vec<Arc<dyn Observer>>,
}

impl fmt::Debug for RunnerParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunnerParts").finish_non_exhaustive()
    }
}

impl Runner {
    pub fn new(parts: RunnerParts) -> Self {
        let (settings, models) = (parts.settings.clone(), parts.models);
        let call_setup = move |policy: &Policy| {
            let live = settings.current();
            let profile = policy.profile.as_deref();
            let own = live.model_of(profile);
            CallSetup {
                model: models(profile),
                system_prompt: live.system_prompt(profile),
                parallel_tool_calls: own.parallel_tool_calls,
                vision: own.vision,
                patience: own.retry,
            }
        };
        let settings = parts.settings.clone();
        let engine = Engine {
            rules: Arc::new(move || Arc::clone(&settings.current().rules)),
            call_setup: Arc::new(call_setup),
            clock: parts.clock,
            ids: parts.ids,
            templates: parts.templates,
            tools: parts.tools,
            timings: parts.timings.calls,
            failpoint: parts.failpoint,
            observers: Observers::new(parts.observers),
            health: Arc::new(Mutex::new(ModelHealth::default())),
        };
        Self {
            engine,
            settings: parts.settings,
            chat_tools: parts.chat_tools,
            ledger: parts.ledger,
            surroundings: parts.surroundings,
            signal_watch: Arc::default(),
            leases: Arc::default(),
            lease: parts.timings.lease,
        }
    }

    pub fn server_health(&self) -> Vec<ServerHealth> {
        self.engine.tools.servers().health()
    }

    pub fn server_tools(&self) -> Vec<ToolSpec> {
        self.engine.tools.servers().specs()
    }

    /// Tools that are not offered to a model, in lines for an admin: those for which a request has no room, and those that a model's server refuses.
    pub fn tools_left_out(&self) -> Vec<String> {
        let live = self.settings.current();
        let servers = self.engine.tools.servers().specs();
        let mut specs = self.engine.tools.specs();
        let own = specs.len().saturating_sub(servers.len());
        drop(specs.splice(own..own, self.chat_tools.specs.iter().cloned()));
        let names: Vec<String> = specs.into_iter().map(|spec| spec.name).collect();
        let mut lines = left_out(&live, &names);
        let profiles = live.profiles.iter().filter(|profile| profile.model.is_some());
        for profile in std::iter::once(None).chain(profiles.map(|profile| Some(profile.name.clone()))) {
            let place = profile.as_ref().map(|name| format!("profile {name}: ")).unwrap_or_default();
            let policy = Policy {
                profile,
                ..Policy::default()
            };
            let refused = (self.engine.call_setup)(&policy).model.refused_tools();
            if !refused.is_empty() {
                lines.push(format!(
                    "{place}the model's server refuses {}",
                    listed(refused.iter().map(String::as_str))
                ));
            }
        }
        lines
    }

    pub fn model_health(&self) -> ModelHealth {
        self.engine.model_health()
    }

    /// Handles the lane until it has nothing to do, then gives it back. `stop` asks to give it back at the next
    /// step: a model call or read is dropped and made again later, a write call is waited for. `hold` is the lease as
    /// this process sees it.
    ///
    /// # Errors
    /// [`WorkError::Store`] with `Stale` when the lease was lost: somebody else goes on. Other errors leave
    /// the lane leased: [`Runner::give_back`].
    pub async fn work_on_lane(&self, lease: Lease, hold: Hold, stop: CancellationToken) -> Result<(), WorkError> {
        // Ends with this call, however it ends: a lease that outlived its worker would never run out.
        let kept = self.leases.keep(&self.ledger, self.lease, &lease, &hold);
        // Boxed, as below: what waits for a model for minutes should not hold the room of every other move.
        let working = Box::pin(AssertUnwindSafe(self.work_until_idle(lease.clone(), &stop)).catch_unwind());
        let worked = tokio::select! {
            // A write must not be cut off half way by our own choice: losing the lease only stops us at an await,
            // and everything written afterwards would be refused by the fence anyway.
            () = kept.lost() => return Err(WorkError::Store(StoreError::Stale)),
            worked = hold.guard(working) => worked?,
        };
        if let Ok(ended) = worked {
            return ended;
        }
        let turn = lease.turn_id.as_ref().map(ToString::to_string);
        error!(lane = %lease.lane_id, turn, "a step panicked; its task is taken up again, and given up after the third time");
        drop(kept);
        self.release_lane(&lease, PANIC_PAUSE, WorkBreak::Panic).await;
        Ok(())
    }

    /// Gives back a lane whose work broke off, to be taken up again after `pause` by any process: as soon as the ledger answers, or
    /// not at all when the lease runs out before.
    pub async fn give_back(&self, lease: &Lease, pause: Duration) {
        self.release_lane(lease, pause, WorkBreak::InOrder).await;
    }

    async fn release_lane(&self, lease: &Lease, pause: Duration, end: WorkBreak) {
        let giving = async {
            loop {
                let released = async {
                    let mut tx = self.ledger.begin_in(&lease.conversation).await?;
                    // Whether it was woken meanwhile is all the same here: it is looked at again in any case.
                    let lease = tx.refresh(lease).await?;
                    let ready_at = if pause.is_zero() {
                        Millis::ALWAYS
                    } else {
                        self.engine.clock.now().plus(pause)
                    };
                    match end {
                        WorkBreak::InOrder => drop(tx.release(&lease, ready_at).await?),
                        WorkBreak::Panic => tx.release_crashed(&lease, ready_at).await?,
                    }
                    tx.commit().await
                };
                match released.await {
                    Ok(()) | Err(StoreError::Stale) => return,
                    Err(_) => tokio::time::sleep(RETRY).await,
                }
            }
        };
        // No longer than a lease lasts, whatever is left of this one: the fence tells when it is somebody else's.
        if Hold::since(Instant::now(), self.lease).guard(giving).await.is_err() {
            warn!(lane = %lease.lane_id, "the ledger does not answer; the lane is free when its lease runs out");
        }
    }

    async fn work_until_idle(&self, mut lease: Lease, stop: &CancellationToken) -> Result<(), WorkError> {
        // After a start: a turn that was under way should find the tools that it had.
        tokio::select! {
            () = Box::pin(self.engine.tools.settled()) => (),
            () = stop.cancelled() => (),
        }
        loop {
            if lease.is_given_up() {
                // Its end is told, counted and kept as that of a turn, also where there is none yet.
                if lease.turn_id.is_none() {
                    lease.turn_id = self.begin_given_up(&lease).await?;
                }
                self.give_up(&lease).await?;
                (lease.turn_id, lease.gathering, lease.crashes) = (None, None, 0);
            }
            let ready_at = match Box::pin(self.load_or_begin_turn(&lease, stop)).await? {
                None if stop.is_cancelled() => Millis::ALWAYS,
                None => Millis::NEVER,
                Some((journal, mut turn)) => {
                    let span = info_span!("turn", turn.id = %turn.state.turn_id, chat = %lease.conversation.chat);
                    let engine = self.chat_tools.on(&self.engine, &lease.conversation);
                    match Box::pin(engine.drive(&journal, &mut turn, stop)).instrument(span).await? {
                        RunEnd::Finished => {
                            (lease.turn_id, lease.gathering, lease.crashes) = (None, None, 0);
                            continue;
                        }
                        RunEnd::Parked(at) => at,
                    }
                }
            };
            let mut tx = self.ledger.begin_in(&lease.conversation).await?;
            if tx.release(&lease, ready_at).await? {
                tx.commit().await?;
                return Ok(());
            }
            // Woken between our last look and the release: look again.
            lease = tx.refresh(&lease).await?;
            tx.commit().await?;
        }
    }

    /// The lane's unfinished turn, or a new one for its oldest task.
    async fn load_or_begin_turn(&self, lease: &Lease, stop: &CancellationToken) -> Result<Option<(LedgerJournal, Box<Turn>)>, WorkError> {
        if stop.is_cancelled() {
            return Ok(None);
        }
        let (row, turn) = match &lease.turn_id {
            Some(id) => {
                let mut stored = self.ledger.read().await?;
                let Some(row) = stored.turn(id).await? else {
                    return Err(StoreError::Corrupt(format!("lane {} names the missing turn {id}", lease.lane_id)).into());
                };
                self.engine.failpoint.reach("turn_loaded");
                let log = stored.messages(id).await?;
                let state = read(&row)?;
                (row, Turn { state, log })
            }
            None => match self.begin_next(lease, stop).await? {
                Some(begun) => begun,
                None => return Ok(None),
            },
        };
        if lease.turn_id.is_none() {
            self.engine.failpoint.reach("turn_begun");
        }
        let journal = LedgerJournal::new(&self.ledger, &self.engine, &self.signal_watch, &self.settings, lease.clone(), row);
        Ok(Some((journal, Box::new(turn))))
    }

    /// Ends the lane's turn, with which process after process has died. What killed them may be the reading of it: its log is not read,
    /// and its state only when it is short, and only once. So the next claim ends it also when this process dies here.
    async fn give_up(&self, lease: &Lease) -> Result<(), WorkError> {
        let Some(id) = &lease.turn_id else { return Ok(()) };
        let most = if lease.crashes > MAX_CRASHES { 0 } else { READ_AT_THE_END };
        let row = self.ledger.read().await?.turn_in_brief(id, most).await?;
        let row = row.ok_or_else(|| StoreError::Corrupt(format!("lane {} names the missing turn {id}", lease.lane_id)))?;
        let mut turn = match read(&row) {
            Ok(state) => Turn { state, log: Vec::new() },
            // Nothing of the plan is known then, but whom to tell.
            Err(_) => reducer::begin(Beginning {
                turn_id: id.to_string(),
                seed: self.engine.ids.token(),
                task: row.text.clone(),
                requester: row.user.clone(),
                group: true,
                policy: self.settings.current().policy(lease.conversation.channel, &lease.conversation.chat),
                demo: false,
            }),
        };
        let before = turn.state.clone();
        let env = Env {
            now: self.engine.clock.now(),
            tools: &[],
            rules: &[],
            standing: None,
            chat: &lease.conversation.chat,
            prompts: &self.engine.templates,
        };
        let incident = self.engine.ids.token()[..8].to_owned();
        error!(
            turn.id = %id, chat = %lease.conversation.chat, crashes = lease.crashes, incident,
            "processes died again and again while they worked on this turn; it is given up"
        );
        let effects = reducer::step(&mut turn, &env, Input::Crashed { incident });
        let journal = LedgerJournal::new(&self.ledger, &self.engine, &self.signal_watch, &self.settings, lease.clone(), row);
        let entry = StepRecord {
            before: &before,
            turn: &turn,
            fresh: &turn.log,
            effects,
            heard: &[],
        };
        journal.commit(entry).await?;
        Ok(())
    }
}
