//! The engine: takes one turn on, step by step, until it waits or ends. Journal first, then act, then feed the result back.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::JournalError;
use super::journal::{Journal, StepRecord};
use super::observers::Observers;
use super::{ModelHealth, Timings};
use crate::domain::{Clock, Failpoint, Ids, Millis, Policy, Rule, ToolSpec};
use crate::model::ChatModel;
use crate::reducer::{self, Env, Input, Next, OutageStep, Room, Turn};
use crate::template::Templates;
use crate::tools::Toolbox;

/// Between two tries to tell the journal something that only this process knows.
pub const RETRY: Duration = Duration::from_millis(200);

/// Tools that are told to be left out.
const MAX_TOLD: usize = 1000;

/// The model and the settings of a call; looked up anew for every call.
#[derive(Clone)]
pub struct CallSetup {
    /// The model.
    pub model: Arc<dyn ChatModel>,
    /// Added to the base prompt.
    pub system_prompt: String,
    /// May it ask for several calls at once?
    pub parallel_tool_calls: bool,
    /// Is it shown pictures?
    pub vision: bool,
    /// How long its server is tried when it is away.
    pub patience: Duration,
}

/// Gives the rules in force.
pub type RuleSource = Arc<dyn Fn() -> Arc<[Rule]> + Send + Sync>;

/// Everything that turns have in common. A turn and its journal are given to each call. [`super::Agent`] wraps it for most programs.
#[derive(Clone)]
pub struct Engine {
    /// Gives the model and the settings of the next call of a turn that lives by this policy.
    pub call_setup: Arc<dyn Fn(&Policy) -> CallSetup + Send + Sync>,
    /// Gives the administrator's rules about calls; asked anew for every step and every write call.
    pub rules: RuleSource,
    /// Wall clock.
    pub clock: Clock,
    /// Random ids.
    pub ids: Ids,
    /// Prompts.
    pub templates: Arc<Templates>,
    /// Action tools.
    pub tools: Arc<Toolbox>,
    /// Lengths of calls.
    pub timings: Timings,
    /// Where a test lets the process die.
    pub failpoint: Failpoint,
    /// The observers, in the order in which they are asked.
    pub observers: Observers,
    /// How the last model call went.
    pub health: Arc<Mutex<ModelHealth>>,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("tools", &self.tools).finish_non_exhaustive()
    }
}

/// A turn being worked on.
pub(super) struct Run<'a> {
    pub(super) journal: &'a dyn Journal,
    pub(super) turn: &'a mut Turn,
    /// Messages of its log that are in the journal.
    journaled: usize,
    pub(super) specs: Vec<ToolSpec>,
    /// What the model was found to read at once.
    pub(super) room: Room,
    /// Spent on model calls that were interrupted, or whose answer came to nothing, and not yet charged: the next call pays for it.
    pub(super) uncharged: UnchargedCost,
}

/// The cost of model calls that is not charged to the turn yet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct UnchargedCost {
    pub(super) time: Duration,
    pub(super) tokens: u64,
}

impl UnchargedCost {
    fn add(&mut self, spent: Self) {
        self.time += spent.time;
        self.tokens = self.tokens.saturating_add(spent.tokens);
    }

    /// What this input would have charged.
    fn of(input: &Input) -> Self {
        let (millis, tokens) = match input {
            Input::Reply(reply) => (reply.millis, reply.tokens),
            Input::ModelAway(failed) => (failed.millis, failed.tokens),
            Input::ModelFailed { millis, .. } | Input::ToolResults { millis, .. } | Input::Outdated { millis, .. } => (*millis, 0),
            Input::Start
            | Input::Tick
            | Input::Decided { .. }
            | Input::Steer(_)
            | Input::Edited
            | Input::Cancel { .. }
            | Input::Undeliverable
            | Input::Crashed { .. }
            | Input::HookFailed { .. } => (0, 0),
        };
        Self {
            time: Duration::from_millis(millis),
            tokens,
        }
    }
}

/// Why the engine stopped working on a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// The turn waits; look at it again at this moment.
    Parked(Millis),
    /// The turn is over.
    Finished,
}

impl Engine {
    /// How the last model call went.
    pub fn model_health(&self) -> ModelHealth {
        self.health.lock().clone()
    }

    /// The action tools that a turn of this policy has: as many of them as one request takes.
    #[must_use]
    pub fn specs(&self, policy: &Policy) -> Vec<ToolSpec> {
        let mut specs = self.tools.specs();
        specs.retain(|spec| policy.has_tool(&spec.name));
        let most = reducer::most_action_tools().min(specs.len());
        self.tell_left_out(specs.split_off(most));
        specs
    }

    /// Tells the log of each tool once.
    fn tell_left_out(&self, specs: Vec<ToolSpec>) {
        if specs.is_empty() {
            return;
        }
        let mut health = self.health.lock();
        let room = MAX_TOLD.saturating_sub(health.left_out.len());
        let names = specs.into_iter().map(|spec| spec.name);
        let fresh: Vec<String> = names.filter(|name| !health.left_out.contains(name)).take(room).collect();
        if !fresh.is_empty() {
            warn!(
                left_out = fresh.join(", "),
                "more tools than one request takes: some are not offered"
            );
            health.left_out.extend(fresh);
        }
    }

    /// Takes `turn` on until it waits, ends, or `stop` asks to leave it at the next step. On an error `turn` is as the journal has
    /// it, as far as this process knows.
    pub async fn drive(&self, journal: &dyn Journal, turn: &mut Turn, stop: &CancellationToken) -> Result<RunEnd, JournalError> {
        let mut run = Run {
            journal,
            journaled: turn.log.len(),
            specs: self.specs(&turn.state.policy),
            turn,
            room: Room::default(),
            uncharged: UnchargedCost::default(),
        };
        info!(status = run.turn.state.status.as_str(), next = ?run.turn.state.next, "turn taken up");
        loop {
            if stop.is_cancelled() {
                return Ok(RunEnd::Parked(Millis::ALWAYS));
            }
            // People come first: a decision or a stop is read before every effect.
            let (input, mut heard) = match journal.news(&run.turn.state).await? {
                Some(news) => (news.input, news.heard),
                None => {
                    let input = match run.turn.state.next.clone() {
                        Next::Start | Next::GoOn => Some(Input::Start),
                        Next::CallModel { last } => match run.turn.state.outage_step(self.clock.now()) {
                            OutageStep::WaitUntil(at) => return Ok(RunEnd::Parked(at)),
                            OutageStep::Tick => Some(Input::Tick),
                            OutageStep::Try => Box::pin(self.call_model(&mut run, last, stop)).await?,
                        },
                        Next::RunTools { calls } => Box::pin(self.run_tools(&run, &calls, stop)).await?,
                        Next::Wait => return Ok(RunEnd::Parked(journal.due(&run.turn.state).await?)),
                        Next::Nothing => return Ok(RunEnd::Finished),
                    };
                    // A person interrupted it. The outside input above says what happened.
                    let Some(input) = input else { continue };
                    (input, Vec::new())
                }
            };
            let edits = journal.edits().await?;
            let edited = !edits.is_empty();
            heard.extend(edits);
            let cost = UnchargedCost::of(&input);
            if !self.take_step(&mut run, input, edited, &heard).await? {
                // Words came in at the last moment: they are read first.
                run.uncharged.add(cost);
            }
            if let Some(lag) = self.failpoint.lag("step_journaled") {
                tokio::time::sleep(lag).await;
            }
        }
    }

    /// As [`Engine::drive`], once every MCP server was tried or has had its time.
    pub(super) async fn drive_settled(
        &self,
        journal: &dyn Journal,
        turn: &mut Turn,
        stop: &CancellationToken,
    ) -> Result<RunEnd, JournalError> {
        tokio::select! {
            () = self.tools.settled() => (),
            () = stop.cancelled() => (),
        }
        Box::pin(self.drive(journal, turn, stop)).await
    }

    /// Takes one step: reducer, observers, then journal. The step is undone when this gives `false` or an error.
    async fn take_step(&self, run: &mut Run<'_>, input: Input, edited: bool, heard: &[i64]) -> Result<bool, JournalError> {
        let standing = run.journal.standing().await?;
        let before = run.turn.state.clone();
        let rules = (self.rules)();
        let env = Env {
            now: self.clock.now(),
            tools: &run.specs,
            rules: &rules,
            standing: standing.as_ref(),
            chat: run.journal.chat(),
            prompts: &self.templates,
        };
        if edited {
            reducer::step(run.turn, &env, Input::Edited);
        }
        let mut effects = Box::pin(self.observers.step(run.turn, &env, input, &self.ids)).await;
        self.preview(&mut run.turn.state, &mut effects).await;
        let entry = StepRecord {
            before: &before,
            turn: run.turn,
            fresh: run.turn.log.get(run.journaled..).unwrap_or_default(),
            effects,
            heard,
        };
        let committed = run.journal.commit(entry).await;
        if matches!(committed, Ok(true)) {
            run.journaled = run.turn.log.len();
        } else {
            run.turn.state = before;
            run.turn.log.truncate(run.journaled);
        }
        committed
    }
}
