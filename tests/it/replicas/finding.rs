//! How soon work is found by a process that did not make it.

use super::roles::APART;
use crate::support::fleet::{Fleet, LONG};
use crate::support::platform::On;
use crate::support::scripts::reporter;
use crate::support::world::DIRECT;

const REQUESTS: usize = 21;
/// Longer than a test waits: what is found with it was not found by polling.
const AN_HOUR: u64 = 3_600_000;

/// Sends requests to the process that takes them in, one after the other, and waits for the mark that the other process puts on each.
/// Both poll every `poll` milliseconds. False: the programs that it needs are missing.
async fn all_are_found(poll: Option<u64>, extra: &[(&str, &str)]) -> bool {
    let Some((mut fleet, world)) = Fleet::prepare(On::Lark, LONG, APART, extra, reporter).await else {
        return false;
    };
    fleet.poll = poll;
    fleet.start(0).await;
    fleet.start(1).await;
    for number in 0..=REQUESTS {
        let chat = On::Lark.direct(&format!("f{number}"));
        let before = world.chat.snapshot().count("react");
        world.say(On::Lark.user(&format!("f{number}")), chat, "整理笔记", DIRECT).await;
        world.seen("the mark", |seen| (seen.count("react") > before).then_some(())).await;
        world.plan_card(chat).await;
    }
    world.end().await;
    true
}

/// design: with Redis another process is told of work: it finds all of it although it never polls.
#[tokio::test]
async fn with_redis_it_is_found_without_polling() {
    all_are_found(Some(AN_HOUR), &[]).await;
}

/// design: without Redis, or when its message was lost, every process polls each second.
#[tokio::test]
async fn without_redis_it_is_found_by_polling() {
    all_are_found(None, &[("STORE__COORDINATION", "embedded")]).await;
}
