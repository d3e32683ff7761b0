//! Bodies of requests: how long they may be, how long they may take, and how much all of them may hold together.

mod room;

use std::ops::Deref;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{HeaderMap, header};
use futures_util::{Stream, StreamExt};

pub(super) use room::BodyRoom;

use room::{Buffer, Share};

use super::error::ApiError;
use super::state::Gateway;
use crate::channels::EventRefusal;

/// A body that arrives slower than this is not from a platform.
const BODY_TIME: Duration = Duration::from_secs(10);

/// A body that was read, with its share of [`BodyRoom`].
#[derive(Debug)]
pub(super) struct RequestBody {
    bytes: Buffer,
    _share: Share,
}

impl Deref for RequestBody {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.bytes.as_slice()
    }
}

/// How long a webhook's body may be.
#[derive(Clone, Copy, Debug)]
struct BodyLimit {
    /// `server.max_body_bytes`.
    most: usize,
    /// Without signature headers nothing longer can be a request of the platform.
    unsigned: Option<usize>,
}

/// The body of a webhook. What is too long to be sent without a signature is refused like a wrong signature, before it is read.
pub(super) async fn read_push(
    gateway: &Gateway,
    headers: &HeaderMap,
    body: impl Stream<Item = Result<Bytes, axum::Error>> + Unpin,
    unsigned: Option<usize>,
) -> Result<Result<RequestBody, EventRefusal>, ApiError> {
    let most = gateway.max_body_bytes;
    let limit = BodyLimit { most, unsigned };
    match read_within(gateway, headers, body, limit).await {
        Ok(body) => Ok(Ok(body)),
        Err(BodyError::Unsigned) => Ok(Err(EventRefusal::Unauthorized("signature headers missing"))),
        Err(BodyError::Api(error)) => Err(error),
    }
}

/// The whole body, at most `server.max_body_bytes`, within [`BODY_TIME`].
pub(super) async fn read_body(
    gateway: &Gateway,
    headers: &HeaderMap,
    body: impl Stream<Item = Result<Bytes, axum::Error>> + Unpin,
) -> Result<RequestBody, ApiError> {
    let most = gateway.max_body_bytes;
    let limit = BodyLimit { most, unsigned: None };
    read_within(gateway, headers, body, limit).await.map_err(|error| match error {
        BodyError::Api(error) => error,
        BodyError::Unsigned => ApiError::too_large(most),
    })
}

/// Why a body was not read to its end.
enum BodyError {
    Api(ApiError),
    /// Longer than what may come without a signature.
    Unsigned,
}

impl From<ApiError> for BodyError {
    fn from(error: ApiError) -> Self {
        Self::Api(error)
    }
}

async fn read_within(
    gateway: &Gateway,
    headers: &HeaderMap,
    body: impl Stream<Item = Result<Bytes, axum::Error>> + Unpin,
    limit: BodyLimit,
) -> Result<RequestBody, BodyError> {
    let told = match headers.contains_key(header::TRANSFER_ENCODING) {
        true => None,
        false => Some(told_length(headers)),
    };
    let check = |length: u64| -> Result<(), BodyError> {
        if length > limit.most as u64 {
            return Err(ApiError::too_large(limit.most).into());
        }
        match limit.unsigned {
            Some(most) if length > most as u64 => Err(BodyError::Unsigned),
            Some(_) | None => Ok(()),
        }
    };
    check(told.unwrap_or(0))?;
    // Chunks tell no length: they take what they may have.
    let most = told.and_then(|told| usize::try_from(told).ok());
    let most = most.unwrap_or_else(|| limit.unsigned.unwrap_or(limit.most).min(limit.most));
    // The headers are kept while the body arrives.
    let beside = headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    let mut share = gateway.body_room().enter(most, beside)?;
    let given_up = share.given_up.clone();
    let whole = async {
        let (mut stream, mut length) = (body, 0);
        while let Some(chunk) = stream.next().await {
            let chunk = chunk.map_err(|_| ApiError::bad_request("the body broke off"))?;
            length += chunk.len() as u64;
            check(length)?;
            share.take(&chunk)?;
        }
        let bytes = share.arrive()?;
        Ok(RequestBody { bytes, _share: share })
    };
    tokio::select! {
        () = given_up.cancelled() => Err(ApiError::unavailable().into()),
        whole = tokio::time::timeout(BODY_TIME, whole) => whole.unwrap_or_else(|_| Err(ApiError::timeout().into())),
    }
}

/// What the request says of its body's length.
fn told_length(headers: &HeaderMap) -> u64 {
    let told = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    told.and_then(|length| length.parse().ok()).unwrap_or(0)
}

pub(super) const JSON: &str = "application/json";
pub(super) const FORM: &str = "application/x-www-form-urlencoded";

/// One JSON content type and no content encoding, before the body is read.
pub(super) fn require_json(headers: &HeaderMap) -> Result<(), ApiError> {
    require_type(headers, &[JSON])
}

/// One content type of these, in UTF-8, and no content encoding.
pub(super) fn require_type(headers: &HeaderMap, allowed: &[&str]) -> Result<(), ApiError> {
    if headers.contains_key(header::CONTENT_ENCODING) {
        return Err(ApiError::media_type("a content encoding is not accepted"));
    }
    let mut types = headers.get_all(header::CONTENT_TYPE).iter();
    let (Some(only), None) = (types.next(), types.next()) else {
        return Err(ApiError::media_type(format!(
            "send exactly one Content-Type: {}",
            allowed.join(" or ")
        )));
    };
    let text = only.to_str().unwrap_or("").to_ascii_lowercase();
    let mut parts = text.split(';').map(str::trim);
    let known = parts.next().is_some_and(|media| allowed.contains(&media));
    let utf8 = parts.all(|parameter| parameter.is_empty() || parameter == "charset=utf-8" || parameter == "charset=\"utf-8\"");
    if known && utf8 {
        Ok(())
    } else {
        Err(ApiError::media_type(format!(
            "send Content-Type: {} in UTF-8",
            allowed.join(" or ")
        )))
    }
}
