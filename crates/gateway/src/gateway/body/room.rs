//! The memory that all bodies of requests may hold together.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use memmap2::MmapMut;
use parking_lot::{Mutex, MutexGuard};
use tokio_util::sync::CancellationToken;

use crate::gateway::error::ApiError;

/// The most bytes that all bodies in flight hold together, with the headers of their requests and what each takes beside them.
const ROOM: usize = 64 << 20;
/// What the reading of a request takes beside its body and headers.
const BESIDE: usize = 16 << 10;

/// A longer body has a map of its own. There are few of them, for the system allows a process so many.
const MAPPED: usize = 32 << 10;

/// Where a body lies. What an allocator frees between the small things of many connections it often keeps; a map goes back to the system.
#[derive(Debug)]
pub(super) enum Buffer {
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

    pub(super) fn as_slice(&self) -> &[u8] {
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
pub(in crate::gateway) struct BodyRoom(Arc<Mutex<Shares>>);

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
pub(super) struct Share {
    room: BodyRoom,
    number: u64,
    /// What it takes of the room; 0 until the body has arrived.
    takes: usize,
    pub(super) given_up: CancellationToken,
}

impl BodyRoom {
    fn shares(&self) -> MutexGuard<'_, Shares> {
        self.0.lock()
    }

    /// A body of at most `most` bytes begins to arrive, with `beside` bytes of headers.
    pub(super) fn enter(&self, most: usize, beside: usize) -> Result<Share, ApiError> {
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
    pub(super) fn take(&self, piece: &[u8]) -> Result<(), ApiError> {
        let mut shares = self.room.shares();
        let own = shares.arriving.get_mut(&self.number).ok_or_else(ApiError::unavailable)?;
        let taken = own.bytes.take(piece);
        taken.ok_or_else(|| ApiError::bad_request("the body is longer than it was told to be"))
    }

    /// The body has arrived: nobody takes its room any more.
    pub(super) fn arrive(&mut self) -> Result<Buffer, ApiError> {
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
