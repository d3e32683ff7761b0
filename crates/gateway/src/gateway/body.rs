//! Bodies of requests: how long they may be, how long they may take, and how much all of them may hold together.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{HeaderMap, header};
use futures_util::{Stream, StreamExt};
use memmap2::MmapMut;
use tokio_util::sync::CancellationToken;

use super::error::ApiError;
use super::state::Gateway;
use crate::channels::Refusal;

/// A body that arrives slower than this is not from a platform.
const BODY_TIME: Duration = Duration::from_secs(10);

/// The most bytes that all bodies in flight hold together, with the headers of their requests and what each takes beside them.
const ROOM: usize = 64 << 20;
/// What the reading of a request takes beside its body and headers.
const BESIDE: usize = 16 << 10;

/// A longer body has a map of its own. There are few of them, for the system allows a process so many.
const MAPPED: usize = 32 << 10;

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

/// Where a body lies. What an allocator frees between the small things of many connections it often keeps; a map goes back to the system.
#[derive(Debug)]
enum Buffer {
    Heap(Vec<u8>),
    /// With the bytes that have come.
    Map(MmapMut, usize),
}

impl Buffer {
    /// For `most` bytes. `None`: the system gives no more memory.
    fn of(most: usize) -> Option<Self> {
        if most <= MAPPED {
            return Some(Self::Heap(Vec::with_capacity(most)));
        }
        MmapMut::map_anon(most).ok().map(|map| Self::Map(map, 0))
    }

    /// `None`, and nothing is taken, when it has no room for the piece.
    fn take(&mut self, piece: &[u8]) -> Option<()> {
        match self {
            Self::Heap(bytes) if bytes.len() + piece.len() <= bytes.capacity() => bytes.extend_from_slice(piece),
            Self::Heap(_) => return None,
            Self::Map(map, length) => {
                let end = *length + piece.len();
                map.get_mut(*length..end)?.copy_from_slice(piece);
                *length = end;
            }
        }
        Some(())
    }

    fn as_slice(&self) -> &[u8] {
        match self {
            Self::Heap(bytes) => bytes,
            Self::Map(map, length) => map.get(..*length).unwrap_or_default(),
        }
    }
}

/// The memory of bodies in flight. Each takes all of its room before a byte of it is read. When there is none, the largest that still arrives
/// makes room, and of equal ones the oldest. Anybody may send a body before a signature can be checked, so bodies without proof push out only
/// each other and what is at least as large: an event, which is small, is neither pushed out nor refused.
#[derive(Clone, Debug, Default)]
pub(super) struct BodyRoom(Arc<Mutex<Shares>>);

#[derive(Debug, Default)]
struct Shares {
    /// By those that arrive, and by those that have arrived.
    taken: usize,
    last: u64,
    /// Those that are still arriving, by their number.
    arriving: HashMap<u64, Arriving>,
}

/// What has come of a body. It is kept here, so that its memory is free at once when it is pushed out.
#[derive(Debug)]
struct Arriving {
    bytes: Buffer,
    /// What it takes of the room.
    takes: usize,
    given_up: CancellationToken,
}

impl Shares {
    /// Frees `takes` bytes of the room, if need be from a body that takes as much itself. Gives `false` when there is none.
    fn make_room(&mut self, takes: usize) -> bool {
        if self.taken + takes <= ROOM {
            return true;
        }
        // The numbers rise: of equal ones the least is the oldest.
        let largest = self.arriving.iter().max_by_key(|(number, one)| (one.takes, Reverse(**number)));
        let Some(number) = largest.filter(|(_, one)| one.takes >= takes).map(|(number, _)| *number) else {
            return false;
        };
        if let Some(largest) = self.arriving.remove(&number) {
            self.taken -= largest.takes;
            largest.given_up.cancel();
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
        let takes = most + beside + BESIDE;
        let bytes = Buffer::of(most).ok_or_else(ApiError::unavailable)?;
        let given_up = CancellationToken::new();
        let mut shares = self.shares();
        if !shares.make_room(takes) {
            return Err(ApiError::unavailable());
        }
        shares.last += 1;
        let number = shares.last;
        let arriving = Arriving {
            bytes,
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
    fn take(&self, piece: &[u8]) -> Result<(), ApiError> {
        let mut shares = self.room.shares();
        let own = shares.arriving.get_mut(&self.number).ok_or_else(ApiError::unavailable)?;
        let taken = own.bytes.take(piece);
        taken.ok_or_else(|| ApiError::bad_request("the body is longer than it was told to be"))
    }

    /// The body has arrived: nobody takes its room any more.
    fn arrive(&mut self) -> Result<Buffer, ApiError> {
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

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;
    /// The longest body of which there is room for 64.
    const LARGE: usize = MIB - BESIDE;

    /// interface §10: a body takes all of its room before it is read, headers included. Of equal ones the oldest makes room, its memory is free
    /// at once, and what has arrived stays.
    #[test]
    fn room_is_taken_before_a_body_is_read() {
        let room = BodyRoom::default();
        let mut first = room.enter(LARGE, 0).unwrap();
        let others: Vec<Share> = (1..64).map(|_| room.enter(LARGE, 0).unwrap()).collect();
        assert_eq!(room.shares().taken, ROOM);
        first.take(b"ab").unwrap();
        first.take(b"c").unwrap();
        assert_eq!(first.arrive().unwrap().as_slice(), b"abc");
        let newest = room.enter(10, 0).unwrap();
        assert!(others[0].given_up.is_cancelled() && !others[1].given_up.is_cancelled());
        assert_eq!(others[0].take(b"x").unwrap_err().status(), 503);
        others[1].take(b"x").unwrap();
        assert_eq!(room.shares().taken, 63 * MIB + 10 + BESIDE);
        // What cannot fit beside those that have arrived pushes nobody out.
        assert_eq!(room.enter(62 * MIB, LARGE + 1).unwrap_err().status(), 503);
        assert!(!others[1].given_up.is_cancelled());
        newest.take(&[0; 10]).unwrap();
        assert_eq!(newest.take(b"x").unwrap_err().status(), 400, "longer than it was told to be");
        drop((first, others, newest));
        let shares = room.shares();
        assert_eq!((shares.taken, shares.arriving.len()), (0, 0));
    }

    /// interface §10: what does not fit is refused before it is read. A large body pushes out no smaller one, whichever is older.
    #[test]
    fn the_largest_body_makes_room() {
        let room = BodyRoom::default();
        let event = room.enter(4 << 10, 100).unwrap();
        let some: Vec<Share> = (0..31).map(|_| room.enter(LARGE, 0).unwrap()).collect();
        let largest = room.enter(MIB + LARGE, 0).unwrap();
        let more: Vec<Share> = (0..31).map(|_| room.enter(LARGE, 0).unwrap()).collect();
        assert!(largest.given_up.is_cancelled(), "the event took its room");
        for _ in 0..100 {
            drop(room.enter(LARGE, 0).unwrap());
        }
        assert_eq!(room.enter(3 * MIB, 0).unwrap_err().status(), 503);
        assert!(!event.given_up.is_cancelled());
        let oldest = some.iter().chain(&more).position(|one| !one.given_up.is_cancelled());
        assert_eq!(oldest, Some(0), "there was room for one more");
        event.take(&[0; 4 << 10]).unwrap();
    }
}
