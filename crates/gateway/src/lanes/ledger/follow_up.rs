//! What is done about an open gate that nobody answers, once each: those who may decide are reminded, then other people are asked.

mod due;
mod people;

use countersign_agent::domain::{Event, Millis, Notice, Outbound, OutboxOp};
use countersign_agent::reducer::TurnState;
use serde_json::json;
use tracing::info;

use self::due::Due;
use self::people::{escalated, reminder};
use super::LedgerJournal;
use super::commit::next_event;
use crate::config::ChannelLive;
use crate::lanes::state::encode;
use crate::store::{AuditEntry, GateRecord, NewOutbox, StoreError, Tx, reminder_keys};

impl LedgerJournal {
    /// Does what is due about the open gate of `record`; gives when to look at it again.
    pub(super) async fn follow_up(&self, mut record: GateRecord, state: &TurnState) -> Result<Millis, StoreError> {
        loop {
            let place = &record.gate.conversation;
            let live = self.settings.current();
            let live = live.in_chat(place.channel, &place.chat);
            let (at, due) = due::next(&record.gate, live);
            if at > self.clock.now() {
                return Ok(at);
            }
            let done = match due {
                Due::Reminder => self.remind(&record, state, live).await?,
                Due::Escalation => self.escalate(&record, state, live).await?,
                Due::Expiry => return Ok(at),
            };
            let read = self.ledger.read().await?.gate(&record.gate.id).await?;
            match read.filter(|read| done && read.decision.is_none()) {
                Some(read) => record = read,
                // Decided meanwhile, which has woken the lane.
                None => return Ok(record.gate.expires_at),
            }
        }
    }

    /// Reminds those who may decide. Gives `false` when the gate was decided meanwhile.
    async fn remind(&self, record: &GateRecord, state: &TurnState, live: &ChannelLive) -> Result<bool, StoreError> {
        let gate = &record.gate;
        let mut tx = self.ledger.begin_in(&gate.conversation).await?;
        let now = self.clock.now();
        if !tx.mark_reminded(&self.lease, &gate.id, now).await? {
            return Ok(false);
        }
        let Some(record) = tx.gate(&gate.id).await? else { return Ok(false) };
        let mut rows = tx.actions_of_gate(&gate.id).await?;
        rows.retain(|row| row.status.waits());
        let [key, _] = reminder_keys(&gate.id);
        let away = tx.absences(&gate.conversation, &gate.card.asked(), now).await?;
        let words = reminder(&record, &rows, live, &away, now);
        tx.enqueue(&reply(&record, key, words)).await?;
        let event = Event::Reminded { gate_id: gate.id.clone() };
        self.note(tx, &record, state, event, "reminded", now).await?;
        self.failpoint.reach("reminder_journaled");
        Ok(true)
    }

    /// Asks the people of the settings in direct messages. Gives `false` when the gate was decided meanwhile.
    async fn escalate(&self, record: &GateRecord, state: &TurnState, live: &ChannelLive) -> Result<bool, StoreError> {
        let gate = &record.gate;
        let mut tx = self.ledger.begin_in(&gate.conversation).await?;
        let now = self.clock.now();
        let rows = tx.actions_of_gate(&gate.id).await?;
        let to = escalated(record, &rows, live);
        if !tx.mark_escalated(&self.lease, &gate.id, &to, now).await? {
            return Ok(false);
        }
        if to.is_empty() {
            tx.commit().await?;
            return Ok(true);
        }
        let Some(record) = tx.gate(&gate.id).await? else { return Ok(false) };
        let card = tx.shown_card(&record.gate).await?;
        tx.post_direct_cards(&record.gate, &card).await?;
        let [_, key] = reminder_keys(&gate.id);
        let words = Notice::Escalated {
            gate: gate.kind,
            people: to.clone(),
        };
        tx.enqueue(&reply(&record, key, words)).await?;
        let event = Event::Escalated {
            gate_id: gate.id.clone(),
            to,
        };
        self.note(tx, &record, state, event, "escalated", now).await?;
        self.failpoint.reach("escalation_journaled");
        Ok(true)
    }

    /// Commits, with `event` on the timeline of the turn and an entry of this `kind` in the trail.
    async fn note(
        &self,
        mut tx: Tx,
        record: &GateRecord,
        state: &TurnState,
        event: Event,
        kind: &'static str,
        now: Millis,
    ) -> Result<(), StoreError> {
        let gate = &record.gate;
        let mut row = self.row().clone();
        let event = next_event(
            &mut row,
            state.budget.steps.used,
            event,
            format!("{}: {kind}", gate.kind.as_str()),
            now,
        );
        tx.append_events(&self.lease, std::slice::from_ref(&event)).await?;
        row.state = encode(state)?;
        tx.save_turn(&self.lease, &row).await?;
        tx.audit(AuditEntry {
            kind,
            turn_id: Some(row.id.clone()),
            gate_id: Some(gate.id.clone()),
            action_id: None,
            principal: None,
            details: match &event.event {
                Event::Escalated { to, .. } => json!({ "to": to }),
                _ => json!({}),
            },
        });
        tx.commit().await?;
        info!(gate.id = %gate.id, kind = gate.kind.as_str(), "{kind}");
        row.state = String::new();
        *self.row() = row;
        Ok(())
    }
}

/// Words of ours in reply to the card. They have a queue of their own: nothing waits behind them.
fn reply(record: &GateRecord, key: String, words: Notice) -> NewOutbox {
    let gate = &record.gate;
    NewOutbox {
        queue: key.clone(),
        key,
        gate_id: None,
        turn_id: Some(gate.turn_id.clone()),
        conversation: gate.conversation.clone(),
        op: OutboxOp::Post {
            reply_to: gate.card_message.clone(),
            content: Outbound::Notice(words),
        },
    }
}
