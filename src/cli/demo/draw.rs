//! A chat on a terminal: lines and cards with box characters, drawn from the card JSON as a person would see it.

use serde_json::Value;
use unicode_width::UnicodeWidthChar;

/// Columns inside a card's frame.
const INNER: usize = 72;

/// `who` says `text`; further lines hang below the first.
#[must_use]
pub fn draw_line(who: &str, text: &str) -> String {
    let head = format!("{who}: ");
    let indent = " ".repeat(width(&head));
    let text = shown(text);
    let wrapped: Vec<String> = text
        .lines()
        .flat_map(|line| wrap(line, INNER + 4 - width(&head).min(INNER / 2)))
        .collect();
    format!("{head}{}", wrapped.join(&format!("\n{indent}")))
}

/// A Lark card as its readers see it: title, text, buttons and form in a frame.
#[must_use]
pub fn draw_card(card: &Value) -> String {
    let mut rows = Vec::new();
    let header = &card["header"];
    let title = header["title"]["content"].as_str().unwrap_or_default();
    let tags: Vec<String> = list(&header["text_tag_list"])
        .map(|tag| format!("[{}]", text_of(&tag["text"])))
        .collect();
    for element in list(&card["body"]["elements"]) {
        draw_element(element, &mut rows);
    }
    let mut out = String::new();
    if title.is_empty() {
        push_frame(&mut out, '┌', '┐', "");
    } else {
        push_frame(&mut out, '┌', '┐', &format!("{title} {}", tags.join(" ")));
        if let Some(subtitle) = header["subtitle"]["content"].as_str() {
            rows.insert(0, subtitle.to_owned());
        }
    }
    for row in rows.iter().flat_map(|row| wrap(row, INNER)) {
        let gap = INNER.saturating_sub(width(&row));
        out.push_str(&format!("│ {row}{} │\n", " ".repeat(gap)));
    }
    push_frame(&mut out, '└', '┘', "");
    out.truncate(out.trim_end().len());
    out
}

/// A horizontal edge, with the title set into it.
fn push_frame(out: &mut String, left: char, right: char, title: &str) {
    let title = title.trim();
    let title = if title.is_empty() {
        String::new()
    } else {
        format!(" {} ", wrap(title, INNER - 2).swap_remove(0))
    };
    let line = "─".repeat((INNER + 1).saturating_sub(width(&title)));
    out.push_str(&format!("{left}─{title}{line}{right}\n"));
}

fn draw_element(element: &Value, rows: &mut Vec<String>) {
    match element["tag"].as_str().unwrap_or_default() {
        "markdown" => rows.extend(shown(element["content"].as_str().unwrap_or_default()).lines().map(str::to_owned)),
        "div" => rows.push(text_of(&element["text"])),
        "hr" => rows.push("─".repeat(INNER)),
        "column_set" => {
            let mut cells = Vec::new();
            for column in list(&element["columns"]) {
                for inner in list(&column["elements"]) {
                    draw_element(inner, &mut cells);
                }
            }
            rows.push(cells.join("  "));
        }
        "button" => rows.push(format!("[ {} ]", text_of(&element["text"]))),
        "input" => rows.push(format!("{}: ‹{}›", text_of(&element["label"]), text_of(&element["placeholder"]))),
        "form" | "collapsible_panel" => list(&element["elements"]).for_each(|inner| draw_element(inner, rows)),
        _ => {}
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text_of(text: &Value) -> String {
    printable(text["content"].as_str().unwrap_or_default()).replace('\n', " ")
}

/// Markdown as it reads: bold and code marks fall away, tags show their text, mentions their id, entities their sign.
fn shown(markdown: &str) -> String {
    let mut out = String::with_capacity(markdown.len());
    let mut rest = markdown.replace("**", "");
    // Fences go, what they hold stays.
    rest = rest.lines().filter(|line| !line.starts_with("```")).collect::<Vec<_>>().join("\n");
    let mut rest = rest.as_str();
    while let Some(at) = rest.find(['<', '&', '`']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(after) = rest.strip_prefix('`') {
            rest = after;
        } else if let Some((tag, after)) = tag(rest) {
            out.push_str(&tag);
            rest = after;
        } else if let Some((c, after)) = entity(rest) {
            out.push(c);
            rest = after;
        } else {
            out.push_str(&rest[..1]);
            rest = &rest[1..];
        }
    }
    out.push_str(rest);
    printable(&out)
}

/// A tag at the start of `text`: what it shows, and the rest. Mentions become `@id`; `text_tag` gets brackets.
fn tag(text: &str) -> Option<(String, &str)> {
    let body = text.strip_prefix('<')?;
    body.strip_prefix('/')
        .unwrap_or(body)
        .starts_with(|c: char| c.is_ascii_alphabetic())
        .then_some(())?;
    let (tag, after) = body.split_once('>')?;
    let shown = if let Some(attributes) = tag.strip_prefix("at ") {
        let id = attributes.split_once('=').map_or("", |(_, id)| id);
        format!("@{}", id.trim_matches(['\'', '"']))
    } else if tag.starts_with("text_tag") {
        String::from("[")
    } else if tag == "/text_tag" {
        String::from("]")
    } else {
        String::new()
    };
    Some((shown, after))
}

fn entity(text: &str) -> Option<(char, &str)> {
    let (number, after) = text.strip_prefix("&#")?.split_once(';')?;
    Some((char::from_u32(number.parse().ok()?)?, after))
}

/// A terminal obeys control characters: none of a chat's may reach it.
fn printable(text: &str) -> String {
    text.chars()
        .filter(|c| *c == '\n' || !(c.is_control() || matches!(c, '\u{200b}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')))
        .collect()
}

/// Columns of one character. The sign that asks for an emoji makes the narrow character before it a wide one.
fn columns(c: char) -> usize {
    if c == '\u{fe0f}' { 1 } else { c.width().unwrap_or(0) }
}

fn width(text: &str) -> usize {
    text.chars().map(columns).sum()
}

/// Breaks `line` into rows of at most `max` columns, at blanks where there are some; Chinese breaks anywhere.
fn wrap(line: &str, max: usize) -> Vec<String> {
    let (mut rows, mut row, mut used) = (Vec::new(), String::new(), 0);
    for c in line.chars() {
        let wide = columns(c);
        if used + wide > max {
            // A late blank is a better place than the edge, if the row does not become ragged.
            let kept = match row.rfind(' ').filter(|at| c != ' ' && c.is_ascii() && width(&row[..*at]) > max / 2) {
                Some(at) => row.split_off(at + 1),
                None => String::new(),
            };
            rows.push(row.trim_end().to_owned());
            row = kept;
            used = width(&row);
            if c == ' ' && row.is_empty() {
                continue;
            }
        }
        row.push(c);
        used += wide;
    }
    rows.push(row);
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn card(content: &str) -> Value {
        json!({
            "header": {"title": {"content": "计划确认"}, "text_tag_list": [{"text": {"content": "待确认"}}]},
            "body": {"elements": [
                {"tag": "markdown", "content": content},
                {"tag": "column_set", "columns": [
                    {"elements": [{"tag": "button", "text": {"content": "OK"}}]},
                    {"elements": [{"tag": "button", "text": {"content": "取消"}}]},
                ]},
            ]},
        })
    }

    /// S0-28: every row of a frame ends in the same column, Chinese, long words and marks included.
    #[test]
    fn frames_close_in_one_column() {
        let drawn = draw_card(&card(&format!(
            "1. ✅ 读取订单表 `read_file`\n{}\n{}",
            "汇总各区域销售额".repeat(20),
            "x".repeat(300)
        )));
        let widths: Vec<usize> = drawn.lines().map(width).collect();
        assert!(widths.iter().all(|other| *other == INNER + 4), "{widths:?}\n{drawn}");
        assert!(drawn.contains("计划确认 [待确认]") && drawn.contains("[ OK ]  [ 取消 ]"), "{drawn}");
    }

    /// S0-28: tags, entities and marks read as on the platform, and no control character reaches the terminal.
    #[test]
    fn text_reads_as_on_the_platform() {
        assert_eq!(
            shown("<at id=ou_1></at> **OK** <font color='grey'>a &#60; b</font> <text_tag color='red'>x</text_tag>"),
            "@ou_1 OK a < b [x]"
        );
        assert_eq!(shown("1 < 2 & 3"), "1 < 2 & 3");
        assert!(!draw_line("bot", "\u{1b}[31mred").contains('\u{1b}'));
    }

    /// S0-28: words break at blanks, nothing is lost.
    #[test]
    fn words_break_at_blanks() {
        assert_eq!(wrap("aaaa bbbb cccc", 10), ["aaaa bbbb", "cccc"]);
        assert_eq!(wrap("计划确认", 4), ["计划", "确认"]);
        assert_eq!(wrap("", 4), [""]);
    }
}
