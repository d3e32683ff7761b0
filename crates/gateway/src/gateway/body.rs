//! Bodies of requests: how long they may be, how long they may take, and how much all of them may hold together.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{HeaderMap, header};
use futures_util::{Stream, StreamExt};
use tokio_util::sync::CancellationToken;

use super::error::ApiError;
use super::state::Gateway;
use crate::channels::Refusal;

/// A body that arrives slower than this is not from a platform.
const BODY_TIME: Duration = Duration::from_secs(10);

/// The most bytes that all bodies in flight hold together.
const ROOM: usize = 64 << 20;

/// A body that was read, with its share of [`BodyRoom`].
#[derive(Debug)]
pub(super) struct RequestBody {
    bytes: Vec<u8>,
    _share: Share,
}

impl Deref for RequestBody {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The memory of bodies in flight. When it is full, the body that has been arriving longest makes room for the next piece: slow
/// bodies, which anybody may send before a signature can be checked, only push out each other.
#[derive(Clone, Debug, Default)]
pub(super) struct BodyRoom(Arc<Mutex<Shares>>);

#[derive(Debug, Default)]
struct Shares {
    taken: usize,
    last: u64,
    /// Those that are still arriving, the oldest first.
    arriving: BTreeMap<u64, Arriving>,
}

#[derive(Debug)]
struct Arriving {
    bytes: usize,
    given_up: CancellationToken,
}

/// What one body holds; it is given back with the body.
#[derive(Debug)]
struct Share {
    room: BodyRoom,
    number: u64,
    /// Once the body has arrived.
    bytes: usize,
    given_up: CancellationToken,
}

impl BodyRoom {
    fn shares(&self) -> MutexGuard<'_, Shares> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A body begins to arrive.
    fn enter(&self) -> Share {
        let given_up = CancellationToken::new();
        let mut shares = self.shares();
        shares.last += 1;
        let number = shares.last;
        let arriving = Arriving {
            bytes: 0,
            given_up: given_up.clone(),
        };
        shares.arriving.insert(number, arriving);
        drop(shares);
        Share {
            room: self.clone(),
            number,
            bytes: 0,
            given_up,
        }
    }
}

impl Share {
    /// Takes room for `more` bytes, if need be from those that began to arrive earlier.
    fn grow(&self, more: usize) -> Result<(), ApiError> {
        let mut shares = self.room.shares();
        if !shares.arriving.contains_key(&self.number) {
            return Err(ApiError::unavailable());
        }
        while shares.taken + more > ROOM {
            let holds = shares.arriving.iter().find(|(_, arriving)| arriving.bytes > 0);
            // This one may be the oldest itself, or all others may have arrived.
            let Some(oldest) = holds.map(|(number, _)| *number).filter(|oldest| *oldest < self.number) else {
                return Err(ApiError::unavailable());
            };
            if let Some(oldest) = shares.arriving.remove(&oldest) {
                shares.taken -= oldest.bytes;
                oldest.given_up.cancel();
            }
        }
        let Some(own) = shares.arriving.get_mut(&self.number) else {
            return Err(ApiError::unavailable());
        };
        own.bytes += more;
        shares.taken += more;
        Ok(())
    }

    /// The body has arrived: nobody takes its room any more.
    fn arrive(&mut self) -> Result<(), ApiError> {
        let own = self.room.shares().arriving.remove(&self.number);
        self.bytes = own.ok_or_else(ApiError::unavailable)?.bytes;
        Ok(())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut shares = self.room.shares();
        let arriving = shares.arriving.remove(&self.number).map_or(0, |own| own.bytes);
        shares.taken -= arriving + self.bytes;
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
) -> Result<Result<RequestBody, Refusal>, ApiError> {
    let most = gateway.max_body_bytes;
    let limit = BodyLimit { most, unsigned };
    match read_within(gateway, headers, body, limit).await {
        Ok(body) => Ok(Ok(body)),
        Err(BodyError::Unsigned) => Ok(Err(Refusal::Unauthorized("signature headers missing"))),
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
    let told = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok())
        .and_then(|length| length.parse::<u64>().ok());
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
    let mut share = gateway.body_room().enter();
    let given_up = share.given_up.clone();
    let whole = async {
        let (mut stream, mut bytes) = (body, Vec::new());
        while let Some(chunk) = stream.next().await {
            let chunk = chunk.map_err(|_| ApiError::bad_request("the body broke off"))?;
            check((bytes.len() + chunk.len()) as u64)?;
            share.grow(chunk.len())?;
            bytes.extend_from_slice(&chunk);
        }
        share.arrive()?;
        Ok(RequestBody { bytes, _share: share })
    };
    tokio::select! {
        () = given_up.cancelled() => Err(ApiError::unavailable().into()),
        whole = tokio::time::timeout(BODY_TIME, whole) => whole.unwrap_or_else(|_| Err(ApiError::timeout().into())),
    }
}

/// Content type of JSON.
pub(super) const JSON: &str = "application/json";
/// Content type of a form.
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
