//! `/api/v1`: authority, paging and the JSON bodies that its pages share.

pub(super) mod actions;
pub(super) mod feedback;
pub(super) mod grants;
pub(super) mod messages;
pub(super) mod queue;
pub(super) mod reviews;
pub(super) mod servers;
pub(super) mod socket;
pub(super) mod turns;
mod views;

use axum::body::Body;
use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::Response;
use countersign_agent::domain::Locale;
use secrecy::ExposeSecret;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use subtle::ConstantTimeEq;

pub(super) use self::socket::Sockets;

use super::body::{read_body, require_json};
use super::error::ApiError;
use super::language::accepted_locale;
use super::origin::{foreign_origin, local_host};
use super::request::{cursor, limit, next};
use super::state::Gateway;
use crate::store::{ListQuery, Page};

/// With `channels.console.token` set, every path wants it. Without, the server listens on loopback only, and
/// a page of another site that had its name point here is told apart by the Host header. What a page of another site
/// sends is refused in any case.
pub(super) async fn auth(State(gateway): State<Gateway>, request: Request, next: Next) -> Result<Response, ApiError> {
    match &gateway.console_token {
        Some(token) => {
            let given = given_token(request.headers());
            if !bool::from(given.ct_eq(token.expose_secret().as_bytes())) {
                gateway.note_wrong_token("api");
                return Err(ApiError::unauthorized("send Authorization: Bearer with channels.console.token"));
            }
        }
        None if !local_host(request.headers()) => {
            return Err(ApiError::forbidden("without channels.console.token the Host must be localhost"));
        }
        None => (),
    }
    if request.method() != Method::GET && request.method() != Method::HEAD && foreign_origin(request.headers()) {
        return Err(ApiError::forbidden("a page of another site may not do this"));
    }
    Ok(next.run(request).await)
}

/// The token of a request. Browsers cannot give a WebSocket a header: there it is the second of two subprotocols.
fn given_token(headers: &HeaderMap) -> &[u8] {
    if let Some(given) = headers.get(header::AUTHORIZATION) {
        // The scheme's name is case-insensitive (RFC 9110, 11.1).
        let (scheme, given) = given.as_bytes().split_at_checked(7).unwrap_or_default();
        return if scheme.eq_ignore_ascii_case(b"bearer ") { given } else { b"" };
    }
    let offered = headers
        .get(header::SEC_WEBSOCKET_PROTOCOL)
        .map(HeaderValue::as_bytes)
        .unwrap_or_default();
    let mut offered = offered.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    match (offered.next(), offered.next(), offered.next()) {
        (Some(socket::PROTOCOL), Some(token), None) => token,
        _ => b"",
    }
}

/// `?status=` of every row.
const ALL: &str = "all";

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListParams {
    status: Option<String>,
    chat: Option<String>,
    user: Option<String>,
    turn: Option<String>,
    limit: Option<String>,
    cursor: Option<String>,
}

/// The language of our words in the API. They are for programs: what a channel is set to is for its people.
pub(super) struct ApiLocale(pub(super) Locale);

impl<S: Send + Sync> FromRequestParts<S> for ApiLocale {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        Ok(Self(accepted_locale(&parts.headers).unwrap_or(Locale::EnUs)))
    }
}

impl ListParams {
    /// `statuses` are the values that `?status=` may take, beside `all`.
    fn query(self, statuses: &[&str], default: Option<&str>) -> Result<ListQuery, ApiError> {
        let status = self.status.or_else(|| default.map(str::to_owned)).filter(|status| status != ALL);
        if let Some(status) = &status
            && !statuses.contains(&status.as_str())
        {
            return Err(ApiError::bad_request(format!(
                "status must be {ALL} or one of {}",
                statuses.join(", ")
            )));
        }
        let limit = limit(self.limit.as_deref(), 50)?;
        let cursor = cursor(self.cursor.as_deref())?;
        Ok(ListQuery {
            status,
            chat: self.chat,
            user: self.user,
            turn: self.turn,
            limit,
            cursor,
            ..ListQuery::default()
        })
    }
}

fn page<T>(page: Page<T>, view: impl Fn(T) -> Value) -> Value {
    json!({ "items": page.items.into_iter().map(view).collect::<Vec<_>>(), "next": next(page.next.as_ref()) })
}

/// A JSON body: checked like a webhook's, then read into `T` with an error that names the member.
async fn body<T: DeserializeOwned>(gateway: &Gateway, headers: &HeaderMap, body: Body) -> Result<T, ApiError> {
    require_json(headers)?;
    let bytes = read_body(gateway, headers, body.into_data_stream()).await?;
    // A derived struct would take an array too, member by member.
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return Err(ApiError::bad_request("the body must be a JSON object"));
    }
    serde_json::from_slice::<T>(&bytes).map_err(|error| {
        let message = format!("the body does not fit: {error}");
        if error.is_data() {
            ApiError::invalid(message)
        } else {
            ApiError::bad_request(message)
        }
    })
}
