//! The two pairings of stores that do not run the whole suite: a whole handshake on each.

use crate::support::platform::{On, on_either};
use crate::support::scripts::reporter;
use crate::support::stores::{fresh_database, fresh_name, redis};
use crate::support::world::{GROUP, World};

on_either! {
    a_file_and_redis,
    postgres_and_no_redis,
}

/// design 3: SQLite with the look-up in Redis: a plan, its OK, one answer.
async fn a_file_and_redis(on: On) {
    let Some(redis) = redis() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = format!("sqlite://{}", folder.path().join("countersign.db").display());
    handshake(
        on,
        &[
            ("STORE__DATABASE_URL", &file),
            ("STORE__COORDINATION", "redis"),
            ("STORE__REDIS_URL", &redis),
            ("STORE__REDIS_PREFIX", &fresh_name()),
        ],
    )
    .await;
}

/// design 3: PostgreSQL, which the start itself brings to the current schema, without a Redis: a plan, its OK, one answer.
async fn postgres_and_no_redis(on: On) {
    let Some(database) = fresh_database().await else {
        return;
    };
    handshake(on, &[("STORE__DATABASE_URL", &database), ("STORE__COORDINATION", "embedded")]).await;
}

async fn handshake(on: On, stores: &[(&str, &str)]) {
    let world = World::start_on(on, stores, reporter).await;
    world.say(on.user("u1"), on.chat("c1"), "整理笔记", GROUP).await;
    let card = world.plan_card(on.chat("c1")).await;
    world.breath().await;
    assert_eq!(world.file("report.md"), None, "nothing runs before the approval");
    world.tap(on.user("u1"), on.chat("c1"), &card, "approve", None).await.done("确认");
    world.hears(on.chat("c1"), "全部完成").await;
    world.api.turn_in(on.chat("c1"), "completed").await;
    assert_eq!(world.count(on.chat("c1"), "全部完成"), 1);
    assert!(world.file("report.md").unwrap().contains("报告"));
    world.end().await;
}
