//! The checker's small rules: known properties, allowed values, and the tags that may stand in Markdown.

use serde_json::{Map, Value};

/// Properties that every component takes.
const COMMON: [&str; 3] = ["tag", "element_id", "margin"];

pub(super) fn behaviors(map: &Map<String, Value>, at: &str) -> Result<(), String> {
    for behavior in map.get("behaviors").and_then(Value::as_array).map_or(&[][..], Vec::as_slice) {
        match behavior["type"].as_str() {
            Some("callback") if behavior["value"].is_object() => {}
            Some("open_url") if behavior["default_url"].is_string() => {}
            _ => return Err(format!("{at}: behavior {behavior} is not known")),
        }
    }
    Ok(())
}

/// The tags inside Markdown: only documented ones, mentions only of one person. That `all` is refused is our rule,
/// not the platform's: nothing of ours ever calls a whole chat.
pub(super) fn check_markdown(content: &str) -> Result<(), String> {
    const TAGS: [&str; 7] = ["at", "font", "text_tag", "link", "br", "hr", "local_datetime"];
    const MOMENTS: [&str; 8] = [
        "date_num",
        "date_short",
        "date",
        "week",
        "week_short",
        "time",
        "time_sec",
        "timezone",
    ];
    let mut rest = content;
    while let Some(start) = rest.find('<') {
        rest = &rest[start + 1..];
        let body = rest.strip_prefix('/').unwrap_or(rest);
        if !body.starts_with(|c: char| c.is_alphabetic()) {
            continue;
        }
        let name: String = body.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
        if !TAGS.contains(&name.as_str()) {
            return Err(format!("tag <{name}> in Markdown"));
        }
        if name == "local_datetime" && !rest.starts_with('/') {
            let attributes = body.split_once('>').map_or("", |(attributes, _)| attributes);
            let value = |name: &str| attributes.split_once(name)?.1.split('\'').nth(1);
            let moment = value("millisecond=").is_some_and(|digits| digits.parse::<i64>().is_ok());
            if !moment || !value("format_type=").is_some_and(|format| MOMENTS.contains(&format)) {
                return Err(format!("moment {attributes:?}"));
            }
        }
        if name == "at" && !rest.starts_with('/') {
            let id = body["at".len()..].split_once('>').map_or("", |(attributes, _)| attributes.trim());
            let id = id.strip_prefix("id=").unwrap_or_default().trim_matches(['\'', '"']);
            let legal = !id.is_empty() && id != "all" && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
            if !legal {
                return Err(format!("mention of {id:?} (100290)"));
            }
        }
    }
    Ok(())
}

pub(super) fn object<'a>(value: &'a Value, at: &str) -> Result<&'a Map<String, Value>, String> {
    value.as_object().ok_or_else(|| format!("{at} is not an object"))
}

pub(super) fn allowed(map: &Map<String, Value>, at: &str, own: &[&str]) -> Result<(), String> {
    known(map, at, &[&COMMON[..], own].concat())
}

pub(super) fn known(map: &Map<String, Value>, at: &str, names: &[&str]) -> Result<(), String> {
    match map.keys().find(|key| !names.contains(&key.as_str())) {
        Some(key) => Err(format!("{at}: property {key:?} is not known to 2.0")),
        None => Ok(()),
    }
}

pub(super) fn one_of(map: &Map<String, Value>, key: &str, at: &str, values: &[&str]) -> Result<(), String> {
    match map.get(key) {
        Some(value) if !value.as_str().is_some_and(|value| values.contains(&value)) => Err(format!("{at}: {key} {value} is not known")),
        _ => Ok(()),
    }
}
