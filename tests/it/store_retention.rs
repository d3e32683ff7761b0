//! Retention: what is over and old goes, what waits and the approval trail stay.

use std::time::Duration;

use countersign_agent::domain::{
    Absence, ActionId, ActionStatus, Conversation, DecisionKind, FeedbackValue, Message, Millis, Role, StandingGrant, TurnStatus,
};
use countersign_gateway::store::{AuditCheck, AuditEntry, ListQuery, PruneCounts};

use crate::store_kit::{START, accept, action, decision, handle_all, lane_task, open, place, simple, store, working};

/// design: finished turns older than the retention go with all their rows; unfinished ones, queued tasks, young
/// de-duplication keys and the approval trail stay.
#[tokio::test]
async fn old_and_finished_rows_go() {
    let store = store().await;
    let home = place("oc_1", "");
    let (lease, mut old) = working(&store, "old", &home, "ou_1").await;
    let gate = open(&store, &lease, &old, "rv_1").await;
    let mut tx = store.ledger.begin().await.unwrap();
    tx.insert_action(&lease, &action(&old, "act_1", ActionStatus::Approved, START))
        .await
        .unwrap();
    tx.append_messages(&lease, &old.id, 0, &[Message::text(Role::User, "x")])
        .await
        .unwrap();
    tx.decide(&gate, &decision(DecisionKind::Approve, "ou_1", START)).await.unwrap();
    tx.audit(AuditEntry {
        kind: "decision",
        turn_id: Some(old.id.clone()),
        gate_id: Some(gate.id.clone()),
        action_id: None,
        principal: None,
        details: serde_json::Value::Null,
    });
    old.status = TurnStatus::Completed;
    tx.save_turn(&lease, &old).await.unwrap();
    tx.note_feedback(&old, "ou_2", FeedbackValue::Up, START).await.unwrap();
    let again = tx.refresh(&lease).await.unwrap();
    assert!(tx.release(&again, Millis::NEVER).await.unwrap());
    tx.commit().await.unwrap();
    let (_, running) = working(&store, "running", &home, "ou_2").await;
    let queued = lane_task(&store, &simple("queued", &home, "ou_3")).await;

    // Younger than 25 h: the key is still needed, whatever the retention.
    store.pass(24 * 3_600_000);
    let pruned = store.ledger.prune(store.clock.now()).await.unwrap();
    assert_eq!(
        pruned,
        PruneCounts {
            turns: 1,
            lanes: 1,
            ..PruneCounts::default()
        }
    );
    accept(&store, &simple("old", &home, "ou_1")).await;
    assert_eq!(handle_all(&store).await, [0; 0], "a copy still");
    // Nor is it removed while something of that time waits to be looked at, which may be another copy.
    let waits = accept(&store, &simple("waits", &home, "ou_1")).await;
    store.clock.advance(Duration::from_secs(2 * 3600));
    assert_eq!(store.ledger.prune(store.clock.now()).await.unwrap().inbox, 0);
    assert_eq!(handle_all(&store).await, [waits]);
    let pruned = store.ledger.prune(store.clock.now()).await.unwrap();
    assert_eq!(pruned.inbox, 2, "the requests of both turns");

    let mut read = store.ledger.read().await.unwrap();
    assert!(read.turn(&old.id).await.unwrap().is_none());
    assert!(read.gate(&gate.id).await.unwrap().is_none());
    assert!(read.messages(&old.id).await.unwrap().is_empty());
    let all = ListQuery {
        limit: 10,
        ..ListQuery::default()
    };
    assert!(read.list_actions(&all).await.unwrap().items.is_empty());
    assert!(read.list_feedback(&all).await.unwrap().items.is_empty());
    assert_eq!(read.list_turns(&all).await.unwrap().items, [running]);
    assert_eq!(read.queued(&home.lane("ou_3")).await.unwrap()[0].id, queued);
    assert!(matches!(read.verify_audit(None).await.unwrap(), AuditCheck::Sound(head) if head.seq == 1));
}

/// An absence goes once it ended before the retention; one that holds, or ended lately, stays.
#[tokio::test]
async fn absences_that_ended_long_ago_go() {
    let store = store().await;
    let home = place("oc_1", "");
    let now = store.clock.now();
    let mut tx = store.ledger.begin_in(&home).await.unwrap();
    for (person, until) in [("ou_old", now.0 - 2_000), ("ou_late", now.0 - 500), ("ou_away", now.0 + 1_000)] {
        let absence = Absence {
            person: person.to_owned(),
            deputy: String::from("ou_deputy"),
            since: Millis(now.0 - 10_000),
            until: Millis(until),
            teams: Vec::new(),
        };
        tx.set_absence(&home, &absence).await.unwrap();
    }
    tx.commit().await.unwrap();
    assert_eq!(store.ledger.prune(Millis(now.0 - 1_000)).await.unwrap().absences, 1);
    let mut read = store.ledger.read().await.unwrap();
    // The last moment belongs to it.
    let held = read.deputises_for(&home, "ou_deputy", Millis(now.0 + 1_000)).await.unwrap();
    assert_eq!(held.iter().map(|absence| absence.person.as_str()).collect::<Vec<_>>(), ["ou_away"]);
    assert_eq!(read.deputises_for(&home, "ou_deputy", Millis(now.0 + 1_001)).await.unwrap(), []);
    let elsewhere = Conversation {
        tenant: String::from("another"),
        ..home.clone()
    };
    assert_eq!(read.deputises_for(&elsewhere, "ou_deputy", now).await.unwrap(), []);
    assert_eq!(read.absence(&home, "ou_old", Millis(0)).await.unwrap(), None);
    assert!(read.absence(&home, "ou_late", Millis(now.0 - 500)).await.unwrap().is_some());
}

/// interface §9 H: a grant counts its uses while it holds, and is taken back once; those that ended long ago go, but for the newest of a chat, whose
/// number must not come again. Another chat, and a chat of the same id on another channel, has grants and numbers of its own.
#[tokio::test]
async fn standing_grants_end_and_go() {
    let store = store().await;
    let (home, other) = (place("oc_1", ""), place("oc_2", ""));
    let day = 24 * 3_600_000;
    let mut tx = store.ledger.begin_in(&home).await.unwrap();
    for (number, days) in [(1, 1), (2, 30), (3, 1)] {
        assert_eq!(tx.next_standing_number(&home).await.unwrap(), number);
        let grant = StandingGrant {
            id: format!("sg_{number}"),
            place: home.clone(),
            number,
            tool: String::from("write_file"),
            arguments: serde_json::Map::new(),
            definition: String::new(),
            by: String::from("ou_1"),
            created_at: START,
            expires_at: Millis(START.0 + days * day),
            revoked_at: None,
            used: 0,
        };
        tx.insert_standing_grant(&grant, &ActionId::new(format!("act_{number}")))
            .await
            .unwrap();
    }
    assert_eq!(tx.next_standing_number(&other).await.unwrap(), 1);
    assert!(tx.use_standing_grant("sg_1", START).await.unwrap());
    let late = Millis(START.0 + day);
    assert!(!tx.use_standing_grant("sg_1", late).await.unwrap(), "its day is over");
    let second = tx.standing_grant("sg_2").await.unwrap().unwrap();
    assert!(tx.revoke_standing_grant(&second, "ou_1", "text", START).await.unwrap());
    assert!(!tx.revoke_standing_grant(&second, "ou_2", "text", late).await.unwrap());
    assert!(!tx.use_standing_grant("sg_2", START).await.unwrap(), "taken back");
    let held = tx.standing_grants(&home, START).await.unwrap();
    assert_eq!(
        held.iter().map(|grant| (grant.number, grant.used)).collect::<Vec<_>>(),
        [(1, 1), (3, 0)]
    );
    assert!(tx.standing_grants(&other, START).await.unwrap().is_empty());
    tx.commit().await.unwrap();
    store.pass(40 * day);
    let pruned = store.ledger.prune(store.clock.now()).await.unwrap();
    assert_eq!(pruned.standing_grants, 2);
    let mut read = store.ledger.read().await.unwrap();
    assert_eq!(read.next_standing_number(&home).await.unwrap(), 4);
    assert!(read.standing_grant("sg_3").await.unwrap().is_some());
}
