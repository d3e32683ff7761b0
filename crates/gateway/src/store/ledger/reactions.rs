//! What reactions are about: the card that a message is, the order of what a person did to it, and approvals that are taken back.

use countersign_agent::domain::{Conversation, Gate, GateId, InboundBody, Reaction, Vote};

use super::Result;
use super::copies::copy_key;
use super::gates::{self, columns};
use super::inbox::InboxRow;
use super::sql::args;
use super::transaction::{Read, Tx};
use crate::store::keys;

/// Reactions of a person that are looked through for a later one about the same message.
const LATEST: i64 = 256;

impl Read {
    /// The open gate whose card, or whose copy for `person`, is this message. Of `place` what the platform told must fit: Lark
    /// names no chat with a reaction.
    pub async fn open_gate_of_message(&mut self, place: &Conversation, message_id: &str, person: &str) -> Result<Option<Gate>> {
        let cards = self
            .all(
                concat!(
                    "SELECT ",
                    columns!(),
                    " FROM gates WHERE card_message = $1 AND status = 'pending' ORDER BY opened_at DESC, id DESC"
                ),
                args![keys::without_nul(message_id)],
            )
            .await?;
        for row in &cards {
            let gate = gates::read(row)?;
            if is_in(place, &gate.conversation) {
                return Ok(Some(gate));
            }
        }
        let copies = self
            .all(
                concat!(
                    "SELECT ",
                    columns!("gates."),
                    ", outbox.key AS copy_key, outbox.conversation AS copy_place FROM outbox JOIN gates ON gates.id = outbox.copy_of
                     WHERE outbox.platform_id = $1 AND outbox.copy_of IS NOT NULL AND outbox.state = 'sent' AND gates.status = 'pending'
                     ORDER BY gates.opened_at DESC, gates.id DESC"
                ),
                args![keys::without_nul(message_id)],
            )
            .await?;
        for row in &copies {
            let (gate, copy): (Gate, Conversation) = (gates::read(row)?, row.json("copy_place")?);
            if is_in(place, &copy) && row.text("copy_key")? == copy_key(&gate.id, person) {
                return Ok(Some(gate));
            }
        }
        Ok(None)
    }

    /// Is a card, or a copy of one, under way that may be a message of `place` whose id we do not know yet?
    pub async fn is_card_under_way(&mut self, place: &Conversation) -> Result<bool> {
        let cards = self
            .all(
                "SELECT request FROM gates WHERE status = 'pending' AND delivered_at IS NULL AND channel = $1",
                args![place.channel.as_str()],
            )
            .await?;
        for row in &cards {
            if is_in(place, &gates::place(row)?) {
                return Ok(true);
            }
        }
        let copies = self.maybe("SELECT 1 FROM outbox WHERE copy_of IS NOT NULL AND state = 'waiting' AND (owner <> '' OR uncertain = 1) AND channel = $1 LIMIT 1", args![place.channel.as_str()]).await?;
        Ok(copies.is_some())
    }

    /// Did the person of `row` do something later to the same thumb of the same message, or give it the other one, by the platform's clock?
    pub async fn has_later_reaction(&mut self, row: &InboxRow, reaction: &Reaction) -> Result<bool> {
        let rows = self
            .all(
                "SELECT id, state, received_at, payload FROM inbox WHERE kind = 'reaction' AND person_key = $1 AND id <> $2
                 ORDER BY id DESC LIMIT $3",
                args![keys::person_key(&row.inbound.conversation, &row.inbound.sender), row.id, LATEST],
            )
            .await?;
        for InboxRow { inbound: other, .. } in self.readable(&rows)? {
            let same = |of: &Reaction| {
                let other_thumb = !of.taken_away && !reaction.taken_away;
                of.message_id == reaction.message_id && (of.thumb == reaction.thumb || other_thumb)
            };
            if other.at > row.inbound.at && matches!(&other.body, InboundBody::Reaction(of) if same(of)) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Tx {
    /// Takes this approval back. Gives `false` when it was not there any more.
    pub async fn withdraw_vote(&mut self, gate: &GateId, vote: &Vote) -> Result<bool> {
        let done = self
            .run(
                "DELETE FROM votes WHERE gate_id = $1 AND person = $2",
                args![gate.as_str(), keys::voter_key(vote)],
            )
            .await?;
        self.mark_unsealed(gate);
        Ok(done > 0)
    }
}

/// Does what was told of `place` fit `other`?
fn is_in(place: &Conversation, other: &Conversation) -> bool {
    let chat_fits = place.chat.is_empty() || place.chat == other.chat;
    chat_fits && (place.channel, &place.app, &place.tenant) == (other.channel, &other.app, &other.tenant)
}
