//! The first moment of a turn: from a request, or from an expired review whose plan is asked for again.

use countersign_agent::domain::{ChatType, GateId, InboundBody, InboundMessage, Mode, TurnId, TurnStatus};
use countersign_agent::reducer::{self, Beginning, Turn};
use tracing::warn;

use super::WorkError;
use super::runner::Runner;
use super::state::{encode, read};
use crate::store::{InboxRow, Lease, StoreError, TurnRow, Tx};

impl Runner {
    /// Begins a turn for the oldest task of the lane. `None` means that no task waits.
    pub(super) async fn begin_next(&self, tx: &mut Tx, lease: &Lease) -> Result<Option<(TurnRow, Turn)>, WorkError> {
        while let Some(task) = tx.next_task(lease).await? {
            let begun = match &task.inbound.body {
                InboundBody::Message(message) => Some(self.begin_turn(tx, lease, &task, message).await?),
                InboundBody::Again { review, .. } => self.begin_again(tx, lease, &task, review).await?,
                InboundBody::Click(_)
                | InboundBody::Recalled { .. }
                | InboundBody::Edited { .. }
                | InboundBody::Reaction(_)
                | InboundBody::Joined
                | InboundBody::Left => return Err(StoreError::Corrupt(format!("inbox row {} is no task", task.id)).into()),
            };
            let Some((row, turn)) = begun else {
                warn!(inbox = task.id, "the turn whose plan was asked for again is gone");
                tx.finish_task(task.id, "gone").await?;
                continue;
            };
            tx.finish_task(task.id, "turn").await?;
            tx.create_turn(lease, &row).await?;
            tx.append_messages(lease, &row.id, 0, &turn.log).await?;
            return Ok(Some((row, turn)));
        }
        Ok(None)
    }

    async fn begin_turn(
        &self,
        tx: &mut Tx,
        lease: &Lease,
        task: &InboxRow,
        message: &InboundMessage,
    ) -> Result<(TurnRow, Turn), WorkError> {
        let bot = tx.fact(&lease.conversation.bot_fact()).await?.unwrap_or_default();
        let said = message.addressed(&bot);
        let mut policy = self.settings.current().policy(lease.conversation.channel, &lease.conversation.chat);
        if said.asks_for_plan_mode() {
            policy.mode = Mode::Plan;
        }
        let turn = reducer::begin(Beginning {
            turn_id: self.engine.ids.turn().to_string(),
            seed: self.engine.ids.token(),
            task: said.task().to_owned(),
            requester: task.inbound.sender.clone(),
            group: message.chat_type == ChatType::Group,
            demo: (self.engine.call_setup)(&policy).model.is_demo(),
            policy,
        });
        let row = first_row(lease, task, &turn)?;
        Ok((row, turn))
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
        let Some(old) = tx.turn(&record.gate.turn_id).await? else {
            return Ok(None);
        };
        let expired = Turn {
            state: read(&old)?,
            log: tx.messages(&old.id).await?,
        };
        let policy = self.settings.current().policy(lease.conversation.channel, &lease.conversation.chat);
        let demo = (self.engine.call_setup)(&policy).model.is_demo();
        let turn = reducer::begin_again(expired, self.engine.ids.turn().to_string(), self.engine.ids.token(), policy, demo);
        let row = first_row(lease, task, &turn)?;
        Ok(Some((row, turn)))
    }
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
        status: TurnStatus::Queued,
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
