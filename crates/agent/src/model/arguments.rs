//! The arguments of a call as text: what servers send beside or instead of one JSON object. Pure.

use serde_json::{Map, Value};

use crate::domain::foreign_json;
use crate::domain::json_size::{MAX_VALUES, most_values};

/// `text` as one JSON object, if one can be found in it: broken characters are replaced; of several objects one after the other, an empty one
/// before others is no arguments, equal ones are one, and one that grows is what it grew to. Otherwise `text` as it is: the model is told what is
/// wrong with it.
pub(super) fn mended(text: &str) -> String {
    // The text is a string of its answer, where its own values were not counted.
    if most_values(text.as_bytes()) > MAX_VALUES || text.trim().is_empty() || serde_json::from_str::<Value>(text).is_ok() {
        return text.to_owned();
    }
    if let Ok(value) = foreign_json::read(text.as_bytes()) {
        return value.to_string();
    }
    one_of_several(text).map_or_else(|| text.to_owned(), |object| Value::Object(object).to_string())
}

fn one_of_several(text: &str) -> Option<Map<String, Value>> {
    let text = foreign_json::mended(text);
    let objects = serde_json::Deserializer::from_str(&text).into_iter::<Map<String, Value>>();
    let mut whole = Map::new();
    for object in objects {
        let object = object.ok()?;
        if !grows(&whole, &object) {
            return None;
        }
        whole = object;
    }
    Some(whole)
}

/// Is `after` all of `before`, or more?
fn grows(before: &Map<String, Value>, after: &Map<String, Value>) -> bool {
    before.iter().all(|(name, value)| match (value, after.get(name)) {
        (Value::String(before), Some(Value::String(after))) => after.starts_with(before),
        (Value::Object(before), Some(Value::Object(after))) => grows(before, after),
        (Value::Array(before), Some(Value::Array(after))) => after.starts_with(before),
        (before, Some(after)) => before == after,
        (_, None) => false,
    })
}

#[cfg(test)]
mod tests {
    use super::{MAX_VALUES, mended};

    /// F12, F17: several objects are one where they say the same or grow; different ones stay as they are, for the model to mend; halves of
    /// characters are replaced.
    #[test]
    fn one_object_is_found() {
        for (text, one) in [
            (r#"{"a": 1}"#, r#"{"a": 1}"#),
            ("", ""),
            (r#"{}{"a":1}"#, r#"{"a":1}"#),
            (r#"{"a":1}{"a":1}"#, r#"{"a":1}"#),
            ("{\"a\":1}\n{\"a\":1}\n", r#"{"a":1}"#),
            (r#"{}{"a":1}{"a":1,"b":"x"}{"a":1,"b":"xy"}"#, r#"{"a":1,"b":"xy"}"#),
            (r#"{"a":{"b":"x"}}{"a":{"b":"xy"}}"#, r#"{"a":{"b":"xy"}}"#),
            (r#"{"a":"\ud83d"}"#, "{\"a\":\"\u{fffd}\"}"),
            (r#"{"a":1}{"a":2}"#, r#"{"a":1}{"a":2}"#),
            (r#"{"a":1}{}"#, r#"{"a":1}{}"#),
            (r#"{"a":1}{"b":1"#, r#"{"a":1}{"b":1"#),
            (r#"{"a":1} and more"#, r#"{"a":1} and more"#),
        ] {
            assert_eq!(mended(text), one, "{text}");
        }
    }

    /// interface §10: values inside of a text are counted before they are read. Too many stay as they are.
    #[test]
    fn a_text_of_many_values_is_not_read() {
        let many = format!(r#"{{"a":NaN,"b":[{}0]}}"#, "0,".repeat(MAX_VALUES));
        assert_eq!(mended(&many), many);
    }
}
