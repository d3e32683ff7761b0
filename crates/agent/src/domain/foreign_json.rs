//! Foreign JSON, read leniently: of models, of MCP servers, of platforms.
//!
//! Programs in other languages write what is no JSON: halves of characters (a lone surrogate), bytes that are no UTF-8, `NaN`. One such sign
//! must not make the whole text unreadable.

use std::borrow::Cow;

use serde_json::Value;

/// A piece of a stream may end between the two surrogates of a character. Until the next piece comes, surrogate `XXXX` is kept as the
/// character `HELD + XXXX`, which is in a private plane that no text uses.
const HELD: u32 = 0x10_0000;
const FIRST_HALVES: std::ops::RangeInclusive<u32> = 0xd800..=0xdbff;
const SECOND_HALVES: std::ops::RangeInclusive<u32> = 0xdc00..=0xdfff;

/// Reads a JSON text. Bytes that are no UTF-8 and halves of characters become U+FFFD; `NaN` and infinite numbers become null.
///
/// # Errors
/// The parser's error, if the text is no JSON even with these replacements.
pub fn read(json: &[u8]) -> serde_json::Result<Value> {
    match serde_json::from_slice(json) {
        Ok(value) => Ok(value),
        Err(_) => serde_json::from_str(&mended(&String::from_utf8_lossy(json))),
    }
}

/// A JSON text without what [`read`] replaces, for parsers of other types.
#[must_use]
pub fn mended(json: &str) -> Cow<'_, str> {
    match whole_characters(json) {
        Cow::Borrowed(json) => with_finite_numbers(json),
        Cow::Owned(json) => Cow::Owned(with_finite_numbers(&json).into_owned()),
    }
}

/// A JSON text in which the escape of a half of a character is U+FFFD.
#[must_use]
pub fn whole_characters(json: &str) -> Cow<'_, str> {
    with_halves(json, |_| char::REPLACEMENT_CHARACTER)
}

/// A part of a text that comes in pieces. A character may be torn between two of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Piece {
    /// The value, in which halves of characters are held.
    pub value: Value,
    /// There are such halves in it.
    pub is_torn: bool,
}

impl Piece {
    /// [`read`], with halves of characters held for [`join`].
    ///
    /// # Errors
    /// The errors of [`read`].
    pub fn read(json: &[u8]) -> serde_json::Result<Self> {
        if let Ok(value) = serde_json::from_slice(json) {
            return Ok(Self { value, is_torn: false });
        }
        let text = String::from_utf8_lossy(json);
        let held = with_halves(&text, |half| char::from_u32(HELD + half).unwrap_or(char::REPLACEMENT_CHARACTER));
        let is_torn = matches!(held, Cow::Owned(_));
        let value = serde_json::from_str(&with_finite_numbers(&held))?;
        Ok(Self { value, is_torn })
    }
}

/// Puts held halves together again in a value that was made of pieces; a half without its other one becomes U+FFFD.
pub fn join(value: &mut Value) {
    match value {
        Value::String(text) if text.chars().any(|c| held(c).is_some()) => *text = joined(text),
        Value::Array(items) => items.iter_mut().for_each(join),
        Value::Object(members) => members.values_mut().for_each(join),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn joined(text: &str) -> String {
    let mut whole = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let Some(half) = held(c) else {
            whole.push(c);
            continue;
        };
        let second = rest.peek().and_then(|c| held(*c)).filter(|half| SECOND_HALVES.contains(half));
        let pair = second.filter(|_| FIRST_HALVES.contains(&half));
        let c = pair.and_then(|second| char::from_u32(0x1_0000 + ((half - 0xd800) << 10) + (second - 0xdc00)));
        if c.is_some() {
            rest.next();
        }
        whole.push(c.unwrap_or(char::REPLACEMENT_CHARACTER));
    }
    whole
}

fn held(c: char) -> Option<u32> {
    let half = u32::from(c).checked_sub(HELD)?;
    (FIRST_HALVES.contains(&half) || SECOND_HALVES.contains(&half)).then_some(half)
}

/// The text with `put` in place of each escape of a half that has no other half beside it.
fn with_halves(json: &str, put: impl Fn(u32) -> char) -> Cow<'_, str> {
    if !json.contains("\\ud") && !json.contains("\\uD") {
        return Cow::Borrowed(json);
    }
    let (mut out, mut rest, mut changed) = (String::with_capacity(json.len()), json, false);
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let taken = match unit(escape) {
            Some(first) if FIRST_HALVES.contains(&first) => {
                let second = escape.get(6..).and_then(unit);
                if second.is_some_and(|second| SECOND_HALVES.contains(&second)) {
                    12
                } else {
                    6
                }
            }
            Some(_) => 6,
            None => 1 + escape.chars().nth(1).map_or(0, char::len_utf8),
        };
        let (escape, after) = escape.split_at(taken);
        match unit(escape).filter(|half| escape.len() == 6 && (FIRST_HALVES.contains(half) || SECOND_HALVES.contains(half))) {
            Some(half) => {
                out.push(put(half));
                changed = true;
            }
            None => out.push_str(escape),
        }
        rest = after;
    }
    out.push_str(rest);
    if changed { Cow::Owned(out) } else { Cow::Borrowed(json) }
}

/// The code unit of an escape `\uXXXX` at the beginning of `text`.
fn unit(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u32::from_str_radix(digits, 16)
        .ok()
        .filter(|_| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

/// The text with null in place of numbers that JSON does not know.
fn with_finite_numbers(json: &str) -> Cow<'_, str> {
    const ODD: [&str; 3] = ["-Infinity", "Infinity", "NaN"];
    if !json.contains("NaN") && !json.contains("Infinity") {
        return Cow::Borrowed(json);
    }
    let (mut out, mut rest, mut inside) = (String::with_capacity(json.len()), json, false);
    while let Some(c) = rest.chars().next() {
        if !inside && let Some(after) = ODD.iter().find_map(|odd| rest.strip_prefix(odd)) {
            out.push_str("null");
            rest = after;
            continue;
        }
        // An escaped sign within a text goes over with its backslash.
        let taken = match c {
            '\\' if inside => 1 + rest.chars().nth(1).map_or(0, char::len_utf8),
            c => c.len_utf8(),
        };
        inside ^= c == '"';
        let (same, after) = rest.split_at(taken);
        out.push_str(same);
        rest = after;
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// F17, F6: one broken sign does not make a text unreadable; what is no JSON stays so.
    #[test]
    fn foreign_json_is_read_leniently() {
        let read_text = |text: &str| read(text.as_bytes()).ok();
        for (text, value) in [
            (r#"{"a": "x"}"#, Some(json!({"a": "x"}))),
            (r#"["\ud83d\ude00", "\uD83D\uDE00"]"#, Some(json!(["😀", "😀"]))),
            (
                r#"["\ud83d", "\ude00x", "\\ud83d"]"#,
                Some(json!(["\u{fffd}", "\u{fffd}x", "\\ud83d"])),
            ),
            (
                r#"["\ud83d\ud83d\ude00", "\ude00\ud83d"]"#,
                Some(json!(["\u{fffd}😀", "\u{fffd}\u{fffd}"])),
            ),
            (r#"{"\udce9": 1}"#, Some(json!({"\u{fffd}": 1}))),
            (
                r#"{"a": NaN, "b": [-Infinity, Infinity], "c": "NaN \" Infinity"}"#,
                Some(json!({"a": null, "b": [null, null], "c": "NaN \" Infinity"})),
            ),
            (r#"["\ud83d"#, None),
            (r#"{"a": Nan}"#, None),
        ] {
            assert_eq!(read_text(text), value, "{text}");
        }
        assert_eq!(read(b"[\"caf\xe9\"]").ok(), Some(json!(["caf\u{fffd}"])));
        assert!(read_text(r#"["\u00"]"#).is_none() && read_text("[\"\\").is_none());
        assert_eq!(mended(r#"{"a": "x"}"#), r#"{"a": "x"}"#);
    }

    /// F17: halves in neighbouring pieces are one character; a half that stays alone is U+FFFD.
    #[test]
    fn halves_in_pieces_are_joined() {
        let pieces = [r#""a\ud83d""#, r#""\ude00b""#, r#""\ude00\ud83d""#].map(|piece| Piece::read(piece.as_bytes()).unwrap());
        assert!(pieces.iter().all(|piece| piece.is_torn));
        let text: String = pieces.iter().filter_map(|piece| piece.value.as_str()).collect();
        let mut whole = json!({"texts": [text]});
        join(&mut whole);
        assert_eq!(whole, json!({"texts": ["a😀b\u{fffd}\u{fffd}"]}));
        assert!(!Piece::read(r#""\ud83d\ude00""#.as_bytes()).unwrap().is_torn);
    }
}
