//! The handshake over HTTP, encrypted and signed: a plan waits, the right person answers, only then work is done.

mod actions;
mod approvals;
mod changes;
mod commands;
mod copies;
mod failures;
mod forged;
mod ids;
mod lanes;
mod late;
mod limits;
mod plans;
mod policy;
mod questions;
mod rights;

use crate::support::scripts::reporter;
use crate::support::world::{DIRECT, GROUP, To, World};

/// S0-25, S0-28, S0-32, S4-1: a plan is posted and waits; `OK` as a reply lets it run; one final answer.
#[tokio::test]
async fn a_plan_approved_by_text_is_carried_out_once() {
    let world = World::start(&[], reporter).await;
    let request = world.say("ou_u1", "oc_c1", "整理笔记", GROUP).await;
    let card = world.plan_card("oc_c1").await;
    assert_eq!(card.title(), Some("计划确认"));
    assert!(
        card.words().contains("请回复 **OK** 继续，或直接回复修改意见。"),
        "{}",
        card.words()
    );
    assert_eq!(card.reply_to.as_deref(), Some(request.as_str()));
    assert_eq!(world.file("report.md"), None, "nothing runs before the approval");
    world
        .say(
            "ou_u1",
            "oc_c1",
            "OK",
            To {
                reply_to: Some(&card.id),
                group: true,
                ..GROUP
            },
        )
        .await;
    world.hears("oc_c1", "全部完成").await;
    let turn = world.api.turn_in("oc_c1", "completed").await;
    assert_eq!(turn["reason"], "final_answer");
    assert_eq!(world.count("oc_c1", "全部完成"), 1);
    assert!(world.file("report.md").unwrap().contains("报告"));
    world.end().await;
}

/// S0-28, M-5: the button is equal to the word, the toast says what it did, the card loses its buttons.
#[tokio::test]
async fn a_plan_approved_by_button_is_carried_out() {
    let world = World::start(&[], reporter).await;
    world.say("ou_u1", "oc_p1", "整理笔记", DIRECT).await;
    let card = world.plan_card("oc_p1").await;
    let toast = world.tap("ou_u1", "oc_p1", &card, "approve", None).await;
    assert!(toast.contains("确认"), "{toast}");
    world.hears("oc_p1", "全部完成").await;
    let settled = world
        .seen("the settled card", |lark| {
            lark.messages
                .iter()
                .find(|m| m.id == card.id && m.button("approve").is_none())
                .cloned()
        })
        .await;
    assert!(settled.button("cancel").is_none());
    world.end().await;
}
