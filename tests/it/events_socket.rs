//! `GET /api/v1/events`: the timeline as it grows, over a real WebSocket.

mod access;
mod client;
mod following;
mod leaving;
mod replicas;

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::support::world::World;

/// Says something in a console chat, once: the front of a fleet hands it to every process, and without an id of its own it would be as
/// many messages.
async fn say(world: &World, chat: &str) {
    static SAID: AtomicUsize = AtomicUsize::new(0);
    let id = format!("said-{}", SAID.fetch_add(1, Ordering::Relaxed));
    let said = json!({ "chat_id": chat, "user_id": "u1", "text": "整理笔记", "event_id": id });
    let (status, body) = world.api.post("/api/v1/messages", &said).await;
    assert_eq!(status, 202, "{body}");
}

/// Approves the plan that waits in `chat`, and waits for the end of its turn.
async fn carry_out(world: &World, chat: &str) -> Value {
    let review = world.api.review_in(chat).await;
    assert_eq!(world.api.decide(&review, "approve", "u1").await.0, 200);
    world.api.turn_in(chat, "completed").await
}

/// A turn's events as the list gives them.
async fn listed(world: &World, turn: &Value) -> Vec<Value> {
    let path = format!("/api/v1/turns/{}/events?limit=200", turn["id"].as_str().unwrap());
    world.api.get(&path).await["items"].as_array().unwrap().clone()
}
