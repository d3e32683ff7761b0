//! The environment's say on where a test lets the process die, and how soon another may take over.

use std::time::Duration;

use countersign_agent::domain::Failpoint;

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

/// `COUNTERSIGN_LEASE_MS`, in debug builds: how long a lane is leased, so that a test of a takeover need not last half a minute.
#[must_use]
pub fn lease() -> Option<Duration> {
    millis("COUNTERSIGN_LEASE_MS")
}

/// `COUNTERSIGN_POLL_MS`, in debug builds: how often a worker looks without having been woken, so that a test can tell the two apart.
#[must_use]
pub fn poll() -> Option<Duration> {
    millis("COUNTERSIGN_POLL_MS")
}

fn millis(name: &str) -> Option<Duration> {
    let named = if cfg!(debug_assertions) { std::env::var_os(name) } else { None };
    named.and_then(|text| text.to_str()?.parse().ok()).map(Duration::from_millis)
}
