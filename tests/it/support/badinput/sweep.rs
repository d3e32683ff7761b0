//! The type sweep over the valid bases: every field removed, and with every bad value.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{Record, ascii};

/// The type sweep over a base record: every field, removed and with each bad value. None of them may give 5xx, a
/// panic, or a turn for another actor or chat.
pub fn mutations(record: &Record) -> Vec<Record> {
    let mode = record.mutate.as_deref().unwrap();
    let body = String::from_utf8(STANDARD.decode(&record.body_b64).unwrap()).unwrap();
    let form: Vec<(String, String)> = if mode.starts_with("form") { parse_form(&body) } else { Vec::new() };
    let field = mode.split_once(':').map(|(_, field)| field);
    let root: Value = match (mode, field) {
        ("form", _) => form.iter().map(|(key, value)| (key.clone(), json!(value))).collect(),
        (_, Some(field)) => serde_json::from_str(&form.iter().find(|(key, _)| key == field).unwrap().1).unwrap(),
        _ => serde_json::from_str(&body).unwrap(),
    };
    let bad = bad_values();
    let mut out = Vec::new();
    for path in paths(&root) {
        for (number, value) in std::iter::once(None).chain(bad.iter().map(Some)).enumerate() {
            if mode == "form" && value.is_some_and(|value| !value.is_string()) {
                continue;
            }
            let changed = with(&root, &path, value);
            let body = match (mode, field) {
                ("form", _) => {
                    let pairs = changed.as_object().unwrap().iter();
                    form_encode(pairs.map(|(key, value)| (key.as_str(), value.as_str().unwrap().to_owned())))
                }
                (_, Some(field)) => form_encode(form.iter().map(|(key, value)| {
                    let text = if key == field {
                        String::from_utf8(ascii(&changed)).unwrap()
                    } else {
                        value.clone()
                    };
                    (key.as_str(), text)
                })),
                _ => ascii(&changed),
            };
            out.push(Record {
                name: format!("{}/{}/{number}", record.name, path.join(".")),
                body_b64: STANDARD.encode(body),
                expect_status_class: "not 5xx".to_owned(),
                ..record.clone()
            });
        }
    }
    out
}

fn bad_values() -> Vec<Value> {
    vec![
        json!(null),
        json!(true),
        json!(0),
        json!(-1),
        json!(1e308),
        json!(""),
        json!("\0"),
        json!(" "),
        json!([]),
        json!({}),
        json!([[]]),
        json!({"a": 1}),
        json!("x".repeat(10_240)),
        json!("\u{202e}\u{200b}\u{1F468}\u{200D}\u{1F469}"),
        json!("</plan_feedback>"),
    ]
}

/// Every member and item below `root`, as the keys and indices that lead there.
fn paths(root: &Value) -> Vec<Vec<String>> {
    let children: Vec<(String, &Value)> = match root {
        Value::Object(members) => members.iter().map(|(key, value)| (key.clone(), value)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(at, value)| (at.to_string(), value)).collect(),
        _ => Vec::new(),
    };
    let mut out = Vec::new();
    for (key, value) in children {
        out.push(vec![key.clone()]);
        out.extend(paths(value).into_iter().map(|mut below| {
            below.insert(0, key.clone());
            below
        }));
    }
    out
}

/// `root` with the value at `path` replaced, or removed when there is none.
fn with(root: &Value, path: &[String], value: Option<&Value>) -> Value {
    let mut root = root.clone();
    let (last, before) = path.split_last().unwrap();
    let parent = root
        .pointer_mut(&before.iter().map(|key| format!("/{key}")).collect::<String>())
        .unwrap();
    match (parent, value) {
        (Value::Array(items), None) => drop(items.remove(last.parse().unwrap())),
        (Value::Object(members), None) => drop(members.remove(last)),
        (parent, Some(value)) => *parent.pointer_mut(&format!("/{last}")).unwrap() = value.clone(),
        (_, None) => panic!("only objects and arrays have children"),
    }
    root
}

fn parse_form(text: &str) -> Vec<(String, String)> {
    text.split('&')
        .map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (percent_decode(key), percent_decode(value))
        })
        .collect()
}

fn percent_decode(text: &str) -> String {
    let (mut out, mut bytes) = (Vec::new(), text.bytes());
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digits = [bytes.next().unwrap(), bytes.next().unwrap()];
                hex::decode(digits).unwrap()[0]
            }
            other => other,
        });
    }
    String::from_utf8(out).unwrap()
}

fn form_encode<'a>(pairs: impl Iterator<Item = (&'a str, String)>) -> Vec<u8> {
    let encode = |text: &str| -> String {
        text.bytes()
            .map(|byte| match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'.' | b'-' | b'~' => char::from(byte).to_string(),
                b' ' => "+".to_owned(),
                other => format!("%{other:02X}"),
            })
            .collect()
    };
    let pairs: Vec<String> = pairs.map(|(key, value)| format!("{}={}", encode(key), encode(&value))).collect();
    pairs.join("&").into_bytes()
}
