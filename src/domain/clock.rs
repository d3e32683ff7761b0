//! Wall-clock time as an argument: milliseconds since the epoch and the handle that reads them.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A moment: milliseconds since 1970-01-01 UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Millis(pub i64);

impl Millis {
    /// A moment that never comes.
    pub const NEVER: Self = Self(i64::MAX);

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
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    System,
    /// The machine's clock, and how many milliseconds a server's is ahead of it.
    Server(Arc<AtomicI64>),
    Manual(Arc<AtomicI64>),
}

impl Clock {
    /// The machine's clock.
    #[must_use]
    pub fn system() -> Self {
        Self(Source::System)
    }

    /// The time of a server whose clock is `ahead` milliseconds ahead of the machine's; who measures it writes it there. A manual
    /// clock stays what it is.
    #[must_use]
    pub fn of_server(&self, ahead: &Arc<AtomicI64>) -> Self {
        match &self.0 {
            Source::System | Source::Server(_) => Self(Source::Server(Arc::clone(ahead))),
            Source::Manual(_) => self.clone(),
        }
    }

    /// A clock that moves only by [`Clock::advance`].
    #[must_use]
    pub fn manual(start: Millis) -> Self {
        Self(Source::Manual(Arc::new(AtomicI64::new(start.0))))
    }

    /// The present moment.
    #[must_use]
    pub fn now(&self) -> Millis {
        match &self.0 {
            Source::System => machine(),
            Source::Server(ahead) => Millis(machine().0.saturating_add(ahead.load(Ordering::Relaxed))),
            Source::Manual(at) => Millis(at.load(Ordering::SeqCst)),
        }
    }

    /// Moves a manual clock on; no effect on the machine's clock.
    pub fn advance(&self, span: Duration) {
        if let Source::Manual(at) = &self.0 {
            at.fetch_add(i64::try_from(span.as_millis()).unwrap_or(i64::MAX), Ordering::SeqCst);
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the handle above is the one reader of the clock")]
fn machine() -> Millis {
    Millis(jiff::Timestamp::now().as_millisecond())
}
