//! Ids of rows whose order counts: made by the process, rising, different in every process, the same on every database.
//!
//! An id holds milliseconds, a number that each start draws from the ledger, and a count. So ids rise within a process, and no process asks
//! another for one.

use std::sync::atomic::{AtomicI64, Ordering};

use countersign_agent::domain::Millis;

use super::arg::args;
use super::conn::Conn;
use super::{Result, sql};
use crate::store::StoreError;

/// Low bits: which process it was, then what it has counted within the millisecond.
const COUNT_BITS: u32 = 8;
/// So many processes may start before a number is given again.
const NODES: i64 = 1 << 12;
/// Bits below the milliseconds.
const LOW_BITS: u32 = 20;

/// Gives `ms << 20 | process << 8 | count`: always more than before, and more than any id found at start, whatever the clock does.
/// A process that needs more than 256 ids in a millisecond borrows from the next milliseconds.
#[derive(Debug)]
pub(super) struct Sequence {
    node: i64,
    /// The last one without the process: `ms << 8 | count`.
    last: AtomicI64,
}

impl Sequence {
    /// Above all ids of the database, with a number of its own.
    pub(super) async fn begin(mut conn: Conn<'_>) -> Result<Self> {
        let highest = sql::one(
            conn.lend(),
            "SELECT CAST(MAX(id) AS BIGINT) AS last FROM (SELECT COALESCE(MAX(id), 0) AS id FROM inbox
             UNION ALL SELECT COALESCE(MAX(id), 0) FROM outbox
             UNION ALL SELECT COALESCE(MAX(id), 0) FROM signals
             UNION ALL SELECT COALESCE(MAX(fence), 0) FROM lanes) AS ids",
            args![],
        )
        .await?;
        let starts = sql::one(
            conn,
            "INSERT INTO facts (name, value) VALUES ('starts', '1')
             ON CONFLICT (name) DO UPDATE SET value = CAST(CAST(facts.value AS BIGINT) + 1 AS TEXT) RETURNING value",
            args![],
        )
        .await?
        .text("value")?;
        let starts: i64 = starts
            .parse()
            .map_err(|_| StoreError::Corrupt("fact `starts` is no number".to_owned()))?;
        Ok(Self::after(highest.int("last")?, starts))
    }

    /// Above `last`, as process `node` (its low bits).
    pub(super) fn after(last: i64, node: i64) -> Self {
        let sequence = Self {
            node: node.rem_euclid(NODES),
            last: AtomicI64::new(0),
        };
        sequence.pass(last);
        sequence
    }

    pub(super) fn next(&self, now: Millis) -> i64 {
        let floor = now.0.saturating_mul(1 << COUNT_BITS);
        let before = self
            .last
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(floor.max(last + 1)));
        let tick = match before {
            Ok(last) | Err(last) => floor.max(last + 1),
        };
        let (ms, count) = (tick >> COUNT_BITS, tick & ((1 << COUNT_BITS) - 1));
        (ms << LOW_BITS) | (self.node << COUNT_BITS) | count
    }

    /// What comes next is above `id`, which another process has made.
    pub(super) fn pass(&self, id: i64) {
        let next_millisecond = ((id >> LOW_BITS) + 1) << COUNT_BITS;
        self.last.fetch_max(next_millisecond - 1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// design: inbox ids are monotone even when the clock stands or steps back, and above those that were there.
    #[test]
    fn ids_rise_whatever_the_clock_does() {
        let sequence = Sequence::after(5 << 20, 0);
        let ids: Vec<i64> = [7, 7, 3, 8].into_iter().map(|ms| sequence.next(Millis(ms))).collect();
        assert_eq!(ids, [7 << 20, (7 << 20) + 1, (7 << 20) + 2, 8 << 20]);
        let last = (9 << 20) | 0xf_ffff;
        assert!(Sequence::after(last, 0).next(Millis(1)) > last);
    }

    proptest! {
        /// design: two processes never make the same id, whatever their clocks say and however many they make; each one's ids rise.
        #[test]
        fn ids_of_two_processes_differ(nodes in (0..4096_i64, 1..4096_i64), clocks in prop::collection::vec((0..3_i64, 0..3_i64), 1..600)) {
            let (one, other) = (Sequence::after(0, nodes.0), Sequence::after(0, nodes.0 + nodes.1));
            let left: Vec<i64> = clocks.iter().map(|(ms, _)| one.next(Millis(*ms))).collect();
            let right: Vec<i64> = clocks.iter().map(|(_, ms)| other.next(Millis(*ms))).collect();
            prop_assert!(left.is_sorted_by(|a, b| a < b) && right.is_sorted_by(|a, b| a < b));
            prop_assert!(left.iter().all(|id| !right.contains(id)));
        }

        /// design: an id that passes another process's is above it and rises on.
        #[test]
        fn a_passed_id_stays_behind(foreign in 0..(1_i64 << 40), ms in 0..(1_i64 << 21)) {
            let sequence = Sequence::after(0, 7);
            let before = sequence.next(Millis(ms));
            sequence.pass(foreign);
            let after = sequence.next(Millis(ms));
            prop_assert!(after > before && after > foreign);
        }
    }
}
