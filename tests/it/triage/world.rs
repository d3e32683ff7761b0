//! A chat without a platform: a real ledger, its `Conversations`, and a worker and dispatcher reduced to what triage sees of them.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use countersign_agent::domain::SignalKind;
use countersign_agent::domain::{
    Action, ActionId, ChannelKind, ClickTarget, ClickVerb, Clock, FollowUp, Gate, GateId, GateKind, Inbound, InboundBody, Millis, Notice,
    Outbound, TurnId, TurnStatus,
};
use countersign_gateway::channels::BoxFuture;
use countersign_gateway::config::{Live, Settings};
use countersign_gateway::conversation::{Conversations, GroupDirectory};
use countersign_gateway::store::{AuditCheck, AuditEntry, GateRecord, Lease, Ledger, NewOutbox, OutboxOp, TurnRow, Tx, outbox_key};

use crate::store_kit::{Store, next_task, store};

use super::cards::{TTL, card, live, proposed};
use super::words::{BOT, Words, place, press};

/// Everything a test needs, in the stores of this run.
pub struct World {
    pub ledger: Ledger,
    pub conversations: Conversations,
    pub clock: Clock,
    pub live: Live,
    posted: u32,
    groups: SilentGroups,
    pub store: Store,
}

/// A platform that tells nobody who belongs to its groups, and counts how often it is asked.
#[derive(Clone, Debug, Default)]
struct SilentGroups(Arc<AtomicUsize>);

impl GroupDirectory for SilentGroups {
    fn members<'a>(&'a self, _: ChannelKind, _: &'a str) -> BoxFuture<'a, Option<HashSet<String>>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Box::pin(std::future::ready(None))
    }
}

/// One thing that went out.
#[derive(Clone, Debug, PartialEq)]
pub struct Sent {
    pub thread: String,
    pub op: OutboxOp,
}

impl World {
    pub async fn new() -> Self {
        Self::with(|_| {}).await
    }

    /// A world whose settings `edit` changed; the bot knows itself.
    pub async fn with(edit: impl FnOnce(&mut Live)) -> Self {
        Self::on(store().await, edit).await
    }

    /// A world on this store.
    pub async fn on(store: Store, edit: impl FnOnce(&mut Live)) -> Self {
        let (ledger, clock) = (store.ledger.clone(), store.clock.clone());
        let mut live = live();
        edit(&mut live);
        let groups = SilentGroups::default();
        let directory = Arc::new(groups.clone());
        let conversations = Conversations::new(ledger.clone(), Settings::new(live.clone()), clock.clone(), directory);
        let world = Self {
            ledger,
            conversations,
            clock,
            live,
            posted: 0,
            groups,
            store,
        };
        world.introduce().await;
        world
    }

    /// The bot learns its own id.
    pub async fn introduce(&self) {
        let mut tx = self.ledger.begin().await.unwrap();
        tx.set_fact(&place("").bot_fact(), BOT).await.unwrap();
        tx.commit().await.unwrap();
    }

    /// [`Conversations`] on this ledger under other settings.
    pub fn conversations_with(&self, edit: impl FnOnce(&mut Live)) -> Conversations {
        let mut live = self.live.clone();
        edit(&mut live);
        Conversations::new(
            self.ledger.clone(),
            Settings::new(live),
            self.clock.clone(),
            Arc::new(self.groups.clone()),
        )
    }

    /// How often the platform was asked who belongs to a group.
    pub fn groups_asked(&self) -> usize {
        self.groups.0.load(Ordering::Relaxed)
    }

    /// A second passes; then `words` come in and are triaged.
    pub async fn hear(&self, words: Words) {
        self.accept(words).await;
        self.conversations.triage().await.unwrap();
    }

    /// A second passes; then `words` come in. Gives the inbox id.
    pub async fn accept(&self, words: Words) -> i64 {
        self.receive(words.inbound).await
    }

    pub async fn receive(&self, mut inbound: Inbound) -> i64 {
        self.clock.advance(Duration::from_secs(1));
        if inbound.at == Millis(0) {
            inbound.at = self.clock.now();
        }
        self.ledger.accept(&inbound).await.unwrap()
    }

    /// A click comes in a second later.
    pub async fn click(&self, who: &str, verb: ClickVerb, target: ClickTarget) -> Notice {
        self.click_with(who, verb, target, None).await
    }

    pub async fn click_with(&self, who: &str, verb: ClickVerb, target: ClickTarget, feedback: Option<&str>) -> Notice {
        self.clock.advance(Duration::from_secs(1));
        self.conversations
            .click(&press(who, verb, target, feedback, self.clock.now()))
            .await
            .unwrap()
            .notice
    }

    /// A worker takes the lane that waits longest, makes a turn of its next task and lets go of it again.
    pub async fn begin(&self) -> TurnRow {
        let mut tx = self.ledger.begin().await.unwrap();
        // Lanes that were woken for something else have no task and go back to sleep.
        let (lease, task) = loop {
            let lease = tx.claim_lane("w", 30_000, 64).await.unwrap().unwrap();
            if let Some(task) = next_task(&mut tx, &lease).await
                && lease.turn_id.is_none()
            {
                break (lease, task);
            }
            assert!(tx.release(&lease, Millis::NEVER).await.unwrap());
        };
        let InboundBody::Message(message) = &task.inbound.body else {
            panic!("a task is a message")
        };
        let turn = TurnRow {
            id: TurnId::new(format!("turn_{}", task.id)),
            lane_id: lease.lane_id.clone(),
            conversation: lease.conversation.clone(),
            user: lease.user.clone(),
            text: message.addressed(BOT).task().to_owned(),
            request_message: message.message_id.clone(),
            inbox_id: task.id,
            event_id: Some(task.inbound.event_key.clone()),
            status: TurnStatus::Running,
            reason: None,
            state: String::from("null"),
            messages: 0,
            events: 0,
            said: 0,
            created_at: self.clock.now(),
            started_at: Some(self.clock.now()),
            finished_at: None,
        };
        tx.create_turn(&lease, &turn).await.unwrap();
        assert!(tx.finish_task(task.id, "turn").await.unwrap());
        assert!(tx.release(&lease, Millis::NEVER).await.unwrap());
        tx.commit().await.unwrap();
        turn
    }

    /// The worker takes the turn's lane again for `work`, and lets go of it.
    async fn lease(&self, turn: &TurnRow) -> (Tx, Lease) {
        let mut tx = self.ledger.begin().await.unwrap();
        tx.wake_lane(&turn.lane_id).await.unwrap();
        let mut others = Vec::new();
        let lease = loop {
            let lease = tx.claim_lane("w", 30_000, 64).await.unwrap().unwrap();
            if lease.lane_id == turn.lane_id {
                break lease;
            }
            others.push(lease);
        };
        for other in others {
            assert!(tx.release(&other, self.clock.now()).await.unwrap());
        }
        (tx, lease)
    }

    /// The turn opens a gate of `kind`; its card is posted and delivered now.
    pub async fn gate(&mut self, turn: &TurnRow, kind: GateKind, quorum: u32) -> Gate {
        let gate = self.open(turn, kind, quorum).await;
        self.deliver().await;
        self.record(&gate.id).await.gate
    }

    /// Words about `earlier` were a question: the review of the same plan is open again, on a card of its own.
    pub async fn gate_again(&mut self, turn: &TurnRow, earlier: &Gate) -> Gate {
        let gate = self.open_in_place(turn, earlier.kind, earlier.quorum, Some(earlier)).await;
        self.deliver().await;
        self.record(&gate.id).await.gate
    }

    /// The turn opens a gate; its card waits in the outbox.
    pub async fn open(&mut self, turn: &TurnRow, kind: GateKind, quorum: u32) -> Gate {
        self.open_in_place(turn, kind, quorum, None).await
    }

    async fn open_in_place(&mut self, turn: &TurnRow, kind: GateKind, quorum: u32, earlier: Option<&Gate>) -> Gate {
        self.posted += 1;
        let id = GateId::new(format!("rv_{}", self.posted));
        let now = self.clock.now();
        let actions = ["a", "b"].map(|name| ActionId::new(format!("act_{}{name}", self.posted)));
        let gate = Gate {
            id: id.clone(),
            turn_id: turn.id.clone(),
            lane_id: turn.lane_id.clone(),
            kind,
            conversation: turn.conversation.clone(),
            requester: turn.user.clone(),
            request_message: turn.request_message.clone(),
            // Each asks about another plan, or about that of the earlier one.
            digest: earlier.map_or_else(|| format!("sha256:{id}"), |earlier| earlier.digest.clone()),
            plan_version: 1,
            card: card(kind, &id, turn, quorum, &actions),
            quorum,
            opened_at: now,
            delivered_at: None,
            card_at: None,
            card_message: None,
            expires_at: now.plus(TTL * 2),
            ttl_ms: i64::try_from(TTL.as_millis()).unwrap(),
            replaces: earlier.map(|earlier| earlier.id.clone()),
            follow_up: FollowUp::default(),
        };
        let (mut tx, lease) = self.lease(turn).await;
        if kind == GateKind::ToolApproval {
            for (position, action) in (0..).zip(&actions) {
                tx.insert_action(&lease, &proposed(action, turn, &gate, position)).await.unwrap();
            }
        }
        tx.open_gate(&lease, &gate).await.unwrap();
        tx.audit(AuditEntry {
            kind: "gate_opened",
            turn_id: Some(turn.id.clone()),
            gate_id: Some(id.clone()),
            action_id: None,
            principal: None,
            details: serde_json::json!({}),
        });
        let post = NewOutbox {
            key: outbox_key(&["gate", id.as_str()]),
            queue: turn.id.to_string(),
            gate_id: Some(id),
            turn_id: Some(turn.id.clone()),
            conversation: turn.conversation.clone(),
            op: OutboxOp::Post {
                reply_to: turn.request_message.clone(),
                content: gate.card.clone(),
            },
        };
        tx.enqueue(&post).await.unwrap();
        let waiting = TurnRow {
            status: TurnStatus::Paused,
            ..turn.clone()
        };
        tx.save_turn(&lease, &waiting).await.unwrap();
        assert!(tx.release(&lease, gate.expires_at).await.unwrap());
        tx.commit().await.unwrap();
        gate
    }

    /// The turn says `text`, which is delivered now; gives the message's id.
    pub async fn words(&mut self, turn: &TurnRow, text: &str) -> String {
        let mut tx = self.ledger.begin().await.unwrap();
        let post = NewOutbox {
            key: outbox_key(&["say", turn.id.as_str(), text]),
            queue: turn.id.to_string(),
            gate_id: None,
            turn_id: Some(turn.id.clone()),
            conversation: turn.conversation.clone(),
            op: OutboxOp::Post {
                reply_to: turn.request_message.clone(),
                content: Outbound::Text { text: text.to_owned() },
            },
        };
        tx.enqueue(&post).await.unwrap();
        tx.commit().await.unwrap();
        self.deliver().await;
        format!("om_out_{}", self.posted)
    }

    /// A call's outcome is lost, and `gate` asks about it again.
    pub async fn asks_again(&self, turn: &TurnRow, action: &ActionId, gate: &Gate) {
        let (mut tx, lease) = self.lease(turn).await;
        let row = tx.action(action).await.unwrap().unwrap().action;
        tx.reopen_action(&lease, &row, &gate.id).await.unwrap();
        assert!(tx.release(&lease, gate.expires_at).await.unwrap());
        tx.commit().await.unwrap();
    }

    /// `person` is asked about `gate` too; their direct card waits in the outbox. The direct chat has their id here.
    pub async fn escalates(&self, turn: &TurnRow, gate: &Gate, person: &str) {
        let (mut tx, lease) = self.lease(turn).await;
        let (now, to) = (self.clock.now(), [person.to_owned()]);
        assert!(tx.mark_escalated(&lease, &gate.id, &to, now).await.unwrap());
        let gate = tx.gate(&gate.id).await.unwrap().unwrap().gate;
        tx.post_direct_cards(&gate, &gate.card).await.unwrap();
        assert!(tx.release(&lease, gate.expires_at).await.unwrap());
        tx.commit().await.unwrap();
    }

    /// The turn ends.
    pub async fn finish(&self, turn: &TurnRow) {
        let (mut tx, lease) = self.lease(turn).await;
        let done = TurnRow {
            status: TurnStatus::Completed,
            ..turn.clone()
        };
        tx.save_turn(&lease, &done).await.unwrap();
        assert!(tx.release(&lease, Millis::NEVER).await.unwrap());
        tx.commit().await.unwrap();
    }

    /// The dispatcher carries everything that is due, a second later; posts get the ids `om_out_1`, ….
    pub async fn deliver(&mut self) -> Vec<Sent> {
        self.clock.advance(Duration::from_secs(1));
        let mut sent = Vec::new();
        loop {
            let mut tx = self.ledger.begin().await.unwrap();
            let rows = tx.claim_outbox("d", 10_000, 64, &[]).await.unwrap();
            if rows.is_empty() {
                return sent;
            }
            for row in rows {
                self.posted += 1;
                let id = format!("om_out_{}", self.posted);
                let is_post = matches!(row.new.op, OutboxOp::Post { .. });
                tx.outbox_sent(row.id, is_post.then_some(id.as_str()), Some(self.clock.now()))
                    .await
                    .unwrap();
                sent.push(Sent {
                    thread: row.new.conversation.thread.clone(),
                    op: row.new.op,
                });
            }
            tx.commit().await.unwrap();
        }
    }

    /// What is said to people in words, oldest first.
    pub async fn notices(&mut self) -> Vec<Notice> {
        let sent = self.deliver().await;
        sent.into_iter()
            .filter_map(|sent| match sent.op {
                OutboxOp::Post {
                    content: Outbound::Notice(notice),
                    ..
                } => Some(notice),
                _ => None,
            })
            .collect()
    }

    pub async fn record(&self, id: &GateId) -> GateRecord {
        self.ledger.read().await.unwrap().gate(id).await.unwrap().unwrap()
    }

    /// `approve u1`: how the gate was decided and by whom; `open` if it was not.
    pub async fn decision(&self, gate: &Gate) -> String {
        match self.record(&gate.id).await.decision {
            Some(decision) => format!("{} {}", decision.kind.as_str(), decision.by.unwrap_or_default()),
            None => "open".to_owned(),
        }
    }

    pub async fn actions(&self, gate: &Gate) -> Vec<Action> {
        self.ledger.read().await.unwrap().actions_of_gate(&gate.id).await.unwrap()
    }

    pub async fn signals(&self, turn: &TurnRow) -> Vec<SignalKind> {
        let signals = self.ledger.read().await.unwrap().signals(&turn.id).await.unwrap();
        signals.into_iter().map(|signal| signal.kind).collect()
    }

    /// Texts of the tasks that wait in the lane of `user`.
    pub async fn queue(&self, user: &str, thread: &str) -> Vec<String> {
        let lane = place(thread).lane(user);
        let rows = self.ledger.read().await.unwrap().queued(&lane).await.unwrap();
        rows.into_iter()
            .map(|row| match row.inbound.body {
                InboundBody::Message(message) => message.addressed(BOT).task().to_owned(),
                _ => panic!("a task is a message"),
            })
            .collect()
    }

    /// Lines of the approval trail, whose chain must hold.
    pub async fn trail(&self) -> u64 {
        match self.ledger.read().await.unwrap().verify_audit(None).await.unwrap() {
            AuditCheck::Sound(head) => u64::try_from(head.seq).unwrap(),
            found => panic!("{found:?}"),
        }
    }

    pub async fn untriaged(&self) -> usize {
        self.ledger.read().await.unwrap().untriaged(0, 100).await.unwrap().len()
    }
}
