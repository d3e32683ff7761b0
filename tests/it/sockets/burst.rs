//! Hundreds of events at once.

use axum::body::Bytes;
use axum::extract::ws::Message;
use futures_util::future::join_all;

use super::{answerer, ask, opens, over_sockets, rests};
use crate::support::api::eventually;
use crate::support::platform::{On, on_both};
use crate::support::quiet::stored;
use crate::support::unhurried::LONG_LEASE;
use crate::support::world::{ASIDE, World};

/// More than one connection hands to the ledger at a time, for both of them together.
const EVENTS: usize = 300;
/// One of so many is a task. The others are said to nobody: they are stored and looked at like it, and cost a busy machine less.
const ONE_IN: usize = 10;
const TASKS: usize = EVENTS / ONE_IN;

on_both! {
    hundreds_at_once_arrive_once_each,
}

/// interface (I), reach §1.5: 300 events at once are stored once each, and pings are answered meanwhile.
async fn hundreds_at_once_arrive_once_each(on: On) {
    let mut world = World::without_gateway(on, &over_sockets(on, &[]), answerer).await;
    world.boot_with(|timings| timings.lease = LONG_LEASE).await;
    opens(&world, 2).await;
    let links = world.sockets().links();
    let stored_events = async || {
        stored(&world, "SELECT CAST(COUNT(*) AS TEXT) FROM inbox").await[0]
            .parse::<usize>()
            .unwrap()
    };
    // Begun after the events: the pings stand behind them on their connections.
    let pings = async {
        for link in &links {
            link.send(Message::Ping(Bytes::from_static(b"are you there?")));
        }
        let answered = || async { links.iter().all(|link| link.pongs() == 1).then_some(()) };
        eventually("pongs", answered).await;
    };
    let names: Vec<String> = (0..EVENTS).map(|number| format!("burst{number}")).collect();
    let saying = names.iter().enumerate().map(async |(number, name)| match number % ONE_IN {
        0 => ask(&world, name).await,
        _ => drop(world.say(on.user("u1"), on.chat(name), "大家好", ASIDE).await),
    });
    tokio::join!(join_all(saying), pings);
    let waited: usize = links.iter().map(countersign_playground::Link::waited_at_pong).sum();
    assert!(waited > 0, "the pings waited for all of the events");
    eventually("a task each", || async { (world.api.turns().await.len() == TASKS).then_some(()) }).await;
    // What is posted follows by the platform's rates, and nobody waits for it here.
    rests(&world).await;
    assert_eq!((stored_events().await, world.api.turns().await.len()), (EVENTS, TASKS));
    assert_eq!(world.model.seen().len(), TASKS);
    assert_eq!((world.sockets().redelivered(), world.sockets().opened()), (0, 2));
    world.end().await;
}
