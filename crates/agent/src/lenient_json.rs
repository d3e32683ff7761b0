//! Foreign JSON, read as it was meant: servers write `NaN`, bytes that are no UTF-8, and halves of characters. Pure.
//!
//! What is JSON is read as JSON. Only a text that is none is mended, once, and read again. Nothing is guessed beyond what is listed at
//! [`read`]: brackets and commas stay as they are.

use serde_json::Value;

/// Values of one text. In memory a value takes up to a hundred times its two bytes on the wire.
pub const MAX_VALUES: usize = 100_000;

/// Why a text cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// It is no JSON, mended neither.
    #[error("it is no JSON")]
    NoJson,
    /// It holds more values than [`MAX_VALUES`], or than the caller takes.
    #[error("it holds too many values")]
    TooManyValues,
}

/// Reads a JSON text of at most [`MAX_VALUES`] values. They are counted before anything is read.
///
/// In a text that is no JSON `NaN`, `Infinity` and numbers that no machine holds become null. Bytes that are no UTF-8 and halves of
/// surrogate pairs become U+FFFD. Raw control characters inside of strings stay as they are. A mark of byte order is left out.
///
/// # Errors
/// It holds too many values, or is no JSON all the same.
pub fn read(json: &[u8]) -> Result<Value, Unreadable> {
    if count(json) > MAX_VALUES {
        return Err(Unreadable::TooManyValues);
    }
    serde_json::from_slice(json)
        .or_else(|_| serde_json::from_slice(&mended(json)))
        .map_err(|_| Unreadable::NoJson)
}

/// How many values a text holds at most: a comma or a bracket that opens begins one.
#[must_use]
pub fn count(json: &[u8]) -> usize {
    let (mut values, mut inside, mut escaped) = (1, false, false);
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = inside,
            b'"' => inside = !inside,
            b',' | b'[' | b'{' if !inside => values += 1,
            _ => {}
        }
    }
    values
}

fn mended(json: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(json);
    let mut rest = text.trim_start_matches('\u{feff}');
    let mut out = String::with_capacity(rest.len());
    while let Some(first) = rest.chars().next() {
        rest = match first {
            '"' => string(rest, &mut out),
            '-' | '+' | '0'..='9' | 'a'..='z' | 'A'..='Z' => word(rest, &mut out),
            other => {
                out.push(other);
                &rest[other.len_utf8()..]
            }
        };
    }
    out.into_bytes()
}

/// A number or a name outside of strings; gives what follows it.
fn word<'a>(text: &'a str, out: &mut String) -> &'a str {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '+' | '-' | '.'));
    let (word, rest) = text.split_at(end.unwrap_or(text.len()));
    // Rust reads `NaN`, `inf` and `Infinity` in any case as the numbers that they are.
    let no_number = word.parse::<f64>().is_ok_and(|number| !number.is_finite());
    out.push_str(if no_number { "null" } else { word });
    rest
}

/// A string, from its opening quotation mark on; gives what follows it.
fn string<'a>(text: &'a str, out: &mut String) -> &'a str {
    out.push('"');
    let mut rest = &text[1..];
    while let Some(first) = rest.chars().next() {
        let mut taken = first.len_utf8();
        match first {
            '"' => {
                out.push('"');
                return &rest[1..];
            }
            '\\' => match (unit(rest), rest.get(6..).and_then(unit)) {
                (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => {
                    out.push_str(&rest[..12]);
                    taken = 12;
                }
                (Some(0xd800..=0xdfff), _) => {
                    out.push('\u{fffd}');
                    taken = 6;
                }
                _ => {
                    taken += rest[1..].chars().next().map_or(0, char::len_utf8);
                    out.push_str(&rest[..taken]);
                }
            },
            control if control.is_ascii_control() && control != '\u{7f}' => {
                out.push_str(&format!("\\u{:04x}", u32::from(control)));
            }
            other => out.push(other),
        }
        rest = &rest[taken..];
    }
    rest
}

/// The UTF-16 unit of an escape that stands at the beginning.
fn unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    let plain = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u16::from_str_radix(digits, 16).ok().filter(|_| plain)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// Issue M, theme B, F6: what Python and Windows write is read; what is JSON stays what it is.
    #[test]
    fn odd_texts_are_read_as_they_were_meant() {
        let cases: [(&[u8], Value); 8] = [
            (
                br#"{"a": NaN, "b": [Infinity, -Infinity, 1e999]}"#,
                json!({"a": null, "b": [null, null, null]}),
            ),
            (
                br#"{"a": "NaN, Infinity", "NaN": 1, "b": NaN}"#,
                json!({"a": "NaN, Infinity", "NaN": 1, "b": null}),
            ),
            (b"{\"a\": \"caf\xe9\"}", json!({"a": "caf\u{fffd}"})),
            (
                br#"["\udce9.txt", "\ud83d", "\ud83dx", "\ud83d\n"]"#,
                json!(["\u{fffd}.txt", "\u{fffd}", "\u{fffd}x", "\u{fffd}\n"]),
            ),
            (
                br#"["\ud83d\ud83d\ude00", "\ude00\ud83d\ude00"]"#,
                json!(["\u{fffd}😀", "\u{fffd}😀"]),
            ),
            (br#"["\\ud83d", "\"\udce9\"", "\u00e9"]"#, json!(["\\ud83d", "\"\u{fffd}\"", "é"])),
            (b"\xef\xbb\xbf{\"a\": \"1\t2\n\"}", json!({"a": "1\t2\n"})),
            (
                b"[1, -2.5e3, true, null, 18446744073709551615]",
                json!([1, -2500.0, true, null, u64::MAX]),
            ),
        ];
        for (text, value) in cases {
            assert_eq!(read(text), Ok(value), "{}", String::from_utf8_lossy(text));
        }
        for text in [
            "",
            "{",
            "[1,]",
            "nonsense",
            "{\"a\": undefined}",
            "\"\\ud83",
            "<html>",
            "{\"a\": \"\\x\"}",
        ] {
            assert_eq!(read(text.as_bytes()), Err(Unreadable::NoJson), "{text}");
        }
    }

    /// Issue M, theme B, N2: values are counted before they take memory; those inside of strings are none.
    #[test]
    fn values_are_counted_before_they_are_read() {
        let zeros = |number: usize| format!("[{}0]", "0,".repeat(number - 1));
        assert!(read(zeros(MAX_VALUES - 1).as_bytes()).is_ok());
        assert_eq!(read(zeros(MAX_VALUES).as_bytes()), Err(Unreadable::TooManyValues));
        let text = format!("\"{}\"", "[{,\\\"".repeat(MAX_VALUES));
        assert!(read(text.as_bytes()).is_ok());
    }

    proptest! {
        /// Issue M, theme B, F6: any text is read or refused, never more; JSON is read as JSON even when it went through the mending.
        #[test]
        fn any_text_is_read_or_refused(text in "[\\[\\]{}\":,\\\\u0-9d-fNaIn \u{e9}\u{1f600}-]{0,40}", bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = read(&bytes);
            let _ = read(text.as_bytes());
            let value = json!({"a": text, "b": [text, 1.5]});
            prop_assert_eq!(serde_json::from_slice::<Value>(&mended(value.to_string().as_bytes())).unwrap(), value);
        }
    }
}
