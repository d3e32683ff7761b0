//! Bodies of requests: how long they may be, how long they may take, and how much all of them may hold together.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{HeaderMap, header};
use futures_util::{Stream, StreamExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::error::ApiError;
use super::state::Gateway;
use crate::channels::Refusal;

/// A body that arrives slower than this is not from a platform.
const BODY_TIME: Duration = Duration::from_secs(10);

/// A body that was read, with its share of [`BodyRoom`].
#[derive(Debug)]
pub(super) struct RequestBody {
    bytes: Vec<u8>,
    _room: Vec<OwnedSemaphorePermit>,
}

impl Deref for RequestBody {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The first part of a body: every event that is not unusually long.
const FIRST_PART: usize = 16 << 10;
/// Bytes of the first parts of all bodies.
const ROOM_FOR_FIRST_PARTS: usize = 32 << 20;
/// Bytes of what follows the first part, of all bodies.
const ROOM_FOR_REST: usize = 32 << 20;

/// What all bodies in flight may hold together: 64 MiB. Half of it is for the first parts, so that a few long bodies, which anybody may
/// send before the signature can be checked, take nothing from ordinary events.
#[derive(Debug)]
pub(super) struct BodyRoom {
    first_parts: Arc<Semaphore>,
    rest: Arc<Semaphore>,
}

impl Default for BodyRoom {
    fn default() -> Self {
        Self {
            first_parts: Arc::new(Semaphore::new(ROOM_FOR_FIRST_PARTS)),
            rest: Arc::new(Semaphore::new(ROOM_FOR_REST)),
        }
    }
}

impl BodyRoom {
    /// Takes room for `more` bytes after the `read` first ones of a body.
    fn take(&self, read: usize, more: usize, taken: &mut Vec<OwnedSemaphorePermit>) -> Result<(), ApiError> {
        let first = more.min(FIRST_PART.saturating_sub(read));
        for (room, bytes) in [(&self.first_parts, first), (&self.rest, more - first)] {
            if bytes > 0 {
                let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
                let permit = Arc::clone(room)
                    .try_acquire_many_owned(bytes)
                    .map_err(|_| ApiError::unavailable())?;
                match taken.iter_mut().find(|permit| Arc::ptr_eq(permit.semaphore(), room)) {
                    Some(before) => before.merge(permit),
                    None => taken.push(permit),
                }
            }
        }
        Ok(())
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
    let whole = async {
        let (mut stream, mut bytes, mut room) = (body, Vec::new(), Vec::new());
        while let Some(chunk) = stream.next().await {
            let chunk = chunk.map_err(|_| ApiError::bad_request("the body broke off"))?;
            check((bytes.len() + chunk.len()) as u64)?;
            gateway.body_room().take(bytes.len(), chunk.len(), &mut room)?;
            bytes.extend_from_slice(&chunk);
        }
        Ok(RequestBody { bytes, _room: room })
    };
    tokio::time::timeout(BODY_TIME, whole)
        .await
        .unwrap_or_else(|_| Err(ApiError::timeout().into()))
}
