//! Points at which a test lets the process die or lag, to prove that the next start goes on rightly.

use std::sync::Arc;
use std::time::Duration;

/// The one point at which this process dies or lags; none in production, and no effect at all in release builds.
#[derive(Clone, Debug, Default)]
pub struct Failpoint(Option<Chosen>);

#[derive(Clone, Debug)]
struct Chosen {
    name: Arc<str>,
    /// None: die there.
    lag: Option<Duration>,
}

impl Failpoint {
    /// Die on reaching `NAME`, or lag there for `NAME+MILLISECONDS`.
    #[must_use]
    pub fn at(text: &str) -> Self {
        let lag = text
            .split_once('+')
            .and_then(|(name, millis)| Some((name, Duration::from_millis(millis.parse().ok()?))));
        let (name, lag) = lag.map_or((text, None), |(name, lag)| (name, Some(lag)));
        Self(Some(Chosen {
            name: Arc::from(name),
            lag,
        }))
    }

    /// Dies here, without any cleaning up, when `name` is the chosen point.
    pub fn reach(&self, name: &str) {
        if self.chosen(name).is_some_and(|chosen| chosen.lag.is_none()) {
            std::process::abort();
        }
    }

    /// How long to lag here: what a slow tool or a slow disk does, at a point that a test can name.
    #[must_use]
    pub fn lag(&self, name: &str) -> Option<Duration> {
        self.chosen(name)?.lag
    }

    fn chosen(&self, name: &str) -> Option<&Chosen> {
        self.0.as_ref().filter(|chosen| cfg!(debug_assertions) && *chosen.name == *name)
    }
}
