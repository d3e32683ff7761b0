//! Worlds for tests of many things at once, which a busy machine does one after the other.

use std::time::Duration;

use serde_json::Value;

use super::api::PATIENCE;
use super::platform::On;
use super::world::World;

/// Longer than any test runs on a busy machine. When a lease runs out, another worker asks the model again. That is right, but it would
/// change what a test counts.
pub const LONG_LEASE: Duration = Duration::from_secs(600);

impl World {
    /// A world that waits as long as its test for a press, and keeps its leases as long. Fifty presses at once are decided one after the
    /// other. On a busy machine the last one waits longer than a platform does. Meanwhile the presses hold all database connections, and no
    /// lease is renewed.
    pub async fn unhurried_on(on: On, extra: &[(&str, &str)], answer: impl Fn(&Value) -> Value + Send + Sync + 'static) -> Self {
        let mut world = Self::without_gateway(on, extra, answer).await;
        world
            .boot_with(|timings| {
                timings.lease = LONG_LEASE;
                timings.click = PATIENCE;
            })
            .await;
        world
    }
}
