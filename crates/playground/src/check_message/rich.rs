//! Rich text: sections, lists, quotes and preformatted text, and the elements inside them.

use serde_json::Value;

use super::faults::{Faults, is_group, is_link};
use super::is_user;

/// One `rich_text` block, or a table's cell.
pub(super) fn check_rich_text(faults: &mut Faults, at: &str, block: &Value) {
    faults.known(at, block, &["type", "block_id", "elements"]);
    for part in faults.list(at, block, "elements", usize::MAX) {
        match part["type"].as_str().unwrap_or_default() {
            "rich_text_section" => inline(faults, at, part, &["type", "elements"]),
            "rich_text_quote" | "rich_text_preformatted" => inline(faults, at, part, &["type", "elements", "border"]),
            "rich_text_list" => list(faults, at, part),
            other => faults.add(at, format_args!("unknown rich text part {other:?}")),
        }
    }
}

fn list(faults: &mut Faults, at: &str, list: &Value) {
    faults.known(at, list, &["type", "style", "indent", "offset", "border", "elements"]);
    if list["style"].is_null() {
        faults.add(at, "a list without style");
    }
    faults.one_of(at, list, "style", &["bullet", "ordered"]);
    if !list["indent"].is_null() && list["indent"].as_u64().is_none_or(|indent| indent > 8) {
        faults.add(at, "indent is not 0 to 8");
    }
    for item in faults.list(at, list, "elements", usize::MAX) {
        if item["type"] == "rich_text_section" {
            inline(faults, at, item, &["type", "elements"]);
        } else {
            faults.add(at, "a list item that is no section");
        }
    }
}

fn inline(faults: &mut Faults, at: &str, part: &Value, known: &[&str]) {
    faults.known(at, part, known);
    for element in faults.list(at, part, "elements", usize::MAX) {
        match element["type"].as_str().unwrap_or_default() {
            "text" => {
                faults.known(at, element, &["type", "text", "style"]);
                words(faults, at, element);
            }
            "link" => {
                faults.known(at, element, &["type", "url", "text", "style", "unsafe"]);
                let url = faults.string(at, element, "url", 3000);
                if !is_link(url) {
                    faults.add(at, "a link that leads to no page");
                }
                if !element["text"].is_null() {
                    words(faults, at, element);
                }
            }
            "user" => {
                faults.known(at, element, &["type", "user_id", "style"]);
                if !element["user_id"].as_str().is_some_and(is_user) {
                    faults.add(at, format_args!("{} is no user", element["user_id"]));
                }
            }
            "emoji" => {
                faults.known(at, element, &["type", "name", "unicode", "style"]);
                faults.string(at, element, "name", 255);
            }
            "usergroup" => {
                faults.known(at, element, &["type", "usergroup_id", "style"]);
                if !element["usergroup_id"].as_str().is_some_and(is_group) {
                    faults.add(at, format_args!("{} is no usergroup", element["usergroup_id"]));
                }
            }
            "channel" => {
                faults.known(at, element, &["type", "channel_id", "style"]);
                if !element["channel_id"].as_str().is_some_and(|id| id.starts_with(['C', 'G'])) {
                    faults.add(at, format_args!("{} is no channel", element["channel_id"]));
                }
            }
            "date" => {
                faults.known(at, element, &["type", "timestamp", "format", "url", "fallback"]);
                faults.string(at, element, "fallback", usize::MAX);
                let format = faults.string(at, element, "format", usize::MAX);
                if element["timestamp"].as_i64().is_none() || !format.contains('{') {
                    faults.add(at, "a date without its moment or its format");
                }
            }
            // `broadcast` and `team` exist, and call people whom nobody asked for.
            other => faults.add(at, format_args!("an element that we do not make: {other:?}")),
        }
    }
}

fn words(faults: &mut Faults, at: &str, element: &Value) {
    let text = faults.string(at, element, "text", usize::MAX);
    if text.contains("<!") || text.contains("<@") {
        faults.add(at, "text that looks like a mention");
    }
    let style = &element["style"];
    if !style.is_null() && faults.known(at, style, &["bold", "italic", "strike", "code", "underline"]) {
        let on = style.as_object().is_some_and(|style| style.values().all(Value::is_boolean));
        if !on {
            faults.add(at, "a style that is neither on nor off");
        }
    }
}
