//! What a call holds, as lines of the page: a change is coloured, and what is long is folded.

use serde::Serialize;

use crate::channels::card::Exhibit;

/// Rows that stand on the page; the others are folded.
const ROWS: usize = 20;
/// Characters of a row, about: a longer line takes several.
const ROW: usize = 90;

/// Foreign text, whole, under a label of ours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Shown {
    label: String,
    text: String,
    /// Lines shown at once.
    head: Vec<ShownLine>,
    /// Lines behind "Show all".
    rest: Vec<ShownLine>,
    /// Number of lines in `text`.
    count: usize,
}

/// A line, or a part of a long one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct ShownLine {
    /// In a change: `new`, `gone`, `at` (where it is) or `name` (of the file).
    kind: &'static str,
    text: String,
}

impl Shown {
    pub(super) fn of(exhibit: &Exhibit) -> Self {
        let Exhibit { label, text } = exhibit;
        let is_change = text.starts_with("--- ");
        let (mut head, mut rest, mut left) = (Vec::new(), Vec::new(), ROWS);
        for (at, text) in text.lines().enumerate() {
            let kind = if is_change { kind(at, text) } else { "" };
            let line = |text: &str| ShownLine {
                kind,
                text: text.to_owned(),
            };
            let rows = text.chars().count().div_ceil(ROW).max(1);
            if rows <= left {
                head.push(line(text));
                left -= rows;
                continue;
            }
            let end = text.char_indices().nth(left * ROW).map_or(text.len(), |(end, _)| end);
            let (first, more) = text.split_at(end);
            head.extend((!first.is_empty()).then(|| line(first)));
            rest.push(line(more));
            left = 0;
        }
        Self {
            label: label.clone(),
            text: text.clone(),
            count: text.lines().count(),
            head,
            rest,
        }
    }
}

/// What a line of a unified diff says. The names come first; later, "---" is a line that is gone.
fn kind(at: usize, line: &str) -> &'static str {
    match line.as_bytes().first() {
        _ if at < 2 => "name",
        Some(b'+') => "new",
        Some(b'-') => "gone",
        Some(b'@') => "at",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Shown {
        Shown::of(&Exhibit {
            label: String::new(),
            text: text.to_owned(),
        })
    }

    /// interface (M): each line of a change is told by what becomes of it; a line that is gone may look like the name of a file.
    #[test]
    fn a_change_is_told_line_by_line() {
        let shown = of("--- a.md\n+++ a.md\n@@ -1,3 +1,2 @@\n same\n--- old\n+++ new\n+");
        let kinds: Vec<&str> = shown.head.iter().map(|line| line.kind).collect();
        assert_eq!(kinds, ["name", "name", "at", "", "gone", "new", "new"]);
        assert!(of("-1\n+1").head.iter().all(|line| line.kind.is_empty()), "no change");
    }

    /// interface (M): twenty rows stand there, the rest is folded; nothing is left out, however long a line is.
    #[test]
    fn what_is_long_is_folded_and_whole() {
        let lines: Vec<String> = (0..160).map(|number| format!("line {number}")).collect();
        for text in [
            lines[..20].join("\n"),
            lines.join("\n"),
            "字".repeat(5000),
            format!("{{\n{}\n}}", "x".repeat(ROW * 19 + 1)),
            String::new(),
        ] {
            let shown = of(&text);
            let joined: String = shown.head.iter().chain(&shown.rest).map(|line| line.text.as_str()).collect();
            assert_eq!(joined, text.replace('\n', ""), "nothing is left out");
            let rows: usize = shown.head.iter().map(|line| line.text.chars().count().div_ceil(ROW).max(1)).sum();
            assert!(rows <= ROWS, "{rows}");
            assert_eq!(shown.rest.is_empty(), rows < ROWS || text == lines[..20].join("\n"), "{rows}");
            assert_eq!(shown.count, text.lines().count());
        }
    }
}
