//! Block Kit as lines of text.

use serde_json::Value;

use super::{WIDTH, wrap};
use crate::posted::spoken;

/// The blocks of a message as the lines inside its frame; `─` is a rule across it.
pub(super) fn lines(blocks: &[Value]) -> Vec<String> {
    let mut lines = Vec::new();
    for block in blocks {
        draw(block, &mut lines);
    }
    lines
}

fn draw(block: &Value, lines: &mut Vec<String>) {
    let elements = || block["elements"].as_array().into_iter().flatten();
    match block["type"].as_str() {
        Some("header") => {
            lines.push(format!("■ {}", block["text"]["text"].as_str().unwrap_or_default()));
            lines.push(String::from("─"));
        }
        Some("divider") => lines.push(String::from("─")),
        Some("actions") => {
            let buttons: Vec<String> = elements()
                .map(|button| format!("( {} )", button["text"]["text"].as_str().unwrap_or_default()))
                .collect();
            lines.push(buttons.join("  "));
        }
        Some("rich_text") => elements().for_each(|part| draw(part, lines)),
        Some("rich_text_list") => {
            let ordered = block["style"] == "ordered";
            for (at, item) in elements().enumerate() {
                let mark = if ordered { format!("{}. ", at + 1) } else { String::from("• ") };
                text(item, &mark, lines);
            }
        }
        Some("rich_text_preformatted" | "rich_text_quote") => text(block, "┆ ", lines),
        _ => text(block, "", lines),
    }
}

/// The text of a part, with `mark` before its first line.
fn text(part: &Value, mark: &str, lines: &mut Vec<String>) {
    let mut words = Vec::new();
    spoken(part, &mut words);
    let whole = words.join("\n").replace("**", "").replace('`', "");
    lines.extend(wrap(&format!("{mark}{}", whole.trim_end()), WIDTH));
}
