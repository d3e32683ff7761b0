//! Events over sockets that the gateway opened: what goes wrong with them, from end to end. The worlds are ones over sockets in any run.

mod breaks;
mod burst;
mod check;
mod crowded;
mod goodbyes;
mod killed;
mod lark;
mod logs;
mod measured;
mod metrics;
mod opening;
mod proxied;
mod refused;
mod secrets;
mod together;
mod webhooks;

use serde_json::Value;

use crate::support::api::eventually;
use crate::support::deliveries::Delivery;
use crate::support::fake_model::say;
use crate::support::platform::On;
use crate::support::quiet::heard;
use crate::support::world::{DIRECT, World};

/// What `/readyz` says where the platform allows no more connections.
const CROWDED: &str = "no connection: the platform allows the app no more connections";
/// What every request is answered with.
const ANSWER: &str = "收到";

fn answerer(_: &Value) -> Value {
    say(ANSWER)
}

/// `extra`, and that events come over sockets.
fn over_sockets<'a>(on: On, extra: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    [extra, Delivery::Socket.settings(on)].concat()
}

/// A gateway in this process with both of its connections.
async fn connected(on: On) -> World {
    let world = World::start_on(on, &over_sockets(on, &[]), answerer).await;
    opens(&world, 2).await;
    world
}

/// A gateway in this process that starts after `before` has prepared the platform.
async fn begun(on: On, before: impl FnOnce(&World)) -> World {
    let mut world = World::without_gateway(on, &over_sockets(on, &[]), answerer).await;
    before(&world);
    world.restart(&[]).await;
    world
}

/// Waits until the platform has so many greeted connections.
async fn opens(world: &World, connections: usize) {
    let sockets = world.sockets();
    let open = || async { (sockets.open() == connections).then_some(()) };
    eventually(&format!("{connections} connections"), open).await;
}

/// Breaks all connections, and waits until there are two new ones.
async fn broken_and_back(world: &World) {
    let sockets = world.sockets();
    let before = sockets.opened();
    sockets.drop_all();
    let back = || async { (sockets.opened() == before + 2).then_some(()) };
    eventually("two new connections", back).await;
}

/// How often the platform was asked for the address of a connection.
fn asked(world: &World) -> usize {
    let seen = world.chat.snapshot();
    seen.calls.iter().filter(|call| call.endpoint == "socket").count()
}

/// Somebody asks something in the direct chat `name`; the gateway has taken it when this comes back.
async fn ask(world: &World, name: &str) {
    let on = world.on;
    world.say(on.user("u1"), on.direct(name), "在吗", DIRECT).await;
}

/// Of these direct chats each had one task: the model was asked once, and one answer was posted.
async fn answered_once(world: &World, names: &[impl AsRef<str>]) {
    let chats: Vec<&str> = names.iter().map(|name| world.on.direct(name.as_ref())).collect();
    for chat in &chats {
        world.hears(chat, ANSWER).await;
    }
    rests(world).await;
    let seen = world.chat.snapshot();
    for chat in &chats {
        assert_eq!(seen.in_chat(chat).count(), 1, "answers in {chat}");
    }
    assert_eq!(world.model.seen().len(), names.len(), "questions to the model");
}

/// Waits until everything that came in has its meaning, and every task of it its end. Not until everything is delivered: by Slack's rates
/// hundreds of marks take minutes.
async fn rests(world: &World) {
    heard(world).await;
    let works = |turn: &Value| turn["status"] == "running" || turn["status"] == "queued";
    let rests = || async { (!world.api.turns().await.iter().any(works)).then_some(()) };
    eventually("every task at its end", rests).await;
}

/// What `/readyz` says of the channel.
async fn standing(world: &World) -> Value {
    let (status, ready) = world.api.try_get("/readyz").await;
    assert_eq!(status, 200, "a connection never stops the rest: {ready}");
    let name = format!("channel.{}", world.on.name());
    let parts = ready["parts"].as_array().unwrap();
    parts.iter().find(|part| part["name"] == name.as_str()).unwrap().clone()
}

/// Waits until `/readyz` says so of the channel, with these words.
async fn stands(world: &World, status: &str, words: &str) {
    let look = || async {
        let part = standing(world).await;
        let said = part["message"].as_str().unwrap_or_default();
        (part["status"] == status && said.contains(words)).then_some(())
    };
    eventually(&format!("{status}: {words}"), look).await;
}
