//! The console channel as a plain API: say something, read what was said.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use countersign_agent::domain::{ChannelKind, ChatType, Conversation, Inbound, InboundBody, InboundMessage, console_person};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{ApiLocale, MAX_TEXT, NoParams, Params, body, check_id, cursor, limit, next, views};
use crate::gateway::error::ApiError;
use crate::gateway::state::Gateway;
use crate::store::ChatEntry;

#[derive(Debug, Deserialize)]
pub(in crate::gateway) struct NewMessage {
    chat_id: String,
    user_id: String,
    text: String,
    thread_id: Option<String>,
    event_id: Option<String>,
}

impl NewMessage {
    /// Somebody says something, outside any thread. `event_id`: the same id again is the same message.
    pub(in crate::gateway) fn new(chat: &str, user: &str, text: &str, event_id: Option<String>) -> Self {
        Self {
            chat_id: chat.to_owned(),
            user_id: user.to_owned(),
            text: text.to_owned(),
            thread_id: None,
            event_id,
        }
    }
}

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
    let event_id = accept(&gateway, body(&gateway, &headers, raw).await?).await?;
    Ok((StatusCode::ACCEPTED, Json(json!({ "event_id": event_id }))))
}

/// Takes a message to a console chat; gives its event id.
pub(in crate::gateway) async fn accept(gateway: &Gateway, message: NewMessage) -> Result<String, ApiError> {
    let NewMessage {
        chat_id,
        user_id,
        text,
        thread_id,
        event_id,
    } = message;
    check_id("chat_id", &chat_id)?;
    check_id("user_id", &user_id)?;
    if let Some(thread) = thread_id.as_deref().filter(|thread| !thread.is_empty()) {
        check_id("thread_id", thread)?;
    }
    let event_id = match event_id {
        Some(given) => {
            check_id("event_id", &given)?;
            given
        }
        None => format!("cev_{}", gateway.ids.token()),
    };
    if text.is_empty() || text.chars().count() > MAX_TEXT {
        return Err(ApiError::invalid(format!("text must have 1 to {MAX_TEXT} characters")));
    }
    let inbound = Inbound {
        event_key: event_id.clone(),
        message_key: None,
        conversation: Conversation {
            channel: ChannelKind::Console,
            app: String::from("console"),
            tenant: String::new(),
            chat: chat_id,
            thread: thread_id.unwrap_or_default(),
        },
        sender: console_person(&user_id),
        sender_teams: Vec::new(),
        at: gateway.clock.now(),
        body: InboundBody::Message(InboundMessage {
            message_id: Some(format!("msg_{event_id}")),
            chat_type: ChatType::Direct,
            text,
            mentions: Vec::new(),
            mentions_all: false,
            to_bot: false,
            replies_to: Vec::new(),
            attachment_only: false,
            truncated: false,
            files: Vec::new(),
            quoted: Vec::new(),
            files_follow: false,
        }),
    };
    gateway.ledger.accept(&inbound).await?;
    Ok(event_id)
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
