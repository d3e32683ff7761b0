//! The model's Markdown as Block Kit rich text.

use serde_json::{Value, json};

/// `markdown` as blocks of a message: a paragraph a section. Nothing in it can mention anybody.
pub(super) fn blocks(markdown: &str) -> Vec<Value> {
    let sections: Vec<Value> = markdown
        .split("\n\n")
        .map(str::trim)
        .filter(|paragraph| !paragraph.is_empty())
        .map(|paragraph| json!({"type": "rich_text_section", "elements": [{"type": "text", "text": format!("{paragraph}\n")}]}))
        .collect();
    if sections.is_empty() {
        return Vec::new();
    }
    vec![json!({"type": "rich_text", "elements": sections})]
}
