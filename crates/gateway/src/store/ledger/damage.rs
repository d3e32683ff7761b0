//! Rows that do not read back. One of them must not stop the work on all others: who claims rows passes it over, and `/readyz` names it.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use tracing::error;

/// Rows that are kept in mind.
const MOST: usize = 100;

/// The rows that were passed over since the start, with the reason.
#[derive(Debug, Default)]
pub(super) struct Damage(Mutex<BTreeMap<String, String>>);

impl Damage {
    /// The row `id` of `table` does not read back.
    pub(super) fn note(&self, table: &str, id: &str, why: &str) {
        let mut rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let row = format!("{table} {id}");
        if rows.contains_key(&row) {
            return;
        }
        error!(row, why, "a row does not read back; it is passed over");
        if rows.len() < MOST {
            rows.insert(row, why.to_owned());
        }
    }

    /// The row reads back.
    pub(super) fn forget(&self, table: &str, id: &str) {
        let mut rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !rows.is_empty() {
            rows.remove(&format!("{table} {id}"));
        }
    }

    /// All of them, each with its table, its id and what is wrong.
    pub(super) fn rows(&self) -> Vec<String> {
        let rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        rows.iter().map(|(row, why)| format!("{row} ({why})")).collect()
    }
}
