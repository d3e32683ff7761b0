//! Tasks that wait in a lane and have no turn yet.

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Value, json};

use super::views;
use crate::gateway::error::ApiError;
use crate::gateway::request::{Params, cursor, limit, next};
use crate::gateway::state::Gateway;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::gateway) struct QueueParams {
    chat: Option<String>,
    limit: Option<String>,
    cursor: Option<String>,
}

/// `GET /queue`, oldest first.
pub(in crate::gateway) async fn list(State(gateway): State<Gateway>, Params(params): Params<QueueParams>) -> Result<Json<Value>, ApiError> {
    let limit = limit(params.limit.as_deref(), 50)?;
    let cursor = cursor(params.cursor.as_deref())?;
    let mut read = gateway.ledger.read().await?;
    let rows = read.list_queue(params.chat.as_deref(), limit, cursor.as_ref()).await?;
    let mut items = Vec::new();
    for (row, position) in &rows.items {
        let asked = read.asked(row).await?;
        items.push(views::waiting(row, *position, &asked));
    }
    Ok(Json(json!({ "items": items, "next": next(rows.next.as_ref()) })))
}
