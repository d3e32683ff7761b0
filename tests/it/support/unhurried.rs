//! Worlds for tests of many things at once, which a busy machine does one after the other.

use std::time::Duration;

use serde_json::Value;

use super::api::PATIENCE;
use super::platform::On;
use super::world::World;

/// Longer than any test runs on a busy machine. After a lease that ran out the model is asked about the task again, which is right, and not
/// what tests of other things count.
pub const LONG_LEASE: Duration = Duration::from_secs(600);

impl World {
    /// A world whose leases and presses last as long as its test. Fifty presses at once are decided one after the other: on a busy machine the
    /// last waits longer than platforms do, and they hold the connections by which a lease is kept.
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
