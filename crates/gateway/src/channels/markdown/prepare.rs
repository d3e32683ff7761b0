//! What is done to a text before it is parsed, so that Markdown as models write it, in Chinese above all, means what
//! it was meant to mean.

use countersign_agent::domain::visible;

/// Stands beside a mark and counts as a letter for the parser; taken out again.
const JOINER: char = '\u{fdd0}';
/// Stands for a single `~`, which is "about" or "to" far more often than a strike.
const TILDE: char = '\u{fdd1}';

/// `text` ready for the parser; [`restored`] undoes it in what comes out.
pub(super) fn prepared(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 32);
    let text: String = visible(text)
        .chars()
        .map(|c| if c == JOINER || c == TILDE { '\u{fffd}' } else { c })
        .collect();
    for line in text.split('\n') {
        if !out.is_empty() {
            out.push('\n');
        }
        prepare_line(&mut out, line);
    }
    out
}

/// Text from the parser as it was written.
pub(super) fn restored(text: &str) -> String {
    text.chars()
        .filter(|c| *c != JOINER)
        .map(|c| if c == TILDE { '~' } else { c })
        .collect()
}

fn prepare_line(out: &mut String, line: &str) {
    let chars: Vec<char> = line.chars().collect();
    let definition = opens_definition(line);
    let (mut at, mut stars) = (0, 0_usize);
    while let Some(&c) = chars.get(at) {
        let run = chars.iter().skip(at).take_while(|next| **next == c).count();
        match c {
            '~' if run == 1 => out.push(TILDE),
            '*' | '~' => {
                let before = at.checked_sub(1).and_then(|before| chars.get(before)).copied();
                let after = chars.get(at + run).copied();
                // Marks come in pairs: the second of a line closes what the first opened. One between blanks is none.
                let closes = stars % 2 == 1;
                if !(blank(before) && blank(after)) {
                    stars += 1;
                }
                if closes && before.is_some_and(is_mark) && after.is_some_and(char::is_alphanumeric) && foreign(before, after) {
                    out.push(JOINER);
                }
                out.extend(chars.iter().skip(at).take(run));
                if !closes && before.is_some_and(char::is_alphanumeric) && after.is_some_and(is_mark) && foreign(before, after) {
                    out.push(JOINER);
                }
            }
            // Without its colon, `[1]: https://…` is a line to read instead of one that vanishes.
            ']' if definition && run == 1 && chars.get(at + 1) == Some(&':') => out.extend([c, JOINER]),
            _ => out.extend(chars.iter().skip(at).take(run)),
        }
        at += run;
    }
}

/// Is one side beyond ASCII? CommonMark's rule for marks beside punctuation wants blanks that such scripts do not have.
fn foreign(before: Option<char>, after: Option<char>) -> bool {
    before.into_iter().chain(after).any(|c| !c.is_ascii())
}

fn blank(c: Option<char>) -> bool {
    c.is_none_or(char::is_whitespace)
}

/// Punctuation and symbols, near enough.
fn is_mark(c: char) -> bool {
    !c.is_alphanumeric() && !c.is_whitespace()
}

fn opens_definition(line: &str) -> bool {
    line.trim_start_matches([' ', '>', '-', '*', '+']).starts_with('[') && line.contains("]:")
}
