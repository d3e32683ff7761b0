//! Ids of rows whose order counts: made by the process, rising, the same on every database.

use std::sync::atomic::{AtomicI64, Ordering};

use sqlx::{AnyConnection, Row};

use super::Result;
use crate::domain::Millis;

/// The highest process-made id in the database.
pub(super) async fn highest(conn: &mut AnyConnection) -> Result<i64> {
    let last = sqlx::query(
        "SELECT CAST(MAX(id) AS BIGINT) AS last FROM (SELECT COALESCE(MAX(id), 0) AS id FROM inbox
           UNION ALL SELECT COALESCE(MAX(id), 0) FROM outbox
           UNION ALL SELECT COALESCE(MAX(id), 0) FROM signals
           UNION ALL SELECT COALESCE(MAX(fence), 0) FROM lanes) AS ids",
    )
    .fetch_one(conn)
    .await?;
    Ok(last.try_get("last")?)
}

/// Gives `ms << 20 | sequence`: always more than before, and more than any id found at start, whatever the
/// clock does.
#[derive(Debug)]
pub(super) struct Sequence(AtomicI64);

impl Sequence {
    pub(super) fn after(last: i64) -> Self {
        Self(AtomicI64::new(last))
    }

    pub(super) fn next(&self, now: Millis) -> i64 {
        let floor = now.0.saturating_mul(1 << 20);
        let before = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(floor.max(last + 1)));
        match before {
            Ok(last) | Err(last) => floor.max(last + 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// design: inbox ids are monotone even when the clock stands or steps back.
    #[test]
    fn ids_rise_whatever_the_clock_does() {
        let sequence = Sequence::after(5 << 20);
        let ids: Vec<i64> = [7, 7, 3, 8].into_iter().map(|ms| sequence.next(Millis(ms))).collect();
        assert_eq!(ids, [7 << 20, (7 << 20) + 1, (7 << 20) + 2, 8 << 20]);
        assert_eq!(Sequence::after(9 << 20).next(Millis(1)), (9 << 20) + 1);
    }
}
