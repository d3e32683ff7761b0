//! `/healthz` and `/readyz`.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::state::Gateway;
use crate::domain::Millis;

/// 200 while the process lives.
pub(super) async fn healthz() -> &'static str {
    "ok\n"
}

/// 200 `ready` or `degraded`, 503 `not_ready`: only a failing ledger or draining stops us from accepting.
pub(super) async fn readyz(State(gateway): State<Gateway>) -> Response {
    let now = gateway.clock.now();
    let parts = parts(&gateway, now).await;
    let failed = |name: &str| parts.iter().any(|part| part["name"] == name && part["status"] == "failed");
    let (code, status) = if gateway.is_draining() || failed("ledger") {
        (StatusCode::SERVICE_UNAVAILABLE, "not_ready")
    } else if parts.iter().any(|part| part["status"] == "degraded" || part["status"] == "failed") {
        (StatusCode::OK, "degraded")
    } else {
        (StatusCode::OK, "ready")
    };
    let body = json!({ "status": status, "version": env!("CARGO_PKG_VERSION"), "parts": parts });
    (code, Json(body)).into_response()
}

async fn parts(gateway: &Gateway, now: Millis) -> Vec<Value> {
    let live = gateway.settings.current();
    let part = |name: &str, status: &str, message: Option<String>, since: Millis| json!({ "name": name, "status": status, "message": message, "since": since.rfc3339() });
    let ledger = gateway.ledger.ping().await;
    let mut parts = vec![
        match &ledger {
            Ok(()) => part("ledger", "ok", None, now),
            // The text of a store error holds no URL and no secret; see its definition.
            Err(error) => part("ledger", "failed", Some(error.to_string()), now),
        },
        part("coordination", "ok", Some(String::from("embedded")), now),
    ];
    parts.push(if !live.lark.enabled {
        part("channel.lark", "disabled", None, now)
    } else if !knows_itself(gateway).await {
        part(
            "channel.lark",
            "degraded",
            Some(String::from("the bot's own id is not known yet; group messages wait")),
            now,
        )
    } else if gateway.lark_unsigned {
        part(
            "channel.lark",
            "degraded",
            Some(String::from("events come unsigned: set channels.lark.encrypt_key")),
            now,
        )
    } else {
        part("channel.lark", "ok", None, now)
    });
    parts.push(part("channel.slack", "disabled", None, now));
    parts.push(match gateway.runner.model_health().last {
        None => part("model", "ok", Some(String::from("not called yet")), now),
        Some((at, Ok(()))) => part("model", "ok", None, at),
        Some((at, Err(reason))) => part("model", "degraded", Some(reason), at),
    });
    parts.push(part("config", "ok", None, now));
    parts
}

async fn knows_itself(gateway: &Gateway) -> bool {
    let fact = async { gateway.ledger.read().await?.fact(&format!("bot.lark.{}", gateway.lark_app)).await };
    fact.await.is_ok_and(|id| id.is_some())
}
