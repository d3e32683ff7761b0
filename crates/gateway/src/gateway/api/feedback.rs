//! What people think of answers.

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Value, json};

use super::page;
use crate::gateway::error::ApiError;
use crate::gateway::request::{Params, cursor, limit};
use crate::gateway::state::Gateway;
use crate::store::{FeedbackRow, ListQuery};

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::gateway) struct FeedbackParams {
    chat: Option<String>,
    user: Option<String>,
    turn: Option<String>,
    limit: Option<String>,
    cursor: Option<String>,
}

/// `GET /feedback`.
pub(in crate::gateway) async fn list(
    State(gateway): State<Gateway>,
    Params(params): Params<FeedbackParams>,
) -> Result<Json<Value>, ApiError> {
    let query = ListQuery {
        chat: params.chat,
        user: params.user,
        turn: params.turn,
        limit: limit(params.limit.as_deref(), 50)?,
        cursor: cursor(params.cursor.as_deref())?,
        ..ListQuery::default()
    };
    let rows = gateway.ledger.read().await?.list_feedback(&query).await?;
    Ok(Json(page(rows, |row| view(&row))))
}

fn view(row: &FeedbackRow) -> Value {
    json!({
        "id": row.id,
        "turn_id": row.turn_id,
        "chat_id": row.chat,
        "user_id": row.user,
        "value": row.value,
        // The buttons of neither platform come with words.
        "text": null,
        "at": row.at.rfc3339(),
    })
}
