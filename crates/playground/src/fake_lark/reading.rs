//! Reading back: what people said, and what they sent.

use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Shared;
use super::handlers::{begin, failure, finish};
use crate::stage::broken;

const BAD_LIST: i64 = 230_001;
const GONE: i64 = 230_011;
const NO_FILE: i64 = 234_003;

/// Query of a list of messages. No other parameter is known here.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListQuery {
    container_id_type: String,
    container_id: String,
    sort_type: String,
    page_size: usize,
    end_time: Option<i64>,
    page_token: Option<String>,
    #[serde(default)]
    with_sender_name: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MessageQuery {
    #[serde(default)]
    with_sender_name: bool,
}

/// `GET /im/v1/messages`: of a chat, what stands outside of threads; of a thread, all of it.
pub(super) async fn list(State(shared): State<Shared>, query: Result<Query<ListQuery>, QueryRejection>, headers: HeaderMap) -> Response {
    let lost = match begin(&shared, "said_before", &headers, &Value::Null).await {
        Ok(lost) => lost,
        Err(answer) => return answer,
    };
    let query = match query {
        Ok(Query(query)) if query.is_right() => query,
        other => {
            shared.stage.lock().violation(format!("list of messages: {other:?}"));
            return failure(BAD_LIST, "invalid request param");
        }
    };
    let thread = query.container_id_type == "thread";
    let memory = shared.stage.lock();
    let found = memory.heard.iter().filter(|heard| match thread {
        true => heard.thread.as_deref() == Some(&query.container_id),
        false => heard.chat == query.container_id && heard.thread.is_none(),
    });
    let until = query.end_time.map_or(i64::MAX, |seconds| seconds * 1000);
    let mut items: Vec<Value> = found
        .map(|heard| heard.message.clone())
        .filter(|item| created(item) <= until)
        .collect();
    drop(memory);
    // Of one millisecond, the later one is newer.
    items.reverse();
    items.sort_by_key(|item| std::cmp::Reverse(created(item)));
    let from: usize = query.page_token.as_deref().and_then(|token| token.parse().ok()).unwrap_or(0);
    let mut page: Vec<Value> = items.iter().skip(from).take(query.page_size).cloned().collect();
    let end = from + page.len();
    name_senders(&mut page, query.with_sender_name);
    finish(
        json!({ "has_more": end < items.len(), "page_token": end.to_string(), "items": page }),
        lost,
    )
}

impl ListQuery {
    fn is_right(&self) -> bool {
        let range = self.end_time.is_none() || self.container_id_type == "chat";
        range
            && ["chat", "thread"].contains(&self.container_id_type.as_str())
            && self.sort_type == "ByCreateTimeDesc"
            && (1..=50).contains(&self.page_size)
    }
}

/// Senders have names only where they are asked for.
fn name_senders(items: &mut [Value], wanted: bool) {
    let senders = items.iter_mut().filter_map(|item| item["sender"].as_object_mut());
    for sender in senders.filter(|_| !wanted) {
        sender.remove("sender_name");
    }
}

fn created(item: &Value) -> i64 {
    item["create_time"].as_str().and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

/// `GET /im/v1/messages/{id}`: the message, and what a forwarded bundle holds beside it.
pub(super) async fn message(
    State(shared): State<Shared>,
    Path(id): Path<String>,
    Query(query): Query<MessageQuery>,
    headers: HeaderMap,
) -> Response {
    let lost = match begin(&shared, "message", &headers, &json!({ "message": id })).await {
        Ok(lost) => lost,
        Err(answer) => return answer,
    };
    let memory = shared.stage.lock();
    let is_part = |item: &Value| item["message_id"] == id.as_str() || item["upper_message_id"].is_string();
    let mut items: Vec<Value> = memory.heard.iter().map(|heard| heard.message.clone()).filter(is_part).collect();
    name_senders(&mut items, query.with_sender_name);
    let ours = memory.posted(&id).map(|posted| {
        json!({
            "message_id": id, "msg_type": posted.kind, "create_time": posted.at.0.to_string(), "chat_id": posted.chat,
            "sender": { "id": &*shared.app_id, "id_type": "app_id", "sender_type": "app" },
            "body": { "content": posted.content.to_string() },
        })
    });
    drop(memory);
    let known = items.iter().any(|item| item["message_id"] == id.as_str());
    match ours {
        Some(ours) => finish(json!({ "items": [ours] }), lost),
        None if known => finish(json!({ "items": items }), lost),
        None => failure(GONE, "The message was not found."),
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct ResourceQuery {
    r#type: String,
}

/// `GET /im/v1/messages/{id}/resources/{key}`.
pub(super) async fn resource(
    State(shared): State<Shared>,
    Path((id, key)): Path<(String, String)>,
    Query(query): Query<ResourceQuery>,
    headers: HeaderMap,
) -> Response {
    match begin(&shared, "file", &headers, &json!({ "message": id, "file": key })).await {
        Ok(false) => (),
        Ok(true) => return broken(),
        Err(answer) => return answer,
    }
    if !["image", "file"].contains(&query.r#type.as_str()) {
        shared.stage.lock().violation(format!("a resource of type {}", query.r#type));
    }
    let file = shared.stage.lock().sent.get(&key).cloned();
    match file {
        Some(file) => ([(header::CONTENT_TYPE, file.media_type)], file.bytes).into_response(),
        None => failure(NO_FILE, "File not in msg."),
    }
}
