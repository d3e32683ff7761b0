//! How soon work is found by a process that did not make it.

use std::time::{Duration, Instant};

use super::roles::APART;
use crate::support::fleet::{Fleet, LONG};
use crate::support::platform::On;
use crate::support::scripts::reporter;
use crate::support::world::DIRECT;

const FINDS: usize = 21;

/// Sends requests to the process that takes them in, one after the other; gives how long it was from each one's acceptance until the
/// other's mark was seen on it, in order. Who looks unasked does so every `poll` milliseconds.
async fn found(poll: Option<u64>, extra: &[(&str, &str)]) -> Option<Vec<Duration>> {
    let (mut fleet, world) = Fleet::prepare(On::Lark, LONG, APART, extra, reporter).await?;
    fleet.poll = poll;
    fleet.start(0).await;
    fleet.start(1).await;
    let mut took = Vec::new();
    for number in 0..=FINDS {
        let chat = On::Lark.direct(&format!("f{number}"));
        let before = world.chat.snapshot().count("react");
        world.say(On::Lark.user(&format!("f{number}")), chat, "整理笔记", DIRECT).await;
        let accepted = Instant::now();
        world.seen("the mark", |seen| (seen.count("react") > before).then_some(())).await;
        took.push(accepted.elapsed());
        world.plan_card(chat).await;
    }
    world.end().await;
    // The first one meets connections that are not there yet.
    took.remove(0);
    took.sort();
    println!(
        "{FINDS} finds: {:?} (shortest), {:?} (median), {:?} (longest)",
        took[0],
        took[FINDS / 2],
        took[FINDS - 1]
    );
    Some(took)
}

/// design: with Redis another process hears of work at once: within 100 ms on a machine that has nothing else to do. Looks unasked are
/// so rare here that whoever waited for one would be told from whoever was woken on any machine.
#[tokio::test]
async fn with_redis_it_is_found_at_once() {
    let Some(took) = found(Some(12_000), &[]).await else { return };
    assert!(took[FINDS / 2] < Duration::from_secs(3), "{took:?}");
}

/// design: without Redis, or with a hint that was lost, every process looks each second.
#[tokio::test]
async fn without_redis_it_is_found_by_looking() {
    let Some(took) = found(None, &[("STORE__COORDINATION", "embedded")]).await else {
        return;
    };
    assert!(took[FINDS / 2] < Duration::from_secs(6), "{took:?}");
}
