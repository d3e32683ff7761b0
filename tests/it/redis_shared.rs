//! Several processes on one PostgreSQL and one Redis: what one does wakes the others, and what one cannot write there
//! the others find.

use std::time::{Duration, Instant};

use crate::store_kit::{Store, open, place, simple, with_redis, working};
use crate::support::api::eventually;
use crate::support::servers::RedisServer;
use crate::support::stores::database_for;

/// Nobody listens there.
const NOWHERE: &str = "redis://127.0.0.1:1/0";

/// Another process on the same database, with this Redis.
async fn second(store: &Store, redis: &str) -> Store {
    let mut stores = with_redis("", redis);
    stores.database_url = store.stores.database_url.clone();
    Store::on(stores, tempfile::tempdir().unwrap()).await
}

async fn first(redis: &RedisServer) -> Option<Store> {
    let folder = tempfile::tempdir().unwrap();
    let database = database_for(folder.path()).await?;
    Some(Store::on(with_redis(&database, &redis.url()), folder).await)
}

/// design: an event that one process takes in wakes the workers of another; readers hear of the commit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_wakes_the_other_processes() {
    let Some(redis) = RedisServer::start(&[]).await else { return };
    let Some(store) = first(&redis).await else { return };
    let other = second(&store, &redis.url()).await.ledger;
    eventually("two listeners", || async {
        redis.cli(&["PUBSUB", "NUMSUB", "t:wake"]).await.ends_with("\n2").then_some(())
    })
    .await;
    let (wakeup, mut commits) = (other.inbox_wakeup(), other.commits());
    for number in 0..21 {
        commits.mark_unchanged();
        let event = simple(&format!("e{number}"), &place("oc_1", ""), "ou_1");
        store.ledger.accept(&event).await.unwrap();
        // Nobody polls here: without the message from Redis there is no notification.
        tokio::time::timeout(Duration::from_secs(20), wakeup.notified()).await.unwrap();
        assert!(commits.has_changed().unwrap());
    }
}

/// F-R2: a gate of a process that does not reach Redis is not overlooked by one that does.
#[tokio::test]
async fn what_one_process_cannot_write_the_others_find() {
    let Some(redis) = RedisServer::start(&[]).await else { return };
    let Some(store) = first(&redis).await else { return };
    let cut_off = second(&store, NOWHERE).await;
    let home = place("oc_1", "");
    let (lease, turn) = working(&cut_off, "a", &home, "ou_1").await;
    open(&cut_off, &lease, &turn, "rv_a").await;
    let mut tx = store.ledger.begin_in(&home).await.unwrap();
    assert!(tx.anything_waits(&home, "ou_1").await.unwrap());
}

/// design: wake-ups come back by themselves after Redis was started anew.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wake_ups_come_back_with_redis() {
    let Some(mut redis) = RedisServer::start(&[]).await else { return };
    let Some(store) = first(&redis).await else { return };
    let other = second(&store, &redis.url()).await.ledger;
    redis.restart_empty().await;
    eventually("two listeners", || async {
        redis.cli(&["PUBSUB", "NUMSUB", "t:wake"]).await.ends_with("\n2").then_some(())
    })
    .await;
    let wakeup = other.inbox_wakeup();
    eventually("a wake-up", || async {
        // The first words may fall into the time in which the speaker has no connection yet.
        let name = format!("{:?}", Instant::now());
        store.ledger.accept(&simple(&name, &place("oc_1", ""), "ou_1")).await.unwrap();
        tokio::time::timeout(Duration::from_millis(200), wakeup.notified()).await.ok()
    })
    .await;
}
