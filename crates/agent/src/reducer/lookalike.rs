//! What looks like what: the characters that can make foreign text pass for one of our tags or labels.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use crate::domain::is_invisible;

/// Looks like an angle bracket, or becomes one under a Unicode normal form (U+2329 and U+FE3F turn into
/// U+3008, U+226E decomposes into `<`).
pub(super) fn is_angle(c: char) -> bool {
    opens_tag(c)
        || matches!(
            c,
            '>' | '\u{FF1E}'
                | '\u{FE65}'
                | '\u{203A}'
                | '\u{276F}'
                | '\u{2771}'
                | '\u{3009}'
                | '\u{27E9}'
                | '\u{232A}'
                | '\u{FE40}'
                | '\u{226F}'
                | '\u{02C3}'
                | '\u{1433}'
                | '\u{29FD}'
        )
}

fn opens_tag(c: char) -> bool {
    matches!(
        c,
        '<' | '\u{FF1C}'
            | '\u{FE64}'
            | '\u{2039}'
            | '\u{276E}'
            | '\u{2770}'
            | '\u{3008}'
            | '\u{27E8}'
            | '\u{2329}'
            | '\u{FE3F}'
            | '\u{226E}'
            | '\u{02C2}'
            | '\u{1438}'
            | '\u{29FC}'
    )
}

fn opens_label(c: char) -> bool {
    matches!(
        c,
        '[' | '\u{FF3B}' | '\u{FE47}' | '\u{2045}' | '\u{27E6}' | '\u{3010}' | '\u{3014}' | '\u{301A}'
    )
}

/// Folds a visible character to the Latin letters and signs that it looks like: compatibility
/// decomposition, marks dropped, lower case, Cyrillic/Greek/other doubles, and `i l 1 |` as one letter.
fn fold(c: char, out: &mut Vec<char>) {
    for part in std::iter::once(c).nfkd().filter(|part| !is_combining_mark(*part)) {
        out.extend(part.to_lowercase().map(double));
    }
}

/// The Latin letter that a lower-case character passes for.
fn double(c: char) -> char {
    match c {
        '\u{0430}' | '\u{03B1}' | '\u{0251}' | '\u{FF41}' => 'a',
        '\u{0432}' | '\u{0299}' => 'b',
        '\u{0441}' | '\u{03F2}' | '\u{1D04}' => 'c',
        '\u{0501}' | '\u{1D05}' => 'd',
        '\u{0435}' | '\u{03B5}' | '\u{0454}' | '\u{1D07}' => 'e',
        '\u{03DD}' | '\u{0192}' | '\u{A730}' => 'f',
        '\u{0261}' | '\u{0581}' | '\u{0262}' => 'g',
        '\u{043A}' | '\u{03BA}' | '\u{1D0B}' => 'k',
        'i' | '1' | '|' | '\u{0131}' | '\u{0456}' | '\u{03B9}' | '\u{04CF}' | '\u{026A}' | '\u{029F}' | '\u{01C0}' => 'l',
        '\u{043C}' | '\u{1D0D}' => 'm',
        '\u{043F}' | '\u{03B7}' | '\u{0578}' | '\u{0274}' => 'n',
        '0' | '\u{043E}' | '\u{03BF}' | '\u{0585}' | '\u{1D0F}' | '\u{3007}' => 'o',
        '\u{0440}' | '\u{03C1}' | '\u{1D18}' => 'p',
        '\u{0433}' | '\u{0280}' => 'r',
        '\u{0455}' | '\u{A731}' => 's',
        '\u{0442}' | '\u{03C4}' | '\u{1D1B}' => 't',
        '\u{03C5}' | '\u{057D}' | '\u{1D1C}' => 'u',
        '\u{03BD}' | '\u{0475}' | '\u{1D20}' => 'v',
        '\u{051D}' | '\u{03C9}' | '\u{1D21}' => 'w',
        '\u{0445}' | '\u{03C7}' => 'x',
        '\u{2215}' | '\u{2044}' | '\u{2571}' | '\u{29F8}' | '\\' => '/',
        '\u{2236}' | '\u{A789}' | '\u{02D0}' => ':',
        other => other,
    }
}

fn is_separator(c: char) -> bool {
    c.is_whitespace()
        || matches!(
            c,
            '_' | '-' | '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{2043}' | '\u{203F}' | '\u{00B7}' | '\u{2E3A}' | '\u{2E3B}'
        )
}

/// Tag names that are ours.
const TAGS: [&str; 11] = [
    "plan_feedback",
    "plan_review_pending",
    "plan_review_resolved",
    "plan-continuation",
    "plan-reminder",
    "plan-step",
    "plan-reflection",
    "plan-conclusion",
    "turn-limit",
    "turn-continuation",
    "mailbox",
];

/// Words of column-0 labels that are ours, and what closes them.
const LABELS: [(&str, char); 5] = [("tool_result", ':'), ("plan", ']'), ("act", ']'), ("obs", ']'), ("reflect", ']')];

/// Does `text` begin with something that reads like one of our tags?
pub(super) fn starts_tag(text: &str) -> bool {
    let mut rest = text.chars();
    rest.next().is_some_and(opens_tag) && TAGS.iter().any(|name| follows(rest.as_str(), name).is_some())
}

/// Does the line `text` begin with something that reads like one of our labels?
pub(super) fn starts_label(text: &str) -> bool {
    let mut rest = text.chars();
    rest.by_ref().find(|c| !is_invisible(*c)).is_some_and(opens_label)
        && LABELS.iter().any(|(name, close)| {
            follows(rest.as_str(), name).is_some_and(|next| next.is_some_and(|c| c == *close || (*close == ']' && closes_label(c))))
        })
}

fn closes_label(c: char) -> bool {
    matches!(c, '\u{2046}' | '\u{27E7}' | '\u{3011}' | '\u{3015}' | '\u{301B}' | '\u{FE48}')
}

/// When the folded `text` spells `name` (blanks, separators, invisible characters and leading slashes
/// aside): the folded character after it, blanks and separators aside.
fn follows(text: &str, name: &str) -> Option<Option<char>> {
    let mut wanted = name.chars().filter(|c| !is_separator(*c)).map(double).peekable();
    let mut begun = false;
    let mut folded = Vec::new();
    for c in text.chars().filter(|c| !is_invisible(*c)) {
        folded.clear();
        fold(c, &mut folded);
        for &part in &folded {
            match wanted.peek() {
                None if is_separator(part) => {}
                None => return Some(Some(part)),
                Some(_) if is_separator(part) || (!begun && part == '/') => {}
                Some(&letter) if letter == part => {
                    begun = true;
                    wanted.next();
                }
                Some(_) => return None,
            }
        }
    }
    wanted.peek().is_none().then_some(None)
}
