//! `/console/grants`: what people allowed in chats for longer than once, and taking it back.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{Html, IntoResponse, Response};
use countersign_agent::domain::StandingGrant;
use serde_json::{Value, json};

use super::form::BrowserForm;
use super::locale::PageLocale;
use super::people::person;
use super::redirect::see;
use super::scene::{head, merge};
use crate::gateway::error::ApiError;
use crate::gateway::request::principal;
use crate::gateway::state::Gateway;
use crate::store::ListQuery;

/// The most that the page shows: the newest.
const SHOWN: i64 = 200;

/// `GET /console/grants`.
pub(super) async fn show(State(gateway): State<Gateway>, language: PageLocale) -> Result<Response, ApiError> {
    let query = ListQuery {
        limit: SHOWN,
        ..ListQuery::default()
    };
    let page = gateway.ledger.read().await?.list_standing_grants(&query).await?;
    let now = gateway.clock.now();
    let view = |grant: &StandingGrant| {
        json!({
            "id": grant.id,
            "number": grant.number,
            "channel": gateway.templates.say(language.locale, &format!("console.channel.{}", grant.place.channel.as_str()), json!({})),
            "chat": grant.place.chat,
            "call": grant.told(),
            "by": person(&gateway.templates, language.locale, &grant.by).name,
            "until": grant.expires_at.rfc3339(),
            "used": grant.used,
            "holds": grant.holds(now),
        })
    };
    let mut values = head(&gateway, language, "/console/grants");
    let more = json!({
        "off": !gateway.settings.current().agent.standing_grants,
        "grants": page.items.iter().map(view).collect::<Vec<Value>>(),
        "more": page.next.is_some(),
    });
    merge(&mut values, more);
    Ok((StatusCode::OK, Html(gateway.templates.page("grants.html", values))).into_response())
}

/// `POST /console/grants`: takes the named one back.
pub(super) async fn revoke(State(gateway): State<Gateway>, headers: HeaderMap, body: Body) -> Result<Response, ApiError> {
    let form = BrowserForm::read(&gateway, &headers, body).await?;
    let id = form.get("grant");
    gateway.conversations.revoke_standing_grant(id, &principal(&gateway)).await?;
    Ok(see("/console/grants", StatusCode::SEE_OTHER))
}
