//! Thumbs on cards: they count like the words, by the same rules. Nobody is told that one does not count: it is no word to us.

use countersign_agent::domain::handshake::{Actor, Right};
use countersign_agent::domain::{Conversation, Gate, Notice, Reaction, Thumb, Via};

use crate::store::{InboxRow, StoreError, Tx};

use super::Conversations;
use super::load::DELIVERY;
use super::phrases::Phrase;
use super::route::act_at;
use super::settle::{settle, withdraw};
use super::triage::RowEnd;

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
        let Some(gate) = tx.open_gate_of_message(place, &reaction.message_id, sender).await? else {
            // The card may be in the chat already, and the news of it on its way.
            let fresh = self.clock.now().since(row.received_at) < DELIVERY;
            return Ok(match fresh && tx.is_card_under_way(place).await? {
                true => RowEnd::Wait,
                false => RowEnd::Done("no card that waits"),
            });
        };
        if gate.conversation.chat != locked.chat {
            return Ok(RowEnd::Elsewhere(Box::new(gate.conversation)));
        }
        if tx.has_later_reaction(row, reaction).await? {
            return Ok(RowEnd::Done("overtaken"));
        }
        self.react(tx, row, reaction, &gate).await
    }

    /// Carries a reaction on the card of `gate` out.
    async fn react(&self, tx: &mut Tx, row: &InboxRow, reaction: &Reaction, gate: &Gate) -> Result<RowEnd, StoreError> {
        let Some(record) = tx.gate(&gate.id).await? else {
            return Err(StoreError::Corrupt(format!("gate {} is gone", gate.id)));
        };
        let sender = &row.inbound.sender;
        let actor = Actor::person(sender, Via::Reaction, &row.inbound.event_key, self.clock.now());
        let rights = self.rights_of(tx, &gate.conversation, sender).await?;
        if reaction.taken_away {
            // A thumb down leaves no vote that could be taken back.
            if reaction.thumb == Thumb::Down {
                return Ok(RowEnd::Done("nothing to withdraw"));
            }
            let withdrawn = withdraw(tx, &record, &actor, &rights).await?;
            return Ok(RowEnd::Done(if withdrawn { "withdrawn" } else { "nothing to withdraw" }));
        }
        match rights.barrier(sender, &row.inbound.sender_teams, gate) {
            Some(Notice::GroupUnknown { groups }) => return Ok(RowEnd::LookUp(groups)),
            Some(_) => return Ok(RowEnd::Done("not served")),
            None => (),
        }
        // Neither platform says of a reaction whether a person of this organisation gave it. Where nobody is named, only the requester is known.
        if rights.is_open_to_all(gate) && *sender != gate.requester {
            return Ok(RowEnd::Done("nobody known"));
        }
        let phrase = match reaction.thumb {
            Thumb::Up => Phrase::Approve,
            Thumb::Down => Phrase::Cancel,
        };
        // A question takes words, and a thumb brings none.
        let Some(act) = act_at(gate.kind, &phrase, "") else {
            return Ok(RowEnd::Done("no answer"));
        };
        match rights.may(sender, &act, gate) {
            Right::Given(_) => (),
            Right::Unknown(groups) => return Ok(RowEnd::LookUp(groups)),
            Right::No => return Ok(RowEnd::Done("not entitled")),
        }
        settle(tx, &record, &act, None, &actor, &rights).await?;
        Ok(RowEnd::Done("reaction"))
    }
}
