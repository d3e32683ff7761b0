//! The environment's say on where a test lets the process die.

use crate::domain::Failpoint;

/// `COUNTERSIGN_FAILPOINT`, in debug builds; nothing in release builds.
#[must_use]
pub fn failpoint() -> Failpoint {
    let named = if cfg!(debug_assertions) {
        std::env::var_os("COUNTERSIGN_FAILPOINT")
    } else {
        None
    };
    named
        .and_then(|name| name.into_string().ok())
        .map_or_else(Failpoint::default, |name| Failpoint::at(&name))
}
