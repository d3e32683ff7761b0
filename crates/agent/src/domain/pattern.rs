//! Patterns of arguments, and what they are compared with: the value that the tool will use.
//!
//! `*` stands for any characters but `/ ? # &`, `**` for any at all. Everything else is compared exactly, case included.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use unicode_normalization::UnicodeNormalization;
use url::Url;

/// Characters of a text that a pattern with `*` is compared with. A longer one matches only an equal text, or `**` alone.
const MAX_TEXT: usize = 4096;
/// Where `*` ends.
const ENDS: [char; 4] = ['/', '?', '#', '&'];
/// What servers may take for a `/`. `*` ends there too.
const ENCODED_ENDS: [&str; 2] = ["%2f", "%5c"];

/// How a tool uses an argument.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArgumentSense {
    /// As text, or as a value that is no text.
    #[default]
    Text,
    /// As the path of a file below the workspace.
    Path,
    /// As the address of a page, `http` or `https`.
    Url,
}

/// The text that the tool will use, or the pattern of it: one spelling for all that mean the same.
///
/// Texts are in Unicode's composed form (NFC). A path is relative, without `.` and doubled `/`. A URL has its host in lower case, and no
/// default port, user, password or fragment. `None` means that nothing can be compared with it: a path that is absolute or has `..`, a text
/// that is no URL, a host that ends in a dot. A URL's host takes a `*` only as `*.example.com`; any other is `None`.
#[must_use]
pub fn normal(text: &str, sense: ArgumentSense) -> Option<String> {
    match sense {
        ArgumentSense::Text => Some(text.nfc().collect()),
        ArgumentSense::Path => normal_path(text),
        ArgumentSense::Url => normal_url(text),
    }
}

/// What a comparison of a value with a pattern says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// It matches.
    Match,
    /// It does not.
    Mismatch,
    /// The value cannot be compared: it is too long for a pattern, or has no normal spelling. What allows a call needs a match; what forbids one
    /// takes this as one.
    Unclear,
}

/// Does `value` match `pattern`? Texts match by `*` and `**`, every other value only an equal one.
#[must_use]
pub fn matches(pattern: &Value, value: &Value, sense: ArgumentSense) -> bool {
    compare(pattern, value, sense) == Comparison::Match
}

/// Compares `value` with `pattern`: see [`matches()`].
#[must_use]
pub fn compare(pattern: &Value, value: &Value, sense: ArgumentSense) -> Comparison {
    let (pattern, value) = match (pattern, value) {
        (Value::String(pattern), Value::String(value)) => (pattern, value),
        (Value::Number(pattern), Value::Number(value)) if pattern != value => {
            return known(pattern.as_f64().is_some_and(|pattern| value.as_f64() == Some(pattern)) && !(pattern.is_i64() && value.is_i64()));
        }
        _ => return known(pattern == value),
    };
    // No value matches such a pattern.
    let Some(pattern) = normal(pattern, sense) else {
        return Comparison::Mismatch;
    };
    match normal(value, sense) {
        Some(value) if is_too_long(&pattern, &value) => Comparison::Unclear,
        Some(value) => known(fits(&pattern, &value)),
        None => Comparison::Unclear,
    }
}

fn known(matches: bool) -> Comparison {
    if matches { Comparison::Match } else { Comparison::Mismatch }
}

fn is_too_long(pattern: &str, text: &str) -> bool {
    pattern != "**" && pattern.contains('*') && pattern != text && text.chars().count() > MAX_TEXT
}

/// Does `text` fit the pattern, both as they are? For names of tools, and for values in their normal spelling.
#[must_use]
pub fn fits(pattern: &str, text: &str) -> bool {
    if pattern == "**" || pattern == text {
        return true;
    }
    if !pattern.contains('*') || is_too_long(pattern, text) {
        return false;
    }
    let marks = marks(pattern);
    // The positions in the pattern that may come next. Work is bounded by length of pattern times length of text, whatever they hold.
    let mut at = vec![false; marks.len() + 1];
    at[0] = true;
    skip_stars(&marks, &mut at);
    for (byte, c) in text.char_indices() {
        let ends = ENDS.contains(&c) || ENCODED_ENDS.iter().any(|end| begins_with(&text[byte..], end));
        let mut next = vec![false; at.len()];
        for (position, mark) in marks.iter().enumerate().filter(|(position, _)| at[*position]) {
            match mark {
                Mark::One(wanted) => next[position + 1] |= *wanted == c,
                Mark::Part => next[position] |= !ends,
                Mark::Anything => next[position] = true,
            }
        }
        skip_stars(&marks, &mut next);
        at = next;
    }
    at[marks.len()]
}

/// What a pattern says of the next characters.
enum Mark {
    One(char),
    Part,
    Anything,
}

fn marks(pattern: &str) -> Vec<Mark> {
    let mut marks = Vec::new();
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        marks.push(match c {
            '*' if chars.next_if_eq(&'*').is_some() => Mark::Anything,
            '*' => Mark::Part,
            c => Mark::One(c),
        });
    }
    marks
}

/// A star may stand for nothing.
fn skip_stars(marks: &[Mark], at: &mut [bool]) {
    for (position, mark) in marks.iter().enumerate() {
        if at[position] && !matches!(mark, Mark::One(_)) {
            at[position + 1] = true;
        }
    }
}

fn begins_with(text: &str, lower: &str) -> bool {
    text.get(..lower.len()).is_some_and(|head| head.eq_ignore_ascii_case(lower))
}

fn normal_path(path: &str) -> Option<String> {
    let refused = path.starts_with('/') || path.ends_with('/') || path.chars().any(char::is_control);
    let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    if refused || parts.is_empty() || parts.contains(&"..") {
        return None;
    }
    Some(parts.join("/").nfc().collect())
}

fn normal_url(text: &str) -> Option<String> {
    let mut url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    let host = url.host_str()?;
    if host.strip_prefix("*.").unwrap_or(host).contains('*') || host.ends_with('.') {
        return None;
    }
    url.set_username("").ok()?;
    url.set_password(None).ok()?;
    url.set_fragment(None);
    Some(url.to_string())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn path(pattern: &str, value: &str) -> bool {
        matches(&json!(pattern), &json!(value), ArgumentSense::Path)
    }

    fn url(pattern: &str, value: &str) -> bool {
        matches(&json!(pattern), &json!(value), ArgumentSense::Url)
    }

    /// interface §9: `*` stops at `/ ? # &`, `**` crosses them.
    #[test]
    fn stars() {
        for (pattern, text, expected) in [
            ("a*", "abc", true),
            ("a*", "a", true),
            ("*", "", true),
            ("a*c", "abcbc", true),
            ("a*c", "abcb", false),
            ("a*", "a/b", false),
            ("a*", "a?b", false),
            ("a*", "a#b", false),
            ("a*", "a&b", false),
            ("a**", "a/b?c#d&e", true),
            ("**/x", "a/b/x", true),
            ("**/x", "x", false),
            ("a*b*c", "aXbYc", true),
            ("a***", "a/b", true),
            ("a*", "a%2fb", false),
            ("a*", "a%5Cb", false),
            ("a**", "a%2Fb", true),
            ("a%2Fb", "a%2Fb", true),
            ("A*", "abc", false),
            ("", "", true),
            ("", "a", false),
        ] {
            assert_eq!(fits(pattern, text), expected, "{pattern} {text}");
        }
        assert!(!fits("a*", &"a".repeat(MAX_TEXT + 1)));
        assert!(fits("**", &"a/".repeat(MAX_TEXT)));
    }

    /// interface §9: a path is made relative and normal, `..` never matches, case counts, NFC.
    #[test]
    fn paths() {
        assert!(path("./out//a.md", "out/./a.md"));
        assert!(path("out/*", "out/a.md"));
        assert!(path("caf\u{e9}.md", "cafe\u{301}.md"));
        for escaping in [
            "out/../a.md",
            "out/..",
            "../out/a.md",
            "/out/a.md",
            "out/b/a.md",
            "OUT/a.md",
            "out/",
            "out/\u{7}",
            "out/%2e%2e/a.md",
        ] {
            assert!(!path("out/*", escaping), "{escaping}");
        }
        assert!(!path("summary.md", "summary.md."));
        assert!(!path("out/../a.md", "a.md"));
        assert!(!path("**", "../a.md"));
    }

    /// interface §9: a URL is parsed and written anew: host in lower case, no default port, userinfo or fragment.
    #[test]
    fn urls() {
        assert!(url("https://Example.com", "https://user:secret@EXAMPLE.com:443/#top"));
        assert!(url("https://example.com/a/*", "https://example.com/a/b%20c"));
        assert!(url("https://example.com/a?q=*", "https://example.com/a?q=x"));
        assert!(url("https://*.example.com/**", "https://a.b.example.com/c/d?e=f"));
        assert!(url("https://bücher.example/", "https://xn--bcher-kva.example/"));
        for escaping in [
            "https://example.com/a/../b",
            "https://example.com/a/%2e%2e/b",
            "https://example.com/a/..%2Fb",
            "https://example.com/a\\b\\..\\..\\c",
            "https://example.com/a/b?d=secret",
            "https://example.com/a/b/c",
            "https://example.com:8443/a/b",
            "http://example.com/a/b",
            "https://example.com./a/b",
            "https://example.com@evil.example/a/b",
            "https://example.com.evil.example/a/b",
            "https://EXAMPLE.com/A/b",
            "ftp://example.com/a/b",
            "example.com/a/b",
        ] {
            assert!(!url("https://example.com/a/*", escaping), "{escaping}");
        }
        assert!(!url("https://example.com/a?q=*", "https://example.com/a?q=x&d=secret"));
        for host in ["https://example.com*", "https://**", "https://*/", "https://e*.example.com/"] {
            assert!(!url(host, "https://example.com.evil.example/"), "{host}");
            assert_eq!(normal(host, ArgumentSense::Url), None, "{host}");
        }
    }

    /// interface §9: a rule that forbids must not be passed by what cannot be compared, so such a value is told from one that does not match.
    #[test]
    fn what_cannot_be_compared_is_unclear() {
        let of = |pattern: &str, value: &str, sense| compare(&json!(pattern), &json!(value), sense);
        let long = format!("DROP {}", "x".repeat(MAX_TEXT));
        assert_eq!(of("**DROP**", &long, ArgumentSense::Text), Comparison::Unclear);
        assert_eq!(of("DROP", &long, ArgumentSense::Text), Comparison::Mismatch);
        assert_eq!(of("secrets/**", "out/../secrets/a", ArgumentSense::Path), Comparison::Unclear);
        for url in ["https://evil.example./x", "https://a*b.evil.example/", "no url"] {
            assert_eq!(of("https://evil.example/**", url, ArgumentSense::Url), Comparison::Unclear, "{url}");
        }
        assert_eq!(
            of("https://*", "https://evil.example/", ArgumentSense::Url),
            Comparison::Mismatch,
            "no such pattern"
        );
    }

    /// interface §5: numbers and booleans match exactly, and so does everything that is no text.
    #[test]
    fn values() {
        let same = |pattern: Value, value: Value| matches(&pattern, &value, ArgumentSense::Text);
        assert!(same(json!(1), json!(1)));
        assert!(same(json!(1), json!(1.0)), "the same number");
        assert!(!same(json!(9_007_199_254_740_993_i64), json!(9_007_199_254_740_992_i64)));
        assert!(same(json!(true), json!(true)));
        assert!(same(json!({"a": ["b*"]}), json!({"a": ["b*"]})));
        assert!(!same(json!({"a": ["b*"]}), json!({"a": ["bc"]})));
        assert!(!same(json!(1), json!("1")));
        assert!(!same(json!("*"), json!(1)));
        assert!(!same(json!("**"), json!(null)));
        assert!(!same(json!(null), json!("")));
    }

    /// The rule in two lines, by trying every split.
    fn slow(pattern: &[char], text: &[char]) -> bool {
        match pattern {
            [] => text.is_empty(),
            ['*', '*', rest @ ..] => (0..=text.len()).any(|at| slow(rest, &text[at..])),
            ['*', rest @ ..] => (0..=text.len())
                .take_while(|at| !text[..*at].iter().any(|c| ENDS.contains(c)))
                .any(|at| slow(rest, &text[at..])),
            [c, rest @ ..] => text.first() == Some(c) && slow(rest, &text[1..]),
        }
    }

    proptest! {
        /// design: one pure function decides; it agrees with the definition on every text.
        #[test]
        fn stars_are_what_they_are_said_to_be(pattern in "[ab/?#&*]{0,8}", text in "[ab/?#&]{0,8}") {
            let chars = |text: &str| text.chars().collect::<Vec<_>>();
            prop_assert_eq!(fits(&pattern, &text), slow(&chars(&pattern), &chars(&text)));
        }

        /// A normal spelling is its own normal spelling.
        #[test]
        fn normal_spellings_stay(text in "(https?://)?[a-z.*%2e/@:?#]{0,20}") {
            for sense in [ArgumentSense::Text, ArgumentSense::Path, ArgumentSense::Url] {
                if let Some(once) = normal(&text, sense) {
                    prop_assert_eq!(normal(&once, sense), Some(once));
                }
            }
        }
    }
}
