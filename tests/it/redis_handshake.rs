//! The whole handshake beside a Redis, as somebody sees it who looks into Redis from outside.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::api::eventually;
use crate::support::platform::{On, on_either};
use crate::support::scripts::reporter;
use crate::support::servers::RedisServer;
use crate::support::world::{ASIDE, GROUP, World};

on_either! {
    the_pending_review_is_there_until_the_decision,
    an_ok_beside_the_card_counts_after_a_flush,
    without_redis_everything_goes_on,
    a_stalled_redis_delays_no_acknowledgement,
}

/// A world beside this Redis, a plan a quarter of an hour.
async fn world(on: On, redis: &RedisServer) -> World {
    let url = redis.url();
    let settings = [
        ("STORE__COORDINATION", "redis"),
        ("STORE__REDIS_URL", url.as_str()),
        ("STORE__REDIS_PREFIX", "t"),
        ("CHAT__PLAN_REVIEW_PENDING_TTL_MINUTES", "15"),
    ];
    let world = World::start_on(on, &settings, reporter).await;
    eventually("a Redis that takes writes", || async {
        (redis.cli(&["EXISTS", "t:probe"]).await == "1").then_some(())
    })
    .await;
    world
}

/// The part `coordination` of `/readyz`.
async fn coordination(world: &World) -> Value {
    let report = world.api.get("/readyz").await;
    let parts = report["parts"].as_array().unwrap();
    parts.iter().find(|part| part["name"] == "coordination").unwrap().clone()
}

async fn becomes(world: &World, status: &str) {
    eventually(&format!("coordination {status}"), || async {
        (coordination(world).await["status"] == status).then_some(())
    })
    .await;
}

/// M-2, S0-29, interface §8: key, fields and expiry of the pending review; gone after the decision; no id of a person or chat is in a key.
async fn the_pending_review_is_there_until_the_decision(on: On) {
    let Some(redis) = RedisServer::start(&[]).await else { return };
    let world = world(on, &redis).await;
    let (chat, user) = (on.chat("c1"), on.user("u1"));
    world.say(user, chat, "整理笔记", GROUP).await;
    let card = world.plan_card(chat).await;
    let key = redis.cli(&["KEYS", "t:review:*"]).await;
    let digest = key.strip_prefix("t:review:").unwrap();
    assert_eq!(digest.len(), 32);
    assert!(
        digest.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)),
        "{key}"
    );
    for raw in [chat, user] {
        assert!(!redis.cli(&["KEYS", "*"]).await.contains(raw));
    }
    let fields = redis.cli(&["HGETALL", &key]).await;
    let names: Vec<&str> = fields.lines().step_by(2).collect();
    let mut sorted = names.clone();
    sorted.sort_unstable();
    let wanted = [
        "chat_id",
        "created_at",
        "expires_at",
        "internal_plan",
        "overall_goal_ui",
        "review_id",
        "run_id",
        "user_id",
    ];
    assert_eq!(sorted, wanted);
    let field = async |name: &str| redis.cli(&["HGET", &key, name]).await;
    let review = world.review_of(&card).await;
    assert_eq!(field("review_id").await, review["id"]);
    assert_eq!(field("run_id").await, review["turn_id"]);
    assert_eq!((field("user_id").await.as_str(), field("chat_id").await.as_str()), (user, chat));
    assert_eq!(field("overall_goal_ui").await, "整理笔记");
    let steps: Value = serde_json::from_str(&field("internal_plan").await).unwrap();
    assert_eq!(steps[1]["tools"][0], "write_file");
    eventually("the expiry of the delivered card", || async {
        (field("expires_at").await == review["expires_at"]).then_some(())
    })
    .await;
    let ttl: i64 = redis.cli(&["TTL", &key]).await.parse().unwrap();
    assert!((840..=900).contains(&ttl), "{ttl}");
    world.breath().await;
    world.say(user, chat, "OK", ASIDE).await;
    world.hears(chat, "全部完成").await;
    eventually("nothing that is pending", || async {
        let keys = redis.cli(&["KEYS", "*"]).await;
        // The look at how it stands writes a key of its own, which expires.
        keys.lines().all(|key| key == "t:probe").then_some(())
    })
    .await;
    world.end().await;
}

/// F-R4 F-R11: emptied while a plan waits, and an `OK` in the group without a mention at once: it counts.
async fn an_ok_beside_the_card_counts_after_a_flush(on: On) {
    let Some(redis) = RedisServer::start(&[]).await else { return };
    let world = world(on, &redis).await;
    let (chat, user) = (on.chat("c1"), on.user("u1"));
    world.say(user, chat, "整理笔记", GROUP).await;
    world.plan_card(chat).await;
    world.breath().await;
    redis.cli(&["FLUSHALL"]).await;
    world.say(user, chat, "OK", ASIDE).await;
    world.hears(chat, "全部完成").await;
    world.end().await;
}

/// F-R1 F-R2: killed at any time, not there at the start: tasks are taken, planned, approved; `/readyz` says what is amiss.
async fn without_redis_everything_goes_on(on: On) {
    let Some(mut redis) = RedisServer::start(&[]).await else { return };
    let mut world = world(on, &redis).await;
    let (chat, user) = (on.chat("c1"), on.user("u1"));
    world.say(user, chat, "整理笔记", GROUP).await;
    world.plan_card(chat).await;
    redis.kill().await;
    world.restart(&[]).await;
    becomes(&world, "degraded").await;
    assert_eq!(world.api.get("/readyz").await["status"], "degraded");
    world.breath().await;
    world.say(user, chat, "OK", ASIDE).await;
    world.hears(chat, "全部完成").await;
    let other = on.chat("c2");
    world.say(user, other, "整理笔记", GROUP).await;
    world.plan_card(other).await;
    redis.restart_empty().await;
    becomes(&world, "ok").await;
    world.breath().await;
    world.say(user, other, "OK", ASIDE).await;
    world.hears(other, "全部完成").await;
    let third = on.chat("c3");
    world.say(user, third, "整理笔记", GROUP).await;
    world.plan_card(third).await;
    eventually("a Redis that is used again", || async {
        redis.cli(&["KEYS", "t:review:*"]).await.starts_with("t:review:").then_some(())
    })
    .await;
    world.end().await;
}

/// F-R3: while Redis stands still, acknowledgements stay far below a second, plans are posted and answered, `/readyz` says so.
async fn a_stalled_redis_delays_no_acknowledgement(on: On) {
    let Some(redis) = RedisServer::start(&[]).await else { return };
    let world = world(on, &redis).await;
    let (chat, user) = (on.chat("c1"), on.user("u1"));
    redis.stall();
    for text in ["整理笔记", "/status", "/help"] {
        let began = Instant::now();
        world.say(user, chat, text, GROUP).await;
        let took = began.elapsed();
        assert!(took < Duration::from_secs(1), "{text}: {took:?}");
    }
    world.plan_card(chat).await;
    becomes(&world, "degraded").await;
    world.breath().await;
    world.say(user, chat, "OK", ASIDE).await;
    world.hears(chat, "全部完成").await;
    redis.resume();
    becomes(&world, "ok").await;
    world.end().await;
}
