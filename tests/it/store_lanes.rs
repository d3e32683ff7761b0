//! Lanes: one worker at a time, wake-ups are never slept through, a stale worker writes nothing.

use countersign_agent::domain::SignalKind;
use countersign_agent::domain::{DecisionKind, Message, Millis, Role, TurnStatus};
use countersign_gateway::store::{Lease, Renewal, StoreError};

use crate::store_kit::{LEASE_MS, action, claim, decision, gate, lane_task, place, simple, store, turn, working};

/// design: a lane is leased to one worker; the one that has waited longest comes first.
#[tokio::test]
async fn a_lane_is_claimed_once_longest_waiting_first() {
    let store = store().await;
    let home = place("oc_1", "");
    lane_task(&store, &simple("a", &home, "ou_1")).await;
    store.pass(5);
    lane_task(&store, &simple("b", &home, "ou_2")).await;
    store.pass(5);
    let first = claim(&store).await.unwrap();
    assert_eq!((first.user.as_str(), &first.conversation, &first.turn_id), ("ou_1", &home, &None));
    assert_eq!(claim(&store).await.unwrap().user, "ou_2");
    assert!(claim(&store).await.is_none());
}

/// design: 64 parallel claims of one lane give one lease.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parallel_claims_give_one_lease() {
    let store = store().await;
    lane_task(&store, &simple("a", &place("oc_1", ""), "ou_1")).await;
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..64 {
        let ledger = store.ledger.clone();
        tasks.spawn(async move {
            let mut tx = ledger.begin().await.unwrap();
            let lease = tx.claim_lane(&format!("w{number}"), LEASE_MS, 10).await.unwrap();
            tx.commit().await.unwrap();
            lease.is_some()
        });
    }
    let won = tasks.join_all().await.into_iter().filter(|won| *won).count();
    assert_eq!(won, 1);
}

/// design: a few lanes of one chat run side by side, not all of them; other chats are not held up.
#[tokio::test]
async fn a_chat_has_a_limit_of_leases() {
    let store = store().await;
    let (home, away) = (place("oc_1", ""), place("oc_2", ""));
    for user in ["ou_1", "ou_2", "ou_3"] {
        lane_task(&store, &simple(user, &home, user)).await;
    }
    lane_task(&store, &simple("away", &away, "ou_1")).await;
    let mut tx = store.ledger.begin().await.unwrap();
    let mut leases = Vec::new();
    while let Some(lease) = tx.claim_lane("w1", LEASE_MS, 2).await.unwrap() {
        leases.push(lease);
    }
    let chats: Vec<&str> = leases.iter().map(|lease| lease.conversation.chat.as_str()).collect();
    assert_eq!(chats.iter().filter(|chat| **chat == "oc_1").count(), 2, "{chats:?}");
    assert_eq!(chats.iter().filter(|chat| **chat == "oc_2").count(), 1, "{chats:?}");
    let done = leases.iter().find(|lease| lease.conversation.chat == "oc_1").unwrap();
    assert!(tx.release(done, Millis::NEVER).await.unwrap());
    assert_eq!(tx.claim_lane("w1", LEASE_MS, 2).await.unwrap().unwrap().conversation, home);
}

/// design: a lane that was woken while its worker worked does not go to sleep.
#[tokio::test]
async fn a_wake_up_during_work_prevents_sleep() {
    let store = store().await;
    let home = place("oc_1", "");
    lane_task(&store, &simple("a", &home, "ou_1")).await;
    let lease = claim(&store).await.unwrap();
    lane_task(&store, &simple("b", &home, "ou_1")).await;

    let mut tx = store.ledger.begin().await.unwrap();
    assert!(!tx.release(&lease, Millis::NEVER).await.unwrap());
    let again = tx.refresh(&lease).await.unwrap();
    assert!(again.wakes > lease.wakes && again.fence == lease.fence);
    assert!(tx.release(&again, Millis::NEVER).await.unwrap());
    tx.commit().await.unwrap();
    assert!(claim(&store).await.is_none());
}

/// design: a lane sleeps until the moment its worker named, and that moment is the next one due.
#[tokio::test]
async fn a_lane_sleeps_until_its_moment() {
    let store = store().await;
    lane_task(&store, &simple("a", &place("oc_1", ""), "ou_1")).await;
    let lease = claim(&store).await.unwrap();
    let later = Millis(store.clock.now().0 + 500);
    let mut tx = store.ledger.begin().await.unwrap();
    assert!(tx.release(&lease, later).await.unwrap());
    tx.commit().await.unwrap();
    assert_eq!(store.ledger.read().await.unwrap().next_due().await.unwrap(), Some(later));
    assert!(claim(&store).await.is_none());
    store.pass(500);
    let lease = claim(&store).await.unwrap();
    let mut tx = store.ledger.begin().await.unwrap();
    assert_eq!(
        tx.next_due().await.unwrap(),
        Some(Millis(store.clock.now().0 + LEASE_MS)),
        "a dead worker's lane comes back"
    );
    assert!(tx.release(&lease, Millis::NEVER).await.unwrap());
    assert_eq!(tx.next_due().await.unwrap(), None);
}

/// design: a lease that is renewed is kept; one that is not is taken over, with a higher fence and the turn.
#[tokio::test]
async fn an_expired_lease_is_taken_over() {
    let store = store().await;
    let (lease, turn) = working(&store, "a", &place("oc_1", ""), "ou_1").await;
    store.pass(LEASE_MS - 1);
    let mut tx = store.ledger.begin().await.unwrap();
    assert_eq!(tx.renew(&[&lease], LEASE_MS).await.unwrap(), [Renewal::Prolonged]);
    tx.commit().await.unwrap();
    store.pass(LEASE_MS - 1);
    assert!(claim(&store).await.is_none());
    store.pass(1);
    let taken = claim(&store).await.unwrap();
    assert!(taken.fence > lease.fence);
    assert_eq!(taken.turn_id.as_ref(), Some(&turn.id));
    let mut read = store.ledger.read().await.unwrap();
    assert_eq!(read.turn_of_lane(&lease.lane_id).await.unwrap(), Some(turn.id));
}

/// design: leases are prolonged together, and each hears its own: those that nobody holds any more are told of, also beside others.
#[tokio::test]
async fn leases_are_prolonged_together() {
    let store = store().await;
    let mut leases = Vec::new();
    for chat in ["oc_1", "oc_2", "oc_3", "oc_4"] {
        lane_task(&store, &simple(chat, &place(chat, ""), "ou_1")).await;
        leases.push(claim(&store).await.unwrap());
    }
    let mut tx = store.ledger.begin().await.unwrap();
    assert!(tx.release(&leases[1], Millis::NEVER).await.unwrap());
    tx.commit().await.unwrap();
    // As one that was taken over and taken back: the same lane, another fence.
    leases[2].fence -= 1;
    store.pass(LEASE_MS / 2);
    let mut tx = store.ledger.begin().await.unwrap();
    let named: Vec<&Lease> = leases.iter().collect();
    let outcomes = tx.renew(&named, LEASE_MS).await.unwrap();
    tx.commit().await.unwrap();
    let (kept, lost) = (Renewal::Prolonged, Renewal::Lost);
    assert_eq!(outcomes, [kept, lost, lost, kept]);
    store.pass(LEASE_MS / 2);
    let taken = claim(&store).await.unwrap();
    assert_eq!(taken.conversation.chat, "oc_3", "the others are held for as long again");
    assert!(claim(&store).await.is_none());
    assert_eq!(store.ledger.begin().await.unwrap().renew(&[], LEASE_MS).await.unwrap(), []);
}

/// design: every write of a turn carries the fence; a worker that lost its lease writes nothing and is told so.
#[tokio::test]
async fn a_stale_worker_writes_nothing() {
    let store = store().await;
    let (stale, row) = working(&store, "a", &place("oc_1", ""), "ou_1").await;
    let proposed = action(&row, "act_1", countersign_agent::domain::ActionStatus::Approved, store.clock.now());
    let mut tx = store.ledger.begin().await.unwrap();
    tx.insert_action(&stale, &proposed).await.unwrap();
    tx.signal(&row, SignalKind::Steer, Some("more"), Some("ou_1")).await.unwrap();
    tx.commit().await.unwrap();
    store.pass(LEASE_MS + 1);
    claim(&store).await.unwrap();

    let result = countersign_agent::domain::ToolResult {
        text: "done".to_owned(),
        exit_code: None,
        seconds: 0.5,
        truncated: false,
        ok: true,
        exit: None,
        attachment: None,
    };
    let mut done = row.clone();
    done.status = TurnStatus::Completed;
    let new_gate = gate(&row, "rv_1", store.clock.now());
    let log = [Message::text(Role::User, "hello")];
    let status = countersign_agent::domain::ActionStatus::Executed;
    let mut tx = store.ledger.begin().await.unwrap();
    let signals = tx.signals(&row.id).await.unwrap();
    let ids: Vec<i64> = signals.iter().map(|signal| signal.id).collect();
    assert_eq!(tx.renew(&[&stale], LEASE_MS).await.unwrap(), [Renewal::Lost]);
    let answers = [
        tx.release(&stale, Millis::NEVER).await.map(|_| ()),
        tx.refresh(&stale).await.map(|_| ()),
        tx.create_turn(&stale, &turn(&stale, "b", 1, store.clock.now())).await,
        tx.save_turn(&stale, &done).await,
        tx.append_messages(&stale, &row.id, 0, &log).await,
        tx.insert_action(&stale, &action(&row, "act_2", status, store.clock.now())).await,
        tx.move_action(&stale, &proposed.id, countersign_agent::domain::ActionStatus::Running)
            .await,
        tx.finish_action(&stale, &proposed.id, status, &result).await,
        tx.open_gate(&stale, &new_gate).await,
        tx.append_events(&stale, &[]).await,
        tx.consume(&stale, &ids).await,
    ];
    for (number, answer) in answers.iter().enumerate() {
        assert!(matches!(answer, Err(StoreError::Stale)), "write {number}: {answer:?}");
    }
    tx.commit().await.unwrap();

    let mut read = store.ledger.read().await.unwrap();
    assert_eq!(read.turn(&row.id).await.unwrap(), Some(row.clone()));
    assert_eq!(read.action(&proposed.id).await.unwrap().unwrap().action, proposed);
    assert_eq!(read.actions_of_turn(&row.id).await.unwrap().len(), 1);
    assert!(read.messages(&row.id).await.unwrap().is_empty());
    assert!(read.gate(&new_gate.id).await.unwrap().is_none());
    assert_eq!(read.signals(&row.id).await.unwrap(), signals);
}

/// design: a lease that was given back is as good as lost.
#[tokio::test]
async fn a_released_lease_writes_nothing() {
    let store = store().await;
    let (lease, row) = working(&store, "a", &place("oc_1", ""), "ou_1").await;
    let mut tx = store.ledger.begin().await.unwrap();
    tx.save_turn(&lease, &row).await.unwrap();
    assert!(tx.release(&lease, Millis::NEVER).await.unwrap());
    assert!(matches!(tx.save_turn(&lease, &row).await, Err(StoreError::Stale)));
}

/// design: a lane has one unfinished turn at most; a finished one makes room for the next.
#[tokio::test]
async fn one_unfinished_turn_a_lane() {
    let store = store().await;
    let (lease, mut row) = working(&store, "a", &place("oc_1", ""), "ou_1").await;
    let mut tx = store.ledger.begin().await.unwrap();
    let second = turn(&lease, "b", 1, store.clock.now());
    assert!(matches!(tx.create_turn(&lease, &second).await, Err(StoreError::Corrupt(_))));
    drop(tx);
    row.status = TurnStatus::Completed;
    let mut tx = store.ledger.begin().await.unwrap();
    tx.save_turn(&lease, &row).await.unwrap();
    assert_eq!(tx.turn_of_lane(&lease.lane_id).await.unwrap(), None);
    tx.create_turn(&lease, &second).await.unwrap();
    assert_eq!(tx.refresh(&lease).await.unwrap().turn_id, Some(second.id));
}

/// design: signals wake the lane of their turn, are read in order and once.
#[tokio::test]
async fn signals_are_read_once() {
    let store = store().await;
    let (lease, row) = working(&store, "a", &place("oc_1", ""), "ou_1").await;
    let mut tx = store.ledger.begin().await.unwrap();
    tx.signal(&row, SignalKind::Steer, Some("also\0this"), Some("ou_1")).await.unwrap();
    tx.signal(&row, SignalKind::Cancel, None, None).await.unwrap();
    tx.commit().await.unwrap();
    let mut tx = store.ledger.begin().await.unwrap();
    assert!(!tx.release(&lease, Millis::NEVER).await.unwrap());
    let signals = tx.signals(&row.id).await.unwrap();
    assert_eq!(
        signals.iter().map(|signal| signal.kind).collect::<Vec<_>>(),
        [SignalKind::Steer, SignalKind::Cancel]
    );
    assert_eq!(signals[0].text.as_deref(), Some("also\0this"));
    tx.consume(&lease, &[signals[0].id]).await.unwrap();
    assert_eq!(tx.signals(&row.id).await.unwrap(), signals[1..]);
}

/// design: workers are woken in process by the commit that made their work, not before it.
#[tokio::test]
async fn workers_are_woken_with_the_commit() {
    use futures_util::FutureExt;
    let store = store().await;
    let (lease, row) = working(&store, "a", &place("oc_1", ""), "ou_1").await;
    let mut tx = store.ledger.begin().await.unwrap();
    let opened = gate(&row, "rv_1", store.clock.now());
    tx.open_gate(&lease, &opened).await.unwrap();
    assert!(tx.release(&lease, opened.expires_at).await.unwrap());
    tx.commit().await.unwrap();
    let wakeup = store.ledger.lane_wakeup();
    while wakeup.notified().now_or_never().is_some() {}

    let mut tx = store.ledger.begin().await.unwrap();
    tx.decide(&opened, &decision(DecisionKind::Approve, "ou_1", store.clock.now()))
        .await
        .unwrap();
    assert!(wakeup.notified().now_or_never().is_none());
    tx.commit().await.unwrap();
    assert!(wakeup.notified().now_or_never().is_some());
    assert_eq!(claim(&store).await.unwrap().lane_id, lease.lane_id);
}
