//! `/api/v1`: authority, paging and the JSON bodies that its pages share.

pub(super) mod actions;
pub(super) mod messages;
pub(super) mod reviews;
pub(super) mod turns;
mod views;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::Response;
use secrecy::ExposeSecret;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use subtle::ConstantTimeEq;

use super::error::ApiError;
use super::state::Gateway;
use super::webhooks::{read_body, require_json};
use crate::store::{ListQuery, Page};

/// With `channels.console.token` set, every path wants it. Without, the server listens on loopback only, and
/// a page of another site that had its name point here is told apart by the Host header.
pub(super) async fn auth(State(gateway): State<Gateway>, request: Request, next: Next) -> Result<Response, ApiError> {
    if !gateway.settings.current().console.enabled {
        return Err(ApiError::not_found("the console channel is not enabled (channels.console.enabled)"));
    }
    match &gateway.console_token {
        Some(token) => {
            let given = request
                .headers()
                .get(header::AUTHORIZATION)
                .map(header::HeaderValue::as_bytes)
                .unwrap_or_default();
            let given = given.strip_prefix(b"Bearer ").unwrap_or_default();
            if !bool::from(given.ct_eq(token.expose_secret().as_bytes())) {
                return Err(ApiError::unauthorized("send Authorization: Bearer with channels.console.token"));
            }
        }
        None if !local_host(request.headers()) => {
            return Err(ApiError::forbidden("without channels.console.token the Host must be localhost"));
        }
        None => (),
    }
    Ok(next.run(request).await)
}

fn local_host(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(header::HOST).and_then(|host| host.to_str().ok()) else {
        return false;
    };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    matches!(name, "localhost" | "127.0.0.1" | "[::1]")
}

/// Query of a list.
#[derive(Debug, Default, Deserialize)]
pub(super) struct ListParams {
    status: Option<String>,
    chat: Option<String>,
    user: Option<String>,
    turn: Option<String>,
    limit: Option<String>,
    cursor: Option<String>,
}

impl ListParams {
    /// `statuses` are the values that `?status=` may take.
    fn query(self, statuses: &[&str], default: Option<&str>) -> Result<ListQuery, ApiError> {
        let status = self.status.or_else(|| default.map(str::to_owned));
        if let Some(status) = &status
            && !statuses.contains(&status.as_str())
        {
            return Err(ApiError::bad_request(format!("status must be one of {}", statuses.join(", "))));
        }
        let limit = match self.limit.as_deref().map(str::parse::<i64>) {
            None => 50,
            Some(Ok(limit)) if (1..=200).contains(&limit) => limit,
            Some(_) => return Err(ApiError::bad_request("limit must be 1 to 200")),
        };
        Ok(ListQuery {
            status,
            chat: self.chat,
            user: self.user,
            turn: self.turn,
            limit,
            cursor: self.cursor,
        })
    }
}

/// Who decides, for the approval trail: the holder of the token, or whoever has this machine.
fn principal(gateway: &Gateway) -> String {
    String::from(if gateway.console_token.is_some() { "api_token" } else { "local" })
}

fn page<T>(page: Page<T>, view: impl Fn(T) -> Value) -> Value {
    json!({ "items": page.items.into_iter().map(view).collect::<Vec<_>>(), "next": page.next })
}

/// A JSON body: checked like a webhook's, then read into `T` with an error that names the member.
async fn body<T: DeserializeOwned>(gateway: &Gateway, headers: &HeaderMap, body: Body) -> Result<T, ApiError> {
    require_json(headers)?;
    let bytes = read_body(headers, body, gateway.max_body_bytes).await?;
    serde_json::from_slice::<T>(&bytes).map_err(|error| {
        let message = format!("the body does not fit: {error}");
        if error.is_data() {
            ApiError::invalid(message)
        } else {
            ApiError::bad_request(message)
        }
    })
}
