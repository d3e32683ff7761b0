//! Actions: settled once, run once, found again.

use countersign_agent::domain::{ActionStatus, Approvers, DecisionKind, Demand, GateId, ToolResult};
use countersign_gateway::store::{ListQuery, StoreError};

use crate::store_kit::{START, TTL_MS, action, decision, open, place, store, working};

/// S4-16: a decision on an action that does not wait changes nothing and says so.
#[tokio::test]
async fn an_action_is_settled_once() {
    let store = store().await;
    let (lease, turn) = working(&store, "a", &place("oc_1", ""), "ou_1").await;
    let gate = open(&store, &lease, &turn, "rv_1").await;
    let mut proposed = action(&turn, "act_1", ActionStatus::Pending, store.clock.now());
    proposed.gate_id = Some(gate.id.clone());
    proposed.expires_at = Some(gate.expires_at);
    let mut tx = store.ledger.begin().await.unwrap();
    tx.insert_action(&lease, &proposed).await.unwrap();
    let yes = decision(DecisionKind::Approve, "ou_1", store.clock.now());
    let no = decision(DecisionKind::Reject, "ou_2", store.clock.now());
    tx.gate_delivered(&gate.id, Some("om_card"), None).await.unwrap();
    assert!(tx.decide_action(&proposed.id, ActionStatus::Approved, &yes).await.unwrap());
    assert!(!tx.decide_action(&proposed.id, ActionStatus::Rejected, &no).await.unwrap());
    proposed.status = ActionStatus::Approved;
    proposed.decision = Some(yes);
    proposed.expires_at = Some(countersign_agent::domain::Millis(START.0 + TTL_MS));
    assert_eq!(tx.actions_of_gate(&gate.id).await.unwrap(), [proposed]);
}

/// design: `sent` is journaled once: an action that is not approved, or runs already, is never sent.
#[tokio::test]
async fn an_action_is_sent_once() {
    let store = store().await;
    let (lease, turn) = working(&store, "a", &place("oc_1", ""), "ou_1").await;
    let mut tx = store.ledger.begin().await.unwrap();
    let granted = action(&turn, "act_1", ActionStatus::Approved, store.clock.now());
    let pending = action(&turn, "act_2", ActionStatus::Pending, store.clock.now());
    tx.insert_action(&lease, &granted).await.unwrap();
    tx.insert_action(&lease, &pending).await.unwrap();
    assert!(matches!(
        tx.move_action(&lease, &pending.id, ActionStatus::Running).await,
        Err(StoreError::Stale)
    ));
    tx.move_action(&lease, &granted.id, ActionStatus::Running).await.unwrap();
    assert!(matches!(
        tx.move_action(&lease, &granted.id, ActionStatus::Running).await,
        Err(StoreError::Stale)
    ));

    // After a crash its outcome is unknown, and a person decides whether it runs again.
    let asks = GateId::new("rv_2");
    let mut reopened = granted.clone();
    reopened.ask(Demand {
        approvers: Some(Approvers::NotRequester),
        quorum: Some(2),
    });
    tx.reopen_action(&lease, &reopened, &asks).await.unwrap();
    let asked = tx.actions_of_gate(&asks).await.unwrap().remove(0);
    assert_eq!(asked.status, ActionStatus::Unknown);
    assert_eq!(
        (asked.quorum, asked.approvers),
        (2, Some(Approvers::NotRequester)),
        "the rules of now"
    );
    let again = decision(DecisionKind::Approve, "ou_1", store.clock.now());
    assert!(tx.decide_action(&granted.id, ActionStatus::Approved, &again).await.unwrap());
    tx.move_action(&lease, &granted.id, ActionStatus::Running).await.unwrap();
    let result = ToolResult {
        text: "ok\0".to_owned(),
        exit_code: Some(0),
        seconds: 1.25,
        truncated: false,
        ok: true,
        exit: None,
        attachment: None,
    };
    tx.finish_action(&lease, &granted.id, ActionStatus::Executed, &result)
        .await
        .unwrap();
    let stored = tx.action(&granted.id).await.unwrap().unwrap();
    assert_eq!((stored.action.status, stored.action.result), (ActionStatus::Executed, Some(result)));
    assert_eq!((stored.chat.as_str(), stored.user.as_str()), ("oc_1", "ou_1"));
}

/// design: actions are listed by the status of the row and by chat and person of their turn.
#[tokio::test]
async fn actions_are_listed() {
    let store = store().await;
    for (name, chat) in [("a", "oc_1"), ("b", "oc_2")] {
        let (lease, turn) = working(&store, name, &place(chat, ""), "ou_1").await;
        let mut tx = store.ledger.begin().await.unwrap();
        for (number, status) in [(0, ActionStatus::Pending), (1, ActionStatus::Approved)] {
            let mut row = action(&turn, &format!("act_{name}{number}"), status, store.clock.now());
            row.position = number;
            tx.insert_action(&lease, &row).await.unwrap();
        }
        tx.commit().await.unwrap();
        store.pass(1);
    }
    let mut read = store.ledger.read().await.unwrap();
    let mut list = async |status: Option<&str>, chat: Option<&str>| -> Vec<String> {
        let query = ListQuery {
            status: status.map(str::to_owned),
            chat: chat.map(str::to_owned),
            limit: 10,
            ..ListQuery::default()
        };
        let page = read.list_actions(&query).await.unwrap();
        page.items.iter().map(|record| record.action.id.as_str().to_owned()).collect()
    };
    assert_eq!(list(None, None).await, ["act_b1", "act_b0", "act_a1", "act_a0"]);
    assert_eq!(list(Some("pending"), None).await, ["act_b0", "act_a0"]);
    assert_eq!(list(Some("pending"), Some("oc_1")).await, ["act_a0"]);
}
