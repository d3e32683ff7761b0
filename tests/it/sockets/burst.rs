//! Hundreds of events at once.

use std::time::Duration;

use axum::body::Bytes;
use axum::extract::ws::Message;
use futures_util::future::join_all;

use super::{answerer, ask, opens, over_sockets, rests};
use crate::support::api::eventually;
use crate::support::platform::{On, on_both};
use crate::support::world::World;

/// More than one connection hands to the ledger at a time, for both of them together.
const EVENTS: usize = 300;

/// Longer than the test runs on a busy machine. After a lease that ran out the model would be asked about the task again.
const LEASE: Duration = Duration::from_secs(600);

on_both! {
    hundreds_at_once_arrive_once_each,
}

/// interface (I), reach §1.5: 300 events at once are a task each, and pings are answered meanwhile.
async fn hundreds_at_once_arrive_once_each(on: On) {
    let mut world = World::without_gateway(on, &over_sockets(on, &[]), answerer).await;
    world.boot_with(|timings| timings.lease = LEASE).await;
    opens(&world, 2).await;
    let links = world.sockets().links();
    let names: Vec<String> = (0..EVENTS).map(|number| format!("burst{number}")).collect();
    let pings = async {
        for link in &links {
            link.send(Message::Ping(Bytes::from_static(b"are you there?")));
        }
        let answered = || async { links.iter().all(|link| link.pongs() == 1).then_some(()) };
        eventually("pongs", answered).await;
        world.model.seen().len()
    };
    let asking = join_all(names.iter().map(|name| ask(&world, name)));
    let (_, begun) = tokio::join!(asking, pings);
    assert!(begun < EVENTS, "pings waited for all of the events");
    // As long as one task follows the other: on a busy machine all of them take longer than a test waits for one thing.
    let mut questions = world.model.seen().len();
    while questions < EVENTS {
        let more = || async { Some(world.model.seen().len()).filter(|now| *now > questions) };
        questions = eventually("another question to the model", more).await;
    }
    let turns_of = async |name: &String| world.api.get(&format!("/api/v1/turns?chat={}", on.direct(name))).await["items"].clone();
    for name in &names {
        let begun = || async { turns_of(name).await.as_array().filter(|turns| !turns.is_empty()).map(drop) };
        eventually(&format!("a task of {name}"), begun).await;
    }
    rests(&world).await;
    // What is posted follows by the platform's rates, and nobody waits for it here.
    for name in &names {
        let turns = turns_of(name).await;
        assert_eq!(turns.as_array().unwrap().len(), 1, "{name}: {turns}");
    }
    assert_eq!(world.model.seen().len(), EVENTS);
    assert_eq!((world.sockets().redelivered(), world.sockets().opened()), (0, 2));
    world.end().await;
}
