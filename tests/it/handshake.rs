//! The handshake over HTTP, encrypted and signed, or over sockets: a plan waits, the right person answers, only then work is done.

pub(crate) mod actions;
mod again;
mod approvals;
mod away;
mod changes;
mod commands;
mod copies;
mod coverage;
pub(crate) mod deciders;
mod direct_words;
mod edits;
mod ends;
mod escalation;
mod failures;
mod feedback;
mod forged;
mod groups;
mod ids;
mod lanes;
mod late;
mod left_out;
mod limits;
mod outage;
mod plans;
mod policy;
mod questions;
mod quorums;
mod reactions;
mod reminders;
mod rights;
mod rounds;
mod side_by_side;
mod signals;
mod standing;
mod threads;
mod typing;

use crate::support::platform::{On, on_both};
use crate::support::scripts::reporter;
use crate::support::world::{DIRECT, GROUP, To, World};

on_both! {
    a_plan_approved_by_text_is_carried_out_once,
    a_plan_approved_by_button_is_carried_out,
}

/// M-4, S0-C1, S0-25, S0-28, S0-32, S0-T13, S4-1: a plan is posted and waits; `OK` as a reply lets it run; one final answer.
async fn a_plan_approved_by_text_is_carried_out_once(on: On) {
    let world = World::start_on(on, &[], reporter).await;
    let request = world.say(on.user("u1"), on.chat("c1"), "整理笔记", GROUP).await;
    let card = world.plan_card(on.chat("c1")).await;
    assert_eq!(card.title(), Some("计划确认"));
    for words in ["读取笔记", "写报告", "请回复 **OK** 继续，或直接回复修改意见。"] {
        assert!(card.words().contains(words), "{words} in {}", card.words());
    }
    assert_eq!(card.reply_to.as_deref(), Some(request.as_str()));
    assert_eq!(world.file("report.md"), None, "nothing runs before the approval");
    world
        .say(
            on.user("u1"),
            on.chat("c1"),
            "OK",
            To {
                reply_to: Some(&card.id),
                group: true,
                ..GROUP
            },
        )
        .await;
    world.hears(on.chat("c1"), "全部完成").await;
    let turn = world.api.turn_in(on.chat("c1"), "completed").await;
    assert_eq!(turn["reason"], "final_answer");
    assert_eq!(world.count(on.chat("c1"), "全部完成"), 1);
    assert!(world.file("report.md").unwrap().contains("报告"));
    world.end().await;
}

/// M-4, S0-28, M-5: the button is equal to the word, the toast says what it did, the card loses its buttons.
async fn a_plan_approved_by_button_is_carried_out(on: On) {
    let world = World::start_on(on, &[], reporter).await;
    world.say(on.user("u1"), on.direct("p1"), "整理笔记", DIRECT).await;
    let card = world.plan_card(on.direct("p1")).await;
    world.tap(on.user("u1"), on.direct("p1"), &card, "approve", None).await.done("确认");
    world.hears(on.direct("p1"), "全部完成").await;
    let settled = world
        .seen("the settled card", |seen| {
            seen.messages
                .iter()
                .find(|m| m.id == card.id && m.button("approve").is_none())
                .cloned()
        })
        .await;
    assert!(settled.button("cancel").is_none());
    world.end().await;
}
