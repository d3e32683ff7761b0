//! Since when each part of `/readyz` is as it is.

use std::collections::BTreeMap;

use countersign_agent::domain::Millis;
use parking_lot::Mutex;
use serde_json::{Value, json};

/// Since when each part is as it is: the first look that saw it so.
#[derive(Debug, Default)]
pub(in crate::gateway) struct StatusSince(Mutex<BTreeMap<String, (&'static str, Millis)>>);

impl StatusSince {
    pub(super) fn part(&self, name: &str, status: &'static str, message: Option<String>, now: Millis) -> Value {
        let mut known = self.0.lock();
        let seen = known.entry(name.to_owned()).or_insert((status, now));
        if seen.0 != status {
            *seen = (status, now);
        }
        json!({ "name": name, "status": status, "message": message, "since": seen.1.rfc3339() })
    }
}
