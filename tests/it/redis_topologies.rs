//! A Redis Cluster, and a Redis that Sentinels watch: the same look-up and wake-ups through their addresses.

use std::time::Duration;

use countersign_agent::domain::{DecisionKind, Gate};

use crate::store_kit::{Store, decision, open, place, review_key, simple, with_redis, working};
use crate::support::api::eventually;
use crate::support::servers::RedisServer;
use crate::support::stores::database_for;

/// Opens a gate of `ou_1` in a chat of its own.
async fn opens(store: &Store, name: &str) -> Gate {
    let (lease, turn) = working(store, name, &place(&format!("oc_{name}"), ""), "ou_1").await;
    open(store, &lease, &turn, &format!("rv_{name}")).await
}

async fn waits(store: &Store, gate: &Gate) -> bool {
    let mut read = store.ledger.read().await.unwrap();
    read.anything_waits(&gate.conversation, "ou_1").await.unwrap()
}

async fn is_kept(redis: &RedisServer, gate: &Gate) -> bool {
    let there = redis.ask(&["EXISTS", &review_key(gate)]).await;
    there.is_ok_and(|there| there == redis::Value::Int(1))
}

/// A gate is opened and decided; the look-up follows.
async fn opens_and_decides(store: &Store, redis: &RedisServer) {
    eventually("a coordination that is well", || async {
        (!store.ledger.coordination().degraded).then_some(())
    })
    .await;
    let gate = opens(store, "a").await;
    eventually("the review", || async { is_kept(redis, &gate).await.then_some(()) }).await;
    assert!(waits(store, &gate).await);
    let mut tx = store.ledger.begin().await.unwrap();
    assert!(
        tx.decide(&gate, &decision(DecisionKind::Approve, "ou_1", store.clock.now()))
            .await
            .unwrap()
    );
    tx.commit().await.unwrap();
    eventually("no review", || async { (!is_kept(redis, &gate).await).then_some(()) }).await;
    assert!(!waits(store, &gate).await);
}

async fn wakes(store: &Store, other: &Store) {
    let wakeup = other.ledger.inbox_wakeup();
    let mut number = 0;
    eventually("a wake-up", || {
        number += 1;
        let word = simple(&number.to_string(), &place("oc_w", ""), "ou_1");
        let wakeup = &wakeup;
        async move {
            store.ledger.accept(&word).await.unwrap();
            tokio::time::timeout(Duration::from_millis(200), wakeup.notified()).await.ok()
        }
    })
    .await;
}

/// Two processes on one PostgreSQL. `None` means that there is no PostgreSQL.
async fn two(url: &str) -> Option<(Store, Store)> {
    let folder = tempfile::tempdir().unwrap();
    let stores = with_redis(&database_for(folder.path()).await?, url);
    let other = Store::on(stores.clone(), tempfile::tempdir().unwrap()).await;
    Some((Store::on(stores, folder).await, other))
}

/// design: a Cluster's address is served: keys, expiry and wake-ups.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_is_served() {
    let Some(redis) = RedisServer::start(&["--cluster-enabled", "yes"]).await else {
        return;
    };
    redis.cli(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]).await;
    eventually("a cluster that is ok", || async {
        redis.cli(&["CLUSTER", "INFO"]).await.contains("cluster_state:ok").then_some(())
    })
    .await;
    let url = redis.url().replace("redis://", "redis-cluster://").replace("/0", "");
    let store = Store::beside(&url).await;
    opens_and_decides(&store, &redis).await;
    assert!(!store.ledger.coordination().degraded, "{:?}", store.ledger.coordination());
    if let Some((one, other)) = two(&url).await {
        wakes(&one, &other).await;
    }
}

/// design: Sentinels are asked who the master is, and asked again when it is another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watched_redis_is_found_again_after_a_failover() {
    let Some(redis) = RedisServer::start(&[]).await else { return };
    let replica = RedisServer::replica_of(&redis).await;
    let sentinel = RedisServer::sentinel_of("m", &redis, &replica).await;
    let store = Store::beside(&sentinel.url_of_watched("m")).await;
    opens_and_decides(&store, &redis).await;
    eventually("a master that was the replica", || async {
        // A failover may be given up on a busy machine, so it is asked for until it is done; the wish is refused while one runs.
        let _refused_while_one_runs = sentinel.ask(&["SENTINEL", "FAILOVER", "m"]).await;
        // Whoever is connected to it is cut off when it changes.
        let role = replica.ask(&["ROLE"]).await.ok()?;
        format!("{role:?}").contains("master").then_some(())
    })
    .await;
    let during = opens(&store, "b").await;
    assert!(waits(&store, &during).await, "overlooked in a failover");
    let mut number = 0;
    eventually("a review on the new master", || {
        number += 1;
        let (store, replica) = (&store, &replica);
        async move {
            let gate = opens(store, &format!("c{number}")).await;
            assert!(waits(store, &gate).await);
            is_kept(replica, &gate).await.then_some(())
        }
    })
    .await;
    eventually("a coordination that is well", || async {
        (!store.ledger.coordination().degraded).then_some(())
    })
    .await;
}
