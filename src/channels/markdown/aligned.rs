//! A table as lines of text, for where a platform has no table: columns under each other in a fixed-width face.

use unicode_width::UnicodeWidthStr;

use super::{Table, words};

/// Widest cell that others are padded to.
const MAX_PAD: usize = 40;

/// `table` as text. When one wide cell would blow up all others, cells stand behind each other without padding.
pub(in crate::channels) fn aligned(table: &Table) -> String {
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
    let mut lines: Vec<String> = cells.iter().map(|row| line(row, &widths)).collect();
    if lines.len() > 1 && widths.iter().any(|width| *width > 0) {
        let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
        lines.insert(1, rule.join("-+-"));
    }
    lines.join("\n")
}

fn line(row: &[String], widths: &[usize]) -> String {
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
