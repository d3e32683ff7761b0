//! The loop over one lane: begin its next task, or take its turn on until it waits or ends.

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, info, info_span, warn};

use super::{Runner, WorkError};
use crate::agent::{self, Beginning, Env, Input, Next, Room, Turn, TurnState};
use crate::domain::{ChatType, InboundBody, Millis, Mode, ToolSpec, TurnStatus};
use crate::store::{Hold, InboxRow, Lease, StoreError, TurnRow};

/// Between two tries to tell the ledger something that only this process knows.
pub(super) const RETRY: Duration = Duration::from_millis(200);

/// A turn being worked on: the stored row and the reducer's value, which [`Runner::commit`] keeps equal.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) row: TurnRow,
    pub(super) turn: Turn,
    pub(super) specs: Vec<ToolSpec>,
    /// What the model was found to read at once.
    pub(super) room: Room,
    /// Spent on model calls that were interrupted, or whose answer came to nothing, and not yet charged: the next call pays for it.
    pub(super) unpaid: Unpaid,
}

/// What model calls cost that nobody was charged with yet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Unpaid {
    pub(super) time: Duration,
    pub(super) tokens: u64,
}

impl Unpaid {
    fn owe(&mut self, spent: Self) {
        self.time += spent.time;
        self.tokens = self.tokens.saturating_add(spent.tokens);
    }

    /// What this input would have charged.
    fn with(input: &Input) -> Self {
        let (millis, tokens) = match input {
            Input::Reply(reply) => (reply.millis, reply.tokens),
            Input::ModelFailed { millis, .. } | Input::ToolResults { millis, .. } => (*millis, 0),
            Input::Start | Input::Decided { .. } | Input::Steer(_) | Input::Edited | Input::Cancel { .. } | Input::Undeliverable => (0, 0),
        };
        Self {
            time: Duration::from_millis(millis),
            tokens,
        }
    }
}

/// Where a turn was left.
enum Left {
    /// It waits; look again at this moment.
    Parked(Millis),
    /// It is over.
    Finished,
}

impl Runner {
    /// Handles the lane until it has nothing to do, then gives it back. `stop` asks to give it back at the next
    /// step: a model call or read is dropped and made again later, a write call is waited for. `hold` is the lease as
    /// this process sees it.
    ///
    /// # Errors
    /// [`WorkError::Store`] with `Stale` when the lease was lost: somebody else goes on. Other errors leave
    /// the lane leased: [`Runner::give_back`].
    pub async fn work(&self, lease: Lease, hold: Hold, stop: CancellationToken) -> Result<(), WorkError> {
        // Ends with this call, however it ends: a lease that outlived its worker would never run out.
        let kept = self.leases.keep(&self.ledger, self.timings.lease, &lease, &hold);
        tokio::select! {
            // A write must not be cut off half way by our own choice: losing the lease only stops us at an await,
            // and everything written afterwards would be refused by the fence anyway.
            () = kept.lost() => Err(WorkError::Store(StoreError::Stale)),
            // Boxed, as below: what waits for a model for minutes should not hold the room of every other move.
            outcome = hold.guard(Box::pin(self.lane(lease, &stop))) => outcome?,
        }
    }

    /// Gives back a lane whose work broke off, to be taken up again after `pause`, by whomever: as soon as the ledger
    /// answers, or not at all when the lease runs out before.
    pub async fn give_back(&self, lease: &Lease, pause: Duration) {
        let giving = async {
            loop {
                let released = async {
                    let mut tx = self.ledger.begin_in(&lease.conversation).await?;
                    // Whether it was woken meanwhile is all the same here: it is looked at again in any case.
                    let lease = tx.refresh(lease).await?;
                    tx.release(&lease, self.clock.now().plus(pause)).await?;
                    tx.commit().await
                };
                match released.await {
                    Ok(()) | Err(StoreError::Stale) => return,
                    Err(_) => tokio::time::sleep(RETRY).await,
                }
            }
        };
        // No longer than a lease lasts, whatever is left of this one: the fence tells when it is somebody else's.
        if Hold::since(Instant::now(), self.timings.lease).guard(giving).await.is_err() {
            warn!(lane = %lease.lane_id, "the ledger does not answer; the lane is free when its lease runs out");
        }
    }

    async fn lane(&self, mut lease: Lease, stop: &CancellationToken) -> Result<(), WorkError> {
        // After a start: a turn that was under way should find the tools that it had.
        tokio::select! {
            () = Box::pin(self.tools.servers().settled()) => (),
            () = stop.cancelled() => (),
        }
        loop {
            let ready_at = match Box::pin(self.take_up(&lease, stop)).await? {
                None if stop.is_cancelled() => self.clock.now(),
                None => Millis::NEVER,
                Some(run) => {
                    let span = info_span!("turn", turn.id = %run.row.id, chat = %run.row.conversation.chat);
                    match Box::pin(self.drive(&lease, run, stop)).instrument(span).await? {
                        Left::Finished => {
                            lease.turn_id = None;
                            continue;
                        }
                        Left::Parked(at) => at,
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
    async fn take_up(&self, lease: &Lease, stop: &CancellationToken) -> Result<Option<Box<Run>>, WorkError> {
        if stop.is_cancelled() {
            return Ok(None);
        }
        let mut tx = self.ledger.begin_in(&lease.conversation).await?;
        let run = match &lease.turn_id {
            Some(id) => {
                let Some(row) = tx.turn(id).await? else {
                    return Err(StoreError::Corrupt(format!("lane {} names the missing turn {id}", lease.lane_id)).into());
                };
                let log = tx.messages(id).await?;
                let state = read_state(&row)?;
                Run {
                    row,
                    turn: Turn { state, log },
                    specs: self.tools.specs(),
                    room: Room::default(),
                    unpaid: Unpaid::default(),
                }
            }
            None => {
                let Some(task) = tx.next_task(lease).await? else { return Ok(None) };
                tx.finish_task(task.id, "turn").await?;
                let bot = tx.fact(&lease.conversation.bot_fact()).await?.unwrap_or_default();
                let run = self.begin_turn(lease, &task, &bot)?;
                tx.create_turn(lease, &run.row).await?;
                run
            }
        };
        tx.commit().await?;
        if lease.turn_id.is_none() {
            self.failpoint.reach("turn_begun");
        }
        Ok(Some(Box::new(run)))
    }

    fn begin_turn(&self, lease: &Lease, task: &InboxRow, bot: &str) -> Result<Run, WorkError> {
        let InboundBody::Message(message) = &task.inbound.body else {
            return Err(StoreError::Corrupt(format!("inbox row {} is no task", task.id)).into());
        };
        let live = self.settings.current();
        let conversation = lease.conversation.clone();
        let id = self.ids.turn();
        let said = message.addressed(bot);
        let text = said.task().to_owned();
        let mut policy = live.policy(conversation.channel);
        if said.asks_for_plan_mode() {
            policy.mode = Mode::Plan;
        }
        let turn = agent::begin(Beginning {
            turn_id: id.to_string(),
            seed: self.ids.token(),
            task: text.clone(),
            requester: task.inbound.sender.clone(),
            group: message.chat_type == ChatType::Group,
            policy,
            demo: (self.models)().is_demo(),
        });
        let row = TurnRow {
            id,
            lane_id: lease.lane_id.clone(),
            conversation,
            user: task.inbound.sender.clone(),
            text,
            request_message: message.message_id.clone(),
            inbox_id: task.id,
            status: TurnStatus::Queued,
            reason: None,
            state: to_json(&turn.state)?,
            messages: 0,
            events: 0,
            said: 0,
            created_at: task.received_at,
            started_at: None,
            finished_at: None,
        };
        Ok(Run {
            row,
            turn,
            specs: self.tools.specs(),
            room: Room::default(),
            unpaid: Unpaid::default(),
        })
    }

    async fn drive(&self, lease: &Lease, mut run: Box<Run>, stop: &CancellationToken) -> Result<Left, WorkError> {
        info!(status = run.row.status.as_str(), next = ?run.turn.state.next, "turn taken up");
        loop {
            if stop.is_cancelled() {
                return Ok(Left::Parked(self.clock.now()));
            }
            // People come first: a decision or a stop is read before every effect.
            let news = Box::pin(self.news(&run)).await?;
            let (input, mut signals) = match news {
                Some(news) => (news.input, news.signals),
                None => {
                    let input = match run.turn.state.next.clone() {
                        Next::Start => Some(Input::Start),
                        Next::CallModel { last } => self.call_model(&mut run, last, stop).await?,
                        Next::RunTools { calls } => Box::pin(self.run_tools(lease, &run, &calls, stop)).await?,
                        Next::Wait => return Ok(Left::Parked(Box::pin(self.gate_due(&run)).await?)),
                        Next::Nothing => return Ok(Left::Finished),
                    };
                    // None: interrupted by a person; the news above says what happened.
                    let Some(input) = input else { continue };
                    (input, Vec::new())
                }
            };
            let env = Env {
                now: self.clock.now(),
                tools: &run.specs,
                prompts: &self.templates,
            };
            let before = run.turn.state.clone();
            let cost = Unpaid::with(&input);
            let edits = self.edits(&run).await?;
            if !edits.is_empty() {
                agent::step(&mut run.turn, &env, Input::Edited);
                signals.extend(edits);
            }
            let mut effects = agent::step(&mut run.turn, &env, input);
            self.preview(&run.turn.state, &mut effects).await;
            if !Box::pin(self.commit(lease, &mut run, &before, effects, &signals)).await? {
                // Words came in at the last moment: the step is undone and they are read first.
                run.turn.state = before;
                run.turn.log.truncate(usize::try_from(run.row.messages).unwrap_or(usize::MAX));
                run.unpaid.owe(cost);
            }
            if let Some(lag) = self.failpoint.lag("step_journaled") {
                tokio::time::sleep(lag).await;
            }
        }
    }
}

/// Reads the reducer's state, an older version's as one of ours; a newer version's is left alone.
pub(super) fn read_state(row: &TurnRow) -> Result<TurnState, WorkError> {
    #[derive(serde::Deserialize)]
    struct Version {
        #[serde(default)]
        schema_version: u64,
    }
    let unreadable = |reason: String| WorkError::Unreadable {
        turn_id: row.id.to_string(),
        reason,
    };
    let Version { schema_version: version } = serde_json::from_str(&row.state).map_err(|error| unreadable(error.to_string()))?;
    if version > u64::from(agent::SCHEMA_VERSION) {
        return Err(unreadable(format!(
            "its schema version is {version}, this program reads up to {}",
            agent::SCHEMA_VERSION
        )));
    }
    let state: TurnState = serde_json::from_str(&row.state).map_err(|error| unreadable(error.to_string()))?;
    Ok(TurnState {
        schema_version: agent::SCHEMA_VERSION,
        ..state
    })
}

pub(super) fn to_json(state: &TurnState) -> Result<String, StoreError> {
    serde_json::to_string(state).map_err(|error| StoreError::Corrupt(error.to_string()))
}
