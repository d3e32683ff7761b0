//! Draws a message as a person would see it, with box characters.

use countersign_agent::domain::Millis;
use serde_json::Value;
use unicode_width::UnicodeWidthChar;

use crate::posted::spoken;

/// Inner width of a card, in terminal columns.
const WIDTH: usize = 68;

/// A card (or the plain text of a text message) as lines.
pub fn drawn(content: &Value) -> Vec<String> {
    if let Some(blocks) = content["blocks"].as_array().filter(|blocks| !blocks.is_empty()) {
        return {
            let mut lines = Vec::new();
            blocks.iter().for_each(|block| draw_block(block, &mut lines));
            frame(&lines)
        };
    }
    if let Some(text) = content.get("text").and_then(Value::as_str) {
        return wrap(&tidy(text), WIDTH);
    }
    let mut lines = Vec::new();
    let title = content.pointer("/header/title/content").and_then(Value::as_str);
    let tags: Vec<&str> = content
        .pointer("/header/text_tag_list")
        .and_then(Value::as_array)
        .map(|tags| {
            tags.iter()
                .filter_map(|tag| tag.pointer("/text/content").and_then(Value::as_str))
                .collect()
        })
        .unwrap_or_default();
    if let Some(title) = title {
        let mut head = format!("■ {title}");
        for tag in tags {
            head.push_str(&format!("  [{tag}]"));
        }
        lines.push(head);
        if let Some(subtitle) = content.pointer("/header/subtitle/content").and_then(Value::as_str) {
            lines.extend(wrap(&tidy(subtitle), WIDTH));
        }
        lines.push(String::from("─"));
    }
    if let Some(elements) = content.pointer("/body/elements").and_then(Value::as_array) {
        elements.iter().for_each(|element| draw(element, &mut lines));
    }
    frame(&lines)
}

/// What `now` shows and `before` did not: rows without their frame.
pub fn repainted(before: &Value, now: &Value) -> Vec<String> {
    let before = drawn(before);
    let rows = drawn(now).into_iter().filter(|row| row.starts_with('│') && !before.contains(row));
    let inner = rows.map(|row| row.trim_matches(['│', ' ']).to_owned());
    inner.filter(|row| !row.is_empty()).collect()
}

fn draw(element: &Value, lines: &mut Vec<String>) {
    let text = |at: &str| element.pointer(at).and_then(Value::as_str).unwrap_or_default();
    match element.get("tag").and_then(Value::as_str) {
        Some("markdown") => lines.extend(wrap(&tidy(text("/content")), WIDTH)),
        Some("div") => lines.extend(wrap(&tidy(text("/text/content")), WIDTH)),
        Some("hr") => lines.push(String::from("─")),
        Some("button") => lines.push(button(element)),
        Some("checker") => lines.push(ticked(text("/text/content"), element["checked"] == true)),
        Some("input") => {
            lines.push(text("/label/content").to_owned());
            lines.push(format!("┆ {}", text("/placeholder/content")));
        }
        Some("column_set") => {
            let mut row = Vec::new();
            for column in element.get("columns").and_then(Value::as_array).into_iter().flatten() {
                for child in column.get("elements").and_then(Value::as_array).into_iter().flatten() {
                    if child.get("tag").and_then(Value::as_str) == Some("button") {
                        row.push(button(child));
                    } else {
                        draw(child, lines);
                    }
                }
            }
            if !row.is_empty() {
                lines.push(row.join("  "));
            }
        }
        _ => {
            if let Some(title) = element.pointer("/header/title/content").and_then(Value::as_str) {
                lines.push(format!("▸ {}", tidy(title)));
            }
            for child in element.get("elements").and_then(Value::as_array).into_iter().flatten() {
                draw(child, lines);
            }
        }
    }
}

fn draw_block(block: &Value, lines: &mut Vec<String>) {
    let elements = || block["elements"].as_array().into_iter().flatten();
    match block["type"].as_str() {
        Some("header") => {
            lines.push(format!("■ {}", block["text"]["text"].as_str().unwrap_or_default()));
            lines.push(String::from("─"));
        }
        Some("divider") => lines.push(String::from("─")),
        Some("actions") => {
            for boxes in elements().filter(|element| element["type"] == "checkboxes") {
                let initial = boxes["initial_options"].as_array().cloned().unwrap_or_default();
                for option in boxes["options"].as_array().into_iter().flatten() {
                    let line = option["text"]["text"].as_str().unwrap_or_default();
                    lines.push(ticked(line, initial.contains(option)));
                }
            }
            let buttons: Vec<String> = elements()
                .filter(|element| element["type"] == "button")
                .map(|button| format!("( {} )", button["text"]["text"].as_str().unwrap_or_default()))
                .collect();
            lines.push(buttons.join("  "));
        }
        Some("rich_text") => elements().for_each(|part| draw_block(part, lines)),
        Some("rich_text_list") => {
            let ordered = block["style"] == "ordered";
            for (at, item) in elements().enumerate() {
                let mark = if ordered { format!("{}. ", at + 1) } else { String::from("• ") };
                draw_text(item, &mark, lines);
            }
        }
        Some("rich_text_preformatted" | "rich_text_quote") => draw_text(block, "┆ ", lines),
        _ => draw_text(block, "", lines),
    }
}

/// The text of a part, with `mark` before its first line.
fn draw_text(part: &Value, mark: &str, lines: &mut Vec<String>) {
    let mut words = Vec::new();
    spoken(part, &mut words);
    let whole = words.join("\n").replace("**", "").replace('`', "");
    lines.extend(wrap(&format!("{mark}{}", whole.trim_end()), WIDTH));
}

fn ticked(line: &str, is_ticked: bool) -> String {
    format!("[{}] {line}", if is_ticked { "x" } else { " " })
}

fn button(element: &Value) -> String {
    format!(
        "( {} )",
        element.pointer("/text/content").and_then(Value::as_str).unwrap_or_default()
    )
}

/// Markup that a client renders and a terminal does not: bold marks and our own tags go, entities come back.
fn tidy(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        out.push_str(&rest[..at]);
        let Some(end) = rest[at..].find('>') else { break };
        let tag = &rest[at + 1..at + end];
        if let Some(id) = tag.strip_prefix("at ").and_then(|tag| tag.split_once("id=")) {
            out.push('@');
            out.push_str(id.1.trim_matches(['\'', '"', ' ']));
        } else if tag.starts_with('@') {
            out.push_str(tag);
        } else if let Some(moment) = tag.strip_prefix("local_datetime ") {
            out.push_str(&moment_of(moment).unwrap_or_default());
        }
        rest = &rest[at + end + 1..];
    }
    out.push_str(rest);
    unescape(&out.replace("**", ""))
}

/// What a tag with a moment shows, to a reader in UTC.
fn moment_of(tag: &str) -> Option<String> {
    let value = |name: &str| tag.split_once(name)?.1.split('\'').nth(1);
    let at = Millis(value("millisecond=")?.parse().ok()?).rfc3339();
    match value("format_type=")? {
        "time" => Some(format!("{} UTC", at.get(11..16)?)),
        _ => at.get(..10).map(str::to_owned),
    }
}

fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let Some(end) = rest.find(';').filter(|end| *end <= 8) else {
            out.push('&');
            rest = &rest[1..];
            continue;
        };
        let name = &rest[1..end];
        let character = match name {
            "amp" => Some('&'),
            "lt" => Some('<'),
            "gt" => Some('>'),
            "quot" => Some('"'),
            "nbsp" => Some(' '),
            _ => name
                .strip_prefix('#')
                .and_then(|number| number.parse().ok())
                .and_then(char::from_u32),
        };
        match character {
            Some(character) => out.push(character),
            None => out.push_str(&rest[..=end]),
        }
        rest = &rest[end + 1..];
    }
    out.push_str(rest);
    out
}

/// Columns that `text` takes in a terminal; Chinese characters take two.
fn width(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// Breaks at `limit` columns, at blanks where there are some.
fn wrap(text: &str, limit: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.lines() {
        let mut line = String::new();
        let mut used = 0;
        for c in paragraph.chars() {
            let wide = c.width().unwrap_or(0);
            if used + wide > limit {
                let cut = line.rfind(' ').filter(|cut| *cut > 0 && width(&line[*cut..]) < limit / 3);
                let tail = cut.map(|cut| line.split_off(cut).trim_start().to_owned()).unwrap_or_default();
                lines.push(std::mem::replace(&mut line, tail));
                used = width(&line);
            }
            line.push(c);
            used += wide;
        }
        lines.push(line);
    }
    lines
}

fn frame(lines: &[String]) -> Vec<String> {
    let mut out = vec![format!("╭{}╮", "─".repeat(WIDTH + 2))];
    for line in lines {
        if line == "─" {
            out.push(format!("├{}┤", "─".repeat(WIDTH + 2)));
        } else {
            for part in wrap(line, WIDTH) {
                out.push(format!("│ {part}{} │", " ".repeat(WIDTH.saturating_sub(width(&part)))));
            }
        }
    }
    out.push(format!("╰{}╯", "─".repeat(WIDTH + 2)));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// design: every line of a drawn card has the same width, Chinese or not, long or short.
    #[test]
    fn a_drawn_card_is_a_rectangle() {
        let drawn = drawn(&json!({
            "header": { "title": { "content": "计划确认" } },
            "body": { "elements": [
                { "tag": "markdown", "content": format!("1. **读取** 订单 {}", "很长".repeat(60)) },
                { "tag": "hr" },
                { "tag": "markdown", "content": "plain words ".repeat(20) },
                { "tag": "button", "text": { "content": "确认" } },
            ] },
        }));
        assert!(drawn.len() > 8);
        assert!(drawn.iter().all(|line| width(line) == WIDTH + 4), "{}", drawn.join("\n"));
    }

    /// design: a Slack card is drawn in the same frame, its buttons in a row, its steps numbered.
    #[test]
    fn a_slack_card_is_drawn_too() {
        let section = |text: &str| json!({ "type": "rich_text_section", "elements": [{ "type": "text", "text": text }] });
        let drawn = drawn(&json!({ "text": "fallback", "blocks": [
            { "type": "header", "text": { "type": "plain_text", "text": "计划确认" } },
            { "type": "rich_text", "elements": [section("目标"), { "type": "rich_text_list", "style": "ordered", "elements": [
                section("读取"), section(&"写".repeat(80))] }] },
            { "type": "actions", "elements": [
                { "type": "button", "text": { "type": "plain_text", "text": "OK" } },
                { "type": "button", "text": { "type": "plain_text", "text": "取消" } }] },
        ] }));
        assert!(drawn.iter().all(|line| width(line) == WIDTH + 4), "{}", drawn.join("\n"));
        let whole = drawn.join("\n");
        for words in ["■ 计划确认", "目标", "1. 读取", "2. 写", "( OK )  ( 取消 )"] {
            assert!(whole.contains(words), "{words} in {whole}");
        }
        assert!(!whole.contains("fallback"));
    }

    /// design: of a repainted card only the new rows are told, without the frame.
    #[test]
    fn a_repaint_is_told_by_its_new_rows() {
        let shown = |rows: [&str; 2]| json!({ "blocks": rows.map(|row| json!({ "type": "section", "text": { "type": "plain_text", "text": row } })) });
        let before = shown(["Plan", "1. read"]);
        assert_eq!(repainted(&before, &shown(["Plan", "✓ 1. read"])), ["✓ 1. read"]);
        assert!(repainted(&before, &before).is_empty());
    }

    /// design: what a client renders is shown rendered: no bold marks, tags as mentions, entities as characters.
    #[test]
    fn markup_is_shown_as_a_client_renders_it() {
        assert_eq!(
            tidy("<at id='ou_1'></at> **bold** &#60;b&#62; &amp; <font color='grey'>x</font>"),
            "@ou_1 bold <b> & x"
        );
        assert_eq!(tidy("Only <@U0LIN> &lt;x&gt;"), "Only @U0LIN <x>");
        let tag = |format: &str| format!("<local_datetime millisecond='1765432100123' format_type='{format}'></local_datetime>");
        assert_eq!(tidy(&format!("at {} {}", tag("date_num"), tag("time"))), "at 2025-12-11 05:48 UTC");
    }
}
