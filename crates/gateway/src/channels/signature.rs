//! What every signed webhook checks the same way: header count, timestamp text and window, constant-time comparison.

use axum::http::HeaderMap;
use subtle::ConstantTimeEq;

use countersign_agent::domain::Millis;

use super::EventRefusal;

pub(super) fn required<'a>(headers: &'a HeaderMap, name: &str) -> Result<&'a [u8], EventRefusal> {
    only(headers, name).ok_or(EventRefusal::Unauthorized("not exactly one of each signature header"))
}

/// When a request was signed, in seconds; at most `past` seconds ago, and at most `future` seconds ahead of our clock.
pub(super) fn signed_at(text: &[u8], now: Millis, past: i64, future: i64) -> Result<i64, EventRefusal> {
    let seconds = timestamp(text).ok_or(EventRefusal::Unauthorized("timestamp is not ten digits"))?;
    if !in_window(seconds, now, past, future) {
        return Err(EventRefusal::Unauthorized(
            "timestamp outside the window; is this machine's clock right?",
        ));
    }
    Ok(seconds)
}

/// The value of header `name` when it was sent exactly once; two copies of a signature header are two opinions.
fn only<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a [u8]> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    values.next().is_none().then(|| value.as_bytes())
}

/// Seconds since the epoch, written as exactly ten ASCII digits. Signed strings have no delimiters (Lark) or ones
/// that a body can contain (Slack), and `str::parse` takes `+1` and `0001`: a lenient timestamp lets bytes move
/// between the signed parts under an unchanged digest.
fn timestamp(text: &[u8]) -> Option<i64> {
    if text.len() != 10 || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(text.iter().fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0')))
}

/// True when `seconds` is at most `past` seconds before and at most `future` seconds after `now`.
fn in_window(seconds: i64, now: Millis, past: i64, future: i64) -> bool {
    let ahead = seconds * 1000 - now.0;
    (-past * 1000..=future * 1000).contains(&ahead)
}

/// The 32 bytes written as 64 lower-case hex digits.
pub(super) fn digest(text: &[u8]) -> Option<[u8; 32]> {
    if text.iter().any(u8::is_ascii_uppercase) {
        return None;
    }
    let mut bytes = [0; 32];
    hex::decode_to_slice(text, &mut bytes).ok()?;
    Some(bytes)
}

/// Equality whose time tells nothing but the lengths.
pub(super) fn same(left: &[u8], right: &[u8]) -> bool {
    left.ct_eq(right).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// M-1: only ten ASCII digits are a timestamp.
    #[test]
    fn ten_digits_and_nothing_else() {
        assert_eq!(timestamp(b"1765432101"), Some(1_765_432_101));
        assert_eq!(timestamp(b"0000000000"), Some(0));
        for odd in [
            "",
            "176543210",
            "17654321010",
            "+176543210",
            "-176543210",
            " 176543210",
            "176543210 ",
            "1.76543210",
            "１７６５",
        ] {
            assert_eq!(timestamp(odd.as_bytes()), None, "{odd:?}");
        }
    }

    /// M-1: both edges of the window belong to it, one millisecond further does not.
    #[test]
    fn window_edges() {
        let at = 1_765_432_101;
        for (now, inside) in [
            (at * 1000 + 300_000, true),
            (at * 1000 + 300_001, false),
            (at * 1000 - 60_000, true),
            (at * 1000 - 60_001, false),
        ] {
            assert_eq!(in_window(at, Millis(now), 300, 60), inside, "{now}");
        }
    }

    /// M-1: a header sent twice is as good as none, even with equal values.
    #[test]
    fn two_copies_are_none() {
        let mut headers = HeaderMap::new();
        assert_eq!(only(&headers, "x-sig"), None);
        headers.append("X-Sig", "a".parse().unwrap());
        assert_eq!(only(&headers, "x-sig"), Some(&b"a"[..]));
        headers.append("x-sig", "a".parse().unwrap());
        assert_eq!(only(&headers, "x-sig"), None);
    }

    /// M-1: a digest is 64 lower-case hex digits.
    #[test]
    fn digests_are_lower_case_hex() {
        assert_eq!(digest("0f".repeat(32).as_bytes()), Some([15; 32]));
        for odd in ["", "0f", &"0F".repeat(32), &"0g".repeat(32), &"0f".repeat(33), &"0f".repeat(31)] {
            assert_eq!(digest(odd.as_bytes()), None, "{odd}");
        }
    }
}
