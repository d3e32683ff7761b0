//! Rows that do not read back. One of them must not stop the work on all others: who claims rows passes it over, and `/readyz` names it.

use std::collections::BTreeMap;
use std::time::Duration;

use countersign_agent::domain::Millis;
use parking_lot::{Mutex, MutexGuard};
use tracing::error;

/// Rows that are named.
const MOST: usize = 100;
/// A row is named for so long after the last look at it. One that is given up, or that another process mended, is not looked at again.
const NAMED: Duration = Duration::from_hours(1);

/// The rows that were passed over lately.
#[derive(Debug, Default)]
pub(super) struct Damage(Mutex<Rows>);

#[derive(Debug, Default)]
struct Rows {
    named: BTreeMap<String, Noted>,
    /// When the log was told last that there are more.
    more: Option<Millis>,
}

#[derive(Debug)]
struct Noted {
    why: String,
    at: Millis,
}

/// What the log is told.
#[derive(Debug, PartialEq, Eq)]
enum News {
    /// This row is passed over.
    Row,
    /// So are others, which are not named.
    More,
}

impl Damage {
    /// The row `id` of `table` does not read back.
    pub(super) fn note(&self, table: &str, id: &str, why: &str, now: Millis) {
        let row = format!("{table} {id}");
        match self.enter(&row, why, now) {
            Some(News::Row) => error!(row, why, "a row does not read back; it is passed over"),
            Some(News::More) => error!(named = MOST, "more rows do not read back than are named; they are passed over"),
            None => (),
        }
    }

    fn enter(&self, row: &str, why: &str, now: Millis) -> Option<News> {
        let mut rows = self.lock();
        rows.named.retain(|_, noted| now.since(noted.at) < NAMED);
        if let Some(noted) = rows.named.get_mut(row) {
            noted.at = now;
            return None;
        }
        if rows.named.len() < MOST {
            let why = why.to_owned();
            rows.named.insert(row.to_owned(), Noted { why, at: now });
            return Some(News::Row);
        }
        let is_told = rows.more.is_some_and(|at| now.since(at) < NAMED);
        rows.more = if is_told { rows.more } else { Some(now) };
        (!is_told).then_some(News::More)
    }

    /// The row reads back.
    pub(super) fn forget(&self, table: &str, id: &str) {
        let mut rows = self.lock();
        if !rows.named.is_empty() {
            rows.named.remove(&format!("{table} {id}"));
        }
    }

    /// Each with its table, its id and what is wrong.
    pub(super) fn rows(&self, now: Millis) -> Vec<String> {
        let rows = self.lock();
        let named = rows.named.iter().filter(|(_, noted)| now.since(noted.at) < NAMED);
        named.map(|(row, noted)| format!("{row} ({})", noted.why)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Rows> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// interface §10: a row that is looked at each minute is one line of the log. Of many rows a hundred are named, and one line an hour
    /// says that there are more.
    #[test]
    fn many_damaged_rows_are_few_lines() {
        let damage = Damage::default();
        let mut told = Vec::new();
        for minute in 0..120 {
            for row in 0..150 {
                told.extend(damage.enter(&format!("lanes {row}"), "x", Millis(minute * 60_000)));
            }
        }
        let rows = told.iter().filter(|news| **news == News::Row).count();
        assert_eq!((rows, told.len() - rows), (100, 2));
        assert_eq!(damage.rows(Millis(119 * 60_000)).len(), 100);
    }

    /// interface §10: a row is named until it reads back, or an hour after the last look at it. Another one takes its place.
    #[test]
    fn a_row_is_not_named_for_ever() {
        let damage = Damage::default();
        let at = |minutes: i64| Millis(minutes * 60_000);
        damage.note("lanes", "1", "x", at(0));
        damage.note("inbox", "2", "y", at(0));
        damage.note("lanes", "1", "x", at(30));
        assert_eq!(damage.rows(at(59)), ["inbox 2 (y)", "lanes 1 (x)"]);
        assert_eq!(damage.rows(at(60)), ["lanes 1 (x)"]);
        assert_eq!(damage.enter("lanes 1", "x", at(90)), Some(News::Row), "it is told anew");
        damage.forget("lanes", "1");
        assert!(damage.rows(at(90)).is_empty());
    }
}
