//! The gateway dies while a task waits for a model's server that is away.

use serde_json::json;

use super::kit::Handshake;
use crate::support::fake_model::Step;
use crate::support::platform::{On, on_either};

on_either! {
    a_task_that_waits_for_the_model_survives_a_kill,
}

/// interface §10 M: a restart goes on with the wait: the server is tried again by the moments that were stored, and the write that was approved
/// before runs once.
async fn a_task_that_waits_for_the_model_survives_a_kill(on: On) {
    let mut hand = Handshake::start(on, None).await;
    hand.ask().await;
    let card = hand.card().await;
    let away = Step::Status(503, Vec::new(), json!({"error": {"message": "overloaded"}}));
    hand.world.model.goes_away(0, away);
    hand.say_ok(&card).await;
    // The plan, and two tries.
    hand.world.model.wait_for(3).await;
    hand.kill_and_restart();
    hand.world.model.wait_for(4).await;
    hand.world.model.comes_back();
    hand.ends_whole().await;
}
