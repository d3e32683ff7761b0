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
use axum::extract::{FromRequestParts, Path, Query, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::Response;
use countersign_agent::domain::{Locale, visible};
use secrecy::ExposeSecret;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use subtle::ConstantTimeEq;

pub(super) use self::socket::Sockets;

use super::body::{read_body, require_json};
use super::console::{accepted_locale, foreign_origin, local_host};
use super::error::ApiError;
use super::state::Gateway;
use crate::store::{Cursor, ListQuery, Page};

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

/// The id in a path. One that is no UTF-8, or holds what is in no id, names nothing.
pub(super) struct Id(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        match path {
            Ok(Path(id)) if !id.chars().any(char::is_control) => Ok(Self(id)),
            Ok(_) | Err(_) => Err(ApiError::not_found("there is nothing at this path")),
        }
    }
}

/// The query of a request: parameters that it has, each at most once. An unknown filter is refused: its sender would believe that it holds.
pub(super) struct Params<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let query = Query::<T>::try_from_uri(&parts.uri);
        query.map(|Query(params)| Self(params)).map_err(|refusal| {
            let why = refusal.body_text();
            let why = why.rsplit_once("query string: ").map_or(why.as_str(), |(_, why)| why);
            let why: String = why.chars().take(MAX_REASON).collect();
            ApiError::bad_request(format!("the query cannot be read: {why}; each parameter may be given once"))
        })
    }
}

/// Characters of the reason why a query is refused; names that somebody else made up are in it.
const MAX_REASON: usize = 300;

/// The query of a list without filters.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NoParams {}

/// `?limit=`, 1 to 200.
fn limit(text: Option<&str>, default: i64) -> Result<i64, ApiError> {
    match text.map(str::parse::<i64>) {
        None => Ok(default),
        Some(Ok(limit)) if (1..=200).contains(&limit) => Ok(limit),
        Some(_) => Err(ApiError::bad_request("limit must be 1 to 200")),
    }
}

/// `?cursor=`, the `next` of an earlier page.
pub(super) fn cursor(text: Option<&str>) -> Result<Option<Cursor>, ApiError> {
    let cursor = text.map(str::parse::<Cursor>).transpose();
    cursor.map_err(|_| ApiError::bad_request("cursor must be the next of an earlier page"))
}

/// Longest text of a message or a decision, in characters.
const MAX_TEXT: usize = 16_384;
/// Longest id, in bytes.
const MAX_ID: usize = 256;

/// Can `value` be an id that somebody else gave?
pub(super) fn check_id(name: &str, value: &str) -> Result<(), ApiError> {
    let blank = value.trim().is_empty();
    if blank || value.len() > MAX_ID || value.chars().any(char::is_control) || visible(value) != value {
        return Err(ApiError::invalid(format!(
            "{name} must have 1 to {MAX_ID} bytes and no control or invisible characters"
        )));
    }
    Ok(())
}

/// Is `value` short enough to be read?
pub(super) fn check_text(name: &str, value: Option<&str>) -> Result<(), ApiError> {
    if value.is_some_and(|text| text.chars().count() > MAX_TEXT) {
        return Err(ApiError::invalid(format!("{name} must have at most {MAX_TEXT} characters")));
    }
    Ok(())
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

/// The principal in the approval trail: the token, or (without one) this machine.
pub(super) fn principal(gateway: &Gateway) -> String {
    String::from(if gateway.console_token.is_some() { "api_token" } else { "local" })
}

pub(super) fn next(cursor: Option<&Cursor>) -> Option<String> {
    cursor.map(ToString::to_string)
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
