//! What the admin's settings change: no review, no confirmation, which writes ask.

use serde_json::json;

use super::actions::WRITE;
use crate::support::fake_model::say;
use crate::support::scripts::{clarified, finished, in_order, planned, reporter, writes};
use crate::support::world::{GROUP, World};

const C: &str = "oc_c1";
const U: &str = "ou_u1";

/// S0-25, S0-35: with the review off no plan is posted for confirmation, nothing is pending and no marker stands; writes ask.
#[tokio::test]
async fn with_the_review_off_nothing_waits_but_writes_ask() {
    let world = World::start(
        &[("CHANNELS__LARK__PLAN_REVIEW_ENABLED", "false")],
        in_order(vec![
            planned("写", WRITE),
            clarified(),
            writes(&["a.md"]),
            writes(&["b.md"]),
            finished(),
            say("好了"),
        ]),
    )
    .await;
    world.say(U, C, "写", GROUP).await;
    let card = world.card_titled(C, "操作确认").await;
    assert_eq!((world.titled(C, "计划确认"), world.file("a.md")), (0, None));
    assert_eq!(world.api.get("/api/v1/reviews").await["items"], json!([]));
    let turn = world.turns_in(C).await.remove(0);
    let messages = world.api.messages(&turn).await;
    assert!(
        messages
            .iter()
            .all(|m| !m["content"].as_str().unwrap_or_default().contains("plan_review_pending")),
        "{messages:#?}"
    );
    world.tap(U, C, &card, "approve", None).await;
    // One consent is for one call: the second write asks again.
    world
        .seen("a second card", |lark| {
            (lark.in_chat(C).filter(|m| m.title() == Some("操作确认")).count() == 2).then_some(())
        })
        .await;
    assert_eq!((world.file("a.md").is_some(), world.file("b.md")), (true, None));
    world.card_titled(C, "操作确认").await;
    world.say(U, C, "取消", GROUP).await;
    world.hears(C, "好了").await;
    assert_eq!(world.file("b.md"), None);
    world.end().await;
}

/// B10, S0-35: without confirmation the plan is shown and the work goes on; that grants nothing.
#[tokio::test]
async fn without_confirmation_people_are_informed_and_not_asked() {
    let world = World::start(
        &[("CHANNELS__LARK__PLAN_REVIEW_REQUIRE_CONFIRMATION", "false")],
        in_order(vec![planned("写", WRITE), clarified(), writes(&["a.md"]), finished(), say("好了")]),
    )
    .await;
    world.say(U, C, "写", GROUP).await;
    let card = world.card_titled(C, "操作确认").await;
    let shown = world.hears(C, "无需确认").await;
    assert_eq!((shown.title(), shown.button("approve")), (Some("计划确认"), None));
    assert_eq!(world.api.get("/api/v1/reviews").await["items"], json!([]));
    assert_eq!(world.file("a.md"), None);
    world.tap(U, C, &card, "approve", None).await;
    world.hears(C, "好了").await;
    assert!(world.file("a.md").is_some());
    world.end().await;
}

/// design: `approval: never` asks for no write, `always` asks even for what an approved plan declares.
#[tokio::test]
async fn the_approval_setting_says_which_writes_ask() {
    let script = || in_order(vec![writes(&["a.md"]), say("好了")]);
    let never = World::start(&[("AGENT__APPROVAL", "never")], script()).await;
    never.say(U, C, "写", GROUP).await;
    never.hears(C, "好了").await;
    assert_eq!((never.file("a.md").is_some(), never.titled(C, "操作确认")), (true, 0));
    never.end().await;
    let always = World::start(&[("AGENT__APPROVAL", "always")], reporter).await;
    always.say(U, C, "整理笔记", GROUP).await;
    let plan = always.plan_card(C).await;
    always.tap(U, C, &plan, "approve", None).await;
    let card = always.card_titled(C, "操作确认").await;
    assert_eq!(always.file("report.md"), None);
    always.tap(U, C, &card, "approve", None).await;
    always.hears(C, "全部完成").await;
    always.end().await;
}
