//! Long words of the model as several messages: cut between paragraphs, else between lines, else between sentences.

use std::ops::ControlFlow;

/// Size of one message in UTF-16 units. Slack takes 12,000 in all blocks, Lark 30 KB of JSON in which a character may
/// cost six bytes; both need room for our own words.
const LIMIT: usize = 3500;
/// No cut before this: parts should not be crumbs.
const LEAST: usize = LIMIT / 3;
/// Most messages that one answer becomes.
const MAX_PARTS: usize = 20;
/// Longest table head that every part repeats.
const MAX_HEAD: usize = 400;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Split {
    /// In order; at least one, which is empty only when the text is.
    pub(super) parts: Vec<String>,
    /// There was more than the parts hold.
    pub(super) cut: bool,
}

/// `text` (Markdown) as messages. Code that is cut is closed and opened again, a table's head stands over each part of it.
pub(super) fn split(text: &str) -> Split {
    let mut parts = Vec::new();
    let mut rest = text.trim().to_owned();
    while parts.len() + 1 < MAX_PARTS && units(&rest) > LIMIT {
        let place = best_place(&rest);
        let (part, next) = part(&rest, &place);
        parts.push(part);
        rest = next;
    }
    let cut = units(&rest) > LIMIT;
    if cut {
        rest = part(&rest, &best_place(&rest)).0;
    }
    parts.push(rest);
    Split { parts, cut }
}

#[derive(Clone, Debug, Default)]
struct BreakPoint {
    /// Byte offset.
    at: usize,
    /// How good it is; more is better.
    rank: u8,
    /// Markup that closes what is open at the cut.
    close: String,
    /// Markup that opens it again in the next part.
    reopen: String,
    /// Blanks before the line behind the cut.
    indent: usize,
}

fn part(text: &str, place: &BreakPoint) -> (String, String) {
    let (before, after) = text.split_at(place.at);
    let before = if place.close.is_empty() {
        before.trim_end()
    } else {
        before.trim_end_matches('\n')
    };
    let after = if place.reopen.is_empty() {
        after.trim_start_matches(['\n', ' '])
    } else {
        after
    };
    let after = if place.indent > 0 {
        outdented(after, place.indent)
    } else {
        after.to_owned()
    };
    (format!("{before}{}", place.close), format!("{}{after}", place.reopen))
}

/// What stood under a list item stands on its own now: without its indent it would become code.
fn outdented(text: &str, indent: usize) -> String {
    let mut under = true;
    let lines = text.split('\n').enumerate().map(|(at, line)| {
        let blanks = indent_of(line);
        under &= at == 0 || line.trim().is_empty() || blanks >= indent;
        if under { &line[blanks.min(indent)..] } else { line }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The best cut that leaves at most [`LIMIT`] before it.
fn best_place(text: &str) -> BreakPoint {
    let mut found: Option<BreakPoint> = None;
    let mut reader = LineReader::default();
    let mut fence = None;
    let (mut at, mut size) = (0, 0);
    for line in text.split_inclusive('\n') {
        if let Some(mut place) = reader.before(line).filter(|_| size >= LEAST) {
            place.at = at;
            if found.as_ref().is_none_or(|best| best.rank <= place.rank) {
                found = Some(place);
            }
        }
        if size + units(line) > LIMIT {
            break;
        }
        fence = reader.read(line);
        at += line.len();
        size += units(line);
    }
    found.unwrap_or_else(|| {
        let (close, reopen) = fence.unwrap_or_default();
        BreakPoint {
            at: in_line(text),
            close: if close.is_empty() { close } else { format!("\n{close}") },
            reopen,
            ..BreakPoint::default()
        }
    })
}

/// Goes through the lines of a text and knows what is open.
#[derive(Debug, Default)]
struct LineReader {
    fence: Option<Fence>,
    /// Head and rule of the table that the last line belongs to.
    table: Option<String>,
    last: TextLineKind,
    last_line: String,
}

#[derive(Clone, Debug)]
struct Fence {
    prefix: String,
    marks: String,
    language: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum TextLineKind {
    #[default]
    Blank,
    Heading,
    Item,
    Words,
}

impl LineReader {
    /// A cut right before `line`; none where a heading would lose what it is over.
    fn before(&self, line: &str) -> Option<BreakPoint> {
        if let Some(fence) = &self.fence {
            let ends = opens(line).is_some_and(|open| closes(fence, &open));
            let close = format!("\n{}{}", fence.prefix, fence.marks);
            let reopen = format!("{}{}{}\n", fence.prefix, fence.marks, fence.language);
            let rank = if self.last == TextLineKind::Blank { 2 } else { 1 };
            let empty = opens(&self.last_line).is_some();
            return (!ends && !empty).then(|| BreakPoint {
                rank,
                close,
                reopen,
                ..BreakPoint::default()
            });
        }
        if let Some(head) = &self.table {
            let reopen = if is_row(line) { head.clone() } else { String::new() };
            // A head without a row is no table.
            return (self.last_line != *head).then(|| BreakPoint {
                rank: 3,
                reopen,
                ..BreakPoint::default()
            });
        }
        let indent = indent_of(line);
        let kind = kind(line);
        let rank = match (self.last, kind) {
            (_, TextLineKind::Blank) | (TextLineKind::Heading, _) => return None,
            (_, TextLineKind::Heading) => 6,
            (TextLineKind::Blank, _) if indent < 2 => 5,
            (_, TextLineKind::Item) if indent < 2 => 4,
            (TextLineKind::Blank, _) | (_, TextLineKind::Item) => 3,
            (TextLineKind::Item | TextLineKind::Words, TextLineKind::Words) => 2,
        };
        Some(BreakPoint {
            rank,
            indent,
            ..BreakPoint::default()
        })
    }

    /// Takes `line`; gives how to close and reopen the fence that is open behind it.
    fn read(&mut self, line: &str) -> Option<(String, String)> {
        let open = opens(line);
        match (&self.fence, open) {
            (Some(fence), Some(open)) if closes(fence, &open) => self.fence = None,
            (None, Some(open)) => self.fence = Some(open),
            _ => (),
        }
        self.read_table(line);
        // A blank line under a heading still belongs to it.
        self.last = match kind(line) {
            TextLineKind::Blank if self.last == TextLineKind::Heading => TextLineKind::Heading,
            kind => kind,
        };
        self.last_line = line.to_owned();
        let fence = self.fence.as_ref()?;
        let marks = format!("{}{}", fence.prefix, fence.marks);
        Some((marks.clone(), format!("{marks}{}\n", fence.language)))
    }

    fn read_table(&mut self, line: &str) {
        if self.fence.is_some() || !is_row(line) {
            self.table = None;
        } else if self.table.is_none() && is_rule(line) && is_row(&self.last_line) {
            let head = format!("{}{line}", self.last_line);
            self.table = Some(if units(&head) > MAX_HEAD { String::new() } else { head });
        }
    }
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

fn kind(line: &str) -> TextLineKind {
    let words = line.trim_start_matches([' ', '>']);
    if words.trim().is_empty() {
        TextLineKind::Blank
    } else if words.starts_with('#') {
        TextLineKind::Heading
    } else if without_marker(words) != words {
        TextLineKind::Item
    } else {
        TextLineKind::Words
    }
}

/// `line` without the marker of a list item.
fn without_marker(line: &str) -> &str {
    let digits = line.len() - line.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let after = match digits {
        0 => line.strip_prefix(['-', '*', '+']),
        1..=9 => line[digits..].strip_prefix(['.', ')']),
        _ => None,
    };
    after.and_then(|after| after.strip_prefix(' ')).unwrap_or(line)
}

/// The fence that `line` could open or close.
fn opens(line: &str) -> Option<Fence> {
    let quoted = line.trim_start_matches([' ', '>']);
    let words = without_marker(quoted).trim_start_matches(' ');
    let mark = words.chars().next().filter(|c| "`~".contains(*c))?;
    let marks: String = words.chars().take_while(|c| *c == mark).collect();
    let info = words[marks.len()..].trim();
    if marks.len() < 3 || marks.len() > 20 || (mark == '`' && info.contains('`')) {
        return None;
    }
    // Behind a marker the code stands as deep as the item's words.
    let marker = " ".repeat(quoted.len() - words.len());
    let prefix: String = line[..line.len() - quoted.len()].chars().take(40).collect();
    Some(Fence {
        prefix: prefix + &marker,
        marks,
        language: info.split(' ').next().unwrap_or_default().chars().take(20).collect(),
    })
}

fn closes(open: &Fence, line: &Fence) -> bool {
    line.language.is_empty() && line.marks.starts_with(&open.marks)
}

fn is_row(line: &str) -> bool {
    line.contains('|') && !line.trim().is_empty()
}

fn is_rule(line: &str) -> bool {
    let line = line.trim();
    line.contains('-') && line.contains('|') && line.chars().all(|c| "|-: ".contains(c))
}

/// The last good place in the second half of what fits: behind a sentence, else a word, else a whole character.
fn in_line(text: &str) -> usize {
    let mut size = 0;
    let (mut sentence, mut word, mut whole) = (None, None, text.len());
    let mut before = ' ';
    let _ = text.char_indices().try_for_each(|(at, c)| {
        if size > LIMIT / 2 {
            if !joins(before, c) {
                whole = at;
            }
            if c.is_whitespace() || "，、；：）".contains(before) {
                word = Some(at);
            }
            if "。！？!?；\n".contains(before) || (c == ' ' && ".;".contains(before)) {
                sentence = Some(at);
            }
        }
        size += c.len_utf16();
        before = c;
        if size > LIMIT {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    sentence.or(word).unwrap_or(whole)
}

/// Do the two belong to one sign as people see it: marks on a letter, joined emoji, flags?
fn joins(before: char, c: char) -> bool {
    let follows = matches!(c, '\u{300}'..='\u{36f}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}' | '\u{1f3fb}'..='\u{1f3ff}' | '\u{20d0}'..='\u{20ff}' | '\u{3099}' | '\u{309a}');
    let flags = '\u{1f1e6}'..='\u{1f1ff}';
    follows || before == '\u{200d}' || (flags.contains(&before) && flags.contains(&c))
}

fn units(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

#[cfg(test)]
mod tests;
