//! What the admin's settings change: no review, no confirmation, which writes ask.

use serde_json::json;

use super::actions::WRITE;
use crate::support::fake_model::say;
use crate::support::platform::{On, on_either};
use crate::support::scripts::{clarified, finished, in_order, planned, reporter, writes};
use crate::support::world::{GROUP, World};

on_either! {
    with_the_review_off_nothing_waits_but_writes_ask,
    without_confirmation_people_are_informed_and_not_asked,
    the_approval_setting_says_which_writes_ask,
}

/// S0-25, S0-35: with the review off no plan is posted for confirmation, nothing is pending and no marker stands; writes ask.
async fn with_the_review_off_nothing_waits_but_writes_ask(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(
        on,
        &[("CHAT__PLAN_REVIEW_ENABLED", "false")],
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
    world.say(u, c, "写", GROUP).await;
    let card = world.card_titled(c, "操作确认").await;
    assert_eq!((world.titled(c, "计划确认"), world.file("a.md")), (0, None));
    assert_eq!(world.api.get("/api/v1/reviews").await["items"], json!([]));
    let turn = world.turns_in(c).await.remove(0);
    let messages = world.api.messages(&turn).await;
    assert!(
        messages
            .iter()
            .all(|m| !m["content"].as_str().unwrap_or_default().contains("plan_review_pending")),
        "{messages:#?}"
    );
    world.tap(u, c, &card, "approve", None).await;
    // One consent is for one call: the second write asks again.
    world
        .seen("a second card", |seen| {
            (seen.in_chat(c).filter(|m| m.title() == Some("操作确认")).count() == 2).then_some(())
        })
        .await;
    assert_eq!((world.file("a.md").is_some(), world.file("b.md")), (true, None));
    world.card_titled(c, "操作确认").await;
    world.say(u, c, "取消", GROUP).await;
    world.hears(c, "好了").await;
    assert_eq!(world.file("b.md"), None);
    world.end().await;
}

/// B10, S0-35: without confirmation the plan is shown and the work goes on; that grants nothing.
async fn without_confirmation_people_are_informed_and_not_asked(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(
        on,
        &[("CHAT__PLAN_REVIEW_REQUIRE_CONFIRMATION", "false")],
        in_order(vec![planned("写", WRITE), clarified(), writes(&["a.md"]), finished(), say("好了")]),
    )
    .await;
    world.say(u, c, "写", GROUP).await;
    let card = world.card_titled(c, "操作确认").await;
    let shown = world.hears(c, "无需确认").await;
    assert_eq!((shown.title(), shown.button("approve")), (Some("计划确认"), None));
    assert_eq!(world.api.get("/api/v1/reviews").await["items"], json!([]));
    assert_eq!(world.file("a.md"), None);
    world.tap(u, c, &card, "approve", None).await;
    world.hears(c, "好了").await;
    assert!(world.file("a.md").is_some());
    world.end().await;
}

/// design: `approval: never` asks for no write, `always` asks even for what an approved plan declares.
async fn the_approval_setting_says_which_writes_ask(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let script = || in_order(vec![writes(&["a.md"]), say("好了")]);
    let never = World::start_on(on, &[("AGENT__APPROVAL", "never")], script()).await;
    never.say(u, c, "写", GROUP).await;
    never.hears(c, "好了").await;
    assert_eq!((never.file("a.md").is_some(), never.titled(c, "操作确认")), (true, 0));
    never.end().await;
    let always = World::start_on(on, &[("AGENT__APPROVAL", "always")], reporter).await;
    always.say(u, c, "整理笔记", GROUP).await;
    let plan = always.plan_card(c).await;
    always.tap(u, c, &plan, "approve", None).await;
    let card = always.card_titled(c, "操作确认").await;
    assert_eq!(always.file("report.md"), None);
    always.tap(u, c, &card, "approve", None).await;
    always.hears(c, "全部完成").await;
    always.end().await;
}
