//! The layered values: each with its origin, and bare, to compare one configuration with another.

use std::collections::BTreeMap;
use std::fmt;

use config::{Map, Value, ValueKind};

use super::key::{Key, Reload, Since};
use super::table::KEYS;

/// The layered values by path, each with its origin.
#[derive(Clone, Copy)]
pub(super) struct LayeredValues<'a>(pub(super) &'a Value);

impl<'a> LayeredValues<'a> {
    /// The value at `path`.
    pub(super) fn at(self, path: &str) -> Option<&'a Value> {
        path.split('.').try_fold(self.0, |value, name| match &value.kind {
            ValueKind::Table(table) => table.get(name),
            _ => None,
        })
    }

    /// Where the value at `path` was set. `None` means it is a default.
    pub(super) fn origin(self, path: &str) -> Option<&'a str> {
        self.at(path).and_then(|value| match &value.kind {
            // A map's entries come from different layers: name one that set some.
            ValueKind::Table(table) => table.values().find_map(Value::origin).or(value.origin()),
            _ => value.origin(),
        })
    }

    /// Is the key's value a blank text?
    pub(super) fn is_blank(self, path: &str) -> bool {
        self.at(path).is_some_and(|value| is_blank(&value.kind))
    }

    /// Is the key's value `true`?
    pub(super) fn is_on(self, path: &str) -> bool {
        self.at(path).is_some_and(|value| is_on(&value.kind))
    }
}

/// Values by key, as they came out of the layers. Holds secrets; shows none.
#[derive(Clone)]
pub struct Values(BTreeMap<&'static str, ValueKind>);

impl Values {
    pub(super) fn of(layered: LayeredValues<'_>) -> Self {
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
        self.0.get(path).is_some_and(is_blank)
    }

    /// Is the key's value `true`?
    pub(super) fn is_on(&self, path: &str) -> bool {
        self.0.get(path).is_some_and(is_on)
    }
}

fn is_blank(kind: &ValueKind) -> bool {
    matches!(kind, ValueKind::String(text) if text.trim().is_empty())
}

fn is_on(kind: &ValueKind) -> bool {
    matches!(kind, ValueKind::Boolean(true))
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
