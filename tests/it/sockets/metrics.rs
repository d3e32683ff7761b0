//! What is counted of connections and of what comes over them.

use countersign_playground::{Event, SocketFault};
use serde_json::json;

use super::{ANSWER, answerer, ask, opens, over_sockets};
use crate::support::api::eventually;
use crate::support::platform::{On, on_both};
use crate::support::world::World;

on_both! {
    connections_and_their_events_are_counted,
}

/// The sample of the channel with these labels; zero when there is none.
async fn value(world: &World, name: &str, label: &str) -> f64 {
    let response = world.api.http().get(world.api.url("/metrics")).send().await.unwrap();
    let text = response.text().await.unwrap();
    let sample = format!("countersign_socket_{name}{{channel=\"{}\"{label}}} ", world.on.name());
    let line = text.lines().find_map(|line| line.strip_prefix(&sample));
    line.map_or(0.0, |value| value.parse().unwrap())
}

async fn counts(world: &World, name: &str, label: &str, expected: f64) {
    let look = || async { (value(world, name, label).await == expected).then_some(()) };
    eventually(&format!("{name}{label} to be {expected}"), look).await;
}

/// docs/metrics.md: connections that are open, those that ended by their reason, events by what became of them.
async fn connections_and_their_events_are_counted(on: On) {
    let world = World::process_on(on, &over_sockets(on, &[]), None, answerer).await;
    opens(&world, 2).await;
    counts(&world, "connections", "", 2.0).await;
    ask(&world, "p1").await;
    world.hears(on.direct("p1"), ANSWER).await;
    let taken = value(&world, "events_total", ",outcome=\"accepted\"").await;
    assert!((1.0..=2.0).contains(&taken), "one event, and on Slack its twin: {taken}");
    // Over this one nothing is acknowledged in time: the event comes again over the other.
    world.sockets().fault(SocketFault::BreakAfterEvent);
    ask(&world, "p2").await;
    counts(&world, "reconnects_total", ",reason=\"lost\"", 1.0).await;
    let odd = Event {
        body: json!({ "type": "event_callback" }),
        ..world.message(on.user("u1"), on.direct("p3"), "在吗", crate::support::world::DIRECT)
    };
    world.push_unreadable(&odd).await;
    counts(&world, "events_total", ",outcome=\"bad_request\"", 1.0).await;
    // Slack hears nothing of an event that was not stored. Nothing else may be left without an acknowledgement.
    let not_stored = value(&world, "events_total", ",outcome=\"unavailable\"").await;
    let silences = u32::try_from(world.sockets().unacknowledged()).unwrap();
    assert!(
        f64::from(silences) <= not_stored,
        "{silences} events were not acknowledged, {not_stored} were not stored"
    );
    if on == On::Slack {
        let old = world.sockets().links()[0].clone();
        old.disconnect("refresh_requested");
        counts(&world, "connections", "", 3.0).await;
        old.close();
        counts(&world, "reconnects_total", ",reason=\"recycled\"", 1.0).await;
        counts(&world, "connections", "", 2.0).await;
        let links = world.sockets().links();
        links[0].disconnect("too_many_websockets");
        links[1].disconnect("link_disabled");
        counts(&world, "reconnects_total", ",reason=\"too_many\"", 1.0).await;
        counts(&world, "reconnects_total", ",reason=\"switched_off\"", 1.0).await;
        counts(&world, "connections", "", 0.0).await;
    }
    let webhooks = world
        .api
        .http()
        .get(world.api.url("/metrics"))
        .send()
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    let channel = format!("countersign_webhook_requests_total{{channel=\"{}\"", on.name());
    let requests = webhooks.lines().filter(|line| line.starts_with(&channel));
    for line in requests {
        assert!(line.ends_with(" 0"), "an event over a socket is no request: {line}");
    }
    world.end().await;
}
