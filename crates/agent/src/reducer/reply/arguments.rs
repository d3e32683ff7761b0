//! The JSON arguments of a call, held to a part of JSON Schema: types, required, unknown members, lengths.
//!
//! Keywords that are not known here are not checked: a tool checks what its own schema cannot say.

use serde_json::{Map, Value};

/// Problems told at once.
const MAX_PROBLEMS: usize = 6;
/// Keywords that list several schemas for one value.
const CHOICES: [&str; 2] = ["anyOf", "oneOf"];

/// Arguments as a JSON object that `schema` accepts, else what to mend. Optional members that are null
/// count as left out, which is how some models spell that; `ignored` ones are dropped.
pub(in crate::reducer) fn check_arguments(text: &str, schema: &Value, ignored: &[&str]) -> Result<Map<String, Value>, String> {
    let value: Value =
        serde_json::from_str(text).map_err(|error| format!("the arguments are not valid JSON ({error}); send one JSON object"))?;
    let Value::Object(mut map) = value else {
        return Err(String::from("the arguments must be one JSON object"));
    };
    map.retain(|key, _| !ignored.contains(&key.as_str()));
    let required = |key: &str| list(schema, "required").any(|name| name == key);
    let nullable = |key: &str| {
        let own = schema.get("properties").and_then(|all| all.get(key));
        own.is_none_or(|own| has_type_of(&Value::Null, own))
    };
    map.retain(|key, value| !value.is_null() || required(key) || nullable(key));
    let mut problems = Vec::new();
    object(&map, schema, "", &mut problems);
    if problems.is_empty() {
        return Ok(map);
    }
    problems.truncate(MAX_PROBLEMS);
    Err(problems.join("; "))
}

fn list<'a>(schema: &'a Value, key: &str) -> impl Iterator<Item = &'a str> {
    schema
        .get(key)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}

fn object(map: &Map<String, Value>, schema: &Value, path: &str, problems: &mut Vec<String>) {
    let properties = schema.get("properties").and_then(Value::as_object);
    for name in list(schema, "required").filter(|name| !map.contains_key(*name)) {
        problems.push(format!("`{path}{name}` is required"));
    }
    for (name, value) in map {
        match properties.and_then(|all| all.get(name)) {
            Some(own) => check(value, own, &format!("{path}{name}"), problems),
            None if schema.get("additionalProperties") == Some(&Value::Bool(false)) => {
                let known: Vec<_> = properties.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
                problems.push(format!("unknown parameter `{path}{name}`; known: {}", known.join(", ")));
            }
            None => {}
        }
    }
}

fn check(value: &Value, schema: &Value, path: &str, problems: &mut Vec<String>) {
    if let Some(kind) = schema.get("type")
        && !fits(value, kind)
    {
        problems.push(format!("`{path}` must be {}", kind_words(kind)));
        return;
    }
    for choices in CHOICES.iter().filter_map(|list| schema.get(list)?.as_array()) {
        if !is_of_one_type(value, choices) {
            let kinds: Vec<_> = choices.iter().filter_map(|choice| choice.get("type")).map(kind_words).collect();
            let words = if kinds.is_empty() {
                String::new()
            } else {
                format!(": {}", kinds.join(", "))
            };
            problems.push(format!("`{path}` has none of the types that its schema allows{words}"));
            return;
        }
    }
    if let Some(allowed) = schema.get("enum").and_then(Value::as_array)
        && !allowed.contains(value)
    {
        let allowed: Vec<_> = allowed.iter().map(ToString::to_string).collect();
        problems.push(format!("`{path}` must be one of {}", allowed.join(", ")));
    }
    let limit = |key: &str| schema.get(key).and_then(Value::as_u64);
    let mut measure = |size: usize, least: &str, most: &str, unit: &str| {
        let size = u64::try_from(size).unwrap_or(u64::MAX);
        if let Some(least) = limit(least).filter(|least| size < *least) {
            problems.push(format!("`{path}` has {size} {unit}, at least {least} are needed"));
        }
        if let Some(most) = limit(most).filter(|most| size > *most) {
            problems.push(format!("`{path}` has {size} {unit}, at most {most} are allowed"));
        }
    };
    match value {
        Value::String(text) => measure(text.chars().count(), "minLength", "maxLength", "characters"),
        Value::Array(items) => {
            measure(items.len(), "minItems", "maxItems", "items");
            if let Some(own) = schema.get("items") {
                for (at, item) in items.iter().enumerate() {
                    check(item, own, &format!("{path}[{at}]"), problems);
                }
            }
        }
        Value::Object(map) => object(map, schema, &format!("{path}."), problems),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Has the value a type that `schema` allows? Of what stands behind `anyOf` and `oneOf` only the types are looked at: a tool that minds more says
/// so itself.
fn has_type_of(value: &Value, schema: &Value) -> bool {
    let mut choices = CHOICES.iter().filter_map(|list| schema.get(list)?.as_array());
    schema.get("type").is_none_or(|kind| fits(value, kind)) && choices.all(|choices| is_of_one_type(value, choices))
}

/// An empty list takes all.
fn is_of_one_type(value: &Value, choices: &[Value]) -> bool {
    choices.is_empty() || choices.iter().any(|choice| has_type_of(value, choice))
}

/// `kind`: a type name or a list of them; one that is not known here accepts everything.
fn fits(value: &Value, kind: &Value) -> bool {
    match kind {
        Value::String(kind) => match kind.as_str() {
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
            "number" => value.is_number(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            "null" => value.is_null(),
            _ => true,
        },
        Value::Array(kinds) => kinds.iter().any(|kind| fits(value, kind)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => true,
    }
}

fn kind_words(kind: &Value) -> String {
    match kind {
        Value::Array(kinds) => kinds.iter().map(kind_words).collect::<Vec<_>>().join(" or "),
        Value::String(kind) if matches!(kind.as_str(), "array" | "object" | "integer") => format!("an {kind}"),
        Value::String(kind) => format!("a {kind}"),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => kind.to_string(),
    }
}

/// Arguments of a state tool; a `run_id` of the model's own making is ignored.
pub(in crate::reducer) fn own_arguments(text: &str, schema: &Value) -> Result<Map<String, Value>, String> {
    check_arguments(text, schema, &["run_id"])
}

/// Text of member `name`; blank counts as left out.
pub(in crate::reducer) fn text_member(map: &Map<String, Value>, name: &str) -> Option<String> {
    map.get(name)
        .and_then(Value::as_str)
        .map(str::trim)
        .filter(|text| !text.is_empty())
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::check_arguments;

    /// S1-7: what is wrong with arguments is told member by member.
    #[test]
    fn names_every_problem() {
        let schema = json!({"type": "object", "additionalProperties": false, "required": ["path", "mode"], "properties": {
            "path": {"type": "string", "minLength": 1}, "mode": {"enum": ["a", "b"]}, "depth": {"type": "integer"},
            "tags": {"type": "array", "maxItems": 1, "items": {"type": "string"}}}});
        let told = |text: &str| check_arguments(text, &schema, &[]).unwrap_err();
        assert!(told("{").contains("not valid JSON"));
        assert!(told("[1]").contains("one JSON object"));
        assert_eq!(
            told(r#"{"path": ""}"#),
            "`mode` is required; `path` has 0 characters, at least 1 are needed"
        );
        assert_eq!(told(r#"{"path": 1, "mode": "a"}"#), "`path` must be a string");
        assert_eq!(told(r#"{"path": "x", "mode": "c"}"#), r#"`mode` must be one of "a", "b""#);
        assert_eq!(told(r#"{"path": "x", "mode": "a", "depth": 1.5}"#), "`depth` must be an integer");
        assert!(told(r#"{"path": "x", "mode": "a", "deep": 1}"#).starts_with("unknown parameter `deep`; known: "));
        let tags = told(r#"{"path": "x", "mode": "a", "tags": ["y", 2]}"#);
        assert_eq!(tags, "`tags` has 2 items, at most 1 are allowed; `tags[1]` must be a string");
        assert!(told(r#"{"path": null, "mode": "a"}"#).contains("`path` must be a string"));
        assert!(
            check_arguments(r#"{"path": "x", "mode": "a", "depth": null}"#, &schema, &[])
                .unwrap()
                .get("depth")
                .is_none()
        );
        assert!(check_arguments(r#"{"path": "x", "mode": "a", "depth": 3.0, "deep": 1}"#, &schema, &["deep"]).is_ok());
    }

    /// attacks-2 N8: a type behind `anyOf` or `oneOf`, as Python's libraries write an optional argument, is a type.
    #[test]
    fn types_behind_any_of_hold() {
        for list in ["anyOf", "oneOf"] {
            let schema = json!({"type": "object", "properties": {
                "project": {list: [{"type": "string", "minLength": 2}, {"type": "null"}], "default": null},
                "who": {list: [{"type": "object", "required": ["id"]}, {list: [{"type": "integer"}, {"type": "string"}]}]},
                "rows": {"type": "array", "items": {list: [{"type": "string"}, {"type": "integer"}]}},
                "none": {list: [{"type": "string"}, {"type": "null"}], "type": "string"},
                "open": {list: []}, "free": {list: [{"$ref": "#/$defs/free"}]}}});
            for good in [
                r#"{"project": "HR"}"#,
                r#"{"project": null}"#,
                r#"{"who": {"id": 1}}"#,
                r#"{"who": 3}"#,
                r#"{"who": "me"}"#,
                r#"{"rows": ["a", 1]}"#,
                r#"{"open": [1]}"#,
                r#"{"free": [1]}"#,
                r#"{"other": [1]}"#,
            ] {
                assert!(check_arguments(good, &schema, &[]).is_ok(), "{list} {good}");
            }
            for bad in [
                r#"{"project": ["HR"]}"#,
                r#"{"project": {"key": "HR"}}"#,
                r#"{"project": 1}"#,
                r#"{"who": [1]}"#,
                r#"{"rows": [["a"]]}"#,
            ] {
                assert!(check_arguments(bad, &schema, &[]).is_err(), "{list} {bad}");
            }
            let told = check_arguments(r#"{"project": ["HR"]}"#, &schema, &[]).unwrap_err();
            assert_eq!(told, "`project` has none of the types that its schema allows: a string, a null");
            let none = check_arguments(r#"{"who": null, "none": null}"#, &schema, &[]).unwrap();
            assert!(none.is_empty(), "left out: {none:?}");
        }
    }
}
