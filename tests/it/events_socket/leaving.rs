//! How a socket ends: the reader is slow or silent, or the process stops.

use std::time::Duration;

use countersign_gateway::app::Running;
use serde_json::json;
use sqlx::Connection;

use super::client::Listener;
use super::{carry_out, say};
use crate::support::api::{Api, eventually};
use crate::support::quiet::{connect, quiet};
use crate::support::scripts::reporter;
use crate::support::world::World;

/// Twenty megabytes: more than any two sockets' buffers hold.
const EVENTS: i64 = 320;
const TEXT: usize = 64 * 1024;

/// Sockets that ended because their reader was slow.
async fn slow(api: &Api) -> u32 {
    let text = api.http().get(api.url("/metrics")).send().await.unwrap().text().await.unwrap();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("countersign_event_sockets_total{end=\"slow\"} "));
    line.map_or(0, |count| count.parse().unwrap())
}

/// Another gateway on the stores of `world`. It closes the sockets of slow readers early.
async fn hasty(world: &World) -> (Running, Api) {
    let running = world
        .another_with(|timings| {
            timings.socket_ping = Duration::from_secs(1);
            timings.socket_timeout = Duration::from_secs(3);
        })
        .await;
    let api = Api::new(&format!("http://{}", running.addr));
    (running, api)
}

/// A turn that ended, with far more events than a connection holds; the gateway is stopped. Gives its id and the last event's `seq`.
async fn long_history() -> (World, String, u64) {
    let mut world = World::start(&[], reporter).await;
    say(&world, "chat_a").await;
    let turn = carry_out(&world, "chat_a").await;
    quiet(&world).await;
    let id = turn["id"].as_str().unwrap().to_owned();
    let first = super::listed(&world, &turn).await.len();
    world.stop().await;
    let mut conn = connect(&world).await;
    let mut fill = conn.begin().await.unwrap();
    for further in 1..=EVENTS {
        let body = json!({ "type": "assistant_text", "data": { "text": "x".repeat(TEXT) } }).to_string();
        sqlx::query(
            "INSERT INTO events (turn_id, seq, id, chat, at, iteration, summary, body) VALUES ($1, $2, $3, 'chat_a', 0, 1, '', $4)",
        )
        .bind(&id)
        .bind(i64::try_from(first).unwrap() + further)
        .bind(format!("ev_{further}"))
        .bind(body)
        .execute(&mut *fill)
        .await
        .unwrap();
    }
    fill.commit().await.unwrap();
    conn.close().await.unwrap();
    let last = i64::try_from(first).unwrap() + EVENTS;
    (world, id, u64::try_from(last).unwrap())
}

/// design: a reader that does not read is closed with 1013 and can go on from where it stood; nothing of it is kept in memory
/// meanwhile. One that does not even answer pings is closed in the same way; one that does stays.
#[tokio::test]
async fn a_slow_reader_is_sent_away() {
    let (mut world, id, whole) = long_history().await;
    let (running, api) = hasty(&world).await;
    world.reach(api.base());
    let before = slow(&api).await;
    let mut stuck = Listener::open(&api, &format!("?turn={id}")).await;
    eventually("the end of patience", || async { (slow(&api).await > before).then_some(()) }).await;
    let mut told = Vec::new();
    let code = loop {
        match stuck.next().await {
            Ok(event) => told.push(event["seq"].as_u64().unwrap()),
            Err(code) => break code,
        }
    };
    assert_eq!(code, 1013);
    assert!(*told.last().unwrap() < whole, "it was told everything");
    let mut again = Listener::open(&api, &format!("?turn={id}&after={}", told.last().unwrap())).await;
    while *told.last().unwrap() < whole {
        told.push(again.next().await.unwrap()["seq"].as_u64().unwrap());
    }
    assert_eq!(told, (1..=whole).collect::<Vec<_>>());
    drop((stuck, again));

    // Nothing is to be told here, and nobody answers pings: a client answers only while it reads.
    let silent = Listener::open(&api, "").await;
    eventually("the end of patience", || async { (slow(&api).await > before + 1).then_some(()) }).await;
    drop(silent);
    let mut awake = Listener::open(&api, "").await;
    awake.pinged(3).await;
    say(&world, "chat_b").await;
    assert_eq!(awake.until("turn_paused").await[0]["type"], "turn_started");
    drop(awake);
    quiet(&world).await;
    running.stop().await;
    world.restart(&[]).await;
    world.end().await;
}

/// design: a reader that comes back for a long history is heard while it is told: its ping is answered before the end.
#[tokio::test]
async fn a_long_history_keeps_no_ping_waiting() {
    let (mut world, id, whole) = long_history().await;
    world.restart(&[]).await;
    let mut reader = Listener::open(&world.api, &format!("?turn={id}")).await;
    let first = reader.next().await.unwrap();
    assert_eq!(first["seq"], 1);
    reader.ping().await;
    let mut last = 1;
    while !reader.ponged && last < whole {
        last = reader.next().await.unwrap()["seq"].as_u64().unwrap();
    }
    assert!(last < whole, "it was told everything before its ping was answered");
    drop(reader);
    quiet(&world).await;
    world.end().await;
}

/// design: when the process stops, readers are told 1001 at once, so that they go elsewhere, and it does not wait for them longer than
/// they take to say goodbye.
#[tokio::test]
async fn a_stop_sends_readers_away() {
    let mut world = World::start(&[], reporter).await;
    let (mut polite, _silent) = (Listener::open(&world.api, "").await, Listener::open(&world.api, "").await);
    let (code, took) = tokio::join!(polite.next(), async {
        let asked = tokio::time::Instant::now();
        world.stop().await;
        asked.elapsed()
    });
    assert_eq!(code, Err(1001));
    assert!(took < Duration::from_secs(10), "{took:?}");
    world.restart(&[]).await;
    world.end().await;
}
