//! What the log says of refused requests, and of what platforms send and refuse in any number: each reason is logged a few times a minute
//! only.

use std::collections::BTreeMap;
use std::time::Duration;

use countersign_agent::domain::Millis;
use parking_lot::Mutex;

/// So many lines a minute for one reason.
const LINES: u64 = 10;
const MINUTE: Duration = Duration::from_secs(60);

/// What was told in the last minute, by reason.
#[derive(Debug, Default)]
pub(super) struct Refusals(Mutex<BTreeMap<(&'static str, &'static str), MinuteOfLines>>);

#[derive(Debug)]
struct MinuteOfLines {
    since: Millis,
    requests: u64,
}

impl Refusals {
    /// Shall this one be told? Then how many were not since the last that was.
    pub(super) fn count(&self, reason: &'static str, now: Millis) -> Option<u64> {
        self.count_of("", reason, now)
    }

    /// The same for what comes of one channel: it does not drown another's.
    pub(super) fn count_of(&self, channel: &'static str, reason: &'static str, now: Millis) -> Option<u64> {
        let mut reasons = self.0.lock();
        let told = reasons
            .entry((channel, reason))
            .or_insert(MinuteOfLines { since: now, requests: 0 });
        let mut left_out = 0;
        if now < told.since || now.since(told.since) >= MINUTE {
            left_out = told.requests.saturating_sub(LINES);
            *told = MinuteOfLines { since: now, requests: 0 };
        }
        told.requests += 1;
        (told.requests <= LINES).then_some(left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// design: a flood of refused requests is ten lines a minute and reason; the first of the next minute says how many were left
    /// out. Another reason is not drowned by it.
    #[test]
    fn a_flood_is_a_few_lines() {
        let refusals = Refusals::default();
        let told = |at: i64| refusals.count("wrong signature", Millis(at));
        let lines: Vec<Option<u64>> = (0..1000).map(told).collect();
        assert_eq!(lines.iter().flatten().count(), 10);
        assert_eq!(lines[9], Some(0));
        assert_eq!(lines[10], None);
        assert_eq!(refusals.count("no token", Millis(999)), Some(0));
        assert_eq!(refusals.count_of("lark", "wrong signature", Millis(999)), Some(0), "of its own");
        assert_eq!(told(59_999), None);
        assert_eq!(told(60_000), Some(991));
        assert_eq!(told(60_001), Some(0));
        // A clock that is set back begins a minute, too.
        assert_eq!(told(5), Some(0));
    }
}
