//! Wall-clock time as an argument: milliseconds since the epoch and the handle that reads them.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// A moment: milliseconds since 1970-01-01 UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Millis(pub i64);

impl Millis {
    /// A moment that never comes.
    pub const NEVER: Self = Self(i64::MAX);
    /// A moment that has come whatever the clock says, also after it was set back.
    pub const ALWAYS: Self = Self(0);

    /// `self` + `span`.
    #[must_use]
    pub fn plus(self, span: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(span.as_millis()).unwrap_or(i64::MAX)))
    }

    /// How long from `earlier` until `self`; zero when `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// RFC 3339 in UTC with milliseconds, as the API spells times.
    #[must_use]
    pub fn rfc3339(self) -> String {
        jiff::Timestamp::from_millisecond(self.0).map_or_else(|_| String::from("9999-12-31T23:59:59.999Z"), |at| format!("{at:.3}"))
    }

    /// Reads what [`Millis::rfc3339`] writes.
    #[must_use]
    pub fn of_rfc3339(text: &str) -> Option<Self> {
        Some(Self(text.parse::<jiff::Timestamp>().ok()?.as_millisecond()))
    }
}

/// The only reader of the wall clock.
#[derive(Clone, Debug)]
pub struct Clock(ClockSource);

#[derive(Clone, Debug)]
enum ClockSource {
    System,
    Server(Arc<ServerTime>),
    Manual(Arc<AtomicI64>),
}

impl Clock {
    /// The machine's clock.
    #[must_use]
    pub fn system() -> Self {
        Self(ClockSource::System)
    }

    /// The time of a server instead of the machine's. A manual clock stays what it is.
    #[must_use]
    pub fn of_server(&self, time: &Arc<ServerTime>) -> Self {
        match &self.0 {
            ClockSource::System | ClockSource::Server(_) => Self(ClockSource::Server(Arc::clone(time))),
            ClockSource::Manual(_) => self.clone(),
        }
    }

    /// Does it move only by [`Clock::advance`]?
    #[must_use]
    pub fn is_manual(&self) -> bool {
        matches!(self.0, ClockSource::Manual(_))
    }

    /// A clock that moves only by [`Clock::advance`].
    #[must_use]
    pub fn manual(start: Millis) -> Self {
        Self(ClockSource::Manual(Arc::new(AtomicI64::new(start.0))))
    }

    /// The present moment.
    #[must_use]
    pub fn now(&self) -> Millis {
        match &self.0 {
            ClockSource::System => machine(),
            ClockSource::Server(time) => time.now(),
            ClockSource::Manual(at) => Millis(at.load(Ordering::SeqCst)),
        }
    }

    /// Moves a manual clock on; no effect on the machine's clock.
    pub fn advance(&self, span: Duration) {
        if let ClockSource::Manual(at) = &self.0 {
            at.fetch_add(i64::try_from(span.as_millis()).unwrap_or(i64::MAX), Ordering::SeqCst);
        }
    }
}

/// The time of a server that many processes agree on. Between two looks at it time is carried on by the monotonic clock:
/// a jump of the machine's clock is none of ours.
#[derive(Debug)]
pub struct ServerTime {
    since: Instant,
    /// The server's time when `since` was taken.
    base: AtomicI64,
}

impl ServerTime {
    /// A guess until the first [`ServerTime::correct`]: the machine's time.
    #[must_use]
    pub fn guessed() -> Self {
        Self {
            since: Instant::now(),
            base: AtomicI64::new(machine().0),
        }
    }

    /// The present moment there.
    #[must_use]
    pub fn now(&self) -> Millis {
        Millis(self.base.load(Ordering::Relaxed)).plus(self.since.elapsed())
    }

    /// Takes over what the server said: `there`, at some moment between `asked` and now. What is as right as the answer is
    /// exact stays, so that the noise of a busy line moves nothing, back least of all.
    pub fn correct(&self, asked: Millis, there: Millis) {
        let answered = self.now();
        // Were the question and the answer equally fast? Anything from "at once asked" to "at once answered" is possible.
        let (least, most) = (there.0 - answered.0, there.0 - asked.0);
        let wrong = 0.clamp(least, most.max(least));
        self.base.fetch_add(wrong, Ordering::Relaxed);
    }
}

#[expect(clippy::disallowed_methods, reason = "the handle above is the one reader of the clock")]
fn machine() -> Millis {
    Millis(jiff::Timestamp::now().as_millisecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ahead_of(time: &ServerTime, start: Millis) -> i64 {
        time.now().0 - start.0
    }

    /// F-X1, F-X2, design: leases and expiries go by the server's time: an hour's difference is taken over at once, to within the time
    /// that the answer took; noise that small changes nothing, and time does not go back for it.
    #[test]
    fn a_servers_time_is_taken_over() {
        let time = ServerTime::guessed();
        let hour = 3_600_000;
        let start = time.now();
        time.correct(Millis(start.0 - 10), Millis(start.0 + hour));
        let ahead = ahead_of(&time, start);
        assert!((hour - 10..hour + 1000).contains(&ahead), "{ahead}");

        let before = time.now();
        for noise in [-9, -3, 0] {
            // The answer took 20 ms and may have been given at any moment of them.
            let now = time.now();
            time.correct(Millis(now.0 - 20), Millis(now.0 - 10 + noise));
        }
        assert!(time.now() >= before);

        let start = time.now();
        time.correct(Millis(start.0 - 10), Millis(start.0 - hour));
        let ahead = ahead_of(&time, start);
        assert!((-hour - 10..-hour + 1000).contains(&ahead), "{ahead}");
    }

    /// design: a manual clock is nobody's server time.
    #[test]
    fn a_manual_clock_stays_manual() {
        let clock = Clock::manual(Millis(7)).of_server(&Arc::new(ServerTime::guessed()));
        assert_eq!(clock.now(), Millis(7));
    }
}
