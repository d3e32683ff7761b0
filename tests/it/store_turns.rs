//! Turns: what is saved reads back whole; lists and look-ups by chat and conversation.

use countersign_agent::domain::SignalKind;
use countersign_agent::domain::{Event, Message, Role, ToolCall, TurnReason, TurnStatus};
use countersign_gateway::store::{Cursor, EventRow, InvalidCursor, ListQuery, StoreError};
use serde_json::json;

use crate::store_kit::{place, store, working};

/// S2-5 S0-30: the turn row is the serialization: text, state, counters and times read back as they were written.
#[tokio::test]
async fn a_turn_reads_back_whole() {
    let store = store().await;
    let (lease, mut row) = working(&store, "a", &place("oc_1\0", "topic"), "ou_1\0").await;
    row.state = json!({"plan": {"goal": "整理 \u{0} notes"}, "n": [1, 2.5, null]}).to_string();
    row.status = TurnStatus::Failed;
    row.reason = Some(TurnReason::BudgetExhausted);
    (row.messages, row.events, row.said) = (3, 4, 5);
    row.finished_at = Some(store.clock.now());
    let mut tx = store.ledger.begin().await.unwrap();
    tx.save_turn(&lease, &row).await.unwrap();
    tx.commit().await.unwrap();
    let mut read = store.ledger.read().await.unwrap();
    assert_eq!(read.turn(&row.id).await.unwrap(), Some(row));
}

/// design: the message log grows only; a place that is taken is not written again.
#[tokio::test]
async fn the_log_only_grows() {
    let store = store().await;
    let (lease, row) = working(&store, "a", &place("oc_1", ""), "ou_1").await;
    let mut asks = Message::text(Role::Assistant, "on it");
    asks.calls.push(ToolCall {
        id: "call_1".to_owned(),
        name: "read_file".to_owned(),
        arguments: "{not json".to_owned(),
    });
    asks.raw = Some(json!({"signature": "x"}));
    let log = [
        Message::text(Role::User, "a\0b"),
        asks,
        Message::tool("call_1", "[tool_result:read_file] x"),
    ];
    let mut tx = store.ledger.begin().await.unwrap();
    tx.append_messages(&lease, &row.id, 0, &log[..2]).await.unwrap();
    tx.append_messages(&lease, &row.id, 2, &log[2..]).await.unwrap();
    tx.commit().await.unwrap();
    let mut tx = store.ledger.begin().await.unwrap();
    assert!(matches!(
        tx.append_messages(&lease, &row.id, 2, &log[..1]).await,
        Err(StoreError::Corrupt(_))
    ));
    drop(tx);
    assert_eq!(store.ledger.read().await.unwrap().messages(&row.id).await.unwrap(), log);
}

/// design: events of a turn come back in order, from any place on; a sequence number is used once.
#[tokio::test]
async fn the_timeline_reads_back_in_order() {
    let store = store().await;
    let (lease, row) = working(&store, "a", &place("oc_1", ""), "ou_1").await;
    let event = |seq: i64| EventRow {
        seq,
        id: format!("ev_{seq}"),
        turn_id: row.id.clone(),
        chat: "oc_1".to_owned(),
        at: store.clock.now(),
        event: Event::AssistantText {
            text: format!("{seq}\0"),
            step_id: None,
        },
        summary: "[Reflect] …".to_owned(),
        iteration: 1,
    };
    let all: Vec<EventRow> = (1..=5).map(event).collect();
    let mut tx = store.ledger.begin().await.unwrap();
    tx.append_events(&lease, &all).await.unwrap();
    assert_eq!(tx.events(&row.id, 0, 100).await.unwrap(), all);
    assert_eq!(tx.events(&row.id, 2, 2).await.unwrap(), all[2..4]);
    assert!(matches!(tx.append_events(&lease, &all[..1]).await, Err(StoreError::Corrupt(_))));
}

/// design: open turns are found by chat, whatever the thread; earlier ones by conversation.
#[tokio::test]
async fn turns_are_found_by_place() {
    let store = store().await;
    let (home, topic) = (place("oc_1", ""), place("oc_1", "topic"));
    let (lease, mut first) = working(&store, "a", &home, "ou_1").await;
    store.pass(1);
    let (_, second) = working(&store, "b", &topic, "ou_1").await;
    store.pass(1);
    working(&store, "c", &place("oc_2", ""), "ou_1").await;
    let mut tx = store.ledger.begin().await.unwrap();
    assert_eq!(tx.open_turns(&home).await.unwrap(), [first.clone(), second.clone()]);
    assert!(tx.earlier_turns(&home, 10).await.unwrap().is_empty());
    first.status = TurnStatus::Completed;
    tx.save_turn(&lease, &first).await.unwrap();
    // A final status without a time gets one: nothing that is over counts as open.
    first.finished_at = Some(store.clock.now());
    assert_eq!(tx.open_turns(&home).await.unwrap(), [second]);
    assert_eq!(tx.earlier_turns(&home, 10).await.unwrap(), [first]);
    assert!(tx.earlier_turns(&topic, 10).await.unwrap().is_empty());
}

/// design: turns are listed newest first by any filter; a cursor that is not ours is refused.
#[tokio::test]
async fn turns_are_listed() {
    let store = store().await;
    let mut ids = Vec::new();
    for (name, chat, user) in [("a", "oc_1", "ou_1"), ("b", "oc_1", "ou_2"), ("c", "oc_2", "ou_1")] {
        store.pass(1);
        ids.push(working(&store, name, &place(chat, ""), user).await.1.id);
    }
    let mut read = store.ledger.read().await.unwrap();
    let mut list = async |query: ListQuery| -> Vec<String> {
        let page = read.list_turns(&query).await.unwrap();
        page.items.iter().map(|turn| turn.id.as_str().to_owned()).collect()
    };
    let all = ListQuery {
        limit: 50,
        ..ListQuery::default()
    };
    assert_eq!(list(all.clone()).await, ["turn_c", "turn_b", "turn_a"]);
    let by = |chat: Option<&str>, user: Option<&str>, status: Option<&str>| ListQuery {
        chat: chat.map(str::to_owned),
        user: user.map(str::to_owned),
        status: status.map(str::to_owned),
        ..all.clone()
    };
    assert_eq!(list(by(Some("oc_1"), None, None)).await, ["turn_b", "turn_a"]);
    assert_eq!(list(by(None, Some("ou_1"), None)).await, ["turn_c", "turn_a"]);
    assert_eq!(list(by(Some("oc_1"), Some("ou_1"), Some("running"))).await, ["turn_a"]);
    assert!(list(by(None, None, Some("failed"))).await.is_empty());
    assert_eq!("not a cursor".parse::<Cursor>(), Err(InvalidCursor));
}

/// design: signals of a turn end with it: nobody who looks for what is unread finds them afterwards.
#[tokio::test]
async fn signals_end_with_their_turn() {
    let store = store().await;
    let (lease, mut row) = working(&store, "a", &place("oc_1", ""), "ou_1").await;
    let (_, other) = working(&store, "b", &place("oc_2", ""), "ou_1").await;
    let mut tx = store.ledger.begin().await.unwrap();
    for turn in [&row, &other] {
        tx.signal(turn, SignalKind::Edited, None, Some("ou_1")).await.unwrap();
    }
    row.status = TurnStatus::Completed;
    tx.save_turn(&lease, &row).await.unwrap();
    tx.commit().await.unwrap();
    let mut read = store.ledger.read().await.unwrap();
    assert_eq!(read.unread_signals().await.unwrap(), [(other.id.clone(), SignalKind::Edited)]);
}
