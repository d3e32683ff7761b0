//! The outbox: each row goes out once, posts in the order of their queue; cards show their newest state only.
//!
//! `tries` is the row's fence: who takes a row over raises it, and a late holder can no longer put it back or give it up. Anybody may say that
//! a row was sent, because that is true. Repaints have a line per card and not per turn: platforms ration them by app, and an answer must
//! not wait behind them.

use countersign_agent::domain::{Conversation, GateId, Millis, Outbound, OutboxOp, TurnId};
use serde_json::json;

use super::Result;
use super::arg::args;
use super::audit::AuditEntry;
use super::sql::{Row, encode};
use super::transaction::{Read, Tx};
use crate::store::keys;

/// A row that could not be sent for this long (milliseconds) is given up.
pub(super) const GIVE_UP_MS: i64 = 10 * 60 * 1000;

/// A row to enqueue.
#[derive(Clone, Debug, PartialEq)]
pub struct NewOutbox {
    /// Idempotency key; a second row with the same key is dropped.
    pub key: String,
    /// FIFO among rows of the same queue (turn id or inbox id). Repaints are FIFO among those of their card instead. Marks of one queue are
    /// states of one request: the newest counts.
    pub queue: String,
    /// The gate whose TTL starts when this is delivered.
    pub gate_id: Option<GateId>,
    /// Turn, if any.
    pub turn_id: Option<TurnId>,
    /// Where to.
    pub conversation: Conversation,
    /// What.
    pub op: OutboxOp,
}

/// A row to send.
#[derive(Clone, Debug, PartialEq)]
pub struct OutboxRow {
    /// Monotone id.
    pub id: i64,
    /// As enqueued.
    pub new: NewOutbox,
    /// The platform's id of what it changes, once known: a patch the message of the card, a mark the mark before it.
    pub target_message: Option<String>,
    /// Tries so far, those of unknown outcome included.
    pub tries: i64,
    /// One of these tries may have arrived.
    pub uncertain: bool,
    /// Cards were refused: say it as text.
    pub plain: bool,
    /// When it was made.
    pub created_at: Millis,
    /// After this it is given up.
    pub give_up_at: Millis,
}

/// The idempotency key of an outbox row: `o_` and 32 hex digits over its parts. The card of a gate has the
/// parts `["gate", gate id]`, the progress card of a turn `["progress", turn id]`.
#[must_use]
pub fn outbox_key(parts: &[&str]) -> String {
    format!("o_{}", hex::encode(countersign_agent::domain::digest128(parts)))
}

/// The target of every mark on this message: of rows with one target the newest counts.
pub(super) fn mark_target(place: &Conversation, message_id: &str) -> String {
    let kind = place.channel.as_str();
    outbox_key(&["marks", kind, &place.app, &place.tenant, &place.chat, message_id])
}

/// Of a row that waits: it cannot have arrived, and nobody is sending it.
macro_rules! untouched {
    () => {
        "state = 'waiting' AND owner = '' AND uncertain = 0"
    };
}
pub(super) use untouched;

/// Named one by one: a statement that is prepared must give the same when a newer program has added a column.
macro_rules! columns {
    () => {
        "id, key, queue, gate_id, turn_id, conversation, body, tries, plain, uncertain, created_at, give_up_at"
    };
}
pub(super) use columns;

impl Read {
    /// When the row with this key was enqueued, if there is one.
    pub async fn enqueued_at(&mut self, key: &str) -> Result<Option<Millis>> {
        let row = self.maybe("SELECT created_at FROM outbox WHERE key = $1", args![key]).await?;
        row.map(|row| row.int("created_at").map(Millis)).transpose()
    }

    /// A post that was given up, or that had to go out as text, is no card to repaint.
    async fn can_be_patched(&mut self, target: &str) -> Result<bool> {
        let row = self
            .maybe("SELECT state FROM outbox WHERE key = $1 AND plain = 0", args![target])
            .await?;
        Ok(row.map(|row| row.text("state")).transpose()?.is_some_and(|state| state != "failed"))
    }
}

impl Tx {
    /// Enqueues; same key = no second row. A patch drops waiting older patches of the same target, a mark those of the same message. A patch
    /// of a post that is not there or was given up is given up at once.
    pub async fn enqueue(&mut self, new: &NewOutbox) -> Result<()> {
        let now = self.now();
        let (op, target) = match &new.op {
            OutboxOp::Post { .. } => ("post", None),
            OutboxOp::Patch { target, .. } => ("patch", Some(target.clone())),
            OutboxOp::React { message_id, .. } => ("react", Some(mark_target(&new.conversation, message_id))),
            // Rationed like a mark.
            OutboxOp::Session { .. } => ("react", None),
        };
        let state = match &new.op {
            OutboxOp::Patch { target, .. } if !self.can_be_patched(target).await? => "failed",
            _ => "waiting",
        };
        if !self.insert(new, op, target.as_deref(), state).await? || state == "failed" {
            return Ok(());
        }
        self.note_card(new, None, None).await?;
        if let Some(target) = target {
            // One that is on its way stays: the new one queues behind it, else the old state could land last. Of those that wait the
            // new one takes the place in line: a card that changes often would never come to its turn. A mark that may have arrived stays:
            // what the platform shows must be known before the next one.
            let replaced = self
                .all(
                    "UPDATE outbox SET state = 'superseded' WHERE target = $1 AND state = 'waiting' AND key <> $3
                   AND (owner = '' AND uncertain = 0 OR op = 'patch' AND (held_until <= $2 OR owner = ''))
                 RETURNING ready_at",
                    args![target, now, &new.key],
                )
                .await?;
            for row in &replaced {
                self.run(
                    "UPDATE outbox SET ready_at = $1 WHERE key = $2 AND ready_at > $1",
                    args![row.int("ready_at")?, &new.key],
                )
                .await?;
            }
        }
        self.effects.outbox = true;
        Ok(())
    }

    /// The row itself. Gives `false` when its key is there already. Ids of a queue rise with its commits, also when those who
    /// fill it are processes whose clocks differ: one that would not rise is not taken, and the next is above what is there.
    async fn insert(&mut self, new: &NewOutbox, op: &str, target: Option<&str>, state: &str) -> Result<bool> {
        let now = self.now();
        loop {
            let id = self.next_id();
            let inserted = self
                .run(
                    "INSERT INTO outbox (id, key, queue, gate_id, turn_id, chat_key, channel, chat, conversation, op, target, body, state,
                       owner, held_until, ready_at, tries, plain, created_at, give_up_at, copy_of)
                     SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, '', 0, $14, 0, 0, $14, $15, $16
                     WHERE NOT EXISTS (SELECT 1 FROM outbox AS ahead WHERE ahead.queue = $3 AND ahead.state = 'waiting' AND ahead.id >= $1)
                       AND NOT EXISTS (SELECT 1 FROM outbox AS ahead WHERE ahead.target = $11 AND ahead.id >= $1)
                     ON CONFLICT (key) DO NOTHING",
                    args![
                        id,
                        &new.key,
                        &new.queue,
                        new.gate_id.as_ref(),
                        new.turn_id.as_ref(),
                        keys::chat_key(&new.conversation),
                        new.conversation.channel.as_str(),
                        keys::without_nul(&new.conversation.chat),
                        encode(&new.conversation)?,
                        op,
                        target,
                        encode(&new.op)?,
                        state,
                        now,
                        now.0.saturating_add(GIVE_UP_MS),
                        // Programs of the version before know direct cards by this.
                        new.direct_card().map(|(gate, _)| gate)
                    ],
                )
                .await?;
            if inserted > 0 {
                return Ok(true);
            }
            let ahead = self
                .one(
                    "SELECT CAST(MAX(id) AS BIGINT) AS last FROM (
                     SELECT MAX(id) AS id FROM outbox WHERE queue = $1 AND state = 'waiting'
                     UNION ALL SELECT MAX(id) FROM outbox WHERE target = $2) AS ids",
                    args![&new.queue, target],
                )
                .await?;
            match ahead.get::<Option<i64>>("last")? {
                Some(last) if last >= id => self.inner.sequence.pass(last),
                _ => return Ok(false),
            }
        }
    }

    /// It was carried: as which message, and when by the platform's clock. The card of a gate starts the gate's TTL.
    pub async fn outbox_sent(&mut self, id: i64, message_id: Option<&str>, at: Option<Millis>) -> Result<()> {
        let now = self.now();
        let Some(row) = self
            .maybe(
                concat!(
                    "UPDATE outbox SET state = 'sent', owner = '', held_until = 0, sent_at = $1 WHERE id = $2 AND state = 'waiting'
                     RETURNING ",
                    columns!()
                ),
                args![now, id],
            )
            .await?
        else {
            return Ok(());
        };
        self.effects.outbox = true;
        let row = read_row(&row)?;
        if matches!(row.new.op, OutboxOp::React { .. }) {
            // By this the next mark takes its place.
            self.run(
                "UPDATE outbox SET platform_id = $1 WHERE id = $2",
                args![message_id.map(keys::without_nul), id],
            )
            .await?;
        }
        if !matches!(row.new.op, OutboxOp::Post { .. }) {
            return Ok(());
        }
        self.run(
            "UPDATE outbox SET platform_id = $1, message_ref = $2, posted_at = $3 WHERE id = $4",
            args![
                message_id.map(keys::without_nul),
                message_id.map(|message| keys::message_ref(&row.new.conversation, message)),
                at,
                id
            ],
        )
        .await?;
        if is_file(&row.new.op) {
            self.drop_file(&row.new.key).await?;
        }
        if row.plain {
            self.drop_patches(&row.new.key, "the card went out as text").await?;
        }
        self.note_card(&row.new, message_id, Some(at.unwrap_or(now))).await?;
        match &row.new.gate_id {
            Some(gate) => self.gate_delivered(gate, message_id, at).await,
            None => Ok(()),
        }
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

    /// Try again at `at`; `plain`: as text from now on, and a file with an upload of its own; `uncertain`: this try may have arrived. Nothing when the row is in other
    /// hands by now: its number of tries is its fence.
    pub async fn outbox_retry(&mut self, row: &OutboxRow, at: Millis, error: &str, plain: bool, uncertain: bool) -> Result<()> {
        self.run(
            "UPDATE outbox SET owner = '', held_until = 0, tries = tries + 1, ready_at = $1, error = $2,
               plain = CASE WHEN $3 = 1 THEN 1 ELSE plain END, uncertain = CASE WHEN $4 = 1 THEN 1 ELSE uncertain END
             WHERE id = $5 AND state = 'waiting' AND owner <> '' AND tries = $6",
            args![
                at,
                keys::without_nul(error),
                i64::from(plain),
                i64::from(uncertain),
                row.id,
                row.tries
            ],
        )
        .await?;
        if plain && is_file(&row.new.op) {
            self.forget_upload(&row.new.key).await?;
        }
        // A dispatcher that sleeps until the next due moment must compute that moment again.
        self.effects.outbox = true;
        self.drop_late_card(row).await
    }

    /// The platform's rates have no room for it before `at`: it was not sent, and keeps its place in line. Nothing when the row is in other
    /// hands by now.
    pub async fn outbox_held_back(&mut self, row: &OutboxRow, at: Millis, why: &str) -> Result<()> {
        self.run(
            "UPDATE outbox SET owner = '', held_until = $1, tries = tries + 1, error = $2
             WHERE id = $3 AND state = 'waiting' AND owner <> '' AND tries = $4",
            args![at, keys::without_nul(why), row.id, row.tries],
        )
        .await?;
        self.effects.outbox = true;
        self.drop_late_card(row).await
    }

    /// Given up. Patches of a post that never came are given up with it, and a gate whose card it was cannot be answered.
    /// Nothing when the row is in other hands by now.
    pub async fn outbox_failed(&mut self, row: &OutboxRow, error: &str) -> Result<()> {
        let Some(row) = self
            .maybe(
                concat!(
                    "UPDATE outbox SET state = 'failed', owner = '', held_until = 0, tries = tries + 1, error = $1
                     WHERE id = $2 AND state = 'waiting' AND owner <> '' AND tries = $3
                     RETURNING ",
                    columns!()
                ),
                args![keys::without_nul(error), row.id, row.tries],
            )
            .await?
        else {
            return Ok(());
        };
        self.effects.outbox = true;
        let row = read_row(&row)?;
        if is_file(&row.new.op) {
            self.drop_file(&row.new.key).await?;
        }
        self.drop_patches(&row.new.key, "the post was given up").await?;
        if let Some((gate, person)) = row.new.direct_card() {
            self.audit(AuditEntry {
                kind: "escalation_failed",
                turn_id: row.new.turn_id.clone(),
                gate_id: Some(gate.clone()),
                action_id: None,
                principal: None,
                details: json!({ "to": person, "error": error }),
            });
        }
        match &row.new.gate_id {
            Some(gate) => self.gate_undeliverable(gate).await,
            None => Ok(()),
        }
    }

    pub(super) async fn drop_patches(&mut self, target: &str, why: &str) -> Result<()> {
        self.run(
            "UPDATE outbox SET state = 'failed', error = $1 WHERE target = $2 AND state = 'waiting'",
            args![why, target],
        )
        .await?;
        Ok(())
    }
}

/// Does it post a file?
fn is_file(op: &OutboxOp) -> bool {
    matches!(
        op,
        OutboxOp::Post {
            content: Outbound::File(_),
            ..
        }
    )
}

pub(super) fn read_row(row: &Row) -> Result<OutboxRow> {
    Ok(OutboxRow {
        id: row.get("id")?,
        new: NewOutbox {
            key: row.get("key")?,
            queue: row.get("queue")?,
            gate_id: row.get("gate_id")?,
            turn_id: row.get("turn_id")?,
            conversation: row.json("conversation")?,
            op: row.json("body")?,
        },
        target_message: None,
        tries: row.get("tries")?,
        plain: row.get("plain")?,
        uncertain: row.get("uncertain")?,
        created_at: row.get("created_at")?,
        give_up_at: row.get("give_up_at")?,
    })
}
