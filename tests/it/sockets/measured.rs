//! How long nothing comes in after a break. `cargo test --test it sockets::measured -- --ignored --nocapture` prints it.

use std::time::{Duration, Instant};

use super::{ask, connected};
use crate::support::platform::On;

const BREAKS: usize = 50;

/// From the moment at which both connections break to the acknowledgement of the next event, on loopback, each time with a gateway that
/// has had no trouble before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement"]
async fn how_long_a_break_lasts() {
    for on in [On::Lark, On::Slack] {
        let mut took = Vec::new();
        for _ in 0..BREAKS {
            let world = connected(on).await;
            let broken = Instant::now();
            world.sockets().drop_all();
            ask(&world, "p1").await;
            took.push(broken.elapsed());
            world.end().await;
        }
        took.sort_unstable();
        let millis = |took: Duration| took.as_secs_f64() * 1000.0;
        println!(
            "{}: median {:.1} ms, worst {:.1} ms of {BREAKS} breaks",
            on.name(),
            millis(took[BREAKS / 2]),
            millis(took[BREAKS - 1])
        );
    }
}
