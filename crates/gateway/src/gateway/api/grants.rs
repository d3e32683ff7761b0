//! Standing grants: what people allowed in chats from cards, and taking it back.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use countersign_agent::domain::{Millis, StandingGrant};
use serde::Deserialize;
use serde_json::{Value, json};

use super::page;
use crate::gateway::error::ApiError;
use crate::gateway::request::{Id, NoParams, Params, cursor, limit, principal};
use crate::gateway::state::Gateway;
use crate::store::ListQuery;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::gateway) struct GrantParams {
    chat: Option<String>,
    limit: Option<String>,
    cursor: Option<String>,
}

/// `GET /grants`, those that ended among them.
pub(in crate::gateway) async fn list(State(gateway): State<Gateway>, Params(params): Params<GrantParams>) -> Result<Json<Value>, ApiError> {
    let query = ListQuery {
        chat: params.chat,
        limit: limit(params.limit.as_deref(), 50)?,
        cursor: cursor(params.cursor.as_deref())?,
        ..ListQuery::default()
    };
    let grants = gateway.ledger.read().await?.list_standing_grants(&query).await?;
    Ok(Json(page(grants, |grant| view(&grant))))
}

/// `DELETE /grants/{id}`: it does not hold any more. Said again it changes nothing.
pub(in crate::gateway) async fn revoke(
    State(gateway): State<Gateway>,
    Id(id): Id,
    Params(NoParams {}): Params<NoParams>,
) -> Result<StatusCode, ApiError> {
    gateway.conversations.revoke_standing_grant(&id, &principal(&gateway)).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn view(grant: &StandingGrant) -> Value {
    json!({
        "id": grant.id,
        "channel": grant.place.channel,
        "chat_id": grant.place.chat,
        "number": grant.number,
        "tool": grant.tool,
        "arguments": grant.arguments,
        "by": grant.by,
        "created_at": grant.created_at.rfc3339(),
        "expires_at": grant.expires_at.rfc3339(),
        "revoked_at": grant.revoked_at.map(Millis::rfc3339),
        "used": grant.used,
    })
}
