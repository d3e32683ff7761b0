//! `GET /metrics`: what was counted, and how much waits right now.

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use countersign_agent::domain::Millis;
use metrics::gauge;
use tracing::warn;

use super::state::Gateway;
use crate::store::Backlog;

/// Prometheus text. A ledger that cannot be read is no reason to say nothing: its gauges keep their last values.
pub(super) async fn metrics(State(gateway): State<Gateway>) -> Response {
    let depth = async { gateway.ledger.read().await?.backlog().await };
    match depth.await {
        Ok(depth) => note(&depth, gateway.clock.now()),
        Err(error) => warn!(%error, "what waits could not be counted"),
    }
    let refused = !gateway.settings.state().problems.is_empty();
    gauge!("countersign_config_refused").set(f64::from(u8::from(refused)));
    gauge!("countersign_event_sockets").set(f64::from(gateway.sockets().open()));
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], gateway.meters.text()).into_response()
}

fn note(depth: &Backlog, now: Millis) {
    #[expect(clippy::cast_precision_loss, reason = "a count of rows fits")]
    let count = |count: i64| count as f64;
    for (queue, waiting) in [
        ("inbox", depth.inbox),
        ("lanes", depth.lanes),
        ("outbox", depth.outbox),
        ("gates", depth.gates),
        ("turns", depth.turns),
    ] {
        gauge!("countersign_queue_depth", "queue" => queue).set(count(waiting));
    }
    for (queue, since) in [("inbox", depth.inbox_since), ("outbox", depth.outbox_since)] {
        let age = since.map_or(0.0, |since| now.since(since).as_secs_f64());
        gauge!("countersign_queue_oldest_seconds", "queue" => queue).set(age);
    }
}
