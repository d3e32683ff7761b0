//! The look-up of pending reviews while Redis fails, forgets or lies: the database decides, and who waits for Redis waits a moment.

use std::time::{Duration, Instant};

use countersign_agent::domain::{DecisionKind, Gate};

use crate::store_kit::{Store, TTL_MS, decision, open, place, review_key, working};
use crate::support::api::{PATIENCE, eventually};
use crate::support::servers::RedisServer;

/// How long one look-up waits for a Redis that does not answer.
const LOOK_UP: Duration = Duration::from_millis(250);

/// A store beside a Redis of its own, and a gate of `ou_1` that waits in `oc_1` and is in Redis.
async fn waiting(redis: &RedisServer) -> (Store, Gate) {
    let store = Store::beside(&redis.url()).await;
    well(&store).await;
    let gate = asks(&store, "a", "oc_1").await;
    kept(redis, &gate).await;
    (store, gate)
}

/// Opens a gate in this chat.
async fn asks(store: &Store, name: &str, chat: &str) -> Gate {
    let (lease, turn) = working(store, name, &place(chat, ""), "ou_1").await;
    open(store, &lease, &turn, &format!("rv_{name}")).await
}

async fn waits(store: &Store, chat: &str) -> bool {
    let mut tx = store.ledger.begin_in(&place(chat, "")).await.unwrap();
    tx.anything_waits(&place(chat, ""), "ou_1").await.unwrap()
}

async fn cancels(store: &Store, gate: &Gate) {
    let mut tx = store.ledger.begin().await.unwrap();
    let cancel = decision(DecisionKind::Cancel, "ou_1", store.clock.now());
    assert!(tx.decide(gate, &cancel).await.unwrap());
    tx.commit().await.unwrap();
}

async fn kept(redis: &RedisServer, gate: &Gate) {
    eventually("the review in Redis", || async {
        (redis.cli(&["EXISTS", &review_key(gate)]).await == "1").then_some(())
    })
    .await;
}

async fn degraded(store: &Store, word: &str) {
    eventually(&format!("a coordination that is degraded: {word}"), || async {
        let standing = store.ledger.coordination();
        (standing.degraded && standing.message.contains(word)).then_some(())
    })
    .await;
}

async fn well(store: &Store) {
    eventually("a coordination that is well", || async {
        (!store.ledger.coordination().degraded).then_some(())
    })
    .await;
}

/// How often Redis was asked `command`.
async fn calls(redis: &RedisServer, command: &str) -> u32 {
    let stats = redis.cli(&["INFO", "commandstats"]).await;
    let calls = stats
        .lines()
        .find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:calls=")));
    calls.map_or(0, |calls| calls.split(',').next().unwrap().parse().unwrap())
}

/// interface §8, F-R4 F-R11: Redis is asked first; a miss asks the database, and a hit names a gate that the database looks at: what is
/// missing there, stale or a lie changes nothing.
#[tokio::test]
async fn redis_is_asked_first_and_decides_nothing() {
    let Some(redis) = RedisServer::start(&[]).await else { return };
    let (store, gate) = waiting(&redis).await;
    let asked = calls(&redis, "hget").await;
    assert!(waits(&store, "oc_1").await);
    assert_eq!(calls(&redis, "hget").await, asked + 1, "asked once");
    redis.cli(&["FLUSHALL"]).await;
    assert!(waits(&store, "oc_1").await, "a miss is no answer");
    for lie in ["rv_unknown", "\u{0}", ""] {
        redis.cli(&["HSET", &review_key(&gate), "review_id", lie]).await;
        assert!(waits(&store, "oc_1").await, "{lie:?}");
        assert!(!waits(&store, "oc_2").await);
    }
    cancels(&store, &gate).await;
    redis.cli(&["HSET", &review_key(&gate), "review_id", gate.id.as_str()]).await;
    assert!(!waits(&store, "oc_1").await, "a stale review is no review");
}

/// F-R1 F-R2 F-R5: killed and started again empty: what is opened and decided meanwhile is found in the database, what is opened
/// afterwards in Redis again.
#[tokio::test]
async fn a_killed_redis_is_not_missed() {
    let Some(mut redis) = RedisServer::start(&[]).await else { return };
    let (store, gate) = waiting(&redis).await;
    redis.kill().await;
    assert!(waits(&store, "oc_1").await);
    asks(&store, "b", "oc_2").await;
    assert!(waits(&store, "oc_2").await);
    cancels(&store, &gate).await;
    degraded(&store, "").await;
    redis.restart_empty().await;
    well(&store).await;
    assert!(waits(&store, "oc_2").await);
    assert!(!waits(&store, "oc_1").await);
    kept(&redis, &asks(&store, "c", "oc_3").await).await;
}

/// F-R6: started again from an older dump: the database knows the later review, and that the earlier one was decided since.
#[tokio::test]
async fn a_rolled_back_redis_decides_nothing() {
    let Some(mut redis) = RedisServer::start(&[]).await else { return };
    let (store, gate) = waiting(&redis).await;
    redis.cli(&["SAVE"]).await;
    asks(&store, "b", "oc_2").await;
    cancels(&store, &gate).await;
    redis.restart().await;
    assert!(waits(&store, "oc_2").await);
    assert!(!waits(&store, "oc_1").await);
}

/// F-R3: a Redis that does not answer costs a moment once, not each time, and shows; then all goes on as if nothing had been.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stalled_redis_holds_nobody_up() {
    let Some(redis) = RedisServer::start(&[]).await else { return };
    let (store, _gate) = waiting(&redis).await;
    redis.stall();
    let began = Instant::now();
    // A look-up that waited each time would never be faster than that; the first ones find out.
    for round in 0.. {
        let asked = Instant::now();
        assert!(waits(&store, "oc_1").await);
        if round >= 4 && asked.elapsed() < LOOK_UP {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "each of {round} look-ups waits for Redis");
    }
    degraded(&store, "").await;
    redis.resume();
    well(&store).await;
    kept(&redis, &asks(&store, "b", "oc_2").await).await;
}

/// F-R7: full, it refuses to write: what waits is found all the same, what to mend is named, and with room again it is used.
#[tokio::test]
async fn a_full_redis_is_named() {
    let Some(redis) = RedisServer::start(&[]).await else { return };
    let (store, _gate) = waiting(&redis).await;
    redis.cli(&["CONFIG", "SET", "maxmemory", "1"]).await;
    asks(&store, "b", "oc_2").await;
    assert!(waits(&store, "oc_1").await);
    assert!(waits(&store, "oc_2").await);
    degraded(&store, "OOM").await;
    redis.cli(&["CONFIG", "SET", "maxmemory", "0"]).await;
    well(&store).await;
    kept(&redis, &asks(&store, "c", "oc_3").await).await;
}

/// F-R8: what a policy throws away is found in the database.
#[tokio::test]
async fn an_evicted_review_is_not_missed() {
    let Some(redis) = RedisServer::start(&["--maxmemory-policy", "volatile-lru", "--maxmemory", "100mb"]).await else {
        return;
    };
    let (store, gate) = waiting(&redis).await;
    // Every key with a TTL goes.
    redis.cli(&["CONFIG", "SET", "maxmemory", "1"]).await;
    let _refused = redis.ask(&["SET", "junk", "x"]).await;
    assert_eq!(redis.cli(&["EXISTS", &review_key(&gate)]).await, "0");
    redis.cli(&["CONFIG", "SET", "maxmemory", "100mb"]).await;
    assert!(waits(&store, "oc_1").await);
}

/// F-R12: junk of other people under our key is no review, cuts no connection, and gives way to the next one.
#[tokio::test]
async fn junk_under_our_key_is_replaced() {
    let Some(redis) = RedisServer::start(&[]).await else { return };
    let store = Store::beside(&redis.url()).await;
    well(&store).await;
    let (lease, turn) = working(&store, "a", &place("oc_1", ""), "ou_1").await;
    let gate = open(&store, &lease, &turn, "rv_a").await;
    kept(&redis, &gate).await;
    let key = review_key(&gate);
    redis.cli(&["DEL", &key]).await;
    redis.cli(&["SET", &key, "junk"]).await;
    for _ in 0..2 {
        let asked = calls(&redis, "hget").await;
        assert!(waits(&store, "oc_1").await);
        assert_eq!(calls(&redis, "hget").await, asked + 1, "a refusal does not cut the connection");
    }
    cancels(&store, &gate).await;
    open(&store, &lease, &turn, "rv_b").await;
    eventually("the next review", || async {
        (redis.ask(&["HGET", &key, "review_id"]).await.ok()? == redis::Value::BulkString(b"rv_b".to_vec())).then_some(())
    })
    .await;
}

/// interface §8: the key's TTL is twice the configured one until the card is delivered, then the configured one; it goes after the
/// commit of the decision, and a late delete takes no other review along.
#[tokio::test]
async fn the_ttl_follows_the_card() {
    let Some(redis) = RedisServer::start(&[]).await else { return };
    let (store, gate) = waiting(&redis).await;
    let key = review_key(&gate);
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
    // Another process has opened the lane's next review.
    redis.cli(&["HSET", &key, "review_id", "rv_next"]).await;
    let removals = calls(&redis, "eval").await;
    tx.commit().await.unwrap();
    eventually("the delete", || async { (calls(&redis, "eval").await > removals).then_some(()) }).await;
    assert_eq!(redis.cli(&["HGET", &key, "review_id"]).await, "rv_next");
}

/// design: a Redis that answers but takes no write is degraded from the first look on, and stays so however often it is looked at again.
#[tokio::test]
async fn a_redis_that_takes_no_write_stays_degraded() {
    let Some(redis) = RedisServer::start(&["--min-replicas-to-write", "1"]).await else {
        return;
    };
    let store = Store::beside(&redis.url()).await;
    degraded(&store, "NOREPLICAS").await;
    let errors = async || {
        let stats = redis.cli(&["INFO", "errorstats"]).await;
        let count = stats.lines().find_map(|line| line.strip_prefix("errorstat_NOREPLICAS:count="));
        count.map_or(0, |count| count.trim().parse::<u32>().unwrap())
    };
    let first = errors().await;
    eventually("several looks", || async {
        let standing = store.ledger.coordination();
        assert!(standing.degraded && standing.message.contains("NOREPLICAS"), "{standing:?}");
        (errors().await >= first + 3).then_some(())
    })
    .await;
    redis.cli(&["CONFIG", "SET", "min-replicas-to-write", "0"]).await;
    well(&store).await;
}

/// How often a user was refused for want of a right.
async fn refusals(redis: &RedisServer) -> u32 {
    let stats = redis.cli(&["INFO", "errorstats"]).await;
    let count = stats.lines().find_map(|line| line.strip_prefix("errorstat_NOPERM:count="));
    count.map_or(0, |count| count.trim().parse().unwrap())
}

/// bugs F18, peers F6: a user without a right to our channel (what Redis 7 gives a new user) is degraded and named, in the log once, and is not
/// asked again and again; with the right all is well.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_right_to_the_channel_is_named() {
    let Some(redis) = RedisServer::start(&[]).await else { return };
    redis
        .cli(&["ACL", "SETUSER", "cs", "on", ">pw", "~*", "resetchannels", "+@all"])
        .await;
    let store = Store::beside(&redis.url().replace("redis://", "redis://cs:pw@")).await;
    degraded(&store, ":wake").await;
    let standing = store.ledger.coordination();
    assert!(standing.message.contains("may not subscribe to "), "{standing:?}");
    let (first, began) = (refusals(&redis).await, Instant::now());
    // Each round writes, which goes well, and publishes.
    let rounds = calls(&redis, "set").await;
    eventually("five rounds", || async { (calls(&redis, "set").await >= rounds + 5).then_some(()) }).await;
    let told = store.ledger.coordination();
    assert_eq!(told, standing, "the same words, and so one line of the log");
    let subscribed = refusals(&redis).await - first;
    let seconds = u32::try_from(began.elapsed().as_secs()).unwrap();
    assert!(subscribed <= seconds + 2 + 4, "{subscribed} refusals in {seconds} s");
    redis.cli(&["ACL", "SETUSER", "cs", "allchannels"]).await;
    well(&store).await;
}

/// peers F6: with a right to hear and none to tell, it is the telling that is named.
#[tokio::test]
async fn a_missing_right_to_publish_is_named() {
    let Some(redis) = RedisServer::start(&[]).await else { return };
    redis
        .cli(&["ACL", "SETUSER", "cs", "on", ">pw", "~*", "allchannels", "+@all", "-publish"])
        .await;
    let store = Store::beside(&redis.url().replace("redis://", "redis://cs:pw@")).await;
    degraded(&store, "may not publish to ").await;
}
