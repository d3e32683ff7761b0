//! The first moment of a turn: from a request, or from an earlier turn that it takes up.

use countersign_agent::domain::{
    ChatType, EarlierTask, FileOutcome, FileProblem, GateId, Gathered, InboundBody, InboundMessage, Mode, Notice, Outbound, Policy,
    SessionMode, TurnId, TurnStatus,
};
use countersign_agent::reducer::{self, Beginning, Turn};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::WorkError;
use super::runner::Runner;
use super::state::{decode, encode, read};
use super::surroundings::Request;
use crate::store::{InboxRow, Lease, NewOutbox, OutboxOp, StoreError, TurnRow, Tx, outbox_key};

impl Runner {
    /// Begins a turn for the oldest task of the lane. `None` means that no task waits, or that `stop` came first.
    pub(super) async fn begin_next(&self, lease: &Lease, stop: &CancellationToken) -> Result<Option<(TurnRow, Turn)>, WorkError> {
        let mut noted = lease.gathering;
        loop {
            let mut read = self.ledger.read().await?;
            let task = match read.next_task(lease).await? {
                Some(Ok(task)) => task,
                Some(Err(damaged)) => {
                    drop(read);
                    let mut tx = self.ledger.begin_in(&lease.conversation).await?;
                    tx.pass_event_over(&damaged).await?;
                    tx.commit().await?;
                    continue;
                }
                None => return Ok(None),
            };
            let bot = read.fact(&lease.conversation.bot_fact()).await?.unwrap_or_default();
            drop(read);
            // No transaction waits for a platform.
            let gathered = match (&task.inbound.body, &self.surroundings) {
                (InboundBody::Message(message), Some(surroundings)) => {
                    // Reading may kill this process each time. It is noted first, so that the death counts.
                    if noted != Some(task.id) {
                        let mut tx = self.ledger.begin_in(&lease.conversation).await?;
                        tx.note_gathering(lease, task.id).await?;
                        tx.commit().await?;
                        noted = Some(task.id);
                    }
                    self.engine.failpoint.reach("gathering");
                    tokio::select! {
                        gathered = surroundings.gather(request(&task, message, &bot)) => gathered,
                        () = stop.cancelled() => return Ok(None),
                    }
                }
                _ => Gathered::default(),
            };
            let mut tx = self.ledger.begin_in(&lease.conversation).await?;
            // Meanwhile its person may have taken it back, or changed it.
            let now = tx.next_task(lease).await?.and_then(Result::ok);
            if now.is_none_or(|now| now.inbound != task.inbound) {
                continue;
            }
            let begun = match &task.inbound.body {
                InboundBody::Message(message) => Some(self.begin_turn(&mut tx, lease, &task, message, &bot, gathered).await?),
                InboundBody::Again { review, .. } => self.begin_again(&mut tx, lease, &task, review).await?,
                InboundBody::TryAgain { turn, .. } => {
                    let turns = (turn, &turn.next_try());
                    self.take_up(&mut tx, lease, &task, turns, reducer::go_on).await?
                }
                _ => return Err(StoreError::Corrupt(format!("inbox row {} is no task", task.id)).into()),
            };
            let Some((row, turn)) = begun else {
                warn!(inbox = task.id, "the turn that was to be taken up is gone");
                tx.finish_task(task.id, "gone").await?;
                tx.commit().await?;
                continue;
            };
            store_turn(&mut tx, lease, &task, &row, &turn).await?;
            tell_of_refused(&mut tx, &task, &turn).await?;
            tx.commit().await?;
            return Ok(Some((row, turn)));
        }
    }

    /// Begins a turn for the task whose chat and files killed process after process, of its words alone. `None` means that it waits no more.
    pub(super) async fn begin_given_up(&self, lease: &Lease) -> Result<Option<TurnId>, WorkError> {
        let mut tx = self.ledger.begin_in(&lease.conversation).await?;
        let next = tx.next_task(lease).await?.and_then(Result::ok);
        let task = next.filter(|task| lease.gathering == Some(task.id));
        let begun = match task.as_ref().map(|task| (task, &task.inbound.body)) {
            Some((task, InboundBody::Message(message))) => {
                let bot = tx.fact(&lease.conversation.bot_fact()).await?.unwrap_or_default();
                let turn = self.turn_of_words(lease, task, message, &bot);
                let row = first_row(lease, task, &turn)?;
                store_turn(&mut tx, lease, task, &row, &turn).await?;
                Some(row.id)
            }
            _ => {
                tx.forget_gathering(lease).await?;
                None
            }
        };
        tx.commit().await?;
        Ok(begun)
    }

    async fn begin_turn(
        &self,
        tx: &mut Tx,
        lease: &Lease,
        task: &InboxRow,
        message: &InboundMessage,
        bot: &str,
        mut gathered: Gathered,
    ) -> Result<(TurnRow, Turn), WorkError> {
        let turn = self.turn_of_words(lease, task, message, bot);
        gathered.earlier = earlier_task(tx, task, message, &turn.state.policy).await?;
        let turn = reducer::with_gathered(turn, gathered);
        let row = first_row(lease, task, &turn)?;
        Ok((row, turn))
    }

    fn turn_of_words(&self, lease: &Lease, task: &InboxRow, message: &InboundMessage, bot: &str) -> Turn {
        let said = message.addressed(bot);
        let mut policy = self.settings.current().policy(lease.conversation.channel, &lease.conversation.chat);
        if said.asks_for_plan_mode() {
            policy.mode = Mode::Plan;
        }
        reducer::begin(Beginning {
            turn_id: self.engine.ids.turn().to_string(),
            seed: self.engine.ids.token(),
            task: said.task().to_owned(),
            requester: task.inbound.sender.clone(),
            group: message.chat_type == ChatType::Group,
            demo: (self.engine.call_setup)(&policy).model.is_demo(),
            policy,
        })
    }

    /// The turn that goes on from the one whose `review` expired. `None` means that one was removed for its age.
    async fn begin_again(
        &self,
        tx: &mut Tx,
        lease: &Lease,
        task: &InboxRow,
        review: &GateId,
    ) -> Result<Option<(TurnRow, Turn)>, WorkError> {
        let Some(record) = tx.gate(review).await? else { return Ok(None) };
        let new = self.engine.ids.turn();
        self.take_up(tx, lease, task, (&record.gate.turn_id, &new), reducer::begin_again)
            .await
    }

    /// The turn `new` that takes up what `old` left, by `make`. `None` means that `old` was removed for its age.
    async fn take_up(
        &self,
        tx: &mut Tx,
        lease: &Lease,
        task: &InboxRow,
        (old, new): (&TurnId, &TurnId),
        make: fn(Turn, String, String, Policy, bool) -> Turn,
    ) -> Result<Option<(TurnRow, Turn)>, WorkError> {
        let Some(old) = tx.turn(old).await? else { return Ok(None) };
        let left = Turn {
            state: read(&old)?,
            log: tx.messages(&old.id).await?,
        };
        let policy = self.settings.current().policy(lease.conversation.channel, &lease.conversation.chat);
        let demo = (self.engine.call_setup)(&policy).model.is_demo();
        let turn = make(left, new.to_string(), self.engine.ids.token(), policy, demo);
        let row = first_row(lease, task, &turn)?;
        Ok(Some((row, turn)))
    }
}

fn request<'a>(task: &'a InboxRow, message: &'a InboundMessage, bot: &'a str) -> Request<'a> {
    Request {
        conversation: &task.inbound.conversation,
        inbox_id: task.id,
        sender: &task.inbound.sender,
        at: task.inbound.at,
        message,
        bot,
    }
}

/// Stores the turn of a waiting task; the task waits no more.
async fn store_turn(tx: &mut Tx, lease: &Lease, task: &InboxRow, row: &TurnRow, turn: &Turn) -> Result<(), StoreError> {
    tx.finish_task(task.id, "turn").await?;
    tx.create_turn(lease, row).await?;
    tx.append_messages(lease, &row.id, 0, &turn.log).await
}

/// What is left of the finished task that this request follows up: the one whose message it answers, else the latest one of its thread. A
/// shared session remembers its tasks anyway.
async fn earlier_task(tx: &mut Tx, task: &InboxRow, message: &InboundMessage, policy: &Policy) -> Result<Option<EarlierTask>, StoreError> {
    let place = &task.inbound.conversation;
    if policy.session_mode == SessionMode::Shared {
        return Ok(None);
    }
    let answered = tx.turn_by_message(place, &message.replies_to).await?;
    let found = match answered.filter(|turn| turn.status.is_final()) {
        Some(turn) => Some(turn),
        // Outside of threads, a chat's latest task is none of this request's business.
        None if place.thread.is_empty() => None,
        None => tx.earlier_turns(place, 1).await?.pop(),
    };
    // One that does not read back is not worth a task.
    Ok(found.and_then(|turn| Some(reducer::remembered(&turn.text, &decode(&turn.state).ok()?))))
}

/// Tells the person which of their files were not taken, and why.
async fn tell_of_refused(tx: &mut Tx, task: &InboxRow, turn: &Turn) -> Result<(), StoreError> {
    let refused = turn.state.files.iter().filter_map(|file| match file.outcome {
        FileOutcome::Refused(problem) => Some((file.name.clone(), problem)),
        FileOutcome::Stored(_) | FileOutcome::Read => None,
    });
    let files: Vec<(String, FileProblem)> = refused.collect();
    if files.is_empty() {
        return Ok(());
    }
    let id = task.id.to_string();
    let new = NewOutbox {
        key: outbox_key(&["inbox", &id, "files"]),
        queue: format!("inbox:{id}"),
        gate_id: None,
        turn_id: None,
        conversation: task.inbound.conversation.clone(),
        op: OutboxOp::Post {
            reply_to: task.inbound.body.message_id().map(str::to_owned),
            content: Outbound::Notice(Notice::FilesNotTaken { files }),
        },
    };
    tx.enqueue(&new).await
}

/// The row of a turn that begins.
fn first_row(lease: &Lease, task: &InboxRow, turn: &Turn) -> Result<TurnRow, StoreError> {
    Ok(TurnRow {
        id: TurnId::new(&turn.state.turn_id),
        lane_id: lease.lane_id.clone(),
        conversation: lease.conversation.clone(),
        user: turn.state.requester.clone(),
        text: turn.state.task.clone(),
        request_message: task.inbound.body.message_id().map(str::to_owned),
        inbox_id: task.id,
        event_id: Some(task.inbound.event_key.clone()),
        // What waits is in the inbox. A turn is worked on from its first moment.
        status: TurnStatus::Running,
        reason: None,
        state: encode(&turn.state)?,
        messages: i64::try_from(turn.log.len()).unwrap_or(i64::MAX),
        events: 0,
        said: 0,
        created_at: task.received_at,
        started_at: None,
        finished_at: None,
    })
}
