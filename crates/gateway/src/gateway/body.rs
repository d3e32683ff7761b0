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

/// The most bytes that all bodies in flight hold together, with the headers of their requests.
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

/// The memory of bodies in flight. Each takes all of its room before a byte of it is read. When there is none, the bodies that have been
/// arriving longest are pushed out: slow bodies, which anybody may send before a signature can be checked, only push out each other.
#[derive(Clone, Debug, Default)]
pub(super) struct BodyRoom(Arc<Mutex<Shares>>);

#[derive(Debug, Default)]
struct Shares {
    /// By those that arrive, and by those that have arrived.
    taken: usize,
    last: u64,
    /// Those that are still arriving, the oldest first.
    arriving: BTreeMap<u64, Arriving>,
}

/// What has come of a body. It is kept here, so that its memory is free at once when it is pushed out.
#[derive(Debug)]
struct Arriving {
    bytes: Vec<u8>,
    /// Most bytes that it may have.
    most: usize,
    /// What it takes of the room.
    takes: usize,
    given_up: CancellationToken,
}

impl Shares {
    /// Frees `takes` bytes of the room. Gives `false`, and pushes nobody out, when there is no room even without all that are arriving.
    fn make_room(&mut self, takes: usize) -> bool {
        let held: usize = self.arriving.values().map(|one| one.takes).sum();
        if self.taken - held + takes > ROOM {
            return false;
        }
        while self.taken + takes > ROOM {
            let Some((_, oldest)) = self.arriving.pop_first() else { break };
            self.taken -= oldest.takes;
            oldest.given_up.cancel();
        }
        true
    }
}

/// What one body takes; it is given back with the body.
#[derive(Debug)]
struct Share {
    room: BodyRoom,
    number: u64,
    /// Once the body has arrived.
    takes: usize,
    given_up: CancellationToken,
}

impl BodyRoom {
    fn shares(&self) -> MutexGuard<'_, Shares> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A body of at most `most` bytes begins to arrive, with `beside` bytes of headers.
    fn enter(&self, most: usize, beside: usize) -> Result<Share, ApiError> {
        let takes = most + beside;
        let given_up = CancellationToken::new();
        let mut shares = self.shares();
        if !shares.make_room(takes) {
            return Err(ApiError::unavailable());
        }
        shares.last += 1;
        let number = shares.last;
        let arriving = Arriving {
            bytes: Vec::with_capacity(most),
            most,
            takes,
            given_up: given_up.clone(),
        };
        shares.taken += takes;
        shares.arriving.insert(number, arriving);
        drop(shares);
        Ok(Share {
            room: self.clone(),
            number,
            takes: 0,
            given_up,
        })
    }
}

impl Share {
    /// The next piece of the body.
    fn take(&self, piece: &[u8]) -> Result<(), ApiError> {
        let mut shares = self.room.shares();
        let own = shares.arriving.get_mut(&self.number).ok_or_else(ApiError::unavailable)?;
        if own.bytes.len() + piece.len() > own.most {
            return Err(ApiError::bad_request("the body is longer than it was told to be"));
        }
        own.bytes.extend_from_slice(piece);
        Ok(())
    }

    /// The body has arrived: nobody takes its room any more.
    fn arrive(&mut self) -> Result<Vec<u8>, ApiError> {
        let own = self.room.shares().arriving.remove(&self.number);
        let Arriving { bytes, takes, .. } = own.ok_or_else(ApiError::unavailable)?;
        self.takes = takes;
        Ok(bytes)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut shares = self.room.shares();
        let arriving = shares.arriving.remove(&self.number).map_or(0, |own| own.takes);
        shares.taken -= arriving + self.takes;
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

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    /// interface §10: a body takes all of its room before it is read. The oldest of those that arrive makes room, its memory is free at once,
    /// and what has arrived stays.
    #[test]
    fn room_is_taken_before_a_body_is_read() {
        let room = BodyRoom::default();
        let mut first = room.enter(MIB, 0).unwrap();
        let others: Vec<Share> = (1..64).map(|_| room.enter(MIB, 0).unwrap()).collect();
        assert_eq!(room.shares().taken, ROOM);
        assert_eq!(first.arrive().unwrap().capacity(), MIB);
        let newest = room.enter(10, 0).unwrap();
        assert!(others[0].given_up.is_cancelled() && !others[1].given_up.is_cancelled());
        assert_eq!(others[0].take(b"x").unwrap_err().status(), 503);
        others[1].take(b"x").unwrap();
        assert_eq!(room.shares().taken, 63 * MIB + 10);
        // Headers count; and what cannot fit beside those that have arrived pushes nobody out.
        assert_eq!(room.enter(62 * MIB, MIB + 1).unwrap_err().status(), 503);
        assert!(!others[1].given_up.is_cancelled());
        newest.take(&[0; 10]).unwrap();
        assert_eq!(newest.take(b"x").unwrap_err().status(), 400, "longer than it was told to be");
        drop((first, others, newest));
        let shares = room.shares();
        assert_eq!((shares.taken, shares.arriving.len()), (0, 0));
    }
}
