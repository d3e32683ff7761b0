//! The effective configuration as YAML: every key, secrets hidden, where each value comes from.

use std::fmt::Write as _;

use config::{Value, ValueKind};

use super::key::{Key, Since};
use super::kind::Kind;
use super::layer::default;
use super::secret::{self, HIDDEN};
use super::table::{KEY_FILE, KEYS};
use super::values::Values;

/// A line of what is printed: the key's path, its value, and what is said behind it.
pub(super) type PrintedLine = (String, String, String);

/// Every key in the order of the table. What is not a default says behind `#` where it was set.
pub(super) fn render(layered: &Values) -> String {
    render_lines(
        KEYS.iter()
            .map(|key| key_line(key, key.path, layered.at(key.path), layered.origin(key.path))),
    )
}

/// The line of `key` at `path`, whose value was set at `origin`.
pub(super) fn key_line(key: &Key, path: &str, value: Option<&Value>, origin: Option<&str>) -> PrintedLine {
    let value = value.map_or_else(|| flow(key.kind, &[], &default(key)), |value| flow(key.kind, &[], &value.kind));
    let note = match key.since {
        Since::Later => "not in this version",
        Since::Served => origin.unwrap_or_default(),
    };
    (path.to_owned(), value, note.to_owned())
}

/// The lines as nested YAML.
pub(super) fn render_lines(lines: impl Iterator<Item = PrintedLine>) -> String {
    let mut out = String::new();
    let mut open: Vec<String> = Vec::new();
    for (path, value, note) in lines {
        let parts: Vec<&str> = path.split('.').collect();
        let Some((name, sections)) = parts.split_last() else { continue };
        let shared = open.iter().zip(sections).take_while(|(a, b)| a == *b).count();
        open.truncate(shared);
        for section in &sections[shared..] {
            line(&mut out, open.len(), section, "", "");
            open.push((*section).to_owned());
        }
        line(&mut out, open.len(), name, &value, &note);
    }
    out
}

fn line(out: &mut String, depth: usize, name: &str, value: &str, note: &str) {
    let gap = if value.is_empty() { "" } else { " " };
    let comment = if note.is_empty() {
        String::new()
    } else {
        format!("  # {}", note.escape_debug())
    };
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{:indent$}{name}:{gap}{value}{comment}", "", indent = depth * 2);
}

/// A text, or texts, as a value.
pub(super) fn of_text(value: impl Into<ValueKind>) -> String {
    flow(Kind::Text, &[], &value.into())
}

/// The value at `path` below a key of this `kind` in YAML's flow style, `***` for every secret. Text that could be a URL loses its password.
fn flow(kind: Kind, path: &[&str], value: &ValueKind) -> String {
    match value {
        ValueKind::Nil => "null".into(),
        ValueKind::Boolean(value) => value.to_string(),
        ValueKind::I64(value) => value.to_string(),
        ValueKind::I128(value) => value.to_string(),
        ValueKind::U64(value) => value.to_string(),
        ValueKind::U128(value) => value.to_string(),
        ValueKind::Float(value) => format!("{value:?}"),
        ValueKind::String(text) if kind.hides(path, text) => quoted(HIDDEN),
        ValueKind::String(text) if is_plain(text) => text.clone(),
        ValueKind::String(text) => quoted(&secret::without_password(text)),
        ValueKind::Array(items) => {
            let items: Vec<_> = items.iter().map(|item| flow(kind, path, &item.kind)).collect();
            format!("[{}]", items.join(", "))
        }
        ValueKind::Table(table) => {
            // The file says it.
            let is_in_a_file = |name: &str| matches!(kind, Kind::Sections(_)) && name == "api_key" && table.contains_key(KEY_FILE);
            let shown = table.iter().filter(|(name, _)| !is_in_a_file(name));
            let entry = |(name, value): (&String, &Value)| {
                let below = [path, &[name.as_str()]].concat();
                format!("{}: {}", quoted(name), flow(kind, &below, &value.kind))
            };
            let mut entries: Vec<_> = shown.map(entry).collect();
            entries.sort();
            format!("{{{}}}", entries.join(", "))
        }
    }
}

/// Can the text stand without quotes and stay text?
fn is_plain(text: &str) -> bool {
    let word = text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
    word && !["true", "false", "null", "yes", "no", "on", "off", "y", "n"].contains(&text.to_ascii_lowercase().as_str())
}

/// A JSON string is a double-quoted YAML scalar.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
