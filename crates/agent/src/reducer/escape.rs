//! Foreign text made harmless: `esc` for the inside of our blocks, `plain` for messages of its own.
//!
//! Inside a block every angle bracket is escaped. Outside, text is left as it is (a file's `<` stays a
//! `<`) except where it could be taken for one of our tags or labels.

use super::lookalike::{is_angle, starts_label, starts_tag};
use crate::domain::{is_format, is_pictograph};

/// Zero-width joiner, the one format character that emoji need.
const JOINER: char = '\u{200D}';

/// CRLF as LF; control characters other than tab and LF dropped.
pub(super) fn clean(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() || matches!(c, '\t' | '\n')).collect()
}

/// At most `cap` bytes of `text`, cut where no character is torn from its marks or its joiner.
pub(super) fn clip(text: &str, cap: usize) -> &str {
    if text.len() <= cap {
        return text;
    }
    let mut end = text.floor_char_boundary(cap);
    while let Some(next) = text[end..].chars().next() {
        let joined = text[..end].ends_with(JOINER);
        let extends = is_format(next)
            || matches!(u32::from(next), 0xFE00..=0xFE0F | 0x1F3FB..=0x1F3FF)
            || unicode_normalization::char::is_combining_mark(next);
        match text[..end].char_indices().next_back() {
            Some((before, _)) if joined || extends => end = before,
            _ => break,
        }
    }
    &text[..end]
}

/// `text`, whole or at most `cap` bytes of it with our word on how many are missing, so that a reader knows that there was more.
pub(super) fn cut(text: &str, cap: usize) -> String {
    if text.len() <= cap {
        return text.to_owned();
    }
    let mark = |missing: usize| format!(" … [cut here: {missing} more bytes]");
    let kept = clip(text, cap.saturating_sub(mark(text.len()).len()));
    format!("{kept}{}", mark(text.len() - kept.len()))
}

/// Escapes `text` for the inside of a block, at most `cap` bytes of it. Injective on what [`clean`] and
/// [`clip`] leave, so a reader can get the text back.
pub(super) fn esc(text: &str, cap: usize) -> String {
    let text = clean(text);
    let text = clip(&text, cap);
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    let mut before = None;
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            JOINER if before.is_some_and(is_pictograph) && rest.clone().next().is_some_and(is_pictograph) => out.push(c),
            // Line separators of Unicode would start a line, and so a column 0, for some readers.
            _ if is_angle(c) || is_format(c) || matches!(c, '\u{2028}' | '\u{2029}') => {
                out.push_str(&format!("&#x{:X};", u32::from(c)));
            }
            _ => out.push(c),
        }
        before = Some(c);
    }
    out
}

/// Foreign text as a message of its own, or within one: cleaned, and neutral wherever it could pass for
/// one of our tags (`<` becomes `&lt;`) or column-0 labels (a middle dot goes before).
pub(super) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let text = clean(text);
    let mut line_start = true;
    for (at, c) in text.char_indices() {
        let rest = &text[at..];
        if line_start && starts_label(rest) {
            out.push('\u{B7}');
        }
        line_start = matches!(c, '\n' | '\u{2028}' | '\u{2029}');
        if is_angle(c) && starts_tag(rest) {
            if c == '<' {
                out.push_str("&lt;");
            } else {
                out.push_str(&format!("&#x{:X};", u32::from(c)));
            }
        } else {
            out.push(c);
        }
    }
    out
}

/// `text` on one line, at most `cap` characters, for summaries and cards.
pub(super) fn one_line(text: &str, cap: usize) -> String {
    let text = clean(text);
    let mut words = text.split_whitespace().flat_map(|word| [" ", word]).skip(1).flat_map(str::chars);
    let mut line: String = words.by_ref().take(cap).collect();
    if words.next().is_some() {
        line.pop();
        line.push('…');
    }
    line
}
