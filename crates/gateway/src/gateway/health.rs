//! `/healthz` and `/readyz`.

mod since;

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use countersign_agent::domain::{ChannelKind, Millis, ServerStanding};
use serde_json::{Value, json};

pub(super) use since::StatusSince;

use super::error::ledger_works;
use super::state::Gateway;
use crate::config::ConfigState;

/// A database that does not answer must not keep `/readyz` from saying so.
const LOOK: Duration = Duration::from_secs(1);
/// Rows that do not read back, which a message names.
const NAMED: usize = 5;

/// 200 while the process lives.
pub(super) async fn healthz() -> &'static str {
    "ok\n"
}

/// 200 `ready` or `degraded`, 503 `not_ready`: only a failing ledger or draining stops us from accepting.
pub(super) async fn readyz(State(gateway): State<Gateway>) -> Response {
    let (code, body) = report(&gateway).await;
    (code, Json(body)).into_response()
}

/// What `/readyz` says; the console shows the same.
pub(super) async fn report(gateway: &Gateway) -> (StatusCode, Value) {
    let now = gateway.clock.now();
    let parts = parts(gateway, now).await;
    let failed = |name: &str| parts.iter().any(|part| part["name"] == name && part["status"] == "failed");
    let (code, status) = if gateway.is_draining() || failed("ledger") {
        (StatusCode::SERVICE_UNAVAILABLE, "not_ready")
    } else if parts.iter().any(|part| part["status"] == "degraded" || part["status"] == "failed") {
        (StatusCode::OK, "degraded")
    } else {
        (StatusCode::OK, "ready")
    };
    (
        code,
        json!({ "status": status, "version": env!("CARGO_PKG_VERSION"), "roles": gateway.roles.names(), "parts": parts }),
    )
}

async fn parts(gateway: &Gateway, now: Millis) -> Vec<Value> {
    let part = |name: &str, status, message: Option<String>| gateway.since().part(name, status, message, now);
    let ledger = match gateway.ledger.ping().await {
        Ok(()) => {
            ledger_works();
            match damage(&gateway.ledger.damage()) {
                None => part("ledger", "ok", None),
                damage => part("ledger", "degraded", damage),
            }
        }
        // The text of a store error holds no URL and no secret; see its definition.
        Err(error) => part("ledger", "failed", Some(error.to_string())),
    };
    let mut lark = refusals(gateway, ChannelKind::Lark).await;
    if gateway.lark_unsigned {
        lark.push("events come unsigned: set channels.lark.encrypt_key".to_owned());
    }
    let slack = refusals(gateway, ChannelKind::Slack).await;
    let live = gateway.settings.current();
    let channel = |kind: ChannelKind, problems: Vec<String>| {
        let name = format!("channel.{}", kind.as_str());
        if !live.is_enabled(kind) {
            return part(&name, "disabled", None);
        }
        let (sockets, said) = sockets(gateway, kind);
        let status = if sockets == "ok" && !problems.is_empty() {
            "degraded"
        } else {
            sockets
        };
        let said: Vec<String> = said.into_iter().chain(problems).collect();
        part(&name, status, (!said.is_empty()).then(|| said.join("; ")))
    };
    let lark = channel(ChannelKind::Lark, lark);
    let slack = channel(ChannelKind::Slack, slack);
    let model = match gateway.runner.model_health().last {
        None if !gateway.roles.workers => part("model", "ok", Some(String::from("called by processes with the role workers"))),
        None => part("model", "ok", Some(String::from("not called yet"))),
        Some((_, Ok(()))) => part("model", "ok", None),
        Some((_, Err(reason))) => part("model", "degraded", Some(reason)),
    };
    let config = config(&gateway.settings.state());
    let coordination = gateway.ledger.coordination();
    let mut parts = vec![
        ledger,
        part(
            "coordination",
            if coordination.degraded { "degraded" } else { "ok" },
            Some(coordination.message),
        ),
        lark,
        slack,
        model,
        part("config", config.0, config.1),
    ];
    let left_out = gateway.runner.tools_left_out();
    if !left_out.is_empty() {
        parts.push(part("tools", "degraded", Some(left_out.join("; "))));
    }
    parts.extend(gateway.runner.server_health().into_iter().map(|server| {
        let status = match server.standing {
            ServerStanding::Good => "ok",
            ServerStanding::Partly => "degraded",
            ServerStanding::Lost => "failed",
        };
        part(&format!("mcp.{}", server.name), status, server.message)
    }));
    parts
}

/// Rows that do not read back, the first few by name.
fn damage(rows: &[String]) -> Option<String> {
    let named = rows.iter().take(NAMED).cloned().collect::<Vec<_>>().join("; ");
    let rest = rows.len().saturating_sub(NAMED);
    let rest = if rest > 0 { format!("; and {rest} more") } else { String::new() };
    (!rows.is_empty()).then(|| format!("rows that do not read back are passed over: {named}{rest}"))
}

/// How the connections to a platform stand over which its events come, if they come so.
fn sockets(gateway: &Gateway, kind: ChannelKind) -> (&'static str, Option<String>) {
    if !gateway.channels.comes_over_sockets(kind) {
        return ("ok", None);
    }
    if !gateway.roles.webhooks {
        return ("ok", Some(String::from("events come to processes with the role webhooks")));
    }
    let (status, said) = gateway.socket_standings().report(kind);
    (status, Some(said))
}

/// An edit that is refused, and keys whose new value waits for a restart.
fn config(state: &ConfigState) -> (&'static str, Option<String>) {
    let refused = (!state.problems.is_empty()).then(|| format!("the newest edit is refused: {}", state.problems.join("; ")));
    let waiting = (!state.restart.is_empty()).then(|| format!("restart needed: {}", state.restart.join(", ")));
    let status = if refused.is_some() { "degraded" } else { "ok" };
    let told: Vec<String> = refused.into_iter().chain(waiting).collect();
    (status, (!told.is_empty()).then(|| told.join("; ")))
}

/// What is wrong between a platform and us: it does not tell who we are there, or takes none of our deliveries. A token that went bad shows
/// here, also when the bot's id is known from an earlier start.
async fn refusals(gateway: &Gateway, kind: ChannelKind) -> Vec<String> {
    let fact = async { gateway.ledger.read().await?.fact(&gateway.bot_fact(kind)).await };
    let refused = gateway.refused(kind);
    let named = tokio::time::timeout(LOOK, fact).await.ok().and_then(Result::ok).flatten().is_some();
    let mut problems = Vec::new();
    if let Some(why) = refused.deliveries() {
        let kind = kind.as_str();
        problems.push(format!(
            "it takes none of our deliveries: {why}; look the code up in docs/{kind}.md"
        ));
    }
    match &refused.identity {
        Some(why) if named => problems.push(why.clone()),
        why if !named => {
            let why = why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
            problems.push(format!("the bot's own id is not known yet; group messages wait{why}"));
        }
        _ => (),
    }
    problems
}
