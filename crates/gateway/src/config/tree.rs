//! The values that the layers keep, as the crate `config` has them: a parsed text, each value in it with its place.

use config::{Value, ValueKind};
use countersign_agent::template::yaml::{Node, Yaml};

/// The place of something on a line. `None` means that it has none.
pub(super) type At<'a> = &'a dyn Fn(u64) -> Option<String>;

/// What `node` says; it passed its kind. An entry of a map that says nothing is left out.
pub(super) fn value(node: &Node, at: At<'_>) -> Value {
    let kind = match &node.value {
        Yaml::Null => ValueKind::Nil,
        Yaml::Flag(flag) => (*flag).into(),
        Yaml::Whole(number) => match i64::try_from(*number) {
            Ok(number) => number.into(),
            Err(_) => u64::try_from(*number).unwrap_or(u64::MAX).into(),
        },
        Yaml::Float(number) => (*number).into(),
        Yaml::Text(text) => text.as_str().into(),
        Yaml::List(items) => ValueKind::Array(items.iter().map(|item| value(item, at)).collect()),
        Yaml::Map(entries) => {
            let said = entries.iter().filter(|entry| entry.node.value != Yaml::Null);
            ValueKind::Table(said.map(|entry| (entry.key.clone(), value(&entry.node, at))).collect())
        }
    };
    Value::new(at(node.line).as_ref(), kind)
}
