//! Points at which a test lets the process die, to prove that the next start goes on rightly.

use std::sync::Arc;

/// The one point at which this process dies; none in production, and no effect at all in release builds.
#[derive(Clone, Debug, Default)]
pub struct Failpoint(Option<Arc<str>>);

impl Failpoint {
    /// Die on reaching `name`.
    #[must_use]
    pub fn at(name: &str) -> Self {
        Self(Some(Arc::from(name)))
    }

    /// Dies here, without any cleaning up, when `name` is the chosen point.
    pub fn reach(&self, name: &str) {
        if cfg!(debug_assertions) && self.0.as_deref() == Some(name) {
            std::process::abort();
        }
    }
}
