//! Thumbs on cards: they count like the words, by the same rules. A thumb that does not count gets no answer: people react for other reasons,
//! too.

use countersign_agent::domain::handshake::Actor;
use countersign_agent::domain::{Conversation, Notice, Reaction, Thumb, Via};

use crate::store::{GateRecord, InboxRow, StoreError, Tx};

use super::Conversations;
use super::answer::{AnswerTo, GateAnswer, answer};
use super::load::DELIVERY;
use super::phrases::Phrase;
use super::settle::{GateOutcome, withdraw};
use super::triage::RowEnd;
use super::verb::Verb;

impl Conversations {
    /// What becomes of the row of a reaction. `locked`: the chat whose transaction this is.
    pub(super) async fn handle_reaction(
        &self,
        tx: &mut Tx,
        row: &InboxRow,
        reaction: &Reaction,
        locked: &Conversation,
    ) -> Result<RowEnd, StoreError> {
        let (place, sender) = (&row.inbound.conversation, &row.inbound.sender);
        if tx.fact(&place.bot_fact()).await?.as_ref() == Some(sender) {
            return Ok(RowEnd::Done("our own"));
        }
        let record = match tx.gate_of_card(place, &reaction.message_id, sender).await? {
            Some(gate) => tx.gate(&gate).await?,
            None => None,
        };
        let Some(record) = record.filter(|record| record.decision.is_none()) else {
            // The card may be in the chat already, and the news of it on its way.
            let fresh = self.clock.now().since(row.received_at) < DELIVERY;
            return Ok(match fresh && tx.is_card_under_way(place, sender).await? {
                true => RowEnd::Wait,
                false => RowEnd::Done("no card that waits"),
            });
        };
        if record.gate.conversation.chat != locked.chat {
            return Ok(RowEnd::Elsewhere(Box::new(record.gate.conversation)));
        }
        if tx.has_later_reaction(row, reaction).await? {
            return Ok(RowEnd::Done("overtaken"));
        }
        self.react(tx, row, reaction, &record).await
    }

    /// Carries a reaction on the card of the gate of `record` out.
    async fn react(&self, tx: &mut Tx, row: &InboxRow, reaction: &Reaction, record: &GateRecord) -> Result<RowEnd, StoreError> {
        let (gate, sender) = (&record.gate, &row.inbound.sender);
        let actor = Actor::person(sender, Via::Reaction, &row.inbound.event_key, self.clock.now());
        let rights = self.rights_of(tx, &gate.conversation, sender).await?;
        let phrase = match (reaction.thumb, reaction.taken_away) {
            (Thumb::Up, false) => Phrase::Approve,
            (Thumb::Down, false) => Phrase::Cancel,
            (Thumb::Up, true) => {
                let withdrawn = withdraw(tx, record, &actor, &rights).await?;
                return Ok(RowEnd::Done(if withdrawn { "withdrawn" } else { "nothing to withdraw" }));
            }
            // It left no vote that could be taken back.
            (Thumb::Down, true) => return Ok(RowEnd::Done("nothing to withdraw")),
        };
        // Neither platform says of a reaction whether a person of this organisation gave it. Where nobody is named, only the requester is known.
        if rights.is_open_to_all(gate) && *sender != gate.requester {
            return Ok(RowEnd::Done("nobody known"));
        }
        let given = GateAnswer {
            to: AnswerTo::Gate(&gate.id),
            verb: &Verb::Words(phrase, String::new()),
            by: &actor,
            teams: &row.inbound.sender_teams,
            place: None,
            edit: None,
        };
        let answered = answer(self, tx, &given).await?;
        Ok(match answered.map(|answered| (answered.outcome, answered.notice)) {
            Some((_, Notice::GroupUnknown { groups })) => RowEnd::LookUp(groups),
            None | Some((GateOutcome::Barred(_) | GateOutcome::Told(_) | GateOutcome::Refused(_), _)) => RowEnd::Done("no answer"),
            Some(_) => RowEnd::Done("reaction"),
        })
    }
}
