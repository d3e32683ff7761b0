//! Refuses JSON that two parsers could read differently, in one scan and without building a value.
//!
//! The typed parse that follows reads the same text, so what was checked is what is used.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer as _, Error as _, MapAccess, SeqAccess, Visitor};

/// Deepest nesting of objects and arrays, the root included.
const MAX_DEPTH: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum StrictJsonError {
    #[error("not UTF-8")]
    NotUtf8,
    /// Not one JSON value: malformed, a byte order mark before it, or something after it.
    #[error("not JSON")]
    NotJson,
    /// The root is an array or a scalar. Derived structs would accept an array in field order.
    #[error("not a JSON object")]
    NotAnObject,
    /// Two members of one object have the same name once unescaped: first-wins and last-wins parsers disagree.
    #[error("duplicate key")]
    DuplicateKey,
    #[error("nested too deeply")]
    TooDeep,
}

impl StrictJsonError {
    /// The reason as a constant, for refusals that carry no owned text.
    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::NotUtf8 => "not UTF-8",
            Self::NotJson => "not JSON",
            Self::NotAnObject => "not a JSON object",
            Self::DuplicateKey => "duplicate key",
            Self::TooDeep => "nested too deeply",
        }
    }
}

/// Checks that `bytes` are one JSON object without duplicate keys at any level, nested at most 32 deep, and
/// returns them as text.
///
/// There is no limit on the number of keys: a message that mentions hundreds of people is legal, the body's
/// length is bounded by the caller, and finding duplicates costs no more than sorting.
pub(super) fn check(bytes: &[u8]) -> Result<&str, StrictJsonError> {
    let text = std::str::from_utf8(bytes).map_err(|_| StrictJsonError::NotUtf8)?;
    let mut scan = JsonScan {
        keys: Vec::new(),
        fault: None,
    };
    let mut json = serde_json::Deserializer::from_str(text);
    // The recursion is ours and stops at MAX_DEPTH, far below the parser's own limit and the stack's.
    let root = (&mut json).deserialize_any(JsonNode { scan: &mut scan, depth: 0 });
    match (root.and_then(|kind| json.end().map(|()| kind)), scan.fault) {
        (_, Some(fault)) => Err(fault),
        (Ok(JsonKind::Object), None) => Ok(text),
        (Ok(JsonKind::Other), None) => Err(StrictJsonError::NotAnObject),
        (Err(_), None) => Err(StrictJsonError::NotJson),
    }
}

struct JsonScan<'de> {
    /// Keys of all objects that are open; those of the innermost are at the end.
    keys: Vec<Cow<'de, str>>,
    /// Set when we stopped, not the parser.
    fault: Option<StrictJsonError>,
}

#[derive(PartialEq, Eq)]
enum JsonKind {
    Object,
    Other,
}

struct JsonNode<'s, 'de> {
    scan: &'s mut JsonScan<'de>,
    depth: usize,
}

impl<'s, 'de> JsonNode<'s, 'de> {
    fn enter<E: serde::de::Error>(&mut self) -> Result<usize, E> {
        if self.depth == MAX_DEPTH {
            self.scan.fault = Some(StrictJsonError::TooDeep);
            return Err(E::custom(StrictJsonError::TooDeep));
        }
        Ok(self.depth + 1)
    }
}

impl<'de> DeserializeSeed<'de> for JsonNode<'_, 'de> {
    type Value = JsonKind;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<JsonKind, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for JsonNode<'_, 'de> {
    type Value = JsonKind;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<JsonKind, E> {
        Ok(JsonKind::Other)
    }

    fn visit_i64<E>(self, _: i64) -> Result<JsonKind, E> {
        Ok(JsonKind::Other)
    }

    fn visit_u64<E>(self, _: u64) -> Result<JsonKind, E> {
        Ok(JsonKind::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<JsonKind, E> {
        Ok(JsonKind::Other)
    }

    fn visit_str<E>(self, _: &str) -> Result<JsonKind, E> {
        Ok(JsonKind::Other)
    }

    fn visit_unit<E>(self) -> Result<JsonKind, E> {
        Ok(JsonKind::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<JsonKind, A::Error> {
        let depth = self.enter()?;
        while items
            .next_element_seed(JsonNode {
                scan: &mut *self.scan,
                depth,
            })?
            .is_some()
        {}
        Ok(JsonKind::Other)
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<JsonKind, A::Error> {
        let depth = self.enter()?;
        let start = self.scan.keys.len();
        while let Some(key) = members.next_key_seed(MemberName)? {
            self.scan.keys.push(key);
            members.next_value_seed(JsonNode {
                scan: &mut *self.scan,
                depth,
            })?;
        }
        // Sorting instead of a set: no hashing of foreign text, no allocation per object, and short lists are quick.
        let own = &mut self.scan.keys[start..];
        own.sort_unstable();
        if own.windows(2).any(|pair| pair[0] == pair[1]) {
            self.scan.fault = Some(StrictJsonError::DuplicateKey);
            return Err(A::Error::custom(StrictJsonError::DuplicateKey));
        }
        self.scan.keys.truncate(start);
        Ok(JsonKind::Object)
    }
}

/// A member name, unescaped; borrowed from the text when it holds no escape.
struct MemberName;

impl<'de> DeserializeSeed<'de> for MemberName {
    type Value = Cow<'de, str>;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for MemberName {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member name")
    }

    fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(name))
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(name.to_owned()))
    }
}

#[cfg(test)]
mod tests;
