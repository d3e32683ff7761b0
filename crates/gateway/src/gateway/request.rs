//! What requests of the API and of the console have in common: ids, queries, pages of a list, and who asks.

use axum::extract::{FromRequestParts, Path, Query};
use axum::http::request::Parts;
use countersign_agent::domain::visible;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::error::ApiError;
use super::state::Gateway;
use crate::store::Cursor;

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
pub(super) fn limit(text: Option<&str>, default: i64) -> Result<i64, ApiError> {
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

pub(super) fn next(cursor: Option<&Cursor>) -> Option<String> {
    cursor.map(ToString::to_string)
}

/// Longest text of a message or a decision, in characters.
pub(super) const MAX_TEXT: usize = 16_384;
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

/// The principal in the approval trail: the token, or (without one) this machine.
pub(super) fn principal(gateway: &Gateway) -> String {
    String::from(if gateway.console_token.is_some() { "api_token" } else { "local" })
}
