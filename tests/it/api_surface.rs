//! `/api/v1` as promised: shapes, lists, errors, the console channel, actions, who may.

mod access;
mod actions;
mod console;
mod errors;
mod lists;
mod own_task;
mod shapes;

use serde_json::{Value, json};

use crate::support::raw::{Reply, post};
use crate::support::world::World;

/// Says something in a console chat.
async fn say(world: &World, user: &str, chat: &str, text: &str) -> String {
    let reply = post(
        world,
        "/api/v1/messages",
        &json!({ "chat_id": chat, "user_id": user, "text": text }),
    )
    .await;
    assert_eq!(reply.status, 202, "{reply:?}");
    reply.json()["event_id"].as_str().unwrap().to_owned()
}

/// Decides a review.
async fn decide(world: &World, review: &Value, body: &Value) -> Reply {
    post(world, &format!("/api/v1/reviews/{}/decision", review["id"].as_str().unwrap()), body).await
}
