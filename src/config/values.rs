//! The layered value of every served key: what one configuration has that another has not.

use std::collections::BTreeMap;
use std::fmt;

use config::{Map, Value, ValueKind};

use super::check::Layered;
use super::table::{KEYS, Key, Reload, Since};

/// Values by key, as they came out of the layers. Holds secrets; shows none.
#[derive(Clone)]
pub struct Values(BTreeMap<&'static str, ValueKind>);

impl Values {
    pub(super) fn of(layered: Layered<'_>) -> Self {
        let served = KEYS.iter().filter(|key| key.since == Since::Served);
        Self(
            served
                .filter_map(|key| Some((key.path, bare(&layered.at(key.path)?.kind))))
                .collect(),
        )
    }

    /// Keys of this class whose value differs from `other`'s, in the order of the table.
    pub(super) fn differing(&self, other: &Self, class: Reload) -> Vec<&'static str> {
        let of_class = KEYS.iter().filter(|key| key.reload == class);
        let differs = |key: &&Key| self.0.get(key.path) != other.0.get(key.path);
        of_class.filter(differs).map(|key| key.path).collect()
    }

    /// Is the key's value a blank text?
    pub(super) fn is_blank(&self, path: &str) -> bool {
        matches!(self.0.get(path), Some(ValueKind::String(text)) if text.trim().is_empty())
    }

    /// Is the key's value `true`?
    pub(super) fn is_on(&self, path: &str) -> bool {
        matches!(self.0.get(path), Some(ValueKind::Boolean(true)))
    }
}

/// The value alone: the same value from another line or another layer is no change.
fn bare(kind: &ValueKind) -> ValueKind {
    let inner = |value: &Value| Value::new(None, bare(&value.kind));
    match kind {
        ValueKind::Array(items) => ValueKind::Array(items.iter().map(inner).collect()),
        ValueKind::Table(table) => ValueKind::Table(
            table
                .iter()
                .map(|(name, value)| (name.clone(), inner(value)))
                .collect::<Map<_, _>>(),
        ),
        plain => plain.clone(),
    }
}

/// Without values: there are secrets among them.
impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Values({} keys)", self.0.len())
    }
}
