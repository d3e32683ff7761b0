//! `GET /console/tasks`: all tasks, newest first, page by page.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};

use super::locale::PageLocale;
use super::scene::{Scene, head, merge};
use super::tasks;
use crate::gateway::error::ApiError;
use crate::gateway::request::{Params, cursor, next};
use crate::gateway::state::Gateway;
use crate::store::ListQuery;

/// Tasks on a page.
const SHOWN: i64 = 30;

/// Which tasks; a blank filter is none.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Filters {
    #[serde(default)]
    status: String,
    #[serde(default)]
    chat: String,
    #[serde(default)]
    user: String,
    cursor: Option<String>,
}

pub(super) async fn show(
    State(gateway): State<Gateway>,
    language: PageLocale,
    Params(filters): Params<Filters>,
) -> Result<Response, ApiError> {
    let given = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
    let (status, chat, user) = (given(&filters.status), given(&filters.chat), given(&filters.user));
    let scene = Scene::new(&gateway, language, None, None)?;
    let query = ListQuery {
        status: status.clone(),
        chat: chat.clone(),
        user: user.clone(),
        limit: SHOWN,
        cursor: cursor(filters.cursor.as_deref())?,
        ..ListQuery::default()
    };
    let page = gateway.ledger.read().await?.list_turns(&query).await?;
    let turns: Vec<Value> = page.items.iter().map(|row| json!(tasks::task(&scene, row, &[], true))).collect();
    let mut address = form_urlencoded::Serializer::new(String::new());
    for (name, value) in [("status", &status), ("chat", &chat), ("user", &user)] {
        if let Some(value) = value {
            address.append_pair(name, value);
        }
    }
    let here = format!("/console/tasks?{}", address.finish());
    let older = next(page.next.as_ref()).map(|cursor| {
        let more = form_urlencoded::Serializer::new(String::new())
            .append_pair("cursor", &cursor)
            .finish();
        format!("{here}&{more}")
    });
    let mut values = scene.frame();
    merge(&mut values, head(&gateway, language, &here));
    merge(
        &mut values,
        json!({
            "turns": turns,
            "queued": [],
            "older": older,
            "filters": { "status": status, "chat": chat, "user": user },
        }),
    );
    Ok((StatusCode::OK, Html(gateway.templates.page("tasks.html", values))).into_response())
}
