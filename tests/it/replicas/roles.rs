//! `server.roles`: webhooks and workers in processes of their own.

use serde_json::json;

use crate::kills::kit::Handshake;
use crate::support::fleet::{Fleet, SHORT};
use crate::support::platform::{On, on_both};
use crate::support::scripts::reporter;

on_both! {
    half_a_gateway_each_is_a_whole_one,
}

/// Place 0 takes what comes in, place 1 works.
pub const APART: &[&[(&str, &str)]] = &[&[("SERVER__ROLES", "[webhooks]")], &[("SERVER__ROLES", "[workers]")]];

/// design: one process takes events, clicks and questions, the other works and posts; each says which half it is, and the worker
/// says why it serves nothing else.
async fn half_a_gateway_each_is_a_whole_one(on: On) {
    let Some((mut fleet, world)) = Fleet::prepare(on, SHORT, APART, &[], reporter).await else {
        return;
    };
    fleet.start(0).await;
    let mut hand = Handshake::within(world);
    assert_eq!(hand.ask().await, Some(200));
    let webhooks = fleet.api(0);
    assert_eq!(webhooks.turns().await.len(), 0, "nobody works yet");
    fleet.start(1).await;
    let workers = fleet.api(1);
    for (api, roles) in [(&webhooks, json!(["webhooks"])), (&workers, json!(["workers"]))] {
        assert_eq!(api.try_get("/healthz").await.0, 200);
        let (status, ready) = api.try_get("/readyz").await;
        assert_eq!((status, &ready["roles"]), (200, &roles), "{ready}");
        assert_eq!(api.try_get("/metrics").await.0, 200);
    }
    for path in ["/console/", "/", "/api/v1/turns"] {
        let (status, refusal) = workers.try_get(path).await;
        assert_eq!(status, 404, "{path}: {refusal}");
        assert!(refusal["error"]["message"].as_str().unwrap().contains("server.roles"), "{refusal}");
    }
    let (status, _) = workers.post("/webhooks/lark/events", &json!({})).await;
    assert_eq!(status, 404);
    let card = hand.card().await;
    // The click is decided where it came in.
    hand.press(&card, "approve").await.unwrap().done("已确认");
    assert_eq!(fleet.who_says("turn taken up"), Some(1), "only the workers work");
    hand.ends_whole().await;
}
