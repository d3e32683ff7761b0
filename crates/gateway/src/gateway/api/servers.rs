//! Tools of MCP servers that wait for an admin: what they are, and confirming them.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use countersign_agent::domain::{Definition, Definitions, ServerHealth, ServerStanding, ToolSpec, confirmation_of};
use serde::Deserialize;
use serde_json::{Value, json};

use super::body;
use crate::gateway::error::ApiError;
use crate::gateway::request::{Id, NoParams, Params, principal};
use crate::gateway::state::Gateway;

/// `GET /mcp`: every configured server, its tools, and what of it waits.
pub(in crate::gateway) async fn list(
    State(gateway): State<Gateway>,
    Params(NoParams {}): Params<NoParams>,
) -> Result<Json<Value>, ApiError> {
    let offered = gateway.runner.server_tools();
    let mut items = Vec::new();
    for health in gateway.runner.server_health() {
        let waiting = gateway.ledger.read().await?.waiting_tools(&health.name).await?;
        let confirmed = gateway
            .ledger
            .read()
            .await?
            .confirmed_tools(&health.name)
            .await?
            .unwrap_or_default();
        items.push(view(&health, &offered, &waiting, |name| confirmed.contains_key(name)));
    }
    Ok(Json(json!({ "items": items, "next": null })))
}

#[derive(Debug, Deserialize)]
pub(in crate::gateway) struct Confirmation {
    confirmation: String,
}

/// `POST /mcp/{server}/confirm`: exactly what was listed under this confirmation may be used from now on.
pub(in crate::gateway) async fn confirm(
    State(gateway): State<Gateway>,
    Id(server): Id,
    Params(NoParams {}): Params<NoParams>,
    headers: HeaderMap,
    raw: Body,
) -> Result<Json<Value>, ApiError> {
    let Confirmation { confirmation } = body(&gateway, &headers, raw).await?;
    if !gateway.runner.server_health().iter().any(|known| known.name == server) {
        return Err(ApiError::not_found("there is no MCP server of this name in tools.mcp_servers"));
    }
    let mut tx = gateway.ledger.begin().await?;
    let confirmed = tx.confirm_tools(&server, &confirmation, &principal(&gateway)).await?;
    tx.commit().await?;
    match confirmed {
        Some(tools) => Ok(Json(json!({ "server": server, "confirmed": tools }))),
        None => Err(ApiError::conflict(
            "something else waits for confirmation now, or nothing: look at GET /api/v1/mcp again",
        )),
    }
}

fn view(health: &ServerHealth, offered: &[ToolSpec], waiting: &Definitions, known: impl Fn(&str) -> bool) -> Value {
    let own = |tool: &ToolSpec| {
        let name = tool.name.strip_prefix(&health.name)?.strip_prefix("__")?;
        Some(json!({ "name": name, "description": tool.description, "effect": tool.effect, "digest": tool.digest() }))
    };
    let tool = |(name, tool): (&String, &Definition)| {
        json!({
            "name": name,
            "change": if known(name) { "changed" } else { "new" },
            "description": tool.description,
            "parameters": tool.parameters,
            "effect": tool.effect,
        })
    };
    json!({
        "server": health.name,
        "status": match health.standing {
            ServerStanding::Good => "ok",
            ServerStanding::Partly => "degraded",
            ServerStanding::Lost => "failed",
        },
        "message": health.message,
        "tools": offered.iter().filter_map(own).collect::<Vec<_>>(),
        "waiting": waiting.iter().map(tool).collect::<Vec<_>>(),
        "confirmation": (!waiting.is_empty()).then(|| confirmation_of(waiting)),
    })
}
