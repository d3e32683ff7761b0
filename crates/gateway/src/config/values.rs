//! The layered values: each with its origin, and bare, to compare one configuration with another.

use std::collections::BTreeMap;
use std::fmt;

use config::{Map, Value, ValueKind};

use super::key::{Key, Reload, Since};
use super::sections::NAME;
use super::table::{KEY_FILE, KEYS};

/// The layered values by path, each with its origin.
#[derive(Clone, Copy)]
pub(super) struct LayeredValues<'a>(pub(super) &'a Value);

/// The layered values, kept. Holds secrets; shows none.
#[derive(Clone)]
pub(super) struct KeptValues(pub(super) Value);

impl fmt::Debug for KeptValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeptValues")
    }
}

impl<'a> LayeredValues<'a> {
    pub(super) fn at(self, path: &str) -> Option<&'a Value> {
        path.split('.').try_fold(self.0, |value, name| match &value.kind {
            ValueKind::Table(table) => table.get(name),
            // A list of sections, each of which has a name.
            ValueKind::Array(sections) => sections.iter().find(|section| is_named(section, name)),
            _ => None,
        })
    }

    /// Where the value at `path` was set. `None` means it is a default.
    pub(super) fn origin(self, path: &str) -> Option<&'a str> {
        self.at(path).and_then(|value| match &value.kind {
            // A map's entries come from different layers: name one that set some, always the same.
            ValueKind::Table(table) => {
                let places = table.values().filter_map(Value::origin);
                places.min_by_key(|place| (place.len(), *place)).or(value.origin())
            }
            _ => value.origin(),
        })
    }

    /// The files that hold the keys of `models`, each with the key that names it.
    pub(super) fn key_files(self) -> impl Iterator<Item = (String, &'a str)> {
        let models = self.at("models").and_then(|models| match &models.kind {
            ValueKind::Table(models) => Some(models),
            _ => None,
        });
        models.into_iter().flatten().filter_map(move |(name, _)| {
            let key = format!("models.{name}.{KEY_FILE}");
            match &self.at(&key)?.kind {
                ValueKind::String(file) if !file.is_empty() => Some((key, file.as_str())),
                _ => None,
            }
        })
    }

    /// The key's value, if it is a text.
    pub(super) fn text(self, path: &str) -> Option<&'a str> {
        self.at(path).and_then(|value| text(&value.kind))
    }

    /// Is the key's value a blank text?
    pub(super) fn is_blank(self, path: &str) -> bool {
        self.text(path).is_some_and(is_blank)
    }

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

    /// The key's value, if it is a text.
    pub(super) fn text(&self, path: &str) -> Option<&str> {
        self.0.get(path).and_then(text)
    }

    /// Is the key's value a blank text?
    pub(super) fn is_blank(&self, path: &str) -> bool {
        self.text(path).is_some_and(is_blank)
    }

    pub(super) fn is_on(&self, path: &str) -> bool {
        self.0.get(path).is_some_and(is_on)
    }
}

fn is_named(section: &Value, name: &str) -> bool {
    let ValueKind::Table(members) = &section.kind else { return false };
    matches!(members.get(NAME), Some(Value { kind: ValueKind::String(own), .. }) if own == name)
}

fn text(kind: &ValueKind) -> Option<&str> {
    match kind {
        ValueKind::String(text) => Some(text),
        _ => None,
    }
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
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
