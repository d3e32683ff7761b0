//! Slack's Home tab: what waits for a person, and what a press there decides.

mod forms;
mod listed;
mod presses;

use countersign_playground::{Event, Posted};
use serde_json::{Value, json};

use crate::support::platform::On;
use crate::support::world::World;

const ON: On = On::Slack;
const APPROVERS: &str = "CHAT__PLAN_REVIEW_APPROVERS";
const EMPTY: &str = "现在没有等你处理的事项";
const UNKNOWN: &str = "这张卡片对应的任务已经不在了";

/// A person opens the Home tab.
fn opening(world: &World, user: &str) -> Event {
    let event = json!({ "user": user, "channel": ON.direct("d1"), "tab": "home", "event_ts": "1780000000.000100" });
    world.tenant.other("app_home_opened", event)
}

fn times_shown(world: &World, user: &str) -> usize {
    world.chat.snapshot().home(user).map_or(0, |home| home.versions.len())
}

/// The tab of `user` once `event` has had it drawn anew.
async fn drawn_after(world: &World, user: &str, event: &Event) -> Posted {
    let before = times_shown(world, user);
    world.push(event).await;
    world
        .seen("the Home tab", |seen| {
            seen.home(user).filter(|home| home.versions.len() > before).cloned()
        })
        .await
}

/// The tab as `user` finds it on opening it.
async fn opened(world: &World, user: &str) -> Posted {
    drawn_after(world, user, &opening(world, user)).await
}

/// A press of `user` on their tab.
fn pressing(world: &World, user: &str, home: &Posted, value: &Value) -> Event {
    world.tenant.tap_home(user, &home.id, value).unwrap()
}

/// `user` presses a button of their tab; gives the tab as it is then.
async fn press(world: &World, user: &str, home: &Posted, value: &Value) -> Posted {
    drawn_after(world, user, &pressing(world, user, home, value)).await
}

/// What the tab says first: the notice after a press.
fn notice(home: &Posted) -> String {
    home.words().lines().next().unwrap_or_default().to_owned()
}
