//! Two processes on one PostgreSQL: what each does holds for both, whatever the other does at the same moment.
#![expect(clippy::unwrap_used, reason = "outside test functions too, a step that fails fails its test")]

use std::collections::HashSet;

use countersign_agent::domain::{
    ChannelKind, Clock, DecisionKind, Definition, Definitions, EffectClass, Gate, GateKind, Inbound, Millis, Outbound, TurnStatus, Via,
    Vote, confirmation_of,
};
use countersign_gateway::store::{AuditCheck, AuditEntry, Ledger, NewOutbox, OutboxOp, Renewal, StoreError};
use futures_util::future::{join, join_all};
use secrecy::ExposeSecret;
use sqlx::{AnyConnection, AssertSqlSafe, Connection, Executor, Row};

use crate::store_kit::{
    LEASE_MS, START, Store, accept, claim, decision, gate, handle_all, lane_task, next_task, place, place_on, server, simple, untriaged,
    working,
};
use crate::support::api::eventually;

/// Two processes whose clocks are one.
async fn two() -> Option<(Store, Store)> {
    let one = server().await?;
    let other = one.another(&one.clock).await;
    Some((one, other))
}

fn post(key: &str, queue: &str) -> NewOutbox {
    NewOutbox {
        key: key.to_owned(),
        queue: queue.to_owned(),
        gate_id: None,
        turn_id: None,
        conversation: place_on(ChannelKind::Console, "web", "th"),
        op: OutboxOp::Post {
            reply_to: None,
            content: Outbound::Text { text: key.to_owned() },
        },
    }
}

async fn enqueue(ledger: &Ledger, row: &NewOutbox) {
    let mut tx = ledger.begin_in(&row.conversation).await.unwrap();
    tx.enqueue(row).await.unwrap();
    tx.commit().await.unwrap();
}

async fn take(ledger: &Ledger, owner: &str, limit: i64) -> Vec<countersign_gateway::store::OutboxRow> {
    let mut tx = ledger.begin().await.unwrap();
    let rows = tx.claim_outbox(owner, LEASE_MS, limit, &[]).await.unwrap();
    tx.commit().await.unwrap();
    rows
}

async fn sql(store: &Store, text: &str) {
    let mut conn = AnyConnection::connect(store.stores.database_url.expose_secret()).await.unwrap();
    conn.execute(AssertSqlSafe(text.to_owned())).await.unwrap();
    conn.close().await.unwrap();
}

/// Connections that wait for a lock.
async fn waiting(store: &Store) -> i64 {
    let mut conn = AnyConnection::connect(store.stores.database_url.expose_secret()).await.unwrap();
    let count = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    conn.fetch_one(count).await.unwrap().get(0)
}

/// design: a start leaves the leases of others alone; a dead process's lane is found when its lease has run out, not before.
#[tokio::test]
async fn a_start_leaves_the_leases_of_others() {
    let Some(store) = server().await else { return };
    let (lease, turn) = working(&store, "a", &place("oc_1", ""), "ou_1").await;
    let other = store.another(&store.clock).await;
    assert!(claim(&other).await.is_none());
    let mut tx = store.ledger.begin().await.unwrap();
    assert_eq!(tx.renew(&[&lease], LEASE_MS).await.unwrap(), [Renewal::Prolonged]);
    tx.commit().await.unwrap();
    // Only closed: its database goes with the store.
    store.ledger.close().await;
    other.pass(LEASE_MS - 1);
    assert!(claim(&other).await.is_none());
    other.pass(1);
    let taken = claim(&other).await.unwrap();
    assert_eq!((taken.fence, taken.turn_id), (lease.fence + 1, Some(turn.id)));
}

/// design: what could not be sent because everybody was down is tried once more before it is given up.
#[tokio::test]
async fn a_row_that_waited_too_long_is_tried_once() {
    let Some(store) = server().await else { return };
    enqueue(&store.ledger, &post("k1", "q1")).await;
    store.ledger.close().await;
    store.pass(11 * 60_000);
    let other = store.another(&store.clock).await;
    let rows = take(&other.ledger, "d2", 10).await;
    assert_eq!(rows.len(), 1);
    assert!(rows[0].give_up_at < other.clock.now());
}

/// design: a journal transaction of whatever length holds up no event, not even a copy of the one that it handles.
#[tokio::test]
async fn accepting_waits_for_nobody() {
    let Some((one, other)) = two().await else { return };
    let home = place("oc_1", "");
    let mut open = one.ledger.begin_in(&home).await.unwrap();
    let copy = simple("x", &home, "ou_1");
    assert!(open.insert_press(&copy).await.unwrap());
    accept(&other, &copy).await;
    let fresh = accept(&other, &simple("y", &home, "ou_1")).await;
    open.commit().await.unwrap();
    assert_eq!(handle_all(&other).await, [fresh]);
}

/// design: of two processes that look at copies in the same instant one handles the event, even where nothing else keeps them apart
/// (the copies name different chats); the other is refused by the key, and at its second look knows why.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn copies_looked_at_in_one_instant_are_one() {
    let Some((one, other)) = two().await else { return };
    let (home, away) = (place("oc_1", ""), place("oc_2", ""));
    let id = accept(&other, &simple("x", &away, "ou_1")).await;
    let mut open = one.ledger.begin_in(&home).await.unwrap();
    assert!(open.insert_press(&simple("x", &home, "ou_1")).await.unwrap());
    let mut late = other.ledger.begin_in(&away).await.unwrap();
    let (refused, ()) = join(late.triaged(id, "looked at"), async {
        eventually("one waits for the other", || async { (waiting(&one).await > 0).then_some(()) }).await;
        open.commit().await.unwrap();
    })
    .await;
    assert!(matches!(refused, Err(StoreError::Corrupt(_))), "{refused:?}");
    drop(late);
    assert_eq!(handle_all(&other).await, [0; 0]);
}

/// design: copies of one event pushed to two processes at once, in whatever order, are handled once, and nobody waits in a circle.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn copies_at_two_processes_are_one() {
    let Some((one, other)) = two().await else { return };
    let home = place("oc_1", "");
    for round in 0..5 {
        let events: Vec<Inbound> = (0..90).map(|number| simple(&format!("{round}_{number}"), &home, "ou_1")).collect();
        let (left, right) = join(
            join_all(events.iter().map(|event| one.ledger.accept(event))),
            join_all(events.iter().rev().map(|event| other.ledger.accept(event))),
        )
        .await;
        assert!(left.iter().chain(&right).all(Result::is_ok));
        let (left, right) = join(handle_all(&one), handle_all(&other)).await;
        assert_eq!(left.len() + right.len(), 90);
    }
}

/// design: an id that another process has taken makes no event a duplicate: it gets another id.
#[tokio::test]
async fn a_taken_id_loses_no_event() {
    let Some(one) = server().await else { return };
    // So many starts later the same number is given again.
    sql(
        &one,
        "UPDATE facts SET value = CAST(CAST(value AS BIGINT) + 4095 AS TEXT) WHERE name = 'starts'",
    )
    .await;
    let other = one.another(&Clock::manual(START)).await;
    let home = place("oc_1", "");
    let ids = [
        accept(&one, &simple("a", &home, "ou_1")).await,
        accept(&other, &simple("b", &home, "ou_1")).await,
    ];
    assert!(ids[1] > ids[0]);
    let mut tx = other.ledger.begin_in(&home).await.unwrap();
    assert!(tx.insert_press(&simple("c", &home, "ou_1")).await.unwrap());
    tx.commit().await.unwrap();
    for event in ["a", "b", "c"] {
        accept(&one, &simple(event, &home, "ou_1")).await;
    }
    assert_eq!(handle_all(&one).await, ids);
}

/// design: a queue goes out in the order of its commits, also when it was filled by two processes whose clocks differ.
#[tokio::test]
async fn a_queue_keeps_its_order_across_clocks() {
    let Some(ahead) = server().await else { return };
    let behind = ahead.another(&Clock::manual(Millis(START.0 - 40))).await;
    let mut expected = Vec::new();
    for (number, store) in [&ahead, &behind, &ahead, &behind, &behind].into_iter().enumerate() {
        let key = format!("k{number}");
        enqueue(&store.ledger, &post(&key, "q")).await;
        enqueue(&store.ledger, &post(&key, "q")).await;
        expected.push(key);
    }
    ahead.pass(1);
    let mut seen = Vec::new();
    while let Some(row) = take(&ahead.ledger, "d", 1).await.pop() {
        let mut tx = ahead.ledger.begin().await.unwrap();
        tx.outbox_sent(row.id, Some("m"), None).await.unwrap();
        tx.commit().await.unwrap();
        seen.push(row.new.key);
    }
    assert_eq!(seen, expected);
}

/// Approves as this person. Returns whether it was the decision.
async fn approve(store: &Store, gate: &Gate, by: &str) -> bool {
    let now = store.clock.now();
    let mut tx = store.ledger.begin_in(&gate.conversation).await.unwrap();
    let vote = Vote {
        in_place_of: None,
        by: by.to_owned(),
        via: Via::Button,
        principal: None,
        at: now,
        event_id: None,
        row: None,
        group: None,
    };
    tx.vote(&gate.id, &vote).await.unwrap();
    let votes = tx.gate(&gate.id).await.unwrap().unwrap().votes.len();
    let decided = votes >= 2 && tx.decide(gate, &decision(DecisionKind::Approve, by, now)).await.unwrap();
    tx.commit().await.unwrap();
    decided
}

/// design 3: of two votes at once, at two processes, the one that fills the quorum settles the gate, once; also on a server
/// whose transactions see a snapshot unless they are told otherwise.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_votes_at_once_settle_once() {
    let Some(mut one) = server().await else { return };
    let name = one.stores.database_url.expose_secret().rsplit('/').next().unwrap().to_owned();
    sql(
        &one,
        &format!("ALTER DATABASE {name} SET default_transaction_isolation = 'repeatable read'"),
    )
    .await;
    one.restart().await;
    let other = one.another(&one.clock).await;
    for round in 0..10 {
        let (lease, turn) = working(&one, &format!("t{round}"), &place("oc_1", ""), &format!("ou_{round}")).await;
        let mut gate = gate(&turn, &format!("rv_{round}"), one.clock.now());
        (gate.quorum, gate.kind) = (2, GateKind::PlanReview);
        let mut tx = one.ledger.begin_in(&gate.conversation).await.unwrap();
        tx.open_gate(&lease, &gate).await.unwrap();
        tx.commit().await.unwrap();
        let (left, right) = join(approve(&one, &gate, "ou_a"), approve(&other, &gate, "ou_b")).await;
        assert!(left ^ right, "round {round}: {left} {right}");
    }
}

/// design: of many claims at two processes one gets the lane; those who find it taken take the next one instead of none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claims_at_two_processes_take_different_lanes() {
    let Some((one, other)) = two().await else { return };
    for number in 0..6 {
        lane_task(&one, &simple(&format!("t{number}"), &place(&format!("oc_{number}"), ""), "ou_1")).await;
    }
    let claims = (0..64).map(|number| {
        let ledger = if number % 2 == 0 {
            one.ledger.clone()
        } else {
            other.ledger.clone()
        };
        tokio::spawn(async move {
            let mut tx = ledger.begin().await.unwrap();
            let lease = tx.claim_lane(&format!("w{number}"), LEASE_MS, 10).await.unwrap();
            tx.commit().await.unwrap();
            lease.map(|lease| lease.lane_id)
        })
    });
    let lanes: Vec<_> = join_all(claims).await.into_iter().filter_map(Result::unwrap).collect();
    assert_eq!((lanes.len(), lanes.iter().collect::<HashSet<_>>().len()), (6, 6));
}

/// design: whoever claims passes over what another process is taking at this moment, and waits for nobody.
#[tokio::test]
async fn a_claim_passes_over_what_is_being_taken() {
    let Some((one, other)) = two().await else { return };
    for number in 0..2 {
        lane_task(&one, &simple(&format!("t{number}"), &place(&format!("oc_{number}"), ""), "ou_1")).await;
        enqueue(&one.ledger, &post(&format!("k{number}"), &format!("q{number}"))).await;
    }
    let mut taking = one.ledger.begin().await.unwrap();
    let lane = taking.claim_lane("w1", LEASE_MS, 10).await.unwrap().unwrap();
    let rows = taking.claim_outbox("d1", LEASE_MS, 1, &[]).await.unwrap();
    // Whoever waited here would wait for ever.
    assert_ne!(claim(&other).await.unwrap().lane_id, lane.lane_id);
    let others = take(&other.ledger, "d2", 10).await;
    assert_eq!((rows.len(), others.len()), (1, 1));
    assert_ne!(rows[0].id, others[0].id);
    taking.commit().await.unwrap();
}

/// design: issue E part D, of two confirmations at one moment one confirms, and what it confirmed stays; the other waits for it and finds
/// that nothing waits any more.
#[tokio::test]
async fn one_of_two_confirmations_confirms() {
    let Some((one, other)) = two().await else { return };
    let note = Definition {
        digest: String::from("d"),
        description: String::new(),
        parameters: serde_json::Value::Null,
        effect: EffectClass::Write,
    };
    let waits = Definitions::from([(String::from("note"), note)]);
    let confirmation = confirmation_of(&waits);
    let mut tx = one.ledger.begin().await.unwrap();
    tx.confirm_first_tools("srv", &Definitions::new()).await.unwrap();
    tx.set_waiting_tools("srv", &waits).await.unwrap();
    tx.commit().await.unwrap();
    let mut first = one.ledger.begin().await.unwrap();
    assert!(first.confirm_tools("srv", &confirmation, "a").await.unwrap().is_some());
    let second = tokio::spawn({
        let ledger = other.ledger.clone();
        async move {
            let mut tx = ledger.begin().await.unwrap();
            let confirmed = tx.confirm_tools("srv", &confirmation, "b").await.unwrap();
            tx.commit().await.unwrap();
            confirmed
        }
    });
    eventually("the other one at the first one's row", || async {
        (waiting(&one).await == 1).then_some(())
    })
    .await;
    first.commit().await.unwrap();
    assert_eq!(second.await.unwrap(), None);
    let confirmed = one.ledger.read().await.unwrap().confirmed_tools("srv").await.unwrap().unwrap();
    assert_eq!(confirmed.len(), 1);
}

/// design: a lane to which somebody is writing is passed over when leases are prolonged, and not taken for lost; nobody waits.
#[tokio::test]
async fn a_busy_lane_is_not_a_lost_one() {
    let Some(store) = server().await else { return };
    let (busy, turn) = working(&store, "a", &place("oc_1", ""), "ou_1").await;
    let (free, _) = working(&store, "b", &place("oc_2", ""), "ou_1").await;
    let mut writing = store.ledger.begin_in(&busy.conversation).await.unwrap();
    writing.save_turn(&busy, &turn).await.unwrap();
    let renew = async || {
        let mut tx = store.ledger.begin().await.unwrap();
        let outcomes = tx.renew(&[&busy, &free], LEASE_MS).await.unwrap();
        tx.commit().await.unwrap();
        outcomes
    };
    assert_eq!(renew().await, [Renewal::Busy, Renewal::Prolonged]);
    writing.commit().await.unwrap();
    assert_eq!(renew().await, [Renewal::Prolonged; 2]);
}

/// design: a row that two processes look at together has one effect: what the second did about it is rolled back.
#[tokio::test]
async fn a_row_at_two_processes_has_one_effect() {
    let Some((one, other)) = two().await else { return };
    let home = place("oc_1", "");
    let id = accept(&one, &simple("a", &home, "ou_1")).await;
    let take_up = async |store: &Store, key: &str| {
        let mut tx = store.ledger.begin_in(&home).await.unwrap();
        tx.enqueue(&post(key, key)).await.unwrap();
        let mine = tx.triaged(id, "seen").await.unwrap();
        if mine {
            tx.commit().await.unwrap();
        }
        mine
    };
    let (left, right) = join(take_up(&one, "left"), take_up(&other, "right")).await;
    assert!(left ^ right);
    assert_eq!(take(&one.ledger, "d", 10).await.len(), 1);
}

/// design: two dispatchers never hold one row; the late verdict of one whose hold has run out changes nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_dispatchers_hold_different_rows() {
    let Some((one, other)) = two().await else { return };
    for number in 0..60 {
        enqueue(&one.ledger, &post(&format!("k{number}"), &format!("q{number}"))).await;
    }
    let mut held = Vec::new();
    while held.len() < 60 {
        let (left, right) = join(take(&one.ledger, "d1", 7), take(&other.ledger, "d2", 7)).await;
        held.extend(left.into_iter().chain(right));
    }
    assert_eq!(held.iter().map(|row| row.id).collect::<HashSet<_>>().len(), 60);

    let late = held.swap_remove(0);
    one.pass(LEASE_MS + 1);
    let taken = take(&other.ledger, "d2", 100).await;
    let taken = taken.iter().find(|row| row.id == late.id).unwrap();
    assert!(taken.uncertain && taken.tries > late.tries);
    let mut tx = one.ledger.begin().await.unwrap();
    tx.outbox_retry(&late, one.clock.now(), "late", false, false).await.unwrap();
    tx.outbox_failed(&late, "late").await.unwrap();
    tx.commit().await.unwrap();
    assert!(take(&one.ledger, "d1", 100).await.iter().all(|row| row.id != late.id));
    let mut tx = other.ledger.begin().await.unwrap();
    tx.outbox_retry(taken, other.clock.now(), "again", false, false).await.unwrap();
    tx.commit().await.unwrap();
    assert!(take(&one.ledger, "d1", 100).await.iter().any(|row| row.id == late.id));
}

/// design: two processes add to one approval trail.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_write_one_trail() {
    let Some((one, other)) = two().await else { return };
    let entry = AuditEntry {
        kind: "decision",
        turn_id: None,
        gate_id: None,
        action_id: None,
        principal: Some("ou_1".to_owned()),
        details: serde_json::json!({}),
    };
    let writes = (0..40).map(|number| {
        let (store, entry) = (if number % 2 == 0 { &one } else { &other }, &entry);
        async move {
            let mut tx = store.ledger.begin_in(&place(&format!("oc_{number}"), "")).await.unwrap();
            tx.audit(entry.clone());
            tx.commit().await.unwrap();
        }
    });
    join_all(writes).await;
    let check = other.ledger.read().await.unwrap().verify_audit(None).await.unwrap();
    assert!(matches!(check, AuditCheck::Sound(head) if head.seq == 40));
}

/// design: two processes remove old rows beside each other and beside traffic: each row goes once, nothing young goes, nobody fails.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_prune_beside_traffic() {
    let Some((one, other)) = two().await else { return };
    for number in 0..120 {
        let (lease, mut turn) = working(&one, &format!("t{number}"), &place("oc_1", ""), &format!("ou_{number}")).await;
        let gate = gate(&turn, &format!("rv_{number}"), one.clock.now());
        turn.status = TurnStatus::Completed;
        let mut tx = one.ledger.begin_in(&turn.conversation).await.unwrap();
        tx.open_gate(&lease, &gate).await.unwrap();
        tx.vote(&gate.id, &vote(&one)).await.unwrap();
        tx.decide(&gate, &decision(DecisionKind::Approve, "ou_1", one.clock.now()))
            .await
            .unwrap();
        tx.save_turn(&lease, &turn).await.unwrap();
        let again = tx.refresh(&lease).await.unwrap();
        assert!(tx.release(&again, Millis::NEVER).await.unwrap());
        tx.commit().await.unwrap();
    }
    one.pass(26 * 3_600_000);
    let before = one.clock.now();
    let traffic = async {
        let mut tasks = Vec::new();
        for number in 0..30 {
            // The same people again: their lanes must not go while they come.
            let task = simple(&format!("new{number}"), &place("oc_1", ""), &format!("ou_{number}"));
            let id = accept(&one, &task).await;
            let mut tx = one.ledger.begin_in(&task.conversation).await.unwrap();
            let row = untriaged(&mut tx, id).await;
            assert!(tx.assign(&row, &task.conversation.lane(&task.sender)).await.unwrap());
            tx.commit().await.unwrap();
            tasks.push(id);
        }
        tasks
    };
    let ((left, right), tasks) = join(join(one.ledger.prune(before), other.ledger.prune(before)), traffic).await;
    let (left, right) = (left.unwrap(), right.unwrap());
    assert_eq!(
        (left.turns + right.turns, left.inbox + right.inbox),
        (120, 120),
        "{left:?} {right:?}"
    );
    let mut found = Vec::new();
    let mut tx = other.ledger.begin().await.unwrap();
    while let Some(lease) = tx.claim_lane("w", LEASE_MS, 1000).await.unwrap() {
        found.extend(next_task(&mut tx, &lease).await.map(|row| row.id));
    }
    found.sort_unstable();
    assert_eq!(found, tasks);
}

fn vote(store: &Store) -> Vote {
    Vote {
        in_place_of: None,
        by: "ou_1".to_owned(),
        via: Via::Button,
        principal: None,
        at: store.clock.now(),
        event_id: None,
        row: None,
        group: None,
    }
}
