//! What is done about a gate that nobody answers: the reminder, and copies of its card in direct messages to the people who are asked then.
//!
//! The key of a copy's post is made of the gate and the person, so that every repaint finds it.

use countersign_agent::domain::{Conversation, Gate, GateId, Millis, Outbound, OutboxOp};

use super::Result;
use super::gates::{self, GateRecord, columns};
use super::lanes::Lease;
use super::outbox::{NewOutbox, OutboxRow, outbox_key};
use super::sql::{Row, args, encode};
use super::transaction::{Read, Tx};
use crate::store::keys;

/// The key of the post that holds `person`'s copy of the card of `gate`.
pub(super) fn copy_key(gate: &GateId, person: &str) -> String {
    outbox_key(&["copy", gate.as_str(), person])
}

/// The keys of the messages beside the card that say that it waits.
#[must_use]
pub fn reminder_keys(gate: &GateId) -> [String; 2] {
    ["remind", "escalate"].map(|what| outbox_key(&[what, gate.as_str()]))
}

impl Read {
    /// Is a copy of the card of `gate` on its way to `person`, whose message we do not know yet?
    pub async fn is_copy_under_way(&mut self, gate: &GateId, person: &str) -> Result<bool> {
        let row = self
            .maybe(
                "SELECT 1 FROM outbox WHERE key = $1 AND copy_of = $2 AND state = 'waiting' AND (owner <> '' OR uncertain = 1)",
                args![copy_key(gate, person), keys::without_nul(gate.as_str())],
            )
            .await?;
        Ok(row.is_some())
    }

    /// Is any copy on its way to `person`, into the direct chat `place`?
    pub async fn are_copies_under_way(&mut self, place: &Conversation, person: &str) -> Result<bool> {
        let row = self
            .maybe(
                "SELECT 1 FROM outbox WHERE chat_key = $1 AND copy_of IS NOT NULL AND state = 'waiting' AND owner <> '' LIMIT 1",
                args![keys::chat_key(&place.direct_with(person))],
            )
            .await?;
        Ok(row.is_some())
    }

    /// Does `person` have this message, in this chat, as their copy of the card of `gate`?
    pub async fn is_copy(&mut self, gate: &GateId, person: &str, place: &Conversation, message_id: &str) -> Result<bool> {
        let row = self
            .maybe(
                "SELECT conversation, platform_id FROM outbox WHERE key = $1 AND copy_of = $2 AND state = 'sent'",
                args![copy_key(gate, person), keys::without_nul(gate.as_str())],
            )
            .await?;
        let Some(row) = row else { return Ok(false) };
        let own: Conversation = row.json("conversation")?;
        // Not every platform tells the tenant with a click.
        let here = (own.channel, &own.app, &own.chat) == (place.channel, &place.app, &place.chat);
        Ok(here && row.get::<Option<String>>("platform_id")?.as_deref() == Some(message_id))
    }

    /// The open gates of whose cards there are copies in this direct chat, oldest first. `card_at` is that of the copy.
    pub async fn copied_gates(&mut self, place: &Conversation) -> Result<Vec<Gate>> {
        let rows = self
            .all(
                concat!(
                    "SELECT ",
                    columns!("gates."),
                    ", outbox.posted_at, outbox.sent_at FROM outbox JOIN gates ON gates.id = outbox.copy_of
                     WHERE outbox.chat_key = $1 AND outbox.copy_of IS NOT NULL AND outbox.state = 'sent' AND gates.status = 'pending'
                     ORDER BY gates.opened_at, gates.id"
                ),
                args![keys::chat_key(place)],
            )
            .await?;
        rows.iter().map(read_copied).collect()
    }

    /// The gate with a copy in this direct chat that was closed last, if closed after `since`.
    pub async fn last_closed_copy(&mut self, place: &Conversation, since: Millis) -> Result<Option<GateRecord>> {
        let row = self
            .maybe(
                "SELECT gates.id AS id FROM outbox JOIN gates ON gates.id = outbox.copy_of
                 WHERE outbox.chat_key = $1 AND outbox.copy_of IS NOT NULL AND outbox.state = 'sent' AND gates.closed_at > $2
                 ORDER BY gates.closed_at DESC, gates.opened_at DESC LIMIT 1",
                args![keys::chat_key(place), since],
            )
            .await?;
        match row {
            Some(row) => self.gate(&row.get::<GateId>("id")?).await,
            None => Ok(None),
        }
    }
}

impl Tx {
    /// Notes that those who may decide `gate` are reminded. Gives `false` when that was done before, or when the gate is decided.
    ///
    /// # Errors
    /// `Stale` when the lease is lost.
    pub async fn mark_reminded(&mut self, lease: &Lease, gate: &GateId, at: Millis) -> Result<bool> {
        self.prove_lease(lease).await?;
        let first = self
            .run(
                "UPDATE gates SET reminded_at = $1 WHERE id = $2 AND status = 'pending' AND reminded_at IS NULL",
                args![at, gate.as_str()],
            )
            .await?;
        Ok(first > 0)
    }

    /// Notes that these people are asked to decide `gate`, too. Gives `false` as [`Tx::mark_reminded`] does.
    ///
    /// # Errors
    /// `Stale` when the lease is lost.
    pub async fn mark_escalated(&mut self, lease: &Lease, gate: &GateId, to: &[String], at: Millis) -> Result<bool> {
        self.prove_lease(lease).await?;
        let first = self
            .run(
                "UPDATE gates SET escalated_at = $1, escalated_to = $2 WHERE id = $3 AND status = 'pending' AND escalated_at IS NULL",
                args![at, encode(to)?, gate.as_str()],
            )
            .await?;
        Ok(first > 0)
    }

    /// The card of `gate` as its chat was shown it last.
    pub async fn shown_card(&mut self, gate: &Gate) -> Result<Outbound> {
        let newest = self
            .maybe(
                "SELECT body FROM outbox WHERE target = $1 AND state IN ('sent', 'waiting') ORDER BY id DESC LIMIT 1",
                args![outbox_key(&["gate", gate.id.as_str()])],
            )
            .await?;
        Ok(match newest.map(|row| row.json("body")).transpose()? {
            Some(OutboxOp::Patch { content, .. }) => content,
            _ => gate.card.clone(),
        })
    }

    /// Posts `card` as a direct message to each person to whom `gate` was escalated. A direct chat that cannot be reached holds up no other.
    pub async fn post_copies(&mut self, gate: &Gate, card: &Outbound) -> Result<()> {
        for person in &gate.follow_up.escalated_to {
            let Some(content) = card.copy_for(person, gate) else { continue };
            let key = copy_key(&gate.id, person);
            let new = NewOutbox {
                queue: key.clone(),
                key,
                gate_id: None,
                turn_id: Some(gate.turn_id.clone()),
                conversation: gate.conversation.direct_with(person),
                op: OutboxOp::Post { reply_to: None, content },
            };
            self.enqueue(&new).await?;
        }
        Ok(())
    }

    /// Repaints the copies of the card of `gate` as the card was; `change` as for [`Tx::repaint_card`].
    pub(super) async fn repaint_copies(&mut self, gate: &Gate, change: &str, card: &Outbound) -> Result<()> {
        for person in &gate.follow_up.escalated_to {
            let Some(content) = card.copy_for(person, gate) else { continue };
            let target = copy_key(&gate.id, person);
            let new = NewOutbox {
                key: outbox_key(&["repaint copy", gate.id.as_str(), change, person]),
                queue: target.clone(),
                gate_id: None,
                turn_id: Some(gate.turn_id.clone()),
                conversation: gate.conversation.direct_with(person),
                op: OutboxOp::Patch { target, content },
            };
            self.enqueue(&new).await?;
        }
        Ok(())
    }

    /// The gate is decided: words that it waits are not said any more, and copies that are not under way are not posted.
    pub(super) async fn drop_follow_ups(&mut self, gate: &GateId) -> Result<()> {
        for key in reminder_keys(gate) {
            // One that is under way may arrive, but is not tried again.
            self.run(
                "UPDATE outbox SET state = 'superseded' WHERE key = $1 AND state = 'waiting'",
                args![key],
            )
            .await?;
        }
        self.run(
            "UPDATE outbox SET state = 'failed', error = 'the card was decided before'
             WHERE copy_of = $1 AND state = 'waiting' AND owner = '' AND uncertain = 0",
            args![keys::without_nul(gate.as_str())],
        )
        .await?;
        Ok(())
    }

    /// The row was not sent and is nobody's now. If it is a copy of a card that was decided meanwhile, it is not tried again: the decision could
    /// not withdraw a copy that was under way.
    pub(super) async fn drop_late_copy(&mut self, row: &OutboxRow) -> Result<()> {
        self.run(
            "UPDATE outbox SET state = 'failed', error = 'the card was decided before'
             WHERE id = $1 AND copy_of IS NOT NULL AND state = 'waiting' AND owner = '' AND uncertain = 0
               AND EXISTS (SELECT 1 FROM gates WHERE gates.id = outbox.copy_of AND gates.status <> 'pending')",
            args![row.id],
        )
        .await?;
        Ok(())
    }

    /// The post was made in `chat`, whose id was not known before: repaints and answers find it there.
    pub async fn outbox_in_chat(&mut self, id: i64, place: &Conversation, chat: &str) -> Result<()> {
        let place = Conversation {
            chat: chat.to_owned(),
            ..place.clone()
        };
        self.run(
            "UPDATE outbox SET conversation = $1, chat = $2, chat_key = $3 WHERE id = $4 AND state = 'waiting'",
            args![encode(&place)?, keys::without_nul(chat), keys::chat_key(&place), id],
        )
        .await?;
        Ok(())
    }
}

fn read_copied(row: &Row) -> Result<Gate> {
    let gate = gates::read(row)?;
    let posted = row.get::<Option<i64>>("posted_at")?.or(row.get::<Option<i64>>("sent_at")?);
    Ok(Gate {
        card_at: posted.map(Millis),
        ..gate
    })
}
