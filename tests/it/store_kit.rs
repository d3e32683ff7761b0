//! What the store's tests share: a ledger of each backend, and small things to put into it.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a fixture that cannot be made fails its test")]

use std::time::Duration;

use countersign_agent::domain::CardState;
use countersign_agent::domain::{
    Action, ActionId, ActionStatus, ApprovalMode, CardHead, ChannelKind, ChatType, Clock, Complexity, Conversation, Decision, DecisionKind,
    EffectClass, FollowUp, Gate, GateId, GateKind, Inbound, InboundBody, InboundMessage, Millis, Outbound, PlanCard, PlanWords, StepStatus,
    StepView, TurnId, TurnStatus, Via,
};
use countersign_gateway::config::{Coordination, Stores};
use countersign_gateway::store::{InboxRow, Lease, Ledger, Read, TurnRow};
use serde_json::json;

use crate::support::stores::{Pairing, database_for, fresh_name, redis};

/// When the clock of every test starts.
pub(crate) const START: Millis = Millis(1_760_000_000_000);
/// Length of leases in tests.
pub(crate) const LEASE_MS: i64 = 30_000;

/// A ledger with a clock that stands, in a folder or a database of its own.
pub(crate) struct Store {
    pub(crate) ledger: Ledger,
    pub(crate) clock: Clock,
    pub(crate) stores: Stores,
    /// Where the file is, if it is one.
    _folder: tempfile::TempDir,
}

impl Store {
    async fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}/ledger.db", folder.path().display());
        Self::on(Stores::embedded(url.into()), folder).await
    }

    async fn postgres() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = database_for(folder.path()).await.expect("COUNTERSIGN_TEST_POSTGRES is not set");
        let mut stores = Stores::embedded(url.into());
        stores.coordination = Coordination::Redis {
            url: redis().expect("COUNTERSIGN_TEST_REDIS is not set").into(),
            prefix: fresh_name(),
        };
        Self::on(stores, folder).await
    }

    /// The database of this run, and this Redis, which nobody else uses.
    pub(crate) async fn beside(redis: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = match Pairing::of_this_run() {
            Pairing::Sqlite => format!("sqlite://{}/ledger.db", folder.path().display()),
            Pairing::Postgres => database_for(folder.path()).await.expect("COUNTERSIGN_TEST_POSTGRES is not set"),
        };
        Self::on(with_redis(&url, redis), folder).await
    }

    pub(crate) async fn on(stores: Stores, folder: tempfile::TempDir) -> Self {
        // Some tests look at the database beside the ledger.
        sqlx::any::install_default_drivers();
        let clock = Clock::manual(START);
        Self {
            ledger: Ledger::open(&stores, clock.clone()).await.unwrap(),
            clock,
            stores,
            _folder: folder,
        }
    }

    /// Another process on the same database, by this clock.
    pub(crate) async fn another(&self, clock: &Clock) -> Self {
        Self {
            ledger: Ledger::open(&self.stores, clock.clone()).await.unwrap(),
            clock: clock.clone(),
            stores: self.stores.clone(),
            _folder: tempfile::tempdir().unwrap(),
        }
    }

    /// Ends and starts again, as after an update.
    pub(crate) async fn restart(&mut self) {
        self.ledger.close().await;
        self.ledger = Ledger::open(&self.stores, self.clock.clone()).await.unwrap();
    }

    pub(crate) fn pass(&self, ms: i64) {
        self.clock.advance(Duration::from_millis(u64::try_from(ms).unwrap()));
    }
}

/// The store that this run of the tests is about.
pub(crate) async fn store() -> Store {
    match Pairing::of_this_run() {
        Pairing::Sqlite => Store::sqlite().await,
        Pairing::Postgres => Store::postgres().await,
    }
}

/// The store of tests about a file.
pub(crate) async fn file() -> Store {
    Store::sqlite().await
}

/// The store of tests about many processes. `None` means that this run is about a file; the test is reported as skipped.
pub(crate) async fn server() -> Option<Store> {
    if !Pairing::Postgres.runs() {
        return None;
    }
    Some(Store::postgres().await)
}

/// This database and this Redis.
pub(crate) fn with_redis(database: &str, redis: &str) -> Stores {
    let mut stores = Stores::embedded(database.to_owned().into());
    stores.coordination = Coordination::Redis {
        url: redis.to_owned().into(),
        prefix: "t".to_owned(),
    };
    stores
}

/// Where Redis keeps the pending review of this gate's lane.
pub(crate) fn review_key(gate: &Gate) -> String {
    format!("t:review:{}", gate.lane_id)
}

pub(crate) fn place(chat: &str, thread: &str) -> Conversation {
    place_on(ChannelKind::Lark, chat, thread)
}

pub(crate) fn place_on(channel: ChannelKind, chat: &str, thread: &str) -> Conversation {
    Conversation {
        channel,
        app: "cli_a".to_owned(),
        tenant: "t_1".to_owned(),
        chat: chat.to_owned(),
        thread: thread.to_owned(),
    }
}

/// A message with these two de-duplication keys.
pub(crate) fn message(event: &str, message_id: &str, place: &Conversation, sender: &str) -> Inbound {
    Inbound {
        event_key: event.to_owned(),
        message_key: Some(message_id.to_owned()),
        conversation: place.clone(),
        sender: sender.to_owned(),
        sender_teams: Vec::new(),
        at: START,
        body: InboundBody::Message(InboundMessage {
            message_id: Some(message_id.to_owned()),
            chat_type: ChatType::Group,
            text: format!("say {event}"),
            mentions: Vec::new(),
            to_bot: false,
            mentions_all: false,
            attachment_only: false,
            truncated: false,
            files: Vec::new(),
            quoted: Vec::new(),
            files_follow: false,
            replies_to: Vec::new(),
        }),
    }
}

/// A message whose keys are both made from `name`.
pub(crate) fn simple(name: &str, place: &Conversation, sender: &str) -> Inbound {
    message(&format!("ev_{name}"), &format!("om_{name}"), place, sender)
}

/// Accepts a message.
pub(crate) async fn accept(store: &Store, inbound: &Inbound) -> i64 {
    store.ledger.accept(inbound).await.unwrap()
}

/// Looks at all that came in, oldest first, as triage does; gives the ids of what was handled, and removes copies.
pub(crate) async fn handle_all(store: &Store) -> Vec<i64> {
    let rows = all_untriaged(&mut store.ledger.read().await.unwrap()).await;
    let mut handled = Vec::new();
    for row in rows {
        let mut tx = store.ledger.begin_in(&row.inbound.conversation).await.unwrap();
        if tx.triaged(row.id, "looked at").await.unwrap() {
            tx.commit().await.unwrap();
            handled.push(row.id);
            continue;
        }
        drop(tx);
        let mut tx = store.ledger.begin_in(&row.inbound.conversation).await.unwrap();
        if tx.drop_copy(row.id).await.unwrap() {
            tx.commit().await.unwrap();
        }
    }
    handled
}

/// Accepts a message and puts it into its sender's lane.
pub(crate) async fn lane_task(store: &Store, inbound: &Inbound) -> i64 {
    let id = accept(store, inbound).await;
    let mut tx = store.ledger.begin().await.unwrap();
    let row = untriaged(&mut tx, id).await;
    let lane = inbound.conversation.lane(&inbound.sender);
    assert!(tx.assign(&row, &lane).await.unwrap());
    tx.commit().await.unwrap();
    id
}

/// All rows that wait for triage, oldest first.
pub(crate) async fn all_untriaged(read: &mut Read) -> Vec<InboxRow> {
    let rows = read.untriaged(0, 10_000).await.unwrap();
    rows.into_iter().map(Result::unwrap).collect()
}

pub(crate) async fn untriaged(read: &mut Read, id: i64) -> InboxRow {
    all_untriaged(read).await.into_iter().find(|row| row.id == id).unwrap()
}

/// The task that a worker of the lane takes next.
pub(crate) async fn next_task(read: &mut Read, lease: &Lease) -> Option<InboxRow> {
    read.next_task(lease).await.unwrap().map(Result::unwrap)
}

pub(crate) async fn claim(store: &Store) -> Option<Lease> {
    let mut tx = store.ledger.begin().await.unwrap();
    let lease = tx.claim_lane("w1", LEASE_MS, 10).await.unwrap();
    tx.commit().await.unwrap();
    lease
}

/// A turn of the lease's lane; its id and its request's message id are made from `name`.
pub(crate) fn turn(lease: &Lease, name: &str, inbox_id: i64, now: Millis) -> TurnRow {
    TurnRow {
        id: TurnId::new(format!("turn_{name}")),
        lane_id: lease.lane_id.clone(),
        conversation: lease.conversation.clone(),
        user: lease.user.clone(),
        text: format!("do {name}"),
        request_message: Some(format!("om_{name}")),
        inbox_id,
        event_id: Some(format!("ev_{name}")),
        status: TurnStatus::Running,
        reason: None,
        state: json!({"plan": null}).to_string(),
        messages: 0,
        events: 0,
        said: 0,
        created_at: now,
        started_at: Some(now),
        finished_at: None,
    }
}

/// A task on its way: accepted, laned, claimed, its turn made.
pub(crate) async fn working(store: &Store, name: &str, place: &Conversation, user: &str) -> (Lease, TurnRow) {
    let id = lane_task(store, &simple(name, place, user)).await;
    let lease = claim(store).await.unwrap();
    assert_eq!(lease.lane_id, place.lane(user), "another lane was ready first");
    let turn = turn(&lease, name, id, store.clock.now());
    let mut tx = store.ledger.begin().await.unwrap();
    tx.create_turn(&lease, &turn).await.unwrap();
    assert!(tx.finish_task(id, "turn").await.unwrap());
    tx.commit().await.unwrap();
    (lease, turn)
}

pub(crate) const TTL_MS: i64 = 3_600_000;

/// A plan review of this turn.
pub(crate) fn gate(turn: &TurnRow, id: &str, now: Millis) -> Gate {
    Gate {
        id: GateId::new(id),
        turn_id: turn.id.clone(),
        lane_id: turn.lane_id.clone(),
        kind: GateKind::PlanReview,
        conversation: turn.conversation.clone(),
        requester: turn.user.clone(),
        request_message: turn.request_message.clone(),
        digest: "sha256:00".to_owned(),
        plan_version: 1,
        card: plan_card(id, "Tidy up"),
        quorum: 1,
        opened_at: now,
        delivered_at: None,
        card_at: None,
        card_message: None,
        expires_at: Millis(now.0 + 2 * TTL_MS),
        ttl_ms: TTL_MS,
        replaces: None,
        follow_up: FollowUp::default(),
    }
}

pub(crate) fn plan_card(review: &str, goal: &str) -> Outbound {
    Outbound::PlanCard(PlanCard {
        left_out: None,
        review_id: Some(GateId::new(review)),
        head: CardHead::new("ou_1".to_owned(), true, TTL_MS, CardState::Open { votes: 0 }),
        goal: goal.to_owned(),
        complexity: Complexity::Complex,
        plan_version: 1,
        steps: vec![StepView {
            id: "1".to_owned(),
            content: "look".to_owned(),
            status: StepStatus::Pending,
            tools: vec!["list_files".to_owned()],
            intent: None,
            unfinished: false,
        }],
        grants: Vec::new(),
        still_asks: Vec::new(),
        approval: ApprovalMode::Write,
        quorum: 1,
        note: None,
        request_edited: false,
        demo: false,
        words: PlanWords::Unknown,
        end: None,
        outage_until: None,
        asked_again: None,
        cut: false,
        undone: Vec::new(),
    })
}

/// Opens a gate of this turn.
pub(crate) async fn open(store: &Store, lease: &Lease, turn: &TurnRow, id: &str) -> Gate {
    let gate = gate(turn, id, store.clock.now());
    let mut tx = store.ledger.begin().await.unwrap();
    tx.open_gate(lease, &gate).await.unwrap();
    tx.commit().await.unwrap();
    gate
}

pub(crate) fn decision(kind: DecisionKind, by: &str, now: Millis) -> Decision {
    Decision {
        in_place_of: None,
        kept: Vec::new(),
        kind,
        by: Some(by.to_owned()),
        via: Via::Text,
        through_api: false,
        text: Some("OK".to_owned()),
        at: now,
        event_id: Some(format!("ev_of_{by}")),
        approvers: Vec::new(),
        standing: None,
    }
}

pub(crate) fn action(turn: &TurnRow, id: &str, status: ActionStatus, now: Millis) -> Action {
    Action {
        id: ActionId::new(id),
        turn_id: turn.id.clone(),
        gate_id: None,
        call_id: format!("call_{id}"),
        tool: "write_file".to_owned(),
        effect: EffectClass::Write,
        arguments: json!({"path": "a.md", "content": "x\u{0}y"}),
        justification: "Write a.md".to_owned(),
        edited: None,
        preview: None,
        quorum: 1,
        approvers: None,
        status,
        position: 0,
        created_at: now,
        expires_at: None,
        decision: None,
        covered_by: None,
        result: None,
    }
}
