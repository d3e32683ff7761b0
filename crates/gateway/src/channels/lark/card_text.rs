//! The texts of somebody's card, as the list of messages shows it or as it was sent. All of it is foreign text.

use serde_json::Value;

/// Longest text that is kept, in characters.
const MAX_TEXT: usize = 4000;
/// How deep elements lie in each other.
const MAX_DEPTH: usize = 16;
/// Most elements of a list, and most rows of a table.
const MAX_ITEMS: usize = 200;
/// What Lark's list shows in the place of a card that its old format cannot hold.
const STAND_INS: [&str; 3] = [
    "请升级至最新版本客户端，以查看内容",
    "请升级至最新版本客户端",
    "Please upgrade to the latest version",
];

/// Members that hold texts or elements, in reading order.
const MEMBERS: [&str; 11] = [
    "header",
    "title",
    "subtitle",
    "text",
    "content",
    "fields",
    "body",
    "elements",
    "columns",
    "i18n_header",
    "i18n_elements",
];
/// Elements that people use, and pictures: they say nothing of their own.
const SILENT: [&str; 12] = [
    "action",
    "button",
    "input",
    "overflow",
    "checker",
    "date_picker",
    "picker_time",
    "picker_datetime",
    "select_static",
    "select_person",
    "img",
    "hr",
];

/// The title, texts, fields and headers of the card that is `content`; empty where there are none.
pub(super) fn card_text(content: &str) -> String {
    let Ok(card) = serde_json::from_str::<Value>(content) else {
        return String::new();
    };
    let mut lines = Lines::default();
    // Some lists hold the card as a text inside.
    let inner = card["json_card"].as_str().and_then(|inner| serde_json::from_str(inner).ok());
    lines.visit(&inner.unwrap_or(card), 0);
    lines.said.join("\n").chars().filter(|c| *c != '\0').take(MAX_TEXT).collect()
}

#[derive(Default)]
struct Lines {
    said: Vec<String>,
    length: usize,
}

impl Lines {
    fn say(&mut self, text: &str) {
        let text = text.trim();
        if !text.is_empty() && self.length < MAX_TEXT && !STAND_INS.iter().any(|stand_in| text.starts_with(stand_in)) {
            self.length += text.chars().count();
            self.said.push(text.to_owned());
        }
    }

    fn visit(&mut self, value: &Value, depth: usize) {
        if depth == MAX_DEPTH || self.length >= MAX_TEXT {
            return;
        }
        match value {
            Value::String(text) => self.say(text),
            // The list shows a card as rows of pieces, as in a post.
            Value::Array(items) if items.iter().any(Value::is_array) => {
                for row in items.iter().take(MAX_ITEMS) {
                    let pieces: String = row.as_array().into_iter().flatten().take(MAX_ITEMS).map(piece).collect();
                    self.say(&pieces);
                    self.inside(row, depth);
                }
            }
            Value::Array(items) => items.iter().take(MAX_ITEMS).for_each(|item| self.visit(item, depth + 1)),
            Value::Object(_) => self.element(value, depth),
            _ => {}
        }
    }

    /// What lies in the elements of a row that are no pieces of text.
    fn inside(&mut self, row: &Value, depth: usize) {
        let elements = row.as_array().into_iter().flatten().take(MAX_ITEMS);
        for element in elements.filter(|element| piece(element).is_empty()) {
            self.visit(element, depth + 1);
        }
    }

    fn element(&mut self, element: &Value, depth: usize) {
        match element["tag"].as_str() {
            Some(tag) if SILENT.contains(&tag) || tag.starts_with("multi_select") => {}
            Some("table") => self.table(element),
            Some("a" | "at") => self.say(&piece(element)),
            _ => {
                for name in MEMBERS {
                    match &element[name] {
                        // One language is enough.
                        Value::Object(languages) if name.starts_with("i18n_") => {
                            let language = languages.get("zh_cn").or_else(|| languages.values().next());
                            self.visit(language.unwrap_or(&Value::Null), depth + 1);
                        }
                        member => self.visit(member, depth + 1),
                    }
                }
            }
        }
    }

    fn table(&mut self, table: &Value) {
        let columns: Vec<&Value> = table["columns"].as_array().into_iter().flatten().take(MAX_ITEMS).collect();
        let heads: Vec<&str> = columns.iter().filter_map(|column| column["display_name"].as_str()).collect();
        self.say(&heads.join(" | "));
        for row in table["rows"].as_array().into_iter().flatten().take(MAX_ITEMS) {
            let cells = columns.iter().map(|column| cell(&row[column["name"].as_str().unwrap_or_default()]));
            self.say(&cells.collect::<Vec<_>>().join(" | "));
        }
    }
}

/// A piece of a row; empty for what is none.
fn piece(element: &Value) -> String {
    let text = |name: &str| element[name].as_str().unwrap_or_default();
    match text("tag") {
        "text" | "md" | "plain_text" | "lark_md" => [text("text"), text("content")].concat(),
        "a" => match text("href") {
            "" => text("text").to_owned(),
            href if href == text("text") => href.to_owned(),
            href => format!("{} ({href})", text("text")),
        },
        "at" => {
            let names = [text("user_name"), text("user_id")];
            format!("@{}", names.into_iter().find(|name| !name.is_empty()).unwrap_or_default())
        }
        "emotion" => format!("[{}]", text("emoji_type")),
        _ => String::new(),
    }
}

fn cell(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Array(items) => {
            let texts = items.iter().take(MAX_ITEMS).filter_map(|item| item["text"].as_str());
            texts.collect::<Vec<_>>().join(" ")
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(card: &Value) -> String {
        card_text(&card.to_string())
    }

    /// outside PF-1: as the list shows a card: a title, and rows of pieces; buttons say nothing.
    #[test]
    fn listed_cards_are_read() {
        let card = json!({"title": "磁盘告警", "elements": [
            [{"tag": "text", "text": "主机 "}, {"tag": "a", "text": "db-7", "href": "https://a.example"}, {"tag": "at", "user_id": "ou_1", "user_name": "李"}],
            [{"tag": "button", "text": "处理", "type": "primary"}],
            [{"tag": "text", "text": "用到 95%"}],
            [{"tag": "note", "elements": [{"tag": "text", "text": "来自 Monitor"}]}]]});
        assert_eq!(read(&card), "磁盘告警\n主机 db-7 (https://a.example)@李\n用到 95%\n来自 Monitor");
        let newer = json!({"title": null, "elements": [[{"tag": "text", "text": "请升级至最新版本客户端，以查看内容"}]]});
        assert_eq!(read(&newer), "");
        assert_eq!(card_text("no JSON"), "");
        assert_eq!(read(&json!({"type": "template", "data": {"template_id": "x"}})), "");
    }

    /// outside PF-1: cards as they were sent, of both versions: header, texts, fields, columns, notes, tables.
    #[test]
    fn raw_cards_are_read() {
        let second = json!({"schema": "2.0", "header": {"title": {"tag": "plain_text", "content": "磁盘告警"}, "subtitle": {"tag": "plain_text", "content": "生产"}},
            "body": {"elements": [
                {"tag": "markdown", "content": "主机 **db-7**"},
                {"tag": "div", "text": {"tag": "lark_md", "content": "用到 95%"}, "fields": [{"is_short": true, "text": {"tag": "lark_md", "content": "级别：严重"}}]},
                {"tag": "column_set", "columns": [{"tag": "column", "elements": [{"tag": "markdown", "content": "左"}]}, {"tag": "column", "elements": [{"tag": "markdown", "content": "右"}]}]},
                {"tag": "collapsible_panel", "header": {"title": {"tag": "plain_text", "content": "详情"}}, "elements": [{"tag": "markdown", "content": "日志"}]},
                {"tag": "table", "columns": [{"name": "h", "display_name": "主机"}, {"name": "n", "display_name": "用量"}], "rows": [{"h": "db-7", "n": 95}]},
                {"tag": "button", "text": {"tag": "plain_text", "content": "处理"}}]}});
        let lines = "磁盘告警\n生产\n主机 **db-7**\n用到 95%\n级别：严重\n左\n右\n详情\n日志\n主机 | 用量\ndb-7 | 95";
        assert_eq!(read(&second), lines);
        assert_eq!(read(&json!({"json_card": second.to_string()})), lines);
        let first = json!({"header": {"title": {"tag": "plain_text", "content": "磁盘告警"}}, "elements": [
            {"tag": "div", "text": {"tag": "plain_text", "content": "用到 95%"}}, {"tag": "hr"},
            {"tag": "action", "actions": [{"tag": "button", "text": {"tag": "plain_text", "content": "处理"}}]},
            {"tag": "note", "elements": [{"tag": "plain_text", "content": "来自 Monitor"}]}]});
        assert_eq!(read(&first), "磁盘告警\n用到 95%\n来自 Monitor");
        assert_eq!(
            read(
                &json!({"i18n_elements": {"en_us": [{"tag": "markdown", "content": "en"}], "zh_cn": [{"tag": "markdown", "content": "中"}]}})
            ),
            "中"
        );
    }

    /// Foreign cards have no end.
    #[test]
    fn depth_and_length_are_bounded() {
        let mut deep = json!({"tag": "markdown", "content": "innermost"});
        for _ in 0..30 {
            deep = json!({"elements": [deep]});
        }
        assert_eq!(read(&deep), "");
        let long: Vec<Value> = (0..300).map(|_| json!({"tag": "markdown", "content": "长".repeat(100)})).collect();
        assert_eq!(read(&json!({"elements": long})).chars().count(), 4000);
    }
}
