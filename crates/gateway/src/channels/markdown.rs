//! The model's Markdown, read once: a small tree that the writers of both platforms walk.
//!
//! CommonMark with tables, strikethrough and task lists. HTML is text, images are links, links lead to http, https and
//! mailto only and name a host that their words hide. No text gets lost on the way.
//!
//! Each platform writes the tree with marks of its own, so no text of the model is ever markup.

mod build;
mod links;
mod prepare;

pub(super) use build::parse;

use unicode_width::UnicodeWidthStr;

/// Quotes and lists inside each other; what is nested deeper joins the innermost that still counts.
pub(super) const MAX_DEPTH: usize = 6;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Block {
    /// A paragraph; its line breaks are `\n` in the spans.
    Paragraph(Vec<StyledText>),
    /// A heading of level 1 to 6.
    Heading(usize, Vec<StyledText>),
    /// A list; `start` is the first number of an ordered one.
    List {
        start: Option<u64>,
        items: Vec<Item>,
    },
    Quote(Vec<Self>),
    /// Code; the language is a tame word or empty.
    Code {
        language: String,
        text: String,
    },
    Table(Table),
    /// A line across.
    Rule,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Item {
    /// For tasks: is it done?
    pub(super) done: Option<bool>,
    pub(super) blocks: Vec<Block>,
}

impl Item {
    /// The box before a task; nothing before other items.
    pub(super) fn task_box(&self) -> &'static str {
        match self.done {
            Some(true) => "☑ ",
            Some(false) => "☐ ",
            None => "",
        }
    }
}

/// Cells are one line each; every row has as many as the first one, which is the head.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Table {
    pub(super) rows: Vec<Vec<Vec<StyledText>>>,
}

impl Table {
    pub(super) fn columns(&self) -> usize {
        self.rows.first().map_or(0, Vec::len)
    }
}

/// A run of text in one style.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct StyledText {
    /// Never empty; foreign text.
    pub(super) text: String,
    pub(super) style: Style,
    /// Where it leads: an http, https or mailto URL without blanks.
    pub(super) link: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Style {
    pub(super) bold: bool,
    pub(super) italic: bool,
    pub(super) strike: bool,
    pub(super) code: bool,
}

/// The words of `spans` without their looks.
pub(super) fn words(spans: &[StyledText]) -> String {
    spans.iter().map(|span| span.text.as_str()).collect()
}

/// Widest cell that others are padded to.
const MAX_PAD: usize = 40;

/// `table` as lines of text, for where a platform has no table: columns under each other in a fixed-width face. When one wide cell would
/// blow up all others, cells stand behind each other without padding.
pub(super) fn aligned(table: &Table) -> String {
    let cells: Vec<Vec<String>> = table
        .rows
        .iter()
        .map(|row| row.iter().map(|cell| words(cell).replace('\n', " ").trim().to_owned()).collect())
        .collect();
    let mut widths = vec![0; table.columns()];
    for row in &cells {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.width().max(*width).min(MAX_PAD);
        }
    }
    let written: usize = cells.iter().flatten().map(|cell| cell.width() + 3).sum();
    let padded = cells.len() * widths.iter().map(|width| width + 3).sum::<usize>();
    if padded > 400 + 2 * written {
        widths.fill(0);
    }
    let mut lines: Vec<String> = cells.iter().map(|row| aligned_row(row, &widths)).collect();
    if lines.len() > 1 && widths.iter().any(|width| *width > 0) {
        let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
        lines.insert(1, rule.join("-+-"));
    }
    lines.join("\n")
}

fn aligned_row(row: &[String], widths: &[usize]) -> String {
    let mut line = String::new();
    for (at, (cell, width)) in row.iter().zip(widths).enumerate() {
        if at > 0 {
            line.push_str(" | ");
        }
        line.push_str(cell);
        line.extend(std::iter::repeat_n(' ', width.saturating_sub(cell.width())));
    }
    line.trim_end().to_owned()
}

#[cfg(test)]
mod tests;
