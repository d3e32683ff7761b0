//! Patterns of arguments, and what they are compared with: the value that the tool will use.
//!
//! `*` stands for any characters but `/ ? # &`, `**` for any at all. Everything else is compared exactly, case included.

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};
use unicode_normalization::UnicodeNormalization;
use url::Url;

/// Characters of a text that a pattern with `*` is compared with. A longer one matches only an equal text, or `**` alone.
const MAX_TEXT: usize = 4096;
/// From this magnitude on a float stands for several integers.
const FIRST_INEXACT: f64 = 9_007_199_254_740_992.0;
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
    /// The value cannot be compared: it is too long for a pattern, has no normal spelling, or is a list or an object in which the pattern matches
    /// something. What allows a call needs a match; what forbids one takes this as one.
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
    match (pattern, value) {
        (Value::String(pattern), Value::String(value)) => compare_texts(pattern, value, sense),
        (Value::Number(pattern), Value::Number(value)) => known(is_same_number(pattern, value)),
        // A tool may take a list or an object where it takes a single value, and use what is in it.
        (Value::String(_) | Value::Number(_) | Value::Bool(_), Value::Array(_) | Value::Object(_)) if is_inside(pattern, value, sense) => {
            Comparison::Unclear
        }
        _ => known(pattern == value),
    }
}

/// May something in `value` match? The names of an object's members do not count.
fn is_inside(pattern: &Value, value: &Value, sense: ArgumentSense) -> bool {
    match value {
        Value::Array(items) => items.iter().any(|item| is_inside(pattern, item, sense)),
        Value::Object(members) => members.values().any(|member| is_inside(pattern, member, sense)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => compare(pattern, value, sense) != Comparison::Mismatch,
    }
}

/// Integers are compared exactly. A float is the same as an integer only where it stands for no other one.
fn is_same_number(one: &Number, other: &Number) -> bool {
    match (whole(one), whole(other)) {
        (Some(one), Some(other)) => one == other,
        (None, None) => one.as_f64() == other.as_f64(),
        (Some(_), None) | (None, Some(_)) => false,
    }
}

fn whole(number: &Number) -> Option<i128> {
    let integer = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    let exact = || number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < FIRST_INEXACT);
    integer.or_else(|| exact().map(|float| float as i128))
}

fn compare_texts(pattern: &str, value: &str, sense: ArgumentSense) -> Comparison {
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
                PatternMark::One(wanted) => next[position + 1] |= *wanted == c,
                PatternMark::Part => next[position] |= !ends,
                PatternMark::Anything => next[position] = true,
            }
        }
        skip_stars(&marks, &mut next);
        at = next;
    }
    at[marks.len()]
}

/// What a pattern says of the next characters.
enum PatternMark {
    One(char),
    Part,
    Anything,
}

fn marks(pattern: &str) -> Vec<PatternMark> {
    let mut marks = Vec::new();
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        marks.push(match c {
            '*' if chars.next_if_eq(&'*').is_some() => PatternMark::Anything,
            '*' => PatternMark::Part,
            c => PatternMark::One(c),
        });
    }
    marks
}

/// A star may stand for nothing.
fn skip_stars(marks: &[PatternMark], at: &mut [bool]) {
    for (position, mark) in marks.iter().enumerate() {
        if at[position] && !matches!(mark, PatternMark::One(_)) {
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
        assert!(same(json!(true), json!(true)));
        assert!(same(json!({"a": ["b*"]}), json!({"a": ["b*"]})));
        assert!(!same(json!({"a": ["b*"]}), json!({"a": ["bc"]})));
        assert!(!same(json!(1), json!("1")));
        assert!(!same(json!("*"), json!(1)));
        assert!(!same(json!("**"), json!(null)));
        assert!(!same(json!(null), json!("")));
    }

    /// interface §10: integers are compared exactly, also beyond what a float can tell apart; a float is an integer only below 2⁵³.
    #[test]
    fn integers_are_compared_exactly() {
        let number = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        for (one, other, expected) in [
            ("1", "1.0", true),
            ("1", "1e0", true),
            ("0", "-0.0", true),
            ("-7", "-7.0", true),
            ("1", "1.5", false),
            ("0.1", "0.1", true),
            ("0.1", "0.10000000000000002", false),
            ("900719925474099", "900719925474099.0", true),
            ("9007199254740992", "9007199254740992", true),
            ("9007199254740992", "9007199254740992.0", false),
            ("9007199254740993", "9007199254740992.0", false),
            ("-9007199254740993", "-9007199254740992.0", false),
            ("9007199254740993", "9007199254740992", false),
            ("9223372036854775807", "9223372036854775808", false),
            ("18446744073709551615", "18446744073709551615", true),
            ("18446744073709551615", "18446744073709550592", false),
            ("18446744073709551615", "18446744073709551616", false),
            ("-9223372036854775808", "9223372036854775808", false),
            ("1e30", "1e30", true),
            ("1e30", "1e31", false),
        ] {
            let says = |pattern: &str, value: &str| matches(&number(pattern), &number(value), ArgumentSense::Text);
            assert_eq!(says(one, other), expected, "{one} {other}");
            assert_eq!(says(other, one), expected, "{other} {one}");
        }
    }

    /// interface §10: what is inside a list or an object matches nothing for sure, and cannot be told from what a rule forbids.
    #[test]
    fn what_a_list_or_an_object_holds_is_unclear() {
        for (pattern, value, expected) in [
            (json!("SECRET*"), json!(["SECRET-1"]), Comparison::Unclear),
            (json!("SECRET*"), json!({"key": "SECRET-1"}), Comparison::Unclear),
            (json!("SECRET*"), json!([["a"], {"b": [{"c": "SECRET-1"}]}]), Comparison::Unclear),
            (json!("HR"), json!(["a", "HR"]), Comparison::Unclear),
            (json!("**"), json!([""]), Comparison::Unclear),
            (json!("**"), json!(["x".repeat(MAX_TEXT + 1)]), Comparison::Unclear),
            (json!("*a"), json!(["x".repeat(MAX_TEXT + 1)]), Comparison::Unclear),
            (json!("SECRET*"), json!(["PUBLIC"]), Comparison::Mismatch),
            (json!("SECRET*"), json!({"SECRET-1": "x"}), Comparison::Mismatch),
            (json!("SECRET*"), json!({"SECRET-1": {"SECRET-2": []}}), Comparison::Mismatch),
            (json!("SECRET*"), json!([]), Comparison::Mismatch),
            (json!("**"), json!([1, null, true, {}]), Comparison::Mismatch),
            (json!("1"), json!([1]), Comparison::Mismatch),
            (json!(1), json!([1.0]), Comparison::Unclear),
            (json!(1), json!(["1", 2]), Comparison::Mismatch),
            (json!(true), json!({"force": true}), Comparison::Unclear),
            (json!(["a"]), json!(["a"]), Comparison::Match),
            (json!(["a"]), json!([["a"]]), Comparison::Mismatch),
        ] {
            assert_eq!(compare(&pattern, &value, ArgumentSense::Text), expected, "{pattern} {value}");
        }
        let path = |value: Value| compare(&json!("secrets/**"), &value, ArgumentSense::Path);
        assert_eq!(path(json!(["./secrets//a"])), Comparison::Unclear);
        assert_eq!(path(json!(["out/a"])), Comparison::Mismatch);
        assert_eq!(path(json!(["../a"])), Comparison::Unclear);
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
