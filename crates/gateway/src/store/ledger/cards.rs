//! The cards of gates: each gate has one in its chat, and one in the direct chat of each person to whom it was escalated. A row is written with
//! the post of a card, and completed by its receipt.

use std::iter::once;

use countersign_agent::domain::{Conversation, Gate, GateId, Millis, Outbound, OutboxOp};

use super::Result;
use super::arg::args;
use super::gates::{self, GateRecord, columns};
use super::older_cards::{by_chat, by_message};
use super::outbox::{NewOutbox, OutboxRow, outbox_key, untouched};
use super::sql::{Row, encode};
use super::transaction::{Read, Tx};
use crate::store::keys;

/// The key of the post that is the card of `gate` in the direct chat of `person`; of the card in the gate's own chat when nobody is named.
#[must_use]
pub fn card_key(gate: &GateId, person: &str) -> String {
    match person {
        "" => outbox_key(&["gate", gate.as_str()]),
        person => outbox_key(&["copy", gate.as_str(), person]),
    }
}

impl NewOutbox {
    /// The card that this posts: its gate and its person, who is empty for the card in the gate's own chat.
    pub(super) fn card(&self) -> Option<(&GateId, &str)> {
        match (&self.op, &self.gate_id) {
            (OutboxOp::Post { .. }, Some(gate)) => Some((gate, "")),
            (OutboxOp::Post { content, .. }, None) => content.copied(),
            _ => None,
        }
    }

    /// The direct card that this posts.
    pub(super) fn direct_card(&self) -> Option<(&GateId, &str)> {
        self.card().filter(|(_, person)| !person.is_empty())
    }
}

/// Whether the post of a card without a receipt may have arrived. A receipt that a program of the version before took is in the outbox alone.
macro_rules! may_be_there {
    () => {
        "EXISTS (SELECT 1 FROM outbox AS post WHERE post.key = cards.outbox_key
           AND (post.state = 'sent' OR post.state = 'waiting' AND (post.owner <> '' OR post.uncertain = 1)))"
    };
}

impl Read {
    /// May the message that `person` pressed in `place` be their direct card of `gate`? The platform proves who pressed, and the button names the
    /// gate. Once the receipt is there, the message must be the one that was posted: a card that was forwarded decides nothing. Both are read
    /// from the post, which a program of the version before writes, too.
    pub async fn is_direct_card(&mut self, gate: &GateId, person: &str, place: &Conversation, pressed: &str) -> Result<bool> {
        let post = self
            .maybe(
                "SELECT conversation, platform_id, state, owner, uncertain FROM outbox WHERE key = $1",
                args![card_key(gate, person)],
            )
            .await?;
        let Some(post) = post else { return Ok(false) };
        match post.get::<Option<String>>("platform_id")? {
            Some(message) => Ok(message == pressed && place.may_be(&post.json("conversation")?)),
            // The person was faster than the receipt.
            None => Ok(post.text("state")? == "waiting" && (!post.text("owner")?.is_empty() || post.int("uncertain")? == 1)),
        }
    }

    /// Is a direct card on its way to `person`, whose message is not known yet?
    pub async fn is_direct_card_under_way(&mut self, place: &Conversation, person: &str) -> Result<bool> {
        let row = self
            .maybe(
                concat!(
                    "SELECT 1 FROM cards WHERE chat_key = $1 AND person = $2 AND posted_at IS NULL AND ",
                    may_be_there!(),
                    " LIMIT 1"
                ),
                args![keys::chat_key(&place.direct_with(person)), keys::without_nul(person)],
            )
            .await?;
        Ok(row.is_some())
    }

    /// Is a card that waits for an answer on its way to `place` or to `person`, whose message is not known yet? Of `place` what the platform
    /// told must fit: Lark names no chat with a reaction.
    pub async fn is_card_under_way(&mut self, place: &Conversation, person: &str) -> Result<bool> {
        // Gates tell of own cards: a program of the version before writes no rows of cards.
        let gates = self
            .all(
                "SELECT request FROM gates WHERE status = 'pending' AND delivered_at IS NULL AND channel = $1",
                args![place.channel.as_str()],
            )
            .await?;
        for row in &gates {
            if place.may_be(&gates::place(row)?) {
                return Ok(true);
            }
        }
        let direct = self
            .maybe(
                concat!(
                    "SELECT 1 FROM cards JOIN gates ON gates.id = cards.gate
                     WHERE cards.person = $2 AND cards.posted_at IS NULL AND gates.status = 'pending' AND gates.channel = $1 AND ",
                    may_be_there!(),
                    " LIMIT 1"
                ),
                args![place.channel.as_str(), keys::without_nul(person)],
            )
            .await?;
        Ok(direct.is_some())
    }

    /// The gate that was closed last of those with a card in this direct chat, if closed after `since`.
    pub async fn last_closed_of_direct_chat(&mut self, place: &Conversation, since: Millis) -> Result<Option<GateRecord>> {
        let row = self
            .maybe(
                "SELECT gates.id AS id FROM cards JOIN gates ON gates.id = cards.gate
                 WHERE cards.chat_key = $1 AND cards.person <> '' AND cards.posted_at IS NOT NULL AND gates.closed_at > $2
                 ORDER BY gates.closed_at DESC, gates.opened_at DESC LIMIT 1",
                args![keys::chat_key(place), since],
            )
            .await?;
        match row {
            Some(row) => self.gate(&row.get::<GateId>("id")?).await,
            None => Ok(None),
        }
    }

    /// The card of `gate` as its chat was shown it last.
    pub async fn shown_card(&mut self, gate: &Gate) -> Result<Outbound> {
        let newest = self
            .maybe(
                "SELECT body FROM outbox WHERE target = $1 AND state IN ('sent', 'waiting') ORDER BY id DESC LIMIT 1",
                args![card_key(&gate.id, "")],
            )
            .await?;
        Ok(match newest.map(|row| row.json("body")).transpose()? {
            Some(OutboxOp::Patch { content, .. }) => content,
            _ => gate.card.clone(),
        })
    }
}

impl Tx {
    /// The gate whose card, or whose direct card for `person`, is this message. Of `place` what the platform told must fit.
    pub async fn gate_of_card(&mut self, place: &Conversation, message_id: &str, person: &str) -> Result<Option<GateId>> {
        self.note_older_cards(by_message(place, message_id)).await?;
        let rows = self
            .all(
                "SELECT gate, conversation FROM cards WHERE message = $1 AND person IN ('', $2)",
                args![keys::without_nul(message_id), keys::without_nul(person)],
            )
            .await?;
        for row in &rows {
            if place.may_be(&row.json("conversation")?) {
                return Ok(Some(row.get("gate")?));
            }
        }
        Ok(None)
    }

    /// The open gates with a card in `place`, the direct chat of `person`, oldest first. `card_at` is that of the direct card.
    pub async fn gates_of_direct_chat(&mut self, place: &Conversation, person: &str) -> Result<Vec<Gate>> {
        self.note_older_cards(by_chat(place, person)).await?;
        let rows = self
            .all(
                concat!(
                    "SELECT ",
                    columns!("gates."),
                    ", cards.posted_at FROM cards JOIN gates ON gates.id = cards.gate
                     WHERE cards.chat_key = $1 AND cards.person <> '' AND cards.posted_at IS NOT NULL AND gates.status = 'pending'
                     ORDER BY gates.opened_at, gates.id"
                ),
                args![keys::chat_key(place)],
            )
            .await?;
        let read = |row: &Row| {
            let card_at = row.get("posted_at")?;
            Ok(Gate {
                card_at,
                ..gates::read(row)?
            })
        };
        rows.iter().map(read).collect()
    }

    /// Writes down the card that `new` posts, if it posts one. `posted_at`: since when it is there, and `message` as what, once that is known.
    pub(super) async fn note_card(&mut self, new: &NewOutbox, message: Option<&str>, posted_at: Option<Millis>) -> Result<()> {
        let Some((gate, person)) = new.card() else { return Ok(()) };
        self.run(
            "INSERT INTO cards (gate, person, conversation, chat_key, outbox_key, message, posted_at) VALUES ($1, $2, $3, $4, $5, $6, $7)
             ON CONFLICT (gate, person) DO UPDATE SET conversation = excluded.conversation, chat_key = excluded.chat_key,
               message = excluded.message, posted_at = excluded.posted_at
             WHERE cards.posted_at IS NULL",
            args![
                gate,
                keys::without_nul(person),
                encode(&new.conversation)?,
                keys::chat_key(&new.conversation),
                &new.key,
                message.map(keys::without_nul),
                posted_at
            ],
        )
        .await?;
        Ok(())
    }

    /// Posts `card` to each person to whom `gate` was escalated.
    pub async fn post_direct_cards(&mut self, gate: &Gate, card: &Outbound) -> Result<()> {
        for person in &gate.follow_up.escalated_to {
            let Some(content) = card.copy_for(person, gate) else { continue };
            let post = OutboxOp::Post { reply_to: None, content };
            self.enqueue(&about_card(gate, person, card_key(&gate.id, person), post)).await?;
        }
        Ok(())
    }

    /// Repaints the cards of `gate`; `change` names what happened, so that the same change repaints once.
    pub(crate) async fn repaint_card(&mut self, gate: &Gate, change: &str, content: Outbound) -> Result<()> {
        let people = gate.follow_up.escalated_to.iter().map(String::as_str);
        for person in once("").chain(people) {
            let (key, content) = match person {
                "" => (outbox_key(&["repaint", gate.id.as_str(), change]), Some(content.clone())),
                _ => (
                    outbox_key(&["repaint copy", gate.id.as_str(), change, person]),
                    content.copy_for(person, gate),
                ),
            };
            let Some(content) = content else { continue };
            let target = card_key(&gate.id, person);
            self.enqueue(&about_card(gate, person, key, OutboxOp::Patch { target, content }))
                .await?;
        }
        Ok(())
    }

    /// The gate is decided: direct cards that are not under way are not posted any more.
    pub(super) async fn drop_direct_cards(&mut self, gate: &GateId) -> Result<()> {
        self.run(
            concat!(
                "UPDATE outbox SET state = 'failed', error = 'the card was decided before' WHERE copy_of = $1 AND ",
                untouched!()
            ),
            args![keys::without_nul(gate.as_str())],
        )
        .await?;
        Ok(())
    }

    /// The row was not sent and is nobody's now. If it posts a direct card of a gate that was decided meanwhile, it is not tried again: the decision
    /// could not withdraw a post that was under way.
    pub(super) async fn drop_late_card(&mut self, row: &OutboxRow) -> Result<()> {
        let Some((gate, _)) = row.new.direct_card() else { return Ok(()) };
        self.run(
            concat!(
                "UPDATE outbox SET state = 'failed', error = 'the card was decided before'
                 WHERE id = $1 AND EXISTS (SELECT 1 FROM gates WHERE gates.id = $2 AND gates.status <> 'pending') AND ",
                untouched!()
            ),
            args![row.id, gate],
        )
        .await?;
        Ok(())
    }
}

/// A row about the card of `gate` for `person`. In the gate's own chat a card takes its place among the turn's posts, so that it never overtakes
/// or trails the turn's progress. A direct card has a queue of its own: a direct chat that cannot be reached holds up no other.
fn about_card(gate: &Gate, person: &str, key: String, op: OutboxOp) -> NewOutbox {
    let (queue, conversation) = match person {
        "" => (gate.turn_id.to_string(), gate.conversation.clone()),
        person => (card_key(&gate.id, person), gate.conversation.direct_with(person)),
    };
    NewOutbox {
        key,
        queue,
        gate_id: None,
        turn_id: Some(gate.turn_id.clone()),
        conversation,
        op,
    }
}
