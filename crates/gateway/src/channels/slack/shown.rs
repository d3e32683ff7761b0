//! What a message shows: its words, and the texts of its blocks and attachments. All of it is foreign text.

use countersign_agent::domain::ChatType;
use serde_json::Value;

use super::text::SlackText;

/// What Slack itself writes in the place of what it cannot put into words.
const STAND_INS: [&str; 3] = [
    "This content can't be displayed.",
    "This content can’t be displayed.",
    "[no preview available]",
];
/// How deep attachments, and the elements of rich text, lie in each other.
const MAX_DEPTH: usize = 4;
/// Most blocks or attachments of a list, and most rows of a table.
const MAX_ITEMS: usize = 100;

/// The words of a listed message, and what it shows below them.
pub(super) fn shown(message: &Value) -> String {
    let mut shown = ShownTexts::default();
    shown.say(&readable(&message["text"]));
    let of_app = is_text(&message["bot_id"]) || is_text(&message["app_id"]) || message["subtype"] == "bot_message";
    // The blocks of a person hold the words once more.
    if of_app || shown.pieces.is_empty() {
        shown.blocks(&message["blocks"]);
    }
    shown.attachments(&message["attachments"], 0);
    shown.text()
}

/// What one attachment shows: an alert, a preview, or a message that somebody shared.
pub(super) fn attached(attachment: &Value) -> String {
    let mut shown = ShownTexts::default();
    shown.attachment(attachment, 0);
    shown.text()
}

/// Does the message hold anything below its words?
pub(super) fn has_more_than_words(message: &Value) -> bool {
    let is_full = |name: &str| message[name].as_array().is_some_and(|items| !items.is_empty());
    is_full("blocks") || is_full("attachments")
}

/// Markup as words; people are named by their ids.
fn readable(markup: &Value) -> String {
    let message = SlackText::parse(markup.as_str().unwrap_or_default()).into_message(None, ChatType::Group, Vec::new());
    message.addressed("").text
}

fn is_text(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.is_empty())
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten().take(MAX_ITEMS)
}

/// The pieces of text in reading order. What is there already is not said again.
#[derive(Default)]
struct ShownTexts {
    pieces: Vec<String>,
}

impl ShownTexts {
    fn text(self) -> String {
        self.pieces.join("\n")
    }

    fn say(&mut self, text: &str) {
        let text = text.trim();
        if !text.is_empty() && !STAND_INS.contains(&text) && !self.pieces.iter().any(|piece| piece == text) {
            self.pieces.push(text.to_owned());
        }
    }

    fn blocks(&mut self, blocks: &Value) {
        for block in items(blocks) {
            match block["type"].as_str().unwrap_or_default() {
                "header" => self.say(&text_object(&block["text"])),
                "section" => {
                    self.say(&text_object(&block["text"]));
                    items(&block["fields"]).for_each(|field| self.say(&text_object(field)));
                }
                "context" => {
                    let texts: Vec<String> = items(&block["elements"]).map(text_object).collect();
                    self.say(&texts.join(" "));
                }
                "rich_text" => items(&block["elements"]).for_each(|part| self.say(&rich(part, 0))),
                "markdown" => self.say(block["text"].as_str().unwrap_or_default()),
                "table" => {
                    for row in items(&block["rows"]) {
                        let cells: Vec<String> = items(row).map(cell).collect();
                        self.say(&cells.join(" | "));
                    }
                }
                "image" | "video" => self.say(&text_object(&block["title"])),
                _ => {}
            }
        }
    }

    fn attachments(&mut self, attachments: &Value, depth: usize) {
        items(attachments).for_each(|one| self.attachment(one, depth));
    }

    fn attachment(&mut self, one: &Value, depth: usize) {
        if depth == MAX_DEPTH {
            return;
        }
        let before = self.pieces.len();
        for name in ["pretext", "title", "text"] {
            self.say(&readable(&one[name]));
        }
        for field in items(&one["fields"]) {
            let (title, value) = (readable(&field["title"]), readable(&field["value"]));
            self.say(&if title.is_empty() { value } else { format!("{title}: {value}") });
        }
        self.blocks(&one["blocks"]);
        let wordless = self.pieces.len() == before;
        for inner in items(&one["message_blocks"]).map(|inner| &inner["message"]["blocks"]) {
            // Of a person's message that was shared, rich text holds the words once more.
            if wordless || items(inner).any(|block| block["type"] != "rich_text") {
                self.blocks(inner);
            }
        }
        self.attachments(&one["attachments"], depth + 1);
        if self.pieces.len() == before {
            self.say(&readable(&one["fallback"]));
        }
    }
}

/// A text object: markup, or plain text.
fn text_object(object: &Value) -> String {
    match object["type"].as_str() {
        Some("mrkdwn") => readable(&object["text"]),
        Some("plain_text" | "raw_text") => object["text"].as_str().unwrap_or_default().to_owned(),
        _ => String::new(),
    }
}

fn cell(cell: &Value) -> String {
    match cell["type"].as_str() {
        Some("rich_text") => items(&cell["elements"]).map(|part| rich(part, 0)).collect(),
        _ => text_object(cell),
    }
}

/// A part of rich text as words.
fn rich(part: &Value, depth: usize) -> String {
    let text = |name: &str| part[name].as_str().unwrap_or_default();
    let inside = |separator: &str, mark: &str| -> String {
        if depth == MAX_DEPTH {
            return String::new();
        }
        let parts = items(&part["elements"]).map(|inner| format!("{mark}{}", rich(inner, depth + 1)));
        parts.collect::<Vec<_>>().join(separator)
    };
    match text("type") {
        "rich_text_section" | "rich_text_quote" | "rich_text_preformatted" => inside("", ""),
        "rich_text_list" => inside("\n", "- "),
        "text" => text("text").to_owned(),
        "link" => match text("text") {
            "" => text("url").to_owned(),
            label if label == text("url") => label.to_owned(),
            label => format!("{label} ({})", text("url")),
        },
        "user" => format!("@{}", text("user_id")),
        "usergroup" => format!("@{}", text("usergroup_id")),
        "broadcast" => format!("@{}", text("range")),
        "channel" => format!("#{}", text("channel_id")),
        "emoji" => format!(":{}:", text("name")),
        "date" => text("fallback").to_owned(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests;
