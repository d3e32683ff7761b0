//! What becomes of the look-up of pending reviews when Redis fails: nothing that waits is ever overlooked, and who waits for
//! Redis waits a moment.

use std::time::{Duration, Instant};

use countersign::domain::{DecisionKind, Gate};

use crate::store_kit::{Store, TTL_MS, decision, open, pending_when, place, working};
use crate::support::api::{PATIENCE, eventually};
use crate::support::servers::RedisServer;

/// How long one call waits for a Redis that does not answer.
const IN_THE_WAY: Duration = Duration::from_millis(250);

/// A store beside a Redis of its own, and a gate that waits in `oc_1`.
async fn waiting(redis: &RedisServer) -> (Store, Gate) {
    let store = Store::beside(&redis.url()).await;
    in_force(redis).await;
    let gate = asks(&store, "a", "oc_1").await;
    (store, gate)
}

/// Opens a gate in this chat.
async fn asks(store: &Store, name: &str, chat: &str) -> Gate {
    let (lease, turn) = working(store, name, &place(chat, ""), "ou_1").await;
    open(store, &lease, &turn, &format!("rv_{name}")).await
}

async fn waits(store: &Store, chat: &str) -> bool {
    let mut tx = store.ledger.begin_in(&place(chat, "")).await.unwrap();
    tx.anything_waits(&place(chat, "")).await.unwrap()
}

/// Waits until this Redis is believed.
async fn in_force(redis: &RedisServer) {
    eventually("a sentinel in force", || async {
        redis.cli(&["GET", "t:ready"]).await.starts_with("ready ").then_some(())
    })
    .await;
}

/// The chat's notes, which only this Redis has.
async fn note_key(redis: &RedisServer) -> String {
    let keys = redis.cli(&["KEYS", "t:chat:*"]).await;
    assert_eq!(keys.lines().count(), 1, "{keys}");
    keys
}

/// design: a miss is trusted while the sentinel is there, so the pre-filter asks nobody else; a hit is only a reason to look.
#[tokio::test]
async fn a_miss_is_believed_while_the_sentinel_stands() {
    let Some(redis) = RedisServer::start(&[]).await else { return };
    let (store, _gate) = waiting(&redis).await;
    assert!(waits(&store, "oc_1").await);
    let notes = note_key(&redis).await;
    // A lie that no fault tells: somebody took the note out by hand.
    redis.cli(&["DEL", &notes]).await;
    assert!(!waits(&store, "oc_1").await, "the ledger was asked although Redis knew");
}

/// F-R4 F-R11: emptied in the middle of a review, it is not believed from that moment, and soon knows everything again.
#[tokio::test]
async fn a_flushed_redis_is_not_believed() {
    let Some(redis) = RedisServer::start(&[]).await else { return };
    let (store, gate) = waiting(&redis).await;
    redis.cli(&["FLUSHALL"]).await;
    assert!(waits(&store, "oc_1").await);
    pending_when(&store, &gate.conversation, "ou_1", |pending| pending.is_some()).await;
    in_force(&redis).await;
    assert!(waits(&store, "oc_1").await);
}

/// F-R1 F-R2 F-R4: killed, started again empty: gates that are opened and decided meanwhile are what Redis knows in the end.
#[tokio::test]
async fn a_killed_redis_is_rebuilt() {
    let Some(mut redis) = RedisServer::start(&[]).await else { return };
    let (store, gate) = waiting(&redis).await;
    redis.kill().await;
    assert!(waits(&store, "oc_1").await);
    let other = asks(&store, "b", "oc_2").await;
    assert!(waits(&store, "oc_2").await);
    let mut tx = store.ledger.begin().await.unwrap();
    assert!(
        tx.decide(&gate, &decision(DecisionKind::Cancel, "ou_1", store.clock.now()))
            .await
            .unwrap()
    );
    tx.commit().await.unwrap();
    eventually("a degraded coordination", || async {
        store.ledger.coordination().degraded.then_some(())
    })
    .await;
    redis.restart_empty().await;
    pending_when(&store, &other.conversation, "ou_1", |pending| pending.is_some()).await;
    in_force(&redis).await;
    assert_eq!(
        redis.cli(&["KEYS", "t:review:*"]).await.lines().count(),
        1,
        "the decided one stays away"
    );
    assert!(waits(&store, "oc_2").await);
    assert!(!waits(&store, "oc_1").await);
    eventually("a coordination that is well", || async {
        (!store.ledger.coordination().degraded).then_some(())
    })
    .await;
}

/// F-R6: started again from an older dump, sentinel and all, it is not believed.
#[tokio::test]
async fn a_rolled_back_redis_is_not_believed() {
    let Some(mut redis) = RedisServer::start(&[]).await else { return };
    let (store, _gate) = waiting(&redis).await;
    redis.cli(&["SAVE"]).await;
    asks(&store, "b", "oc_2").await;
    redis.restart().await;
    // It may have been rebuilt already; what counts is that nobody believed it before.
    assert!(waits(&store, "oc_2").await);
    eventually("the look-up of both", || async {
        (redis.cli(&["KEYS", "t:review:*"]).await.lines().count() == 2).then_some(())
    })
    .await;
    assert!(waits(&store, "oc_1").await);
    // The same without a restart, so that no rebuild comes before the look: a sentinel of another server, and nothing else.
    in_force(&redis).await;
    let sentinel = redis.cli(&["GET", "t:ready"]).await;
    let epoch = sentinel.split(' ').nth(1).unwrap().to_owned();
    for key in redis.cli(&["KEYS", "t:chat:*"]).await.lines() {
        redis.cli(&["DEL", key]).await;
    }
    redis.cli(&["SET", "t:ready", &format!("ready {epoch} 00.0")]).await;
    assert!(waits(&store, "oc_1").await);
}

/// F-R3: a Redis that does not answer costs a moment once, not each time, and shows; then all goes on as if nothing had been.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stalled_redis_holds_nobody_up() {
    let Some(redis) = RedisServer::start(&[]).await else { return };
    let (store, _gate) = waiting(&redis).await;
    redis.stall();
    let (began, mut gates) = (Instant::now(), Vec::new());
    // Whoever waited each time would never be faster than that; the first ones find out.
    loop {
        let (name, asked) = (format!("b{}", gates.len()), Instant::now());
        gates.push(asks(&store, &name, &format!("oc_{name}")).await);
        assert!(waits(&store, &format!("oc_{name}")).await);
        if gates.len() >= 4 && asked.elapsed() < IN_THE_WAY {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "each of {} gates waits for Redis", gates.len());
    }
    eventually("a degraded coordination", || async {
        store.ledger.coordination().degraded.then_some(())
    })
    .await;
    redis.resume();
    for gate in &gates {
        pending_when(&store, &gate.conversation, "ou_1", |pending| pending.is_some()).await;
    }
    eventually("a coordination that is well", || async {
        (!store.ledger.coordination().degraded).then_some(())
    })
    .await;
}

/// F-R7: full, it refuses to write: what waits is found all the same, what to mend is named, and with room again it knows all.
#[tokio::test]
async fn a_full_redis_is_named() {
    let Some(redis) = RedisServer::start(&[]).await else { return };
    let (store, _gate) = waiting(&redis).await;
    redis.cli(&["CONFIG", "SET", "maxmemory", "1"]).await;
    let late = asks(&store, "b", "oc_2").await;
    assert!(waits(&store, "oc_1").await);
    assert!(waits(&store, "oc_2").await);
    eventually("the word OOM", || async {
        store.ledger.coordination().message.contains("OOM").then_some(())
    })
    .await;
    assert!(store.ledger.coordination().degraded);
    redis.cli(&["CONFIG", "SET", "maxmemory", "0"]).await;
    pending_when(&store, &late.conversation, "ou_1", |pending| pending.is_some()).await;
}

/// F-R8: a policy that throws pending reviews away is named; what it threw away is not believed to be absent.
#[tokio::test]
async fn an_evicting_redis_is_named_and_not_believed() {
    let Some(redis) = RedisServer::start(&["--maxmemory-policy", "volatile-lru", "--maxmemory", "100mb"]).await else {
        return;
    };
    let (store, _gate) = waiting(&redis).await;
    eventually("the policy's name", || async {
        store.ledger.coordination().message.contains("volatile-lru").then_some(())
    })
    .await;
    assert!(store.ledger.coordination().degraded);
    // Every key with a TTL goes, of which the notes are some.
    redis.cli(&["CONFIG", "SET", "maxmemory", "1"]).await;
    let _refused = redis.ask(&["SET", "junk", "x"]).await;
    let evicted = redis.cli(&["INFO", "stats"]).await;
    assert!(!evicted.contains("evicted_keys:0\r"), "{evicted}");
    redis.cli(&["CONFIG", "SET", "maxmemory", "100mb"]).await;
    assert!(waits(&store, "oc_1").await);
}

/// F-R8: without anything that outlives a restart Redis is well, and says what that means.
#[tokio::test]
async fn missing_persistence_is_told() {
    let Some(redis) = RedisServer::start(&["--save", "", "--appendonly", "no"]).await else {
        return;
    };
    let (store, _gate) = waiting(&redis).await;
    eventually("a word on restarts", || async {
        store.ledger.coordination().message.contains("appendonly").then_some(())
    })
    .await;
    assert!(!store.ledger.coordination().degraded);
}

/// F-R12: junk of other people under our keys stands in nobody's way.
#[tokio::test]
async fn junk_under_our_keys_is_replaced() {
    let Some(redis) = RedisServer::start(&[]).await else { return };
    let (store, gate) = waiting(&redis).await;
    for pattern in ["t:review:*", "t:chat:*"] {
        let key = redis.cli(&["KEYS", pattern]).await;
        redis.cli(&["DEL", &key]).await;
        redis.cli(&["SET", &key, "junk"]).await;
    }
    redis.cli(&["DEL", "t:ready"]).await;
    assert!(waits(&store, "oc_1").await);
    pending_when(&store, &gate.conversation, "ou_1", |pending| pending.is_some()).await;
}

/// design: an error in an answer is an answer: the line stays, and whoever uses it beside goes on.
#[tokio::test]
async fn a_refusal_does_not_cut_the_line() {
    let Some(redis) = RedisServer::start(&[]).await else { return };
    let (store, gate) = waiting(&redis).await;
    let review = redis.cli(&["KEYS", "t:review:*"]).await;
    redis.cli(&["SET", &review, "junk"]).await;
    let mut read = store.ledger.read().await.unwrap();
    let error = read.pending_review(&gate.conversation, "ou_1").await.unwrap_err();
    assert!(error.to_string().contains("refuses: WRONGTYPE"), "{error}");
    drop(read);
    // What only Redis believes shows that Redis was asked.
    let notes = note_key(&redis).await;
    redis.cli(&["DEL", &notes]).await;
    assert!(!waits(&store, "oc_1").await, "nobody asked Redis");
}

/// interface §8: the key's TTL is twice the configured one until the card is delivered, then the configured one; written before the
/// commit, it is there with it; a gate that was decided takes nobody else's along.
#[tokio::test]
async fn the_ttl_follows_the_card() {
    let Some(redis) = RedisServer::start(&[]).await else { return };
    let (store, gate) = waiting(&redis).await;
    let key = format!("t:review:{}", gate.lane_id);
    let ttl = || async { redis.cli(&["PTTL", &key]).await.parse::<i64>().unwrap() };
    let first = ttl().await;
    assert!(first > TTL_MS && first <= 2 * TTL_MS, "{first}");
    let mut tx = store.ledger.begin().await.unwrap();
    tx.gate_delivered(&gate.id, Some("om_card"), None).await.unwrap();
    tx.commit().await.unwrap();
    eventually("a shorter TTL", || async { (ttl().await <= TTL_MS).then_some(()) }).await;
    assert!(ttl().await > TTL_MS - 60_000);
    let mut tx = store.ledger.begin().await.unwrap();
    tx.decide(&gate, &decision(DecisionKind::Approve, "ou_1", store.clock.now()))
        .await
        .unwrap();
    assert_eq!(redis.cli(&["HGET", &key, "review_id"]).await, "rv_a", "dropped before the commit");
    tx.commit().await.unwrap();
    pending_when(&store, &gate.conversation, "ou_1", |pending| pending.is_none()).await;
    assert_eq!(redis.cli(&["KEYS", "t:chat:*"]).await, "");
}

/// design: a Redis that answers but takes no write is degraded from the first look on, and stays so however often it is looked at again.
#[tokio::test]
async fn a_redis_that_takes_no_write_stays_degraded() {
    let Some(redis) = RedisServer::start(&["--min-replicas-to-write", "1"]).await else {
        return;
    };
    let store = Store::beside(&redis.url()).await;
    eventually("a degraded coordination", || async {
        store.ledger.coordination().degraded.then_some(())
    })
    .await;
    let looks = async || {
        let stats = redis.cli(&["INFO", "commandstats"]).await;
        let calls = stats.lines().find_map(|line| line.strip_prefix("cmdstat_eval:calls="));
        calls.map_or(0, |calls| calls.split(',').next().unwrap().parse::<u32>().unwrap())
    };
    let first = looks().await;
    eventually("several looks", || async {
        let standing = store.ledger.coordination();
        assert!(standing.degraded && standing.message.contains("NOREPLICAS"), "{standing:?}");
        (looks().await >= first + 4).then_some(())
    })
    .await;
    redis.cli(&["CONFIG", "SET", "min-replicas-to-write", "0"]).await;
    eventually("a coordination that is well", || async {
        (!store.ledger.coordination().degraded).then_some(())
    })
    .await;
}
