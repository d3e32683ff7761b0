//! Gates: opening them, finding the one that somebody means, and what delivery does to their clock.

use countersign_agent::domain::{AskedAgain, Conversation, Decision, FollowUp, Gate, GateId, LaneId, Millis};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Result;
use super::arg::args;
use super::audit::AuditEntry;
use super::lanes::Lease;
use super::page::{Cursor, List, ListQuery, Page, page};
use super::sql::{Row, encode};
use super::transaction::{Read, Tx};
use crate::store::StoreError;
use crate::store::coordination::ReviewChange;
use crate::store::keys;

/// A gate with its votes and decision.
#[derive(Clone, Debug, PartialEq)]
pub struct GateRecord {
    /// The gate.
    pub gate: Gate,
    /// Approvals so far.
    pub votes: Vec<countersign_agent::domain::Vote>,
    /// The decision, if there is one.
    pub decision: Option<Decision>,
    /// Who had the plan asked for again, after this review of it expired.
    pub asked_again: Option<AskedAgain>,
}

/// Named one by one: a statement that is prepared must give the same when a newer program has added a column.
macro_rules! columns {
    () => {
        columns!("")
    };
    ($table:literal) => {
        columns!(@each $table; "id", "turn_id", "lane_id", "kind", "status", "request", "digest", "plan_version", "card", "quorum", "ttl_ms",
            "opened_at", "delivered_at", "card_at", "card_message", "expires_at", "replaces", "reminded_at", "escalated_at", "escalated_to")
    };
    (@each $table:literal; $first:literal $(, $more:literal)*) => {
        concat!($table, $first $(, ", ", $table, $more)*)
    };
}
pub(super) use columns;

/// The SELECT of whole rows; `$rest` is what follows the name of the table.
macro_rules! select {
    ($rest:literal) => {
        concat!("SELECT ", columns!(), " FROM gates ", $rest)
    };
}

/// Open gates of a channel that are looked through for those of one organisation. Only their places are read.
const ROWS_OF_ALL: i64 = 1000;

/// Whose gate it is and where.
#[derive(Serialize, Deserialize)]
struct Request {
    conversation: Conversation,
    requester: String,
    message: Option<String>,
}

impl Read {
    /// One gate with votes and decision.
    pub async fn gate(&mut self, id: &GateId) -> Result<Option<GateRecord>> {
        let row = self.maybe(select!("WHERE id = $1"), args![keys::without_nul(id.as_str())]).await?;
        match row {
            Some(row) => Ok(Some(self.with_votes(read(&row)?).await?)),
            None => Ok(None),
        }
    }

    /// A gate that was read before, as it stands now.
    ///
    /// # Errors
    /// `Corrupt` when it is gone.
    pub async fn gate_now(&mut self, id: &GateId) -> Result<GateRecord> {
        let now = self.gate(id).await?;
        now.ok_or_else(|| StoreError::Corrupt(format!("gate {id} is gone")))
    }

    /// The open gate of a lane.
    pub async fn open_gate_of_lane(&mut self, lane: &LaneId) -> Result<Option<Gate>> {
        self.maybe(
            select!("WHERE lane_id = $1 AND status = 'pending' ORDER BY opened_at DESC, id DESC LIMIT 1"),
            args![lane.as_str()],
        )
        .await?
        .map(|row| read(&row))
        .transpose()
    }

    /// The gates that this one's turn has opened since, newest first.
    pub async fn gates_after(&mut self, gate: &Gate) -> Result<Vec<Gate>> {
        let rows = self
            .all(
                select!("WHERE turn_id = $1 AND opened_at >= $2 AND id <> $3 ORDER BY opened_at DESC, id DESC"),
                args![gate.turn_id.as_str(), gate.opened_at, gate.id.as_str()],
            )
            .await?;
        rows.iter().map(read).collect()
    }

    /// Open gates of a chat (all threads), oldest first.
    pub async fn open_gates(&mut self, conversation: &Conversation) -> Result<Vec<Gate>> {
        let rows = self
            .all(
                select!("WHERE chat_key = $1 AND status = 'pending' ORDER BY opened_at, id"),
                args![keys::chat_key(conversation)],
            )
            .await?;
        rows.iter().map(read).collect()
    }

    /// The newest open gates of the organisation of `place`, in all its chats, newest first, at most `most`; and whether there may be more.
    pub async fn open_gates_of(&mut self, place: &Conversation, most: usize) -> Result<(Vec<GateId>, bool)> {
        // `+`: SQLite would walk all gates by their age; few are open, and an index has those.
        let rows = self
            .all(
                "SELECT id, request FROM gates WHERE status = 'pending' AND channel = $1 ORDER BY +opened_at DESC, id DESC LIMIT $2",
                args![place.channel.as_str(), ROWS_OF_ALL],
            )
            .await?;
        let mut found = Vec::new();
        for row in &rows {
            let there = self::place(row)?;
            if (&there.app, &there.tenant) == (&place.app, &place.tenant) {
                found.push(row.get::<GateId>("id")?);
            }
        }
        // Those of other organisations count among the rows that were read.
        let more = found.len() > most || i64::try_from(rows.len()).unwrap_or(i64::MAX) >= ROWS_OF_ALL;
        found.truncate(most);
        Ok((found, more))
    }

    /// The gate (newest first, open or closed) whose request or any post of whose turn, cards among them, has one of these message ids.
    pub async fn gate_by_message(&mut self, conversation: &Conversation, message_ids: &[String]) -> Result<Option<GateRecord>> {
        let mut newest: Option<Gate> = None;
        for id in message_ids {
            let found = self
                .maybe(
                    select!(
                        "WHERE id IN (SELECT id FROM gates WHERE request_ref = $1
                           UNION SELECT gates.id FROM gates JOIN outbox ON outbox.turn_id = gates.turn_id WHERE outbox.message_ref = $1)
                         ORDER BY opened_at DESC, id DESC LIMIT 1"
                    ),
                    args![keys::message_ref(conversation, id)],
                )
                .await?;
            if let Some(found) = found {
                let found = read(&found)?;
                if newest.as_ref().is_none_or(|gate| gate.opened_at < found.opened_at) {
                    newest = Some(found);
                }
            }
        }
        match newest {
            Some(gate) => Ok(Some(self.with_votes(gate).await?)),
            None => Ok(None),
        }
    }

    /// The requester's most recently closed gate in this chat, if closed after `since`.
    pub async fn last_closed_gate(&mut self, conversation: &Conversation, user: &str, since: Millis) -> Result<Option<GateRecord>> {
        let row = self
            .maybe(
                select!("WHERE person_key = $1 AND closed_at > $2 ORDER BY closed_at DESC, opened_at DESC LIMIT 1"),
                args![keys::person_key(conversation, user), since],
            )
            .await?;
        match row {
            Some(row) => Ok(Some(self.with_votes(read(&row)?).await?)),
            None => Ok(None),
        }
    }

    /// True when [`Tx::gate_undeliverable`] was called for it.
    pub async fn is_undeliverable(&mut self, id: &GateId) -> Result<bool> {
        let row = self
            .maybe("SELECT undeliverable FROM gates WHERE id = $1", args![id.as_str()])
            .await?;
        Ok(row.map(|row| row.int("undeliverable")).transpose()? == Some(1))
    }

    /// Does anybody's gate wait in this chat, in any thread? The pre-filter for what `user` says beside us in groups.
    pub async fn anything_waits(&mut self, conversation: &Conversation, user: &str) -> Result<bool> {
        if let Some(redis) = &self.inner.wakeups.redis {
            let lane = conversation.lane(user);
            // A hit saves the query below. Whether it still is a review that waits, the row says.
            if let Some(id) = redis.find(&lane).await
                && self.is_open(&id, &lane).await?
            {
                return Ok(true);
            }
        }
        let row = self
            .one(
                "SELECT COUNT(*) AS waiting FROM (SELECT 1 FROM gates WHERE chat_key = $1 AND status = 'pending' LIMIT 1) AS one",
                args![keys::chat_key(conversation)],
            )
            .await?;
        Ok(row.int("waiting")? > 0)
    }

    async fn is_open(&mut self, id: &GateId, lane: &LaneId) -> Result<bool> {
        let row = self
            .maybe(
                "SELECT 1 FROM gates WHERE id = $1 AND lane_id = $2 AND status = 'pending'",
                args![keys::without_nul(id.as_str()), lane.as_str()],
            )
            .await?;
        Ok(row.is_some())
    }

    /// Is anything unfinished in this chat, in any thread: an open gate or a turn?
    pub async fn anything_open(&mut self, conversation: &Conversation) -> Result<bool> {
        let row = self
            .one(
                "SELECT COUNT(*) AS open FROM (SELECT 1 FROM turns WHERE chat_key = $1 AND finished_at IS NULL LIMIT 1) AS one",
                args![keys::chat_key(conversation)],
            )
            .await?;
        Ok(row.int("open")? > 0)
    }

    /// Plan reviews for the API, newest first.
    pub async fn list_reviews(&mut self, query: &ListQuery) -> Result<Page<GateRecord>> {
        let list = List {
            select: concat!("SELECT ", columns!(), " FROM gates"),
            only: Some("kind = 'plan_review'"),
            status: "status",
            chat: "chat",
            user: "user_id",
            turn: "turn_id",
            event: None,
            at: "opened_at",
            id: "id",
        };
        let rows = list.rows(self, query).await?;
        let gates = page(&rows, query.limit, read, |gate| Cursor::new(gate.opened_at, gate.id.as_str()))?;
        let mut items = Vec::with_capacity(gates.items.len());
        for gate in gates.items {
            items.push(self.with_votes(gate).await?);
        }
        Ok(Page { items, next: gates.next })
    }

    async fn with_votes(&mut self, gate: Gate) -> Result<GateRecord> {
        let (decision, asked_again) = self.decision(&gate.id).await?;
        Ok(GateRecord {
            votes: self.votes(&gate.id).await?,
            decision,
            asked_again,
            gate,
        })
    }
}

impl Tx {
    /// Opens a gate.
    ///
    /// # Errors
    /// `Stale` when the lease is lost.
    pub async fn open_gate(&mut self, lease: &Lease, gate: &Gate) -> Result<()> {
        self.prove_lease(lease).await?;
        let place = &gate.conversation;
        self.run("INSERT INTO gates (id, turn_id, lane_id, kind, status, chat_key, person_key, channel, chat, user_id, request, request_ref,
               digest, plan_version, card, quorum, ttl_ms, opened_at, delivered_at, card_at, card_message, card_ref, expires_at, replaces, undeliverable,
               escalated_at, escalated_to)
             VALUES ($1, $2, $3, $4, 'pending', $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, 0, $24, $25)", args![gate.id.as_str(), gate.turn_id.as_str(), gate.lane_id.as_str(), gate.kind.as_str(), keys::chat_key(place), keys::person_key(place, &gate.requester), place.channel.as_str(), keys::without_nul(&place.chat), keys::without_nul(&gate.requester), encode(&Request {
            conversation: place.clone(),
            requester: gate.requester.clone(),
            message: gate.request_message.clone(),
        })?, gate.request_message.as_deref().map(|id| keys::message_ref(place, id)), &gate.digest, gate.plan_version, encode(&gate.card)?, gate.quorum, gate.ttl_ms, gate.opened_at, gate.delivered_at, gate.card_at, gate.card_message.as_deref().map(keys::without_nul), gate.card_message.as_deref().map(|id| keys::message_ref(place, id)), gate.expires_at, gate.replaces.as_ref(), gate.follow_up.escalated_at, encode(&gate.follow_up.escalated_to)?]).await?;
        self.mark_unsealed(&gate.id);
        self.tell_redis(|now| ReviewChange::put(gate, now))
    }

    /// Has Redis told after the commit, if there is one.
    pub(super) fn tell_redis(&mut self, change: impl FnOnce(Millis) -> Result<ReviewChange>) -> Result<()> {
        if self.inner.wakeups.redis.is_some() {
            let change = change(self.now())?;
            self.effects.reviews.push(change);
        }
        Ok(())
    }

    /// The card goes out as text that is cut ([`Outbound::is_cut`](countersign_agent::domain::Outbound::is_cut)).
    pub async fn gate_cut(&mut self, id: &GateId) -> Result<()> {
        let found = self.maybe(select!("WHERE id = $1"), args![id.as_str()]).await?;
        let Some(row) = found else { return Ok(()) };
        let gate = read(&row)?;
        self.run(
            "UPDATE gates SET card = $1 WHERE id = $2",
            args![encode(&gate.card.as_cut())?, id.as_str()],
        )
        .await?;
        // The trail seals the card. Without an entry the change would look like one by somebody else.
        self.audit(AuditEntry {
            kind: "card_cut",
            turn_id: Some(gate.turn_id),
            gate_id: Some(id.clone()),
            action_id: None,
            principal: None,
            details: json!({}),
        });
        self.mark_unsealed(id);
        Ok(())
    }

    /// The card reached the chat: id, platform time; the TTL starts (the first time only, never past twice the TTL
    /// from the opening). [`Tx::outbox_sent`] calls it for the row that carries the card.
    pub async fn gate_delivered(&mut self, id: &GateId, message_id: Option<&str>, card_at: Option<Millis>) -> Result<()> {
        let Some(row) = self
            .maybe(select!("WHERE id = $1 AND delivered_at IS NULL"), args![id.as_str()])
            .await?
        else {
            return Ok(());
        };
        let gate = read(&row)?;
        let open = row.text("status")? == "pending";
        let now = self.now();
        let started = now.0.saturating_add(gate.ttl_ms);
        let hard_limit = gate.opened_at.plus(Gate::longest_wait(gate.ttl_ms));
        let expires_at = if open { started.min(hard_limit.0) } else { gate.expires_at.0 };
        // Programs of the version before find the card by `card_ref`.
        self.run(
            "UPDATE gates SET delivered_at = $1, card_at = $2, card_message = $3, card_ref = $4, expires_at = $5
             WHERE id = $6 AND delivered_at IS NULL",
            args![
                now,
                card_at,
                message_id.map(keys::without_nul),
                message_id.map(|message| keys::message_ref(&gate.conversation, message)),
                expires_at,
                id.as_str()
            ],
        )
        .await?;
        if !open {
            return Ok(());
        }
        self.run(
            "UPDATE actions SET expires_at = $1 WHERE gate_id = $2 AND status IN ('pending', 'unknown')",
            args![expires_at, id.as_str()],
        )
        .await?;
        self.tell_redis(|now| Ok(ReviewChange::touch(&gate, Millis(expires_at), now)))?;
        // The lane sleeps until the old expiry: let it reckon anew.
        self.wake_lane(&gate.lane_id).await
    }

    /// The card could not be carried; the lane is woken to end the turn. [`Tx::outbox_failed`] calls it for the
    /// row that carries the card.
    pub async fn gate_undeliverable(&mut self, id: &GateId) -> Result<()> {
        let row = self
            .maybe(
                "UPDATE gates SET undeliverable = 1 WHERE id = $1 AND delivered_at IS NULL RETURNING lane_id",
                args![id.as_str()],
            )
            .await?;
        match row {
            Some(row) => self.wake_lane(&row.get::<LaneId>("lane_id")?).await,
            None => Ok(()),
        }
    }
}

/// Where the gate of `row` is.
pub(super) fn place(row: &Row) -> Result<Conversation> {
    let request: Request = row.json("request")?;
    Ok(request.conversation)
}

pub(super) fn read(row: &Row) -> Result<Gate> {
    let request: Request = row.json("request")?;
    Ok(Gate {
        id: row.get("id")?,
        turn_id: row.get("turn_id")?,
        lane_id: row.get("lane_id")?,
        kind: row.named("kind")?,
        conversation: request.conversation,
        requester: request.requester,
        request_message: request.message,
        digest: row.get("digest")?,
        plan_version: row.get("plan_version")?,
        card: row.json("card")?,
        quorum: row.get("quorum")?,
        opened_at: row.get("opened_at")?,
        delivered_at: row.get("delivered_at")?,
        card_at: row.get("card_at")?,
        card_message: row.get("card_message")?,
        expires_at: row.get("expires_at")?,
        ttl_ms: row.get("ttl_ms")?,
        replaces: row.get("replaces")?,
        follow_up: FollowUp {
            reminded_at: row.get("reminded_at")?,
            escalated_at: row.get("escalated_at")?,
            escalated_to: row.maybe_json("escalated_to")?.unwrap_or_default(),
        },
    })
}
