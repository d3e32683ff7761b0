//! The model's Markdown for the Markdown component of a card: written anew from the tree, so that nothing but our own
//! marks is markup, and every word of the model is escaped text.

use super::escape;
use crate::channels::markdown::{Block, Item, Style, StyledText, Table, aligned, parse};

/// Tables that one card takes; the platform refuses the card at a few more. Others are shown as text.
const MAX_TABLES: usize = 3;
/// Columns of a table that can still be read on a phone.
const MAX_COLUMNS: usize = 12;
/// Zero-width space: parts our marks from punctuation and from each other, where a reader would else see stars.
const GAP: char = '\u{200b}';

pub(super) fn markdown(text: &str) -> String {
    let mut writer = LarkMarkdownWriter { tables: MAX_TABLES };
    let out = writer.lines(&parse(text), true).join("\n");
    // Layout may outgrow its text (lists in lists, on one line each); a card has room for the text.
    if out.len() > 1000 + 7 * text.len() {
        escape::lines(text)
    } else {
        out
    }
}

struct LarkMarkdownWriter {
    /// Tables that may still be drawn.
    tables: usize,
}

impl LarkMarkdownWriter {
    /// The lines of `blocks`; `top`: they stand in nothing else.
    fn lines(&mut self, blocks: &[Block], top: bool) -> Vec<String> {
        let mut lines = Vec::new();
        for block in blocks {
            let block_lines = match block {
                Block::Paragraph(spans) => inline(spans).lines().map(str::to_owned).collect(),
                Block::Heading(level, spans) => vec![format!("{} {}", "#".repeat((*level).clamp(1, 6)), one_line(spans))],
                Block::List { start, items } => self.list(*start, items),
                Block::Quote(blocks) => self
                    .lines(blocks, false)
                    .iter()
                    .map(|line| format!("> {line}").trim_end().to_owned())
                    .collect(),
                Block::Code { language, text } => code(language, text),
                Block::Table(table) => self.table(table, top),
                Block::Rule => vec![String::from("---")],
            };
            if !lines.is_empty() && !matches!((block, top), (Block::List { .. }, false)) {
                lines.push(String::new());
            }
            lines.extend(block_lines);
        }
        lines
    }

    fn list(&mut self, start: Option<u64>, items: &[Item]) -> Vec<String> {
        let mut lines = Vec::new();
        for (number, item) in (start.unwrap_or(0)..).zip(items) {
            let mut marker = match start {
                Some(_) => format!("{number}. "),
                None => String::from("- "),
            };
            // Deep enough for what stands under the item to belong to it, and what the platform counts as one level.
            let indent = " ".repeat(marker.len().max(4));
            marker.push_str(item.task_box());
            let mut inner = self.lines(&item.blocks, false).into_iter();
            if matches!(item.blocks.first(), Some(Block::Paragraph(_))) {
                marker.push_str(&inner.next().unwrap_or_default());
            }
            lines.push(marker.trim_end().to_owned());
            lines.extend(inner.map(|line| format!("{indent}{line}").trim_end().to_owned()));
        }
        lines
    }

    fn table(&mut self, table: &Table, top: bool) -> Vec<String> {
        let columns = table.columns();
        if !top || self.tables == 0 || columns > MAX_COLUMNS {
            return code("", &aligned(table));
        }
        self.tables -= 1;
        let mut lines: Vec<String> = table
            .rows
            .iter()
            .map(|row| format!("| {} |", row.iter().map(|cell| cell_text(cell)).collect::<Vec<_>>().join(" | ")))
            .collect();
        lines.insert(1.min(lines.len()), format!("|{}", " --- |".repeat(columns)));
        lines
    }
}

fn code(language: &str, text: &str) -> Vec<String> {
    let block = escape::code_block(text);
    let mut lines: Vec<String> = block.lines().map(str::to_owned).collect();
    if let Some(first) = lines.first_mut() {
        first.push_str(language);
    }
    lines
}

/// A cell of a drawn table; bars are left in code only.
fn cell_text(spans: &[StyledText]) -> String {
    one_line(spans).replace('|', "\\|")
}

/// For places that have one line: heading, cell.
fn one_line(spans: &[StyledText]) -> String {
    inline(spans).replace('\n', " ")
}

fn inline(spans: &[StyledText]) -> String {
    let mut out = String::new();
    for span in spans {
        for (at, line) in span.text.split('\n').enumerate() {
            if at > 0 {
                out.push('\n');
            }
            piece(&mut out, line, span.style, span.link.as_deref());
        }
    }
    out
}

/// One span on one line. Blanks stay outside of its marks, which would not be marks beside them.
fn piece(out: &mut String, text: &str, style: Style, link: Option<&str>) {
    let starts_line = out.is_empty() || out.ends_with('\n');
    let words = text.trim();
    if words.is_empty() {
        if !starts_line {
            out.push_str(text);
        }
        return;
    }
    let lead = &text[..text.len() - text.trim_start().len()];
    if !starts_line {
        out.push_str(lead);
    }
    let mut marks = String::new();
    if style.strike {
        marks.push_str("~~");
    }
    if style.bold {
        marks.push_str("**");
    }
    if style.italic {
        marks.push('*');
    }
    let plain = marks.is_empty() && link.is_none() && !style.code;
    let inner = if style.code && is_tame_code(words) {
        format!("`{}`", escape::code_words(words))
    } else {
        escape::words(words, starts_line && plain)
    };
    let inner = match link {
        Some(url) => format!("[{inner}]({})", escape::url(url)),
        None => inner,
    };
    if plain {
        out.push_str(&inner);
    } else {
        if out.ends_with(['*', '~', '`']) {
            out.push(GAP);
        }
        out.push_str(&marks);
        part(out, &marks, inner.chars().next());
        out.push_str(&inner);
        part(out, &marks, inner.chars().next_back());
        out.extend(marks.chars().rev());
    }
    out.push_str(&text[text.trim_end().len()..]);
}

/// A mark beside punctuation is none for most readers of Markdown, unless a blank or more punctuation follows.
fn part(out: &mut String, marks: &str, edge: Option<char>) {
    if !marks.is_empty() && edge.is_some_and(|c| !c.is_alphanumeric()) {
        out.push(GAP);
    }
}

/// Can it stand between two single backticks?
fn is_tame_code(text: &str) -> bool {
    !text.contains('`')
}

#[cfg(test)]
mod tests;
