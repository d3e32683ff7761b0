//! Typed objects from a text that was checked, by what the scan noted of it.

use std::borrow::Cow;

use serde::de::value::{BorrowedStrDeserializer, MapAccessDeserializer, StrDeserializer};
use serde::de::{Deserialize, DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde::forward_to_deserialize_any;

use super::{JsonMember, StrictJson};

impl<'t> StrictJson<'t> {
    /// Reads the root. `None`: a needed member is missing or of the wrong type.
    pub(in crate::channels) fn object<T: Deserialize<'t>>(&self) -> Option<T> {
        self.members(0, self.members.len())
    }

    /// Reads an object of the root, or of an object of the root, as [`StrictJson::object`] does.
    pub(in crate::channels) fn object_in<T: Deserialize<'t>>(&self, part: JsonPart<'t>) -> Option<T> {
        let at = self.members.iter().position(|member| std::ptr::eq(member.value, part.0))?;
        // Of what is no object nothing is known.
        part.0
            .starts_with('{')
            .then(|| self.members(at + 1, self.members[at].next))
            .flatten()
    }

    fn members<T: Deserialize<'t>>(&self, at: usize, end: usize) -> Option<T> {
        let members = JsonMembers {
            all: &self.members[..end],
            at,
        };
        T::deserialize(MapAccessDeserializer::new(members)).ok()
    }
}

/// The value of a member as it is written, for [`StrictJson::object_in`].
#[derive(Clone, Copy, Debug)]
pub(in crate::channels) struct JsonPart<'t>(pub(in crate::channels) &'t str);

/// Asks for the text of a value.
const PART: &str = "countersign::JsonPart";

impl<'de: 't, 't> Deserialize<'de> for JsonPart<'t> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PartText;

        impl<'de> Visitor<'de> for PartText {
            type Value = JsonPart<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a member that was noted")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(JsonPart(text))
            }
        }

        deserializer.deserialize_newtype_struct(PART, PartText)
    }
}

/// The members of an object.
struct JsonMembers<'d, 't> {
    all: &'d [JsonMember<'t>],
    at: usize,
}

impl<'t> MapAccess<'t> for JsonMembers<'_, 't> {
    type Error = serde_json::Error;

    fn next_key_seed<K: DeserializeSeed<'t>>(&mut self, seed: K) -> serde_json::Result<Option<K::Value>> {
        let name = self.all.get(self.at).map(|member| &member.name);
        let read = name.map(|name| match name {
            Cow::Borrowed(name) => seed.deserialize(BorrowedStrDeserializer::new(name)),
            Cow::Owned(name) => seed.deserialize(StrDeserializer::new(name)),
        });
        read.transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'t>>(&mut self, seed: V) -> serde_json::Result<V::Value> {
        let member = &self.all[self.at];
        self.at = member.next;
        seed.deserialize(WrittenValue(member.value))
    }
}

/// A value of a text that was checked.
struct WrittenValue<'t>(&'t str);

impl<'de> Deserializer<'de> for WrittenValue<'de> {
    type Error = serde_json::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> serde_json::Result<V::Value> {
        serde_json::Deserializer::from_str(self.0).deserialize_any(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> serde_json::Result<V::Value> {
        if self.0 == "null" {
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> serde_json::Result<V::Value> {
        if name == PART {
            return visitor.visit_borrowed_str(self.0);
        }
        serde_json::Deserializer::from_str(self.0).deserialize_newtype_struct(name, visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> serde_json::Result<V::Value> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct enum identifier
    }
}
