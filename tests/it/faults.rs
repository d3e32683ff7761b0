//! Rows of the failure matrix about the process, its senders and its stores: what the platform, a person and `/readyz` see.

mod damage;
mod disk;
mod outages;
mod panics;
mod postgres;
mod strain;

use serde_json::Value;

use crate::support::world::World;

/// Status of `/readyz`, its word, and what it says of the ledger.
async fn ready(world: &World) -> (u16, String, String) {
    let (status, body) = world.api.try_get("/readyz").await;
    let parts = body["parts"].as_array().unwrap();
    let ledger = parts.iter().find(|part| part["name"] == "ledger").unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (status, text(&body["status"]), text(&ledger["status"]))
}
