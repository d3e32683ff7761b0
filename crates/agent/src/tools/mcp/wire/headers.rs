//! Arguments that the server wants in headers, too, so that what stands between can route by them (`x-mcp-header`, from 2026-07-28 on). Pure.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use reqwest::header::{HeaderName, HeaderValue};
use serde_json::Value;

/// The mark of an argument in a schema.
const MARK: &str = "x-mcp-header";
/// Marked arguments of a tool.
const MAX_MARKED: usize = 32;
/// Levels of objects in which they may stand.
const MAX_DEPTH: usize = 8;

/// A marked argument: where it stands, and what its header ends with.
pub(crate) type Marked = (Vec<String>, String);

/// The marked arguments of a schema.
///
/// # Errors
/// A mark that the protocol does not allow: such a tool is not to be offered.
pub(crate) fn marked(schema: &Value) -> Result<Vec<Marked>, String> {
    let mut found = Vec::new();
    collect(schema, &mut Vec::new(), &mut found)?;
    let names: BTreeSet<String> = found.iter().map(|(_, name)| name.to_ascii_lowercase()).collect();
    match names.len() < found.len() || found.len() > MAX_MARKED || marks(schema) > found.len() {
        true => Err(String::from("arguments of it are marked for headers in a way that is not allowed")),
        false => Ok(found),
    }
}

fn collect(schema: &Value, path: &mut Vec<String>, found: &mut Vec<Marked>) -> Result<(), String> {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        path.push(name.clone());
        if let Some(mark) = property.get(MARK) {
            let token = |text: &&str| !text.is_empty() && HeaderName::from_bytes(text.as_bytes()).is_ok();
            let plain = matches!(property["type"].as_str(), Some("string" | "integer" | "boolean"));
            match mark.as_str().filter(token).filter(|_| plain) {
                Some(mark) => found.push((path.clone(), mark.to_owned())),
                None => return Err(format!("its argument {} cannot be sent in a header", name.escape_debug())),
            }
        }
        if path.len() < MAX_DEPTH {
            collect(property, path, found)?;
        }
        path.pop();
    }
    Ok(())
}

/// Marks anywhere in a schema. What stands in values is none.
fn marks(schema: &Value) -> usize {
    match schema {
        Value::Object(members) => {
            let inside = members
                .iter()
                .filter(|(name, _)| !matches!(name.as_str(), "default" | "const" | "enum" | "examples"));
            inside
                .map(|(name, member)| usize::from(name == MARK && !member.is_object()) + marks(member))
                .sum()
        }
        Value::Array(items) => items.iter().map(marks).sum(),
        _ => 0,
    }
}

/// The headers of a request.
pub(super) fn of(version: &str, method: &str, params: &Value, marked: &[Marked]) -> Vec<(HeaderName, HeaderValue)> {
    let mut headers = vec![
        (String::from("mcp-protocol-version"), version.to_owned()),
        (String::from("mcp-method"), method.to_owned()),
    ];
    headers.extend(params["name"].as_str().map(|name| (String::from("mcp-name"), name.to_owned())));
    for (path, ending) in marked {
        let value = path.iter().try_fold(&params["arguments"], |value, name| value.get(name));
        let text = match value {
            Some(Value::String(text)) => text.clone(),
            Some(plain @ (Value::Bool(_) | Value::Number(_))) => plain.to_string(),
            _ => continue,
        };
        headers.push((format!("mcp-param-{ending}"), text));
    }
    let fit = |(name, value): (String, String)| {
        Some((
            HeaderName::from_bytes(name.as_bytes()).ok()?,
            HeaderValue::from_str(&encoded(&value)).ok()?,
        ))
    };
    headers.into_iter().filter_map(fit).collect()
}

/// As it is, or in Base64 where a header could not hold it so.
fn encoded(value: &str) -> String {
    let fits = value.bytes().all(|byte| (0x20..0x7f).contains(&byte)) && value.trim_matches(' ') == value;
    let looks_encoded = value.starts_with("=?base64?") && value.ends_with("?=");
    match fits && !looks_encoded {
        true => value.to_owned(),
        false => format!("=?base64?{}?=", BASE64_STANDARD.encode(value)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// interface §10 M, protocol 2026-07-28: marked arguments go into headers, wherever they stand, in a form that a header can hold.
    #[test]
    fn marked_arguments_are_sent_in_headers() {
        let schema = json!({"properties": {
            "region": {"type": "string", "x-mcp-header": "Region"}, "plain": {"type": "string"},
            "to": {"type": "object", "properties": {"urgent": {"type": "boolean", "x-mcp-header": "Urgent"}, "n": {"type": "integer", "x-mcp-header": "N"}}}}});
        let params = json!({"name": "get", "arguments": {"region": "北京 ", "plain": "x", "to": {"urgent": true}}});
        let sent = of("2026-07-28", "tools/call", &params, &marked(&schema).unwrap());
        let sent: Vec<(&str, &str)> = sent.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
        let region = format!("=?base64?{}?=", BASE64_STANDARD.encode("北京 "));
        assert_eq!(
            sent,
            [
                ("mcp-protocol-version", "2026-07-28"),
                ("mcp-method", "tools/call"),
                ("mcp-name", "get"),
                ("mcp-param-region", region.as_str()),
                ("mcp-param-urgent", "true"),
            ]
        );
        for wrong in [
            json!({"properties": {"a": {"type": "string", "x-mcp-header": ""}}}),
            json!({"properties": {"a": {"type": "string", "x-mcp-header": "a b"}}}),
            json!({"properties": {"a": {"type": "number", "x-mcp-header": "A"}}}),
            json!({"properties": {"a": {"type": "string", "x-mcp-header": "A"}, "b": {"type": "string", "x-mcp-header": "a"}}}),
            json!({"properties": {"a": {"type": "array", "items": {"type": "string", "x-mcp-header": "A"}}}}),
            json!({"x-mcp-header": "A"}),
        ] {
            assert!(marked(&wrong).is_err(), "{wrong}");
        }
    }
}
