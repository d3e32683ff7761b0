//! The layered values, each with its origin: what is printed, and what one configuration is compared with another by.

use std::fmt;

use config::{Value, ValueKind};

use super::key::{Key, Reload};
use super::sections::NAME;
use super::table::{KEY_FILE, KEYS};

/// The layered values by path, each with its origin. Holds secrets; shows none.
#[derive(Clone)]
pub struct Values(pub(super) Value);

impl Values {
    pub(super) fn at(&self, path: &str) -> Option<&Value> {
        path.split('.').try_fold(&self.0, |value, name| match &value.kind {
            ValueKind::Table(table) => table.get(name),
            // A list of sections, each of which has a name.
            ValueKind::Array(sections) => sections.iter().find(|section| is_named(section, name)),
            _ => None,
        })
    }

    /// Where the value at `path` was set. `None` means it is a default.
    pub(super) fn origin(&self, path: &str) -> Option<&str> {
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
    pub(super) fn key_files(&self) -> impl Iterator<Item = (String, &str)> {
        let models = self.at("models").and_then(|models| match &models.kind {
            ValueKind::Table(models) => Some(models),
            _ => None,
        });
        models.into_iter().flatten().filter_map(move |(name, _)| {
            let key = format!("models.{name}.{KEY_FILE}");
            let file = self.text(&key).filter(|file| !file.is_empty())?;
            Some((key, file))
        })
    }

    /// Keys of this class whose value differs from `other`'s, in the order of the table.
    pub(super) fn differing(&self, other: &Self, class: Reload) -> Vec<&'static str> {
        let of_class = KEYS.iter().filter(|key| key.reload == class);
        let is_kept = |key: &&Key| match (self.at(key.path), other.at(key.path)) {
            (Some(one), Some(other)) => is_same(one, other),
            (one, other) => one.is_none() && other.is_none(),
        };
        of_class.filter(|key| !is_kept(key)).map(|key| key.path).collect()
    }

    /// The key's value, if it is a text.
    pub(super) fn text(&self, path: &str) -> Option<&str> {
        match &self.at(path)?.kind {
            ValueKind::String(text) => Some(text),
            _ => None,
        }
    }

    /// Is the key's value a blank text?
    pub(super) fn is_blank(&self, path: &str) -> bool {
        self.text(path).is_some_and(|text| text.trim().is_empty())
    }

    pub(super) fn is_on(&self, path: &str) -> bool {
        matches!(self.at(path), Some(value) if value.kind == ValueKind::Boolean(true))
    }
}

fn is_named(section: &Value, name: &str) -> bool {
    let ValueKind::Table(members) = &section.kind else { return false };
    matches!(members.get(NAME), Some(Value { kind: ValueKind::String(own), .. }) if own == name)
}

/// The same value from another line or another layer is no change.
fn is_same(one: &Value, other: &Value) -> bool {
    match (&one.kind, &other.kind) {
        (ValueKind::Array(one), ValueKind::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (ValueKind::Table(one), ValueKind::Table(other)) => {
            let same = |(name, value): (&String, &Value)| other.get(name).is_some_and(|other| is_same(value, other));
            one.len() == other.len() && one.iter().all(same)
        }
        (one, other) => one == other,
    }
}

/// Without values: there are secrets among them.
impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Values")
    }
}
