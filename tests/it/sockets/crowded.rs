//! A platform that allows the app no more connections: whoever has none waits, says so, and tries again.

use std::time::Duration;

use countersign_playground::Fault;
use serde_json::Value;

use super::{CROWDED, answered_once, answerer, ask, asked, begun, connected, opens, over_sockets, stands};
use crate::support::api::{Api, eventually};
use crate::support::platform::{On, on_both, on_either};
use crate::support::stores::Pairing;
use crate::support::world::World;

/// The longest first pause before a refused connection is tried again.
const SHORT: Duration = Duration::from_millis(40);
/// Tries of one keeper. Before the last of them its pauses take 15 times half of [`SHORT`] at least: 1 + 2 + 4 + 8.
const TRIES: usize = 5;

on_both! {
    a_full_app_is_asked_after_growing_pauses,
}

on_either! {
    a_further_process_waits_until_another_one_goes,
}

/// F-E5: a process without a connection says why, and asks after growing pauses. What was said meanwhile arrives once, as soon as the platform
/// allows connections again.
async fn a_full_app_is_asked_after_growing_pauses(on: On) {
    let mut world = World::without_gateway(on, &over_sockets(on, &[]), answerer).await;
    world.sockets().allow(0);
    world.boot_with(|timings| timings.crowded = SHORT).await;
    stands(&world, "degraded", CROWDED).await;
    // Of so many requests one keeper has made this many at least.
    let enough = 2 * TRIES - 1;
    let many = || async { (asked(&world) >= enough).then_some(()) };
    eventually("further tries", many).await;
    let seen = world.chat.snapshot();
    let calls: Vec<i64> = seen
        .calls
        .iter()
        .filter(|call| call.endpoint == "socket")
        .map(|call| call.at.0)
        .collect();
    let least = i64::try_from((SHORT * 15 / 2).as_millis()).unwrap();
    // A millisecond for rounding.
    assert!(calls[enough - 1] - calls[0] >= least - 1, "pauses do not grow: {calls:?}");
    assert_eq!((world.sockets().open(), world.sockets().opened()), (0, 0));
    let asking = async { ask(&world, "p1").await };
    let allowing = async { world.sockets().allow(2) };
    tokio::join!(asking, allowing);
    opens(&world, 2).await;
    stands(&world, "ok", "2 connections").await;
    answered_once(&world, &["p1"]).await;
    world.end().await;
}

/// F-E5, interface (I): where another process has all connections, a further one has none and says why; events reach the other one. When that
/// one stops, the further one connects and takes the events.
async fn a_further_process_waits_until_another_one_goes(on: On) {
    if !Pairing::Postgres.runs() {
        return;
    }
    let mut world = World::without_gateway(on, &over_sockets(on, &[]), answerer).await;
    world.sockets().allow(2);
    let first = world.another().await;
    opens(&world, 2).await;
    world.boot_with(|timings| timings.crowded = SHORT).await;
    stands(&world, "degraded", CROWDED).await;
    ask(&world, "p1").await;
    world.hears(on.direct("p1"), super::ANSWER).await;
    assert_eq!(world.sockets().opened(), 2, "nobody's connection has ended for the further process");
    first.stop().await;
    stands(&world, "ok", "2 connections").await;
    assert_eq!((world.sockets().open(), world.sockets().opened()), (2, 4));
    ask(&world, "p2").await;
    answered_once(&world, &["p1", "p2"]).await;
    world.end().await;
}

/// F-E5: a process with one connection is fine, and keeps asking for the other.
#[tokio::test]
async fn one_connection_is_enough() {
    let mut world = World::without_gateway(On::Slack, &over_sockets(On::Slack, &[]), answerer).await;
    world.sockets().allow(1);
    world.boot_with(|timings| timings.crowded = SHORT).await;
    opens(&world, 1).await;
    stands(&world, "ok", "1 connection").await;
    ask(&world, "p1").await;
    answered_once(&world, &["p1"]).await;
    world.sockets().allow(2);
    stands(&world, "ok", "2 connections").await;
    assert_eq!(world.sockets().opened(), 2);
    world.end().await;
}

/// F-E5, F-E4, reach §1.7: Slack allows an app ten connections. A sixth gateway has none and says why. A connection that Slack recycles
/// then is closed, and the next one has room: the others lose nothing, and the process still has two.
#[tokio::test]
async fn ten_connections_of_one_app_are_enough() {
    if !Pairing::Postgres.runs() {
        return;
    }
    let world = connected(On::Slack).await;
    let mut others = Vec::new();
    for number in 2..=5 {
        others.push(world.another().await);
        opens(&world, number * 2).await;
    }
    // It does not try again while this test runs.
    let sixth = world.another_with(|timings| timings.crowded = Duration::from_hours(1)).await;
    let api = Api::new(&format!("http://{}", sixth.addr));
    let told = || async {
        let (_, ready) = api.try_get("/readyz").await;
        let is_slack = |part: &&Value| part["name"] == "channel.slack";
        let part = ready["parts"].as_array()?.iter().find(is_slack)?.clone();
        let said = part["message"].as_str()?;
        (part["status"] == "degraded" && said.starts_with(CROWDED)).then_some(())
    };
    eventually("a sixth gateway that says why it has no connection", told).await;
    let both = || async { (asked(&world) == 12).then_some(()) };
    eventually("both tries of the sixth gateway", both).await;
    assert_eq!(world.sockets().open(), 10);
    let old = world.sockets().links()[0].clone();
    old.disconnect("refresh_requested");
    let replaced = || async { (!world.sockets().links().contains(&old) && world.sockets().open() == 10).then_some(()) };
    eventually("another connection in its stead", replaced).await;
    assert_eq!(
        (asked(&world), world.sockets().opened()),
        (14, 11),
        "one try is refused, the next one is not"
    );
    let names: Vec<String> = (0..10).map(|number| format!("ten{number}")).collect();
    for name in &names {
        ask(&world, name).await;
    }
    answered_once(&world, &names).await;
    sixth.stop().await;
    for other in others {
        other.stop().await;
    }
    world.end().await;
}

/// F-E5: Slack may refuse as early as the request for an address.
#[tokio::test]
async fn an_address_that_is_refused_for_the_limit_is_waited_for() {
    let world = begun(On::Slack, |world| {
        for _ in 0..2 {
            world.chat.fault("socket", Fault::Error("too_many_websockets"));
        }
    })
    .await;
    stands(&world, "degraded", CROWDED).await;
    world.caught_up().await;
    assert_eq!((asked(&world), world.sockets().open()), (2, 0), "nobody tries again soon");
    world.end().await;
}
