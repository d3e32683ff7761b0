//! Edits that are no configuration.

use super::{file, lines, logged, review, row, save, shows, writer};
use crate::support::quiet::quiet;
use crate::support::world::{DIRECT, World};

/// Each would switch the review off, if a part of it were taken. What is wrong, and the word about it.
const WRONG: &[(&str, &str)] = &[
    (
        "    plan_review_pending_ttl_minutes: 0\n",
        "config.yaml:4: channels.lark.plan_review_pending_ttl_minutes: found 0, allowed 1 to 1440",
    ),
    (
        "    plan_review_pending_ttl_minutes: an hour\n",
        "config.yaml:4: channels.lark.plan_review_pending_ttl_minutes: found an hour, allowed 1 to 1440",
    ),
    (
        "    plan_review_pending_ttl_minutes: 1000000000\n",
        "config.yaml:4: channels.lark.plan_review_pending_ttl_minutes: found 1000000000",
    ),
    (
        "    plan_reveiw_enabled: true\n",
        "config.yaml:4: channels.lark.plan_reveiw_enabled: unknown key, did you mean",
    ),
    (
        "    plan_review_enabled: true\n",
        "config.yaml:4: channels.lark.plan_review_enabled: duplicate key, first on line 3",
    ),
    (
        "    locale: de-DE\n",
        "config.yaml:4: channels.lark.locale: found de-DE, allowed zh-CN or en-US",
    ),
    (
        "    allowed_chats: oc_a\n",
        "config.yaml:4: channels.lark.allowed_chats: found oc_a",
    ),
    (
        "    plan_review_quorum: 3\n",
        "config.yaml:4: channels.lark.plan_review_quorum: found 3",
    ),
    (
        "  slack:\n    enabled: true\n",
        "config.yaml:5: channels.slack.signing_secret: found a blank",
    ),
    (
        "telemetry:\n  otlp_endpoint: http://127.0.0.1:4317\n",
        "config.yaml:5: telemetry.otlp_endpoint: found http://127.0.0.1:4317, not in this version",
    ),
    ("  - [\n", "config.yaml:4: not valid YAML"),
    (
        "store: {database_url: mysql://ann:canary-8c1f@db/x}\n",
        "config.yaml:4: store.database_url: found mysql://ann:***@db/x",
    ),
];

/// F-H13, F-A3, S0-35: each of a dozen edits that do not validate is refused whole, told once in the log and in `/readyz` with its line and
/// reason, and leaves in force what was, until the file is good again.
#[tokio::test]
async fn edits_that_do_not_validate_change_nothing() {
    let mut world = World::by_file(&[], &[], &review(true), writer()).await;
    assert_eq!(row(&world).await["message"], serde_json::Value::Null);
    for (at, (wrong, reason)) in WRONG.iter().enumerate() {
        save(&world, &format!("{}{wrong}", review(false)));
        shows(&world, "degraded", reason).await;
        logged(&mut world, reason).await;
        let chat = format!("oc_{at}");
        world.say("ou_u1", &chat, "整理笔记", DIRECT).await;
        world.plan_card(&chat).await;
        assert_eq!(lines(&mut world, reason), 1, "{reason}");
    }
    // Touched again: the same reason is not told again, and the state stays.
    let (wrong, reason) = WRONG[WRONG.len() - 1];
    save(&world, &format!("# again\n{}{wrong}", review(false)));
    shows(&world, "degraded", "config.yaml:5").await;
    save(&world, &format!("{}{wrong}", review(false)));
    shows(&world, "degraded", reason).await;
    assert!(!world.child().log().contains("canary-8c1f"), "a password in the log");
    // Put back as it was.
    save(&world, &review(true));
    let good = shows(&world, "ok", "").await;
    assert_eq!(good["message"], serde_json::Value::Null);
    logged(&mut world, "the configuration file is good").await;
    quiet(&world).await;
    world.end().await;
}

/// design: the file may vanish: what it said stays in force, and `/readyz` says so until it is back.
#[tokio::test]
async fn a_vanished_file_changes_nothing() {
    let mut world = World::by_file(&[], &[], &review(false), writer()).await;
    std::fs::remove_file(file(&world)).unwrap();
    shows(&world, "degraded", "config.yaml: the file is gone").await;
    world.say("ou_u1", "oc_a", "整理笔记", DIRECT).await;
    world.card_titled("oc_a", "操作确认").await;
    save(&world, &review(false));
    shows(&world, "ok", "").await;
    assert_eq!(lines(&mut world, "settings are in force"), 0, "it said the same as before");
    world.end().await;
}
