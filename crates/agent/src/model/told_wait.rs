//! How long a server asks us to wait before the next try: in its headers, and in what its error says. Pure.
//!
//! Of several waits the longest counts: a request that comes before any of them ends would be refused again.

use std::time::Duration;

use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};
use serde_json::Value;

/// No server makes us wait longer than this.
const MOST: Duration = Duration::from_secs(600);
/// From here on a number is a moment (seconds since 1970), and no span.
const FIRST_MOMENT: f64 = 1e9;
/// From here on such a moment is in milliseconds.
const FIRST_MILLIS: f64 = 1e11;
/// So deep inside an error is a wait looked for. (Google's is in a list of details.)
const DEPTH: u32 = 6;
/// What stands before a wait in an error's words. Lower case.
const PHRASES: [&str; 5] = ["try again in ", "try again after ", "retry in ", "retry after ", "wait "];

/// The longest wait that `headers` name.
pub(super) fn in_headers(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let date = text(DATE.as_str());
    let waits = headers.iter().filter_map(|(name, value)| {
        let value = value.to_str().ok()?;
        match name.as_str() {
            "retry-after-ms" => millis(value),
            name if name == RETRY_AFTER || resets(name) => wait(value, date),
            _ => None,
        }
    });
    longest(waits)
}

/// Does the header `name` say when a limit begins anew?
fn resets(name: &str) -> bool {
    name == "x-ratelimit-reset"
        || name.starts_with("x-ratelimit-reset-")
        || (name.starts_with("anthropic-ratelimit-") && name.ends_with("-reset"))
}

/// The longest wait that an error names: in a member, or in its words.
pub(super) fn in_error(error: &Value) -> Option<Duration> {
    longest(found(error, DEPTH))
}

fn found(value: &Value, depth: u32) -> Vec<Duration> {
    let Some(depth) = depth.checked_sub(1) else {
        return Vec::new();
    };
    match value {
        Value::String(words) => in_words(words).collect(),
        Value::Array(items) => items.iter().flat_map(|item| found(item, depth)).collect(),
        Value::Object(members) => members
            .iter()
            .flat_map(|(name, value)| match member(name, value) {
                Some(wait) => vec![wait],
                None => found(value, depth),
            })
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

/// The wait in a member of an error, if its name is that of one: `retry_after`, `retryDelay`, `retry_after_ms` and the like.
fn member(name: &str, value: &Value) -> Option<Duration> {
    let name: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match name.to_ascii_lowercase().as_str() {
        "retryafter" | "retryafterseconds" | "retrydelay" => wait(&text, None),
        "retryafterms" | "retryaftermilliseconds" | "retrydelayms" => millis(&text),
        _ => None,
    }
}

/// The waits that words name: `Please try again in 1m2.5s.`
fn in_words(words: &str) -> impl Iterator<Item = Duration> {
    let words = words.to_lowercase();
    let at = |phrase: &&'static str| {
        let ends: Vec<usize> = words.match_indices(*phrase).map(|(at, _)| at + phrase.len()).collect();
        ends
    };
    let ends: Vec<usize> = PHRASES.iter().flat_map(at).collect();
    ends.into_iter()
        .filter_map(move |end| span(words.get(end..)?).map(|(wait, _)| wait))
}

fn longest(waits: impl IntoIterator<Item = Duration>) -> Option<Duration> {
    waits.into_iter().max().map(|wait| wait.min(MOST))
}

/// A wait as headers spell it: seconds, a span (`6m0s`), or a moment (seconds or milliseconds since 1970, RFC 9110 or RFC 3339). A moment
/// counts from the answer's own `date`, so that the two machines' clocks need not agree; without one it says nothing.
fn wait(value: &str, date: Option<&str>) -> Option<Duration> {
    let value = value.trim();
    let date = || http_date(date?);
    if let Ok(number) = value.parse::<f64>()
        && number >= FIRST_MOMENT
    {
        let moment = if number >= FIRST_MILLIS { number / 1000.0 } else { number };
        let now = date()?.as_second() as f64;
        return Duration::try_from_secs_f64((moment - now).max(0.0)).ok();
    }
    if let Some((span, "")) = span(value) {
        return Some(span);
    }
    let moment = value.parse::<jiff::Timestamp>().ok().or_else(|| http_date(value))?;
    let wait = moment.as_millisecond().saturating_sub(date()?.as_millisecond());
    Some(Duration::from_millis(u64::try_from(wait).unwrap_or(0)))
}

fn http_date(text: &str) -> Option<jiff::Timestamp> {
    jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text.trim()).ok()
}

fn millis(value: &str) -> Option<Duration> {
    let millis: f64 = value.trim().parse().ok()?;
    Duration::try_from_secs_f64(millis / 1000.0).ok()
}

/// The span at the beginning of `text`, and what stands behind it: numbers, each with its unit. A number alone is seconds.
fn span(text: &str) -> Option<(Duration, &str)> {
    let (mut rest, mut whole, mut first) = (text, Duration::ZERO, true);
    loop {
        // A blank may stand between two numbers, and none before the first.
        let text = if first { rest } else { rest.trim_start() };
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        // A full stop behind the number ends the sentence.
        let number = text.get(..digits)?.trim_end_matches('.');
        let Ok(amount) = number.parse::<f64>() else {
            return (!first).then_some((whole, rest));
        };
        let behind = text.get(number.len()..)?;
        let unit = behind.trim_start();
        let letters = unit.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(unit.len());
        let seconds = match unit.get(..letters)? {
            "ms" | "millisecond" | "milliseconds" => 0.001,
            "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
            "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
            "h" | "hour" | "hours" => 3600.0,
            "d" | "day" | "days" => 86_400.0,
            _ if first => {
                let alone = Duration::try_from_secs_f64(amount).ok()?;
                return Some((alone, behind));
            }
            _ => return Some((whole, rest)),
        };
        whole = whole.saturating_add(Duration::try_from_secs_f64(amount * seconds).ok()?);
        (rest, first) = (unit.get(letters..)?, false);
    }
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderName, HeaderValue};
    use serde_json::json;

    use super::*;

    const DATED: (&str, &str) = ("date", "Sun, 06 Nov 1994 08:49:37 GMT");

    fn of(headers: &[(&'static str, &str)]) -> Option<u128> {
        let pair = |(name, value): &(&'static str, &str)| (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
        in_headers(&headers.iter().map(pair).collect()).map(|wait| wait.as_millis())
    }

    /// S3-13: `Retry-After` as seconds and as a date relative to the server's own `Date`.
    #[test]
    fn retry_after_reads_seconds_and_dates() {
        for (value, date, wait) in [
            ("120", None, Some(120_000)),
            (" 0 ", None, Some(0)),
            ("1.5", None, Some(1_500)),
            ("Sun, 06 Nov 1994 08:50:07 GMT", Some(DATED), Some(30_000)),
            ("Sun, 06 Nov 1994 08:00:00 GMT", Some(DATED), Some(0)),
            ("Sun, 06 Nov 1994 08:50:07 GMT", None, None),
            ("-5", None, None),
            ("soon", Some(DATED), None),
            ("", Some(DATED), None),
            ("9e999", None, None),
        ] {
            let headers: Vec<_> = [("retry-after", value)].into_iter().chain(date).collect();
            assert_eq!(of(&headers), wait, "{value}");
        }
    }

    /// interface §10 M: every header that says when to come again; the longest counts, ten minutes at most.
    #[test]
    fn headers_that_name_a_wait() {
        for (headers, wait) in [
            (vec![("retry-after-ms", "1500")], Some(1_500)),
            (vec![("x-ratelimit-reset-requests", "6m0s")], Some(360_000)),
            (vec![("x-ratelimit-reset-tokens", "20ms")], Some(20)),
            (vec![("x-ratelimit-reset-tokens", "1m2.5s")], Some(62_500)),
            (vec![("x-ratelimit-reset", "1784111807")], None),
            (
                vec![("date", "Wed, 15 Jul 2026 10:36:17 GMT"), ("x-ratelimit-reset", "1784111807")],
                Some(30_000),
            ),
            (
                vec![("date", "Wed, 15 Jul 2026 10:36:17 GMT"), ("x-ratelimit-reset", "1784111807000")],
                Some(30_000),
            ),
            (
                vec![("anthropic-ratelimit-tokens-reset", "1994-11-06T08:50:07Z"), DATED],
                Some(30_000),
            ),
            (vec![("anthropic-ratelimit-tokens-reset", "1994-11-06T08:50:07Z")], None),
            (vec![("anthropic-ratelimit-tokens-remaining", "30")], None),
            (vec![("x-ratelimit-remaining-requests", "30")], None),
            (
                vec![("retry-after", "3"), ("retry-after-ms", "1500"), ("x-ratelimit-reset-tokens", "7s")],
                Some(7_000),
            ),
            (vec![("retry-after", "3600")], Some(600_000)),
        ] {
            assert_eq!(of(&headers), wait, "{headers:?}");
        }
    }

    /// interface §10 M: a delay in the body, as OpenAI, Azure, Groq and Google tell it.
    #[test]
    fn errors_that_name_a_wait() {
        let google = json!([{"error": {"code": 429, "details": [
            {"@type": "type.googleapis.com/google.rpc.QuotaFailure"},
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "37s"},
        ]}}]);
        for (error, wait) in [
            (
                json!({"error": {"message": "Rate limit reached. Please try again in 20s. Visit x."}}),
                Some(20_000),
            ),
            (json!({"error": {"message": "Please try again in 6m0s."}}), Some(360_000)),
            (json!({"error": {"message": "Please try again in 7.66s"}}), Some(7_660)),
            (json!({"error": {"message": "Please retry after 20 seconds."}}), Some(20_000)),
            (json!({"error": {"message": "Retry in 1 minute 30 seconds, please"}}), Some(90_000)),
            (json!({"error": {"message": "please wait 250 ms"}}), Some(250)),
            (json!({"detail": "try again in 3"}), Some(3_000)),
            (json!("try again in 3."), Some(3_000)),
            (json!({"error": {"retry_after": 12}}), Some(12_000)),
            (json!({"error": {"retry_after": 3, "message": "try again in 5s"}}), Some(5_000)),
            (json!({"error": {"metadata": {"retry_after_ms": 1200.5}}}), Some(1_200)),
            (json!({"retry_after": "Sun, 06 Nov 1994 08:50:07 GMT"}), None),
            (json!({"error": {"message": "try again in 9999 days"}}), Some(600_000)),
            (
                json!({"error": {"message": "try again in a while; wait for it", "retry_after": null}}),
                None,
            ),
            (google, Some(37_000)),
        ] {
            assert_eq!(in_error(&error).map(|wait| wait.as_millis()), wait, "{error}");
        }
    }
}
