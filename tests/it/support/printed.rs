//! JSON as text that a person compares: what fits on a line stands on one.

use serde_json::Value;

/// Characters of a line, without what it stands in.
const WIDTH: usize = 120;

/// `value` on as few lines as are easy to read.
pub fn printed(value: &Value) -> String {
    let mut text = String::new();
    print(value, 0, &mut text);
    text
}

fn print(value: &Value, depth: usize, text: &mut String) {
    let members: Vec<(String, &Value)> = match value {
        Value::Object(map) => map.iter().map(|(name, inner)| (format!("\"{name}\": "), inner)).collect(),
        Value::Array(list) => list.iter().map(|inner| (String::new(), inner)).collect(),
        _ => Vec::new(),
    };
    let whole = value.to_string();
    if members.is_empty() || whole.chars().count() <= WIDTH {
        text.push_str(&whole);
        return;
    }
    let (open, close) = if value.is_object() { ('{', '}') } else { ('[', ']') };
    text.push(open);
    let mut comma = "";
    for (name, inner) in members {
        text.push_str(&format!("{comma}\n{}{name}", "  ".repeat(depth + 1)));
        print(inner, depth + 1, text);
        comma = ",";
    }
    text.push_str(&format!("\n{}{close}", "  ".repeat(depth)));
}
