//! The console channel as a plain API: say something, read what was said.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{ApiLocale, body, views};
use crate::gateway::error::ApiError;
use crate::gateway::intake;
use crate::gateway::request::{NoParams, Params, cursor, limit, next};
use crate::gateway::state::Gateway;
use crate::store::ChatEntry;

/// `POST /messages` → 202 with the event id; the same id again is the same message.
pub(in crate::gateway) async fn send(
    State(gateway): State<Gateway>,
    Params(NoParams {}): Params<NoParams>,
    headers: HeaderMap,
    raw: Body,
) -> Result<(StatusCode, Json<Value>), ApiError> {
    if !gateway.settings.current().console.enabled {
        return Err(ApiError::not_found("the console channel is not enabled (channels.console.enabled)"));
    }
    let event_id = intake::console(&gateway, body(&gateway, &headers, raw).await?).await?;
    Ok((StatusCode::ACCEPTED, Json(json!({ "event_id": event_id }))))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::gateway) struct SaidParams {
    chat: Option<String>,
    limit: Option<String>,
    cursor: Option<String>,
}

/// `GET /messages?chat=`, newest first.
pub(in crate::gateway) async fn list(
    State(gateway): State<Gateway>,
    ApiLocale(locale): ApiLocale,
    Params(params): Params<SaidParams>,
) -> Result<Json<Value>, ApiError> {
    let chat = params
        .chat
        .filter(|chat| !chat.is_empty())
        .ok_or_else(|| ApiError::bad_request("name the chat: ?chat=ID"))?;
    let limit = limit(params.limit.as_deref(), 50)?;
    let cursor = cursor(params.cursor.as_deref())?;
    let said = gateway.ledger.read().await?.chat_entries(&chat, limit, cursor.as_ref()).await?;
    let items: Vec<Value> = said
        .items
        .into_iter()
        .filter_map(|said| match said {
            ChatEntry::User(row) => views::said_by_user(&row),
            ChatEntry::Bot {
                key, thread, content, at, ..
            } => {
                let words = views::BotWords {
                    key: &key,
                    thread: &thread,
                    content: &content,
                    at,
                };
                Some(views::said_by_bot(&gateway.templates, locale, &chat, &words))
            }
        })
        .collect();
    Ok(Json(json!({ "items": items, "next": next(said.next.as_ref()) })))
}
