//! The model's Markdown as Block Kit: rich text needs no escaping and knows no mention that we did not make.

use serde_json::{Value, json};

use super::escape::inert;
use crate::channels::markdown::{Block, Item, Style, StyledText, Table, aligned, parse};

/// Deepest list indent that the platform takes.
const MAX_INDENT: usize = 8;
/// What a table block takes; larger tables are text. One table block a message.
const MAX_ROWS: usize = 100;
const MAX_COLUMNS: usize = 20;
const MAX_CELL: usize = 1000;
/// Lines across that are blocks of their own; a message takes 50 blocks.
const MAX_RULES: usize = 8;

/// `markdown` as blocks of the types `rich_text`, `table` (one at most, and none without `tables`) and `divider`; none for blank text.
/// Nothing is cut: the caller keeps the message's text below the platform's limit.
pub(super) fn blocks(markdown: &str, tables: bool) -> Vec<Value> {
    let mut writer = RichTextWriter {
        table: !tables,
        ..RichTextWriter::default()
    };
    for block in &parse(markdown) {
        writer.block(block, 0);
    }
    writer.end_text();
    writer.blocks
}

#[derive(Debug, Default)]
struct RichTextWriter {
    blocks: Vec<Value>,
    /// Elements of the open `rich_text` block.
    elements: Vec<Value>,
    /// Inline elements of the open section.
    section: Vec<Value>,
    /// No table block may follow.
    table: bool,
    rules: usize,
}

impl RichTextWriter {
    fn block(&mut self, block: &Block, indent: usize) {
        match block {
            Block::Paragraph(spans) => self.paragraph(spans, false),
            Block::Heading(_, spans) => self.paragraph(spans, true),
            Block::List { start, items } => self.list(*start, items, indent),
            Block::Quote(blocks) => {
                let mut elements = Vec::new();
                flat(&mut elements, blocks, 0);
                self.element("rich_text_quote", elements);
            }
            Block::Code { text, .. } => self.code(text),
            Block::Table(table) if !self.table && indent == 0 && fits(table) => {
                self.end_text();
                self.table = true;
                self.blocks.push(table_block(table));
            }
            Block::Table(table) => self.code(&aligned(table)),
            Block::Rule if self.rules < MAX_RULES && indent == 0 => {
                self.end_text();
                self.rules += 1;
                self.blocks.push(json!({"type": "divider"}));
            }
            Block::Rule => self.paragraph(&[plain("———")], false),
        }
    }

    /// Sections that follow each other run together, so paragraphs share one, with a blank line between.
    fn paragraph(&mut self, spans: &[StyledText], bold: bool) {
        if !self.section.is_empty() {
            self.section.push(text_element("\n\n", Style::default()));
        }
        inline(&mut self.section, spans, bold);
    }

    fn code(&mut self, text: &str) {
        self.element("rich_text_preformatted", vec![text_element(text, Style::default())]);
    }

    /// A list of one level; what its items hold besides words ends it, and it goes on behind that with its numbers.
    fn list(&mut self, start: Option<u64>, items: &[Item], indent: usize) {
        let mut number = start.unwrap_or(1);
        let mut from = number;
        let mut sections: Vec<Value> = Vec::new();
        for item in items {
            let mut elements = Vec::new();
            if item.done.is_some() {
                elements.push(text_element(item.task_box(), Style::default()));
            }
            let spoken = item
                .blocks
                .iter()
                .take_while(|block| matches!(block, Block::Paragraph(_) | Block::Heading(..)))
                .count();
            let (spoken, held) = item.blocks.split_at(spoken);
            for (at, block) in spoken.iter().enumerate() {
                if at > 0 {
                    elements.push(text_element("\n", Style::default()));
                }
                match block {
                    Block::Heading(_, spans) => inline(&mut elements, spans, true),
                    Block::Paragraph(spans) => inline(&mut elements, spans, false),
                    _ => (),
                }
            }
            sections.push(json!({"type": "rich_text_section", "elements": filled(elements)}));
            number = number.saturating_add(1);
            if !held.is_empty() {
                self.items(start.is_some(), from, std::mem::take(&mut sections), indent);
                from = number;
                for block in held {
                    self.block(block, indent + 1);
                }
            }
        }
        self.items(start.is_some(), from, sections, indent);
    }

    fn items(&mut self, ordered: bool, from: u64, sections: Vec<Value>, indent: usize) {
        self.end_section();
        if sections.is_empty() {
            return;
        }
        let style = if ordered { "ordered" } else { "bullet" };
        let mut list = json!({"type": "rich_text_list", "style": style, "indent": indent.min(MAX_INDENT), "elements": sections});
        if ordered && from > 1 {
            // How many numbers are left out before the first.
            list["offset"] = json!(from - 1);
        }
        self.elements.push(list);
    }

    fn element(&mut self, kind: &str, elements: Vec<Value>) {
        self.end_section();
        self.elements.push(json!({"type": kind, "elements": filled(elements)}));
    }

    fn end_section(&mut self) {
        if !self.section.is_empty() {
            let elements = std::mem::take(&mut self.section);
            self.elements.push(json!({"type": "rich_text_section", "elements": elements}));
        }
    }

    fn end_text(&mut self) {
        self.end_section();
        if !self.elements.is_empty() {
            let elements = std::mem::take(&mut self.elements);
            self.blocks.push(json!({"type": "rich_text", "elements": elements}));
        }
    }
}

/// Blocks in a place that has inline elements only: a quote.
fn flat(out: &mut Vec<Value>, blocks: &[Block], indent: usize) {
    for (at, block) in blocks.iter().enumerate() {
        if at > 0 && !matches!(block, Block::List { .. }) {
            out.push(text_element("\n", Style::default()));
        }
        match block {
            Block::Paragraph(spans) => inline(out, spans, false),
            Block::Heading(_, spans) => inline(out, spans, true),
            Block::Quote(blocks) => flat(out, blocks, indent),
            Block::List { start, items } => {
                for (number, item) in (start.unwrap_or(0)..).zip(items) {
                    let gap = if out.is_empty() { "" } else { "\n" };
                    let mark = match (item.done, start) {
                        (Some(_), _) => item.task_box().to_owned(),
                        (None, Some(_)) => format!("{number}. "),
                        (None, None) => String::from("• "),
                    };
                    out.push(text_element(&format!("{gap}{}{mark}", "    ".repeat(indent)), Style::default()));
                    flat(out, &item.blocks, indent + 1);
                }
            }
            Block::Code { text, .. } => out.push(text_element(text, CODE)),
            Block::Table(table) => out.push(text_element(&aligned(table), CODE)),
            Block::Rule => out.push(text_element("———", Style::default())),
        }
    }
}

const CODE: Style = Style {
    bold: false,
    italic: false,
    strike: false,
    code: true,
};

fn inline(out: &mut Vec<Value>, spans: &[StyledText], bold: bool) {
    for span in spans {
        let style = Style {
            bold: span.style.bold || bold && !span.style.code,
            ..span.style
        };
        let mut element = text_element(&span.text, style);
        if let Some(url) = &span.link {
            element["type"] = json!("link");
            element["url"] = json!(url);
        }
        out.push(element);
    }
}

fn plain(text: &str) -> StyledText {
    StyledText {
        text: text.to_owned(),
        ..StyledText::default()
    }
}

/// A text element. The platform takes no empty one.
fn text_element(text: &str, style: Style) -> Value {
    let text = if text.is_empty() { String::from(" ") } else { inert(text) };
    let mut element = json!({"type": "text", "text": text});
    let looks = [
        ("bold", style.bold),
        ("italic", style.italic),
        ("strike", style.strike),
        ("code", style.code),
    ];
    let looks: serde_json::Map<String, Value> = looks
        .into_iter()
        .filter(|(_, on)| *on)
        .map(|(name, on)| (String::from(name), json!(on)))
        .collect();
    if !looks.is_empty() {
        element["style"] = Value::Object(looks);
    }
    element
}

fn filled(elements: Vec<Value>) -> Vec<Value> {
    if elements.is_empty() {
        vec![text_element("", Style::default())]
    } else {
        elements
    }
}

fn fits(table: &Table) -> bool {
    (1..=MAX_ROWS).contains(&table.rows.len())
        && (1..=MAX_COLUMNS).contains(&table.columns())
        && table
            .rows
            .iter()
            .flatten()
            .all(|cell| cell.iter().map(|span| span.text.len()).sum::<usize>() <= MAX_CELL)
}

fn table_block(table: &Table) -> Value {
    let rows: Vec<Vec<Value>> = table
        .rows
        .iter()
        .enumerate()
        .map(|(at, row)| row.iter().map(|cell| table_cell(cell, at == 0)).collect())
        .collect();
    json!({"type": "table", "rows": rows})
}

fn table_cell(spans: &[StyledText], head: bool) -> Value {
    let mut elements = Vec::new();
    inline(&mut elements, spans, head);
    json!({"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": filled(elements)}]})
}

#[cfg(test)]
mod tests;
