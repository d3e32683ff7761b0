//! Finding a message of ours again: Slack has no idempotency key for posts, so each carries its key as metadata.

use serde_json::{Value, json};

use countersign_agent::domain::Millis;

const EVENT_TYPE: &str = "countersign_outbox";

/// What a post carries to be found by.
pub(super) fn metadata(key: &str) -> Value {
    json!({"event_type": EVENT_TYPE, "event_payload": {"k": key}})
}

/// The time of the message with `key` on this page of an answer.
pub(super) fn find<'a>(page: &'a Value, key: &str) -> Option<&'a str> {
    page["messages"]
        .as_array()?
        .iter()
        .find(|message| message["metadata"]["event_type"] == EVENT_TYPE && message["metadata"]["event_payload"]["k"] == key)?
        .get("ts")?
        .as_str()
}

/// Where the next page begins, if there is one.
pub(super) fn next_page(page: &Value) -> Option<String> {
    let cursor = page["response_metadata"]["next_cursor"].as_str()?;
    (!cursor.is_empty()).then(|| cursor.to_owned())
}

/// The platform's way to write a moment, five seconds earlier: its clock is not ours.
pub(super) fn oldest(since: Millis) -> String {
    spelled(Millis(since.0 - 5_000))
}

/// The platform's way to write a moment.
pub(super) fn spelled(at: Millis) -> String {
    spelled_micros(at.0.saturating_mul(1000))
}

/// The platform's way to write a moment in microseconds.
pub(super) fn spelled_micros(at: i64) -> String {
    let at = at.max(0);
    format!("{}.{:06}", at / 1_000_000, at % 1_000_000)
}

/// A message's time in microseconds.
pub(super) fn micros(ts: &str) -> Option<i64> {
    let (seconds, micros) = ts.split_once('.')?;
    let seconds: i64 = seconds.parse().ok()?;
    let fraction: i64 = format!("{micros:0<6}").get(..6)?.parse().ok()?;
    seconds.checked_mul(1_000_000)?.checked_add(fraction)
}

/// A message's time in milliseconds.
pub(super) fn millis(ts: &str) -> Option<Millis> {
    micros(ts).map(|at| Millis(at / 1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// M-5: moments come and go in the platform's spelling without losing milliseconds.
    #[test]
    fn times_are_spelled_as_the_platform_does() {
        assert_eq!(oldest(Millis(1_780_000_005_123)), "1780000000.123000");
        assert_eq!(oldest(Millis(0)), "0.000000");
        assert_eq!(millis("1780000001.000300"), Some(Millis(1_780_000_001_000)));
        assert_eq!(millis("1780000001.5"), Some(Millis(1_780_000_001_500)));
        assert_eq!(millis("soon"), None);
    }
}
