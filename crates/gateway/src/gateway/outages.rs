//! What the log says of something that fails again and again: a line at once, then one a minute that says how long and how often, and one when it works.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// At most one line in this time.
const BETWEEN_LINES: Duration = Duration::from_secs(60);
/// What fails after so long without a failure fails anew.
const FORGOTTEN: Duration = Duration::from_secs(600);

/// What fails, and which of its kind.
pub(super) type Subject = (&'static str, &'static str);

#[derive(Debug)]
pub(super) struct Outages(Mutex<BTreeMap<Subject, Failing>>);

#[derive(Debug)]
struct Failing {
    since: Instant,
    last: Instant,
    told: Instant,
    tries: u64,
}

/// How long something has failed, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lasting {
    /// Whole seconds since the first failure.
    pub(super) seconds: u64,
    /// Failures, with this one.
    pub(super) tries: u64,
}

impl Lasting {
    fn of(failing: &Failing, now: Instant) -> Self {
        Self {
            seconds: now.saturating_duration_since(failing.since).as_secs(),
            tries: failing.tries,
        }
    }
}

impl Outages {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// `subject` failed. `None` means that nothing is to be said of it now.
    pub(super) fn failed(&self, subject: Subject, now: Instant) -> Option<Lasting> {
        let mut all = self.0.lock();
        let since = |at: Instant| now.saturating_duration_since(at);
        let known = all.remove(&subject).filter(|failing| since(failing.last) < FORGOTTEN);
        let is_new = known.is_none();
        let mut failing = known.unwrap_or(Failing {
            since: now,
            last: now,
            told: now,
            tries: 0,
        });
        failing.last = now;
        failing.tries += 1;
        let tells = is_new || since(failing.told) >= BETWEEN_LINES;
        if tells {
            failing.told = now;
        }
        let lasting = Lasting::of(&failing, now);
        all.insert(subject, failing);
        tells.then_some(lasting)
    }

    /// `subject` works; `None` means that it did not fail before.
    pub(super) fn ended(&self, subject: Subject, now: Instant) -> Option<Lasting> {
        let mut all = self.0.lock();
        all.remove(&subject).map(|failing| Lasting::of(&failing, now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ux B37: an outage of an hour, tried every two seconds, is sixty lines; the first comes at once, and the end says how long it was.
    #[test]
    fn an_outage_is_a_line_a_minute() {
        let (outages, began) = (Outages::new(), Instant::now());
        let at = |seconds| began + Duration::from_secs(seconds);
        let subject = ("identity", "slack");
        let told: Vec<Lasting> = (0..1800).filter_map(|round| outages.failed(subject, at(round * 2))).collect();
        assert_eq!(told.len(), 60);
        assert_eq!(told[0], Lasting { seconds: 0, tries: 1 });
        assert_eq!(told[1], Lasting { seconds: 60, tries: 31 });
        // Another one is told by itself.
        assert_eq!(
            outages.failed(("identity", "lark"), at(3599)),
            Some(Lasting { seconds: 0, tries: 1 })
        );
        assert_eq!(
            outages.ended(subject, at(3600)),
            Some(Lasting {
                seconds: 3600,
                tries: 1800
            })
        );
        assert_eq!(outages.ended(subject, at(3601)), None);
        // Anew: after its end, and after a long time without a failure.
        assert_eq!(outages.failed(subject, at(3602)), Some(Lasting { seconds: 0, tries: 1 }));
        assert_eq!(outages.failed(subject, at(3603)), None);
        assert_eq!(outages.failed(subject, at(4203)), Some(Lasting { seconds: 0, tries: 1 }));
    }
}
