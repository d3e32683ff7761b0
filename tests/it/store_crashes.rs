//! Lanes whose process died: each death is counted at the claim, and after the second one they are claimed one at a time.

use countersign_agent::domain::{Millis, TurnStatus};
use countersign_gateway::store::Lease;

use crate::store_kit::{LEASE_MS, Store, lane_task, next_task, place, simple, store, turn, working};

async fn claim_as(store: &Store, owner: &str) -> Option<Lease> {
    let mut tx = store.ledger.begin().await.unwrap();
    let lease = tx.claim_lane(owner, LEASE_MS, 10).await.unwrap();
    tx.commit().await.unwrap();
    lease
}

/// A step of the lane's turn.
async fn step(store: &Store, lease: &Lease) {
    let mut tx = store.ledger.begin().await.unwrap();
    let mut turn = tx.turn(lease.turn_id.as_ref().unwrap()).await.unwrap().unwrap();
    turn.status = TurnStatus::Running;
    tx.save_turn(lease, &turn).await.unwrap();
    tx.commit().await.unwrap();
}

/// interface: what is counted is that a lane is claimed after its process died, until a step of its turn is journaled.
#[tokio::test]
async fn deaths_are_counted_until_a_step_is_journaled() {
    let store = store().await;
    working(&store, "a", &place("oc_1", ""), "ou_1").await;
    for (owner, crashes) in [("w_b", 1), ("w_c", 2), ("w_d", 3), ("w_e", 4)] {
        store.pass(LEASE_MS + 1);
        let lease = claim_as(&store, owner).await.unwrap();
        assert_eq!((lease.crashes, lease.is_given_up()), (crashes, crashes >= 3));
        if crashes == 4 {
            step(&store, &lease).await;
        }
    }
    store.pass(LEASE_MS + 1);
    assert_eq!(claim_as(&store, "w_f").await.unwrap().crashes, 1);
}

/// Chat and files are read for the oldest task of the lane.
async fn gather(store: &Store, lease: &Lease) -> i64 {
    let mut tx = store.ledger.begin().await.unwrap();
    let task = next_task(&mut tx, lease).await.unwrap();
    tx.note_gathering(lease, task.id).await.unwrap();
    tx.commit().await.unwrap();
    task.id
}

/// interface: a death over what is read for a task counts, before it has a turn; with the task goes its count. A death before anything is read
/// does not count, nor does an orderly end.
#[tokio::test]
async fn deaths_over_what_is_read_for_a_task_are_counted() {
    let store = store().await;
    let here = place("oc_1", "");
    lane_task(&store, &simple("m1", &here, "ou_1")).await;
    let mut task = 0;
    for (owner, crashes) in [("w_a", 0), ("w_b", 0), ("w_c", 1), ("w_d", 2), ("w_e", 3)] {
        let lease = claim_as(&store, owner).await.unwrap();
        assert_eq!((lease.crashes, lease.turn_id.clone()), (crashes, None));
        if owner != "w_a" {
            task = gather(&store, &lease).await;
        }
        store.pass(LEASE_MS + 1);
    }
    let lease = claim_as(&store, "w_f").await.unwrap();
    let mut tx = store.ledger.begin().await.unwrap();
    assert!(tx.release(&lease, store.clock.now()).await.unwrap());
    tx.commit().await.unwrap();
    let lease = claim_as(&store, "w_g").await.unwrap();
    assert_eq!((lease.crashes, lease.gathering), (4, Some(task)), "an orderly end forgets nothing");
    let mut tx = store.ledger.begin().await.unwrap();
    tx.finish_task(task, "stopped").await.unwrap();
    tx.commit().await.unwrap();
    lane_task(&store, &simple("m2", &here, "ou_1")).await;
    let other = gather(&store, &lease).await;
    store.pass(LEASE_MS + 1);
    let lease = claim_as(&store, "w_h").await.unwrap();
    assert_eq!((lease.crashes, lease.gathering), (1, Some(other)), "the other task saw one death");
}

/// interface: with its turn the count of a task goes on; a turn of another task begins without it.
#[tokio::test]
async fn a_turn_takes_over_the_deaths_of_its_task() {
    for own in [true, false] {
        let store = store().await;
        let here = place("oc_1", "");
        let mut task = lane_task(&store, &simple("first", &here, "ou_1")).await;
        let lease = claim_as(&store, "w_a").await.unwrap();
        assert_eq!(gather(&store, &lease).await, task);
        store.pass(LEASE_MS + 1);
        let lease = claim_as(&store, "w_b").await.unwrap();
        assert_eq!(lease.crashes, 1);
        if !own {
            let mut tx = store.ledger.begin().await.unwrap();
            tx.finish_task(task, "stopped").await.unwrap();
            tx.commit().await.unwrap();
            task = lane_task(&store, &simple("second", &here, "ou_1")).await;
        }
        let mut tx = store.ledger.begin().await.unwrap();
        tx.create_turn(&lease, &turn(&lease, "t", task, store.clock.now())).await.unwrap();
        assert!(tx.finish_task(task, "turn").await.unwrap());
        tx.commit().await.unwrap();
        store.pass(LEASE_MS + 1);
        let lease = claim_as(&store, "w_c").await.unwrap();
        assert_eq!((lease.crashes, lease.gathering), (if own { 2 } else { 1 }, None));
    }
}

/// interface: a task that is gone leaves no deaths behind.
#[tokio::test]
async fn a_task_that_is_gone_takes_its_deaths_along() {
    let store = store().await;
    lane_task(&store, &simple("m1", &place("oc_1", ""), "ou_1")).await;
    gather(&store, &claim_as(&store, "w_a").await.unwrap()).await;
    store.pass(LEASE_MS + 1);
    let lease = claim_as(&store, "w_b").await.unwrap();
    let mut tx = store.ledger.begin().await.unwrap();
    tx.forget_gathering(&lease).await.unwrap();
    let seen = tx.refresh(&lease).await.unwrap();
    assert_eq!((seen.crashes, seen.gathering), (0, None));
}

/// interface: a process that stops in order counts as no death, though it kept a lane; nor does one that lost its own lease and lives.
#[tokio::test]
async fn orderly_stops_never_count() {
    let store = store().await;
    working(&store, "a", &place("oc_1", ""), "ou_1").await;
    store.pass(LEASE_MS + 1);
    assert_eq!(claim_as(&store, "w_b").await.unwrap().crashes, 1);
    store.pass(LEASE_MS + 1);
    let lease = claim_as(&store, "w_b").await.unwrap();
    assert_eq!(lease.crashes, 1, "it lives");
    let mut tx = store.ledger.begin().await.unwrap();
    tx.note_stopping("w_b").await.unwrap();
    tx.refresh(&lease).await.unwrap();
    tx.commit().await.unwrap();
    store.pass(LEASE_MS + 1);
    assert_eq!(claim_as(&store, "w_c").await.unwrap().crashes, 1);
}

/// interface: turns that saw two deaths are claimed one at a time, so that none is given up for what another does; all others go on.
#[tokio::test]
async fn suspects_are_claimed_one_at_a_time() {
    let store = store().await;
    for chat in ["oc_1", "oc_2"] {
        working(&store, chat, &place(chat, ""), "ou_1").await;
    }
    for owner in ["w_b", "w_c"] {
        store.pass(LEASE_MS + 1);
        let first = claim_as(&store, owner).await.unwrap();
        let second = claim_as(&store, owner).await;
        if owner == "w_b" {
            assert_eq!(
                (first.crashes, second.unwrap().crashes),
                (1, 1),
                "after a first death all go on at once"
            );
            continue;
        }
        assert_eq!((first.crashes, second), (2, None));
        lane_task(&store, &simple("fresh", &place("oc_3", ""), "ou_2")).await;
        assert_eq!(claim_as(&store, owner).await.unwrap().user, "ou_2");
        assert_eq!(claim_as(&store, owner).await, None);
        step(&store, &first).await;
        let other = claim_as(&store, owner).await.unwrap();
        assert!(other.lane_id != first.lane_id && other.crashes == 2, "{other:?}");
    }
}

/// design: people of a chat take turns: a first task does not wait behind all that somebody else has asked for before.
#[tokio::test]
async fn people_take_turns() {
    let store = store().await;
    for nth in 0..6 {
        lane_task(
            &store,
            &simple(&format!("m{nth}"), &place("oc_1", &format!("t{nth}")), "ou_mallory"),
        )
        .await;
    }
    let claim = async || {
        let mut tx = store.ledger.begin().await.unwrap();
        let lease = tx.claim_lane("w", LEASE_MS, 2).await.unwrap();
        tx.commit().await.unwrap();
        store.pass(1);
        lease
    };
    let release = async |lease: &Lease| {
        let mut tx = store.ledger.begin().await.unwrap();
        assert!(tx.release(lease, Millis::NEVER).await.unwrap());
        tx.commit().await.unwrap();
    };
    let (first, second) = (claim().await.unwrap(), claim().await.unwrap());
    assert_eq!((first.user.as_str(), second.user.as_str()), ("ou_mallory", "ou_mallory"));
    lane_task(&store, &simple("a", &place("oc_1", "ta"), "ou_alice")).await;
    lane_task(&store, &simple("b", &place("oc_1", "tb"), "ou_bob")).await;
    let mut served = Vec::new();
    let mut running = [first, second];
    for nth in 0..4 {
        release(&running[nth % 2]).await;
        running[nth % 2] = claim().await.unwrap();
        served.push(running[nth % 2].user.clone());
    }
    assert_eq!(served, ["ou_alice", "ou_bob", "ou_mallory", "ou_mallory"]);
}
