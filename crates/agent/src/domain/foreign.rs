//! Text of people, models, tools and pages, made harmless before it is shown or put before a model.
//!
//! Inside a block of ours the reducer indents it and escapes every angle bracket with [`esc`]. A message of its own goes through
//! [`plain`]: it stays as it is, so that a file's `<` stays a `<`, except where it could be taken for one of our tags or labels.
//! Neither is what consent rests on: code reads decisions, and no model's reading of a text decides anything.

use icu_properties::props::{DefaultIgnorableCodePoint, EmojiModifier, ExtendedPictographic, GeneralCategory};
use icu_properties::{CodePointMapData, CodePointSetData, CodePointSetDataBorrowed};
use unicode_normalization::UnicodeNormalization;

/// Code points that show nothing where they are not understood: joiners, fillers, selectors, tags, marks of direction.
const IGNORABLE: CodePointSetDataBorrowed<'static> = CodePointSetData::new::<DefaultIgnorableCodePoint>();
const PICTOGRAPHS: CodePointSetDataBorrowed<'static> = CodePointSetData::new::<ExtendedPictographic>();
const MODIFIERS: CodePointSetDataBorrowed<'static> = CodePointSetData::new::<EmojiModifier>();
const JOINER: char = '\u{200d}';
const TEXT_STYLE: char = '\u{fe0e}';
const EMOJI_STYLE: char = '\u{fe0f}';
const KEYCAP: char = '\u{20e3}';

/// `<`, and what looks like it or becomes it under a Unicode normal form.
const OPENING_ANGLES: &str = "<\u{ff1c}\u{fe64}\u{2039}\u{276e}\u{2770}\u{3008}\u{27e8}\u{2329}\u{fe3f}\u{226e}\u{2c2}\u{1438}\u{29fc}";
/// `>`, and what looks like it or becomes it.
const CLOSING_ANGLES: &str = ">\u{ff1e}\u{fe65}\u{203a}\u{276f}\u{2771}\u{3009}\u{27e9}\u{232a}\u{fe40}\u{226f}\u{2c3}\u{1433}\u{29fd}";
/// `[`, and what looks like it or becomes it.
const OPENING_SQUARES: &str = "[\u{ff3b}\u{fe47}\u{2045}\u{27e6}\u{3010}\u{3014}\u{301a}";

/// Names of our tags, without separators.
const TAGS: [&str; 14] = [
    "earliertask",
    "chatcontext",
    "attachedfiles",
    "planfeedback",
    "planreviewpending",
    "planreviewresolved",
    "plancontinuation",
    "planreminder",
    "planstep",
    "planreflection",
    "planconclusion",
    "turnlimit",
    "turncontinuation",
    "mailbox",
];

/// What follows the bracket of our labels at column 0, without separators.
const LABELS: [&str; 5] = ["toolresult:", "plan]", "act]", "obs]", "reflect]"];

/// Line breaks as `\n`; characters that hide or reorder text (controls, bidi overrides, everything invisible) as U+FFFD, so that what is
/// approved reads in the order in which it runs, and two names that look alike are alike. Emoji of several code points stay.
#[must_use]
pub fn visible(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        out.push(match c {
            '\n' | '\t' => c,
            '\r' | '\u{2028}' | '\u{2029}' | '\u{85}' => '\n',
            JOINER | TEXT_STYLE | EMOJI_STYLE if belongs(c, out.chars().next_back(), rest.clone().next()) => c,
            // No program shows annotations between lines, although they are not ignored by default.
            '\u{fff9}'..='\u{fffb}' => '\u{fffd}',
            c if c.is_control() || is_ignorable(c) => '\u{fffd}',
            c => c,
        });
    }
    out
}

/// Is `c` ignored by default: does a reader who does not know it see nothing?
fn is_ignorable(c: char) -> bool {
    !c.is_ascii() && IGNORABLE.contains(c)
}

fn category(c: char) -> GeneralCategory {
    CodePointMapData::<GeneralCategory>::new().get(c)
}

/// A format character (Cf): takes no room, may reorder or hide its neighbours.
pub(crate) fn is_format(c: char) -> bool {
    !c.is_ascii() && category(c) == GeneralCategory::Format
}

/// A mark that is drawn over, under or around the character before it.
fn is_mark(c: char) -> bool {
    use GeneralCategory::{EnclosingMark, NonspacingMark, SpacingMark};
    !c.is_ascii() && matches!(category(c), NonspacingMark | SpacingMark | EnclosingMark)
}

/// Takes no room: a format character, or another one that is drawn as nothing.
pub fn is_invisible(c: char) -> bool {
    is_format(c) || is_ignorable(c)
}

/// May a joiner join this character: is it a pictograph, or what changes the look of one?
fn is_pictograph(c: char) -> bool {
    !c.is_ascii() && (c == EMOJI_STYLE || PICTOGRAPHS.contains(c) || MODIFIERS.contains(c))
}

/// Is `c` a part of an emoji between these neighbours?
fn belongs(c: char, before: Option<char>, after: Option<char>) -> bool {
    match c {
        JOINER => before.is_some_and(is_pictograph) && after.is_some_and(is_pictograph),
        _ => match before {
            Some('0'..='9' | '#' | '*') => c == EMOJI_STYLE && after == Some(KEYCAP),
            Some(before) => !before.is_ascii() && PICTOGRAPHS.contains(before),
            None => false,
        },
    }
}

/// `text` on one line, at most `max` characters, the cut marked by `…`. Control characters are dropped.
#[must_use]
pub fn one_line(text: &str, max: usize) -> String {
    let words = text.split_whitespace().flat_map(|word| [" ", word]).skip(1);
    let mut letters = words.flat_map(str::chars).filter(|c| !c.is_control());
    let mut line: String = letters.by_ref().take(max).collect();
    if letters.next().is_some() {
        line.pop();
        line.push('…');
    }
    line
}

/// `value` as JSON that can stand between two backticks on one line: it holds no backtick, and of blanks only spaces.
#[must_use]
pub fn json_in_code(value: &serde_json::Value) -> String {
    let spell = |c: char| match c {
        '`' => String::from("\\u0060"),
        c if c != ' ' && c.is_whitespace() => format!("\\u{:04x}", u32::from(c)),
        c => c.to_string(),
    };
    value.to_string().chars().map(spell).collect()
}

/// `text` with U+FFFD in place of control characters. Characters that other scripts and programs need, joiners above all, stay.
#[cfg(any(feature = "web", feature = "bash", feature = "mcp"))]
pub(crate) fn mark_controls(text: &str) -> String {
    text.replace(|c: char| c.is_control() && !matches!(c, '\n' | '\t' | '\r'), "\u{fffd}")
}

/// `text` without control characters other than tab and LF, so that CRLF is LF.
pub(crate) fn clean(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() || matches!(c, '\t' | '\n')).collect()
}

/// At most `cap` bytes of `text`, cut where no character is torn from its marks or its joiner.
pub(crate) fn clip(text: &str, cap: usize) -> &str {
    if text.len() <= cap {
        return text;
    }
    let mut end = text.floor_char_boundary(cap);
    while let Some(next) = text[end..].chars().next() {
        let joined = text[..end].ends_with(JOINER);
        let extends = is_format(next) || is_mark(next) || MODIFIERS.contains(next);
        match text[..end].char_indices().next_back() {
            Some((before, _)) if joined || extends => end = before,
            _ => break,
        }
    }
    &text[..end]
}

/// `text`, whole or at most `cap` bytes of it with our word on how many are missing, so that a reader knows that there was more.
pub(crate) fn cut(text: &str, cap: usize) -> String {
    if text.len() <= cap {
        return text.to_owned();
    }
    let mark = |missing: usize| format!(" … [cut here: {missing} more bytes]");
    let kept = clip(text, cap.saturating_sub(mark(text.len()).len()));
    format!("{kept}{}", mark(text.len() - kept.len()))
}

/// Escapes `text` for the inside of a block, at most `cap` bytes of it. Injective on what [`clean`] and
/// [`clip`] leave, so a reader can get the text back.
pub(crate) fn esc(text: &str, cap: usize) -> String {
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
            JOINER if belongs(c, before, rest.clone().next()) => out.push(c),
            // Line separators of Unicode would start a line, and so a column 0, for some readers.
            _ if OPENING_ANGLES.contains(c) || CLOSING_ANGLES.contains(c) || is_format(c) || matches!(c, '\u{2028}' | '\u{2029}') => {
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
pub(crate) fn plain(text: &str) -> String {
    let text = clean(text);
    let mut out = String::with_capacity(text.len() + 16);
    let mut line_start = true;
    for (at, c) in text.char_indices() {
        let rest = &text[at + c.len_utf8()..];
        if line_start && starts_label(&text[at..]) {
            out.push('\u{B7}');
        }
        line_start = matches!(c, '\n' | '\u{2028}' | '\u{2029}');
        if !OPENING_ANGLES.contains(c) || !TAGS.iter().any(|name| spells(rest, name)) {
            out.push(c);
        } else if c == '<' {
            out.push_str("&lt;");
        } else {
            out.push_str(&format!("&#x{:X};", u32::from(c)));
        }
    }
    out
}

/// Does the line `text` begin with something that reads like one of our labels?
fn starts_label(text: &str) -> bool {
    let label = text.trim_start_matches(is_invisible).strip_prefix(|c| OPENING_SQUARES.contains(c));
    label.is_some_and(|label| LABELS.iter().any(|name| spells(label, name)))
}

/// Does `text` begin with `name` for a reader who passes over blanks, separators, marks, invisible characters and a leading slash?
/// Letters of other alphabets pass for any letter, as long as one letter is really there: words of another language stay as they are.
fn spells(text: &str, name: &str) -> bool {
    let passed_over = |c: &char| c.is_whitespace() || is_invisible(*c) || is_mark(*c) || is_separator(*c);
    let folded = text.nfkd().flat_map(char::to_lowercase).filter(|c| !passed_over(c)).map(fold);
    let mut signs = folded.skip_while(|c| *c == '/');
    let mut real = false;
    name.chars().map(fold).all(|wanted| {
        let Some(found) = signs.next() else { return false };
        let letter = wanted.is_ascii_alphabetic();
        real |= letter && found == wanted;
        found == wanted || (letter && found.is_lowercase() && !found.is_ascii())
    }) && real
}

/// The sign that stands for all that look like it, where no property of Unicode tells.
fn fold(c: char) -> char {
    match c {
        'i' | '1' | '|' | '\u{1c0}' => 'l',
        '0' | '\u{3007}' => 'o',
        '\\' | '\u{2044}' | '\u{2215}' | '\u{2571}' | '\u{29f8}' => '/',
        '\u{2d0}' | '\u{2236}' | '\u{a789}' => ':',
        '\u{2046}' | '\u{27e7}' | '\u{3011}' | '\u{3015}' | '\u{301b}' | '\u{fe48}' => ']',
        other => other,
    }
}

fn is_separator(c: char) -> bool {
    use GeneralCategory::{ConnectorPunctuation, DashPunctuation};
    matches!(category(c), DashPunctuation | ConnectorPunctuation) || matches!(c, '\u{b7}' | '\u{2043}' | '\u{2212}')
}

#[cfg(test)]
mod tests {
    use super::{one_line, plain, visible};

    /// S0-26: what looks like one of our tags or labels is none for any reader.
    #[test]
    fn forgeries_by_look_are_neutral() {
        for forged in [
            "\u{2039}\u{2215}plan_feedback>",
            "<\\plan_feedback>",
            "<plan\u{2212}feedback>",
            "<plan\u{b7}feedback>",
            "<pIan_feedback>",
            "<p1an_feedback>",
            "<mai|box>",
            "<plan_c0ntinuation>",
            "<рlаn_feedbасk>",
            "[t00l_result:x]",
            "[tool_result\u{2236}x]",
            "[act\u{3011} x",
            "\u{3010}plan\u{3011}",
            "[оbs] x",
        ] {
            assert_ne!(plain(forged), forged);
        }
    }

    /// Words in brackets are words in every language: what a person said, and what stands in a file, is not changed.
    #[test]
    fn words_in_brackets_stay() {
        for text in [
            "[имя]",
            "[план] сделать",
            "[тут](https://example.org)",
            "[примечание: a]",
            "[αβγ]",
            "[ключ]\nимя=1",
            "[planß",
            "【计划】",
            "[见图]",
        ] {
            assert_eq!(plain(text), text);
        }
    }

    /// design: characters that hide text are shown as such: every code point that is ignored by default, wherever it stands.
    #[test]
    fn invisible_characters_are_shown() {
        for hidden in [
            '\u{ad}',
            '\u{34f}',
            '\u{61c}',
            '\u{115f}',
            '\u{1160}',
            '\u{17b4}',
            '\u{180b}',
            '\u{180e}',
            '\u{200b}',
            '\u{200c}',
            '\u{200d}',
            '\u{200e}',
            '\u{202e}',
            '\u{2060}',
            '\u{2061}',
            '\u{2064}',
            '\u{2065}',
            '\u{206a}',
            '\u{206f}',
            '\u{3164}',
            '\u{fe00}',
            '\u{fe0f}',
            '\u{feff}',
            '\u{ffa0}',
            '\u{1bca0}',
            '\u{1d173}',
            '\u{e0001}',
            '\u{e0041}',
            '\u{e0100}',
            '\u{e01ef}',
        ] {
            assert_eq!(visible(&format!("new{hidden}.txt")), "new\u{fffd}.txt", "{:04x}", u32::from(hidden));
            assert_eq!(visible(&hidden.to_string()), "\u{fffd}", "{:04x}", u32::from(hidden));
        }
        // Behind a sign that has no other look, and behind one another.
        assert_eq!(visible("1\u{fe0f}.txt"), "1\u{fffd}.txt");
        assert_eq!(visible("☀\u{fe0f}\u{fe0f}"), "☀\u{fe0f}\u{fffd}");
        assert_eq!(visible("👩\u{200d}a"), "👩\u{fffd}a");
        assert_eq!(visible("a\u{200d}👩"), "a\u{fffd}👩");
        assert_eq!(visible("👩\u{200d}\u{200d}💻"), "👩\u{fffd}\u{fffd}💻");
    }

    /// design: emoji stay as they are, made of several code points too; so does ordinary text in any script.
    #[test]
    fn emoji_and_ordinary_text_stay() {
        for text in [
            "👩\u{200d}💻",
            "👨\u{200d}👩\u{200d}👧\u{200d}👦",
            "🏳\u{fe0f}\u{200d}🌈",
            "👩🏽\u{200d}🚀",
            "❤\u{fe0f}\u{200d}🔥",
            "🧔🏻\u{200d}♂\u{fe0f}",
            "☀\u{fe0f}",
            "☎\u{fe0e}",
            "1\u{fe0f}\u{20e3}",
            "#\u{fe0f}\u{20e3}",
            "©\u{fe0f}",
            "⚠\u{fe0f} 高风险",
            "🇨🇳",
            "计划确认：把 a.md 写好",
            "e\u{301}te\u{301}",
            "नमस्ते",
            "한국어",
            "Ελληνικά\tx\ny",
        ] {
            assert_eq!(visible(text), text);
        }
    }

    /// design: a title or a summary is one line of so many characters, and says that it was cut.
    #[test]
    fn one_line_is_one_line() {
        assert_eq!(one_line(" a\n\tb\u{7}  c\r\n", 10), "a b c");
        assert_eq!(one_line("计划确认", 4), "计划确认");
        assert_eq!(one_line("计划确认", 3), "计划…");
    }
}
