//! Where links may lead, and which words are links without being marked as one.

use super::{Style, StyledText};

/// Longest URL that is kept as a link; a platform refuses the whole message for a longer one.
const MAX_URL: usize = 2000;

/// The URL of a link, if it is one that may be pressed.
pub(super) fn target(url: &str) -> Option<&str> {
    let known = match url.split_once(':')? {
        ("http" | "https", _) => host(url).is_some(),
        ("mailto", address) => !address.is_empty(),
        _ => false,
    };
    let plain = url.len() <= MAX_URL && !url.chars().any(|c| c.is_whitespace() || c.is_control() || "<>\"\\`".contains(c));
    (known && plain).then_some(url)
}

/// What is said behind a link whose words hide where it leads: its host, or the address of a mail.
pub(super) fn hidden<'a>(words: &str, url: &'a str) -> Option<&'a str> {
    let shown = host(url).or_else(|| url.split_once(':').map(|(_, address)| address))?;
    let whole = |(at, _): (usize, &str)| {
        let mut after = words[at + shown.len()..].chars();
        let longer = match after.next() {
            // The end of a sentence, or one more part of a name?
            Some('.') => after.next().is_some_and(char::is_alphanumeric),
            next => next.is_some_and(in_name),
        };
        !longer && !words[..at].chars().next_back().is_some_and(|c| in_name(c) || c == '.')
    };
    // A name inside a longer one is another name: `bank.example` does not say `ank.example`.
    (!words.match_indices(shown).any(whole)).then_some(shown)
}

fn in_name(c: char) -> bool {
    c.is_alphanumeric() || c == '-'
}

fn host(url: &str) -> Option<&str> {
    let (_, after) = url.split_once("://")?;
    // User info before an `@` is the oldest disguise of a host.
    let host = after.split(['/', '?', '#', '\\']).next()?.rsplit('@').next()?;
    (!host.is_empty()).then_some(host)
}

/// `span` with the bare web addresses in it as links of their own.
pub(super) fn linked(span: StyledText) -> Vec<StyledText> {
    if span.link.is_some() || span.style.code || !span.text.contains("://") {
        return vec![span];
    }
    let mut out = Vec::new();
    let mut rest = span.text.as_str();
    let mut plain = String::new();
    while let Some(at) = next_address(rest) {
        let end = address_end(&rest[at..]);
        let url = &rest[at..at + end];
        plain.push_str(&rest[..at]);
        if target(url).is_some() {
            push(&mut out, &plain, span.style, None);
            plain.clear();
            push(&mut out, url, span.style, Some(url));
        } else {
            plain.push_str(url);
        }
        rest = &rest[at + end..];
    }
    plain.push_str(rest);
    push(&mut out, &plain, span.style, None);
    out
}

fn push(out: &mut Vec<StyledText>, text: &str, style: Style, link: Option<&str>) {
    if !text.is_empty() {
        out.push(StyledText {
            text: text.to_owned(),
            style,
            link: link.map(str::to_owned),
        });
    }
}

/// Where `http://` or `https://` begins, not in the middle of a word.
fn next_address(text: &str) -> Option<usize> {
    let mut from = 0;
    while let Some(found) = text.get(from..)?.find("http") {
        let at = from + found;
        let word_before = text[..at].chars().next_back().is_some_and(|c| c.is_ascii_alphanumeric());
        if !word_before && (text[at..].starts_with("http://") || text[at..].starts_with("https://")) {
            return Some(at);
        }
        from = at + 4;
    }
    None
}

/// Length of the address that `text` begins with: up to a blank or anything beyond ASCII, without the sentence's end.
fn address_end(text: &str) -> usize {
    let end = text
        .find(|c: char| !c.is_ascii_graphic() || "<>\"`\\|^{}*".contains(c))
        .unwrap_or(text.len());
    let mut url = &text[..end];
    while let Some(last) = url.chars().next_back() {
        let closes = match last {
            ')' => url.matches('(').count() < url.matches(')').count(),
            ']' => url.matches('[').count() < url.matches(']').count(),
            _ => ".,;:!?'".contains(last),
        };
        if !closes {
            break;
        }
        url = &url[..url.len() - 1];
    }
    // At least the scheme, so that every look at a text gets further.
    url.len().max(7)
}
