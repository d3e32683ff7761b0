//! Points at which a test lets the process die or lag, to prove that the next start goes on rightly.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Where this process dies or lags: at one point, or as a test says while it runs. Nowhere in production, and no effect at all in
/// release builds.
#[derive(Clone, Debug, Default)]
pub struct Failpoint(Option<Trigger>);

#[derive(Clone, Debug)]
enum Trigger {
    At {
        name: Arc<str>,
        /// `None` lets the process die there.
        lag: Option<Duration>,
    },
    /// A folder: a file of a point's name lets the first process that reaches the point die there (whoever removes the file is
    /// the first); one with `+` behind the name holds the milliseconds of a lag.
    Armed(Arc<PathBuf>),
}

impl Failpoint {
    /// Die on reaching `NAME`, or lag there for `NAME+MILLISECONDS`; `@FOLDER`: one of several processes dies where a file in the
    /// folder says so.
    #[must_use]
    pub fn at(text: &str) -> Self {
        if let Some(folder) = text.strip_prefix('@') {
            return Self(Some(Trigger::Armed(Arc::new(PathBuf::from(folder)))));
        }
        let lag = text
            .split_once('+')
            .and_then(|(name, millis)| Some((name, Duration::from_millis(millis.parse().ok()?))));
        let (name, lag) = lag.map_or((text, None), |(name, lag)| (name, Some(lag)));
        Self(Some(Trigger::At {
            name: Arc::from(name),
            lag,
        }))
    }

    /// Dies here, without any cleaning up, when `name` is the chosen point.
    pub fn reach(&self, name: &str) {
        let dies = match self.chosen() {
            Some(Trigger::At { name: chosen, lag }) => **chosen == *name && lag.is_none(),
            Some(Trigger::Armed(folder)) => std::fs::remove_file(folder.join(name)).is_ok(),
            None => false,
        };
        if dies {
            std::process::abort();
        }
    }

    /// How long to lag here: what a slow tool or a slow disk does, at a point that a test can name.
    #[must_use]
    pub fn lag(&self, name: &str) -> Option<Duration> {
        match self.chosen()? {
            Trigger::At { name: chosen, lag } => lag.filter(|_| **chosen == *name),
            Trigger::Armed(folder) => {
                let millis = std::fs::read_to_string(folder.join(format!("{name}+"))).ok()?;
                Some(Duration::from_millis(millis.parse().ok()?))
            }
        }
    }

    fn chosen(&self) -> Option<&Trigger> {
        self.0.as_ref().filter(|_| cfg!(debug_assertions))
    }
}
