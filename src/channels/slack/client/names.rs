//! Names of people, remembered for a day.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How long a name counts, and how many are remembered.
const NAME_AGE: Duration = Duration::from_hours(24);
const MAX_NAMES: usize = 10_000;

/// Names of people by their ids.
#[derive(Debug, Default)]
pub(super) struct Names(Mutex<HashMap<String, (Instant, String)>>);

impl Names {
    pub(super) fn known(&self, id: &str) -> Option<String> {
        let names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, name) = names.get(id)?;
        (since.elapsed() < NAME_AGE).then(|| name.clone())
    }

    pub(super) fn note(&self, id: &str, name: &str) {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if names.len() >= MAX_NAMES {
            names.clear();
        }
        names.insert(id.to_owned(), (Instant::now(), name.to_owned()));
    }
}
