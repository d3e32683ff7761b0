//! Who finds what on the Home tab.

use std::time::Duration;

use serde_json::json;

use super::{APPROVERS, EMPTY, ON, drawn_after, opened, opening};
use crate::console_page::form;
use crate::support::fake_model::{Gate, Script, say};
use crate::support::scripts::{gated, in_order, reporter, writes};
use crate::support::world::{GROUP, To, World};

const OPS: &str = "S0614TZR7";

/// reach §3: a plan waits for its requester, for each person of the list and for the members of its groups; for a bystander, and for a person of another
/// workspace, nothing waits.
#[tokio::test]
async fn a_plan_waits_for_those_who_are_meant() {
    let (c, u1, boss, member) = (ON.chat("c1"), ON.user("u1"), ON.user("boss"), ON.user("member"));
    let world = World::start_on(ON, &[(APPROVERS, &format!("[{boss}, {OPS}]"))], reporter).await;
    world.chat.set_group(OPS, &[member]);
    world.say(u1, c, "整理笔记", GROUP).await;
    let card = world.plan_card(c).await;
    for user in [u1, boss, member] {
        let home = opened(&world, user).await;
        assert!(home.words().contains(&format!("**会话：** #{c}")), "{}", home.words());
        for (verb, button) in ["approve", "revise", "cancel"].map(|verb| (verb, card.button(verb))) {
            assert_eq!(home.button(verb), button, "{user}");
        }
        assert_eq!(home.button("keep_steps"), None, "the boxes are left out with their button");
    }
    let stranger = opened(&world, ON.user("u9")).await;
    assert!(
        stranger.words().contains(EMPTY) && stranger.buttons().is_empty(),
        "{}",
        stranger.words()
    );
    let mut elsewhere = opening(&world, boss);
    elsewhere.body["team_id"] = json!("T0OTHER");
    assert!(
        drawn_after(&world, boss, &elsewhere).await.words().contains(EMPTY),
        "named by the envelope"
    );
    elsewhere.body["authorizations"][0]["team_id"] = json!("T0OTHER");
    elsewhere.body["event_id"] = json!("EvOTHER");
    assert!(
        drawn_after(&world, boss, &elsewhere).await.words().contains(EMPTY),
        "another workspace"
    );
    world.end().await;
}

/// reach §3: where anybody of the chat may approve, nobody is waited for by name, and the plan is on its requester's tab only.
#[tokio::test]
async fn what_anybody_may_approve_waits_for_its_requester() {
    for approvers in ["anyone", "not_requester"] {
        let (c, u1) = (ON.chat("c1"), ON.user("u1"));
        let world = World::start_on(ON, &[(APPROVERS, approvers)], reporter).await;
        world.say(u1, c, "整理笔记", GROUP).await;
        world.plan_card(c).await;
        assert!(opened(&world, u1).await.button("approve").is_some(), "{approvers}");
        assert!(opened(&world, ON.user("u2")).await.words().contains(EMPTY), "{approvers}");
        world.end().await;
    }
}

/// reach §3: what was escalated to a person waits for them, and what they decide in the place of a person who is away.
#[tokio::test]
async fn it_waits_for_those_who_were_asked_later_and_for_deputies() {
    let (c, u1, chief, deputy) = (ON.chat("c1"), ON.user("u1"), ON.user("chief"), ON.user("deputy"));
    let to = format!("[{chief}]");
    let settings = [
        ("CHAT__ESCALATE_TO", to.as_str()),
        ("CHAT__ESCALATE_AFTER_MINUTES", "10"),
        ("CHAT__REMINDER_PERCENT", "0"),
    ];
    let world = World::frozen_on(ON, &settings, reporter).await;
    world.say(u1, c, "整理笔记", GROUP).await;
    world.plan_card(c).await;
    for user in [chief, deputy] {
        assert!(opened(&world, user).await.words().contains(EMPTY), "{user}");
    }
    world.say(u1, c, &format!("/away {{@{deputy}}} for 3d"), GROUP).await;
    world.hears(c, "代你确认、修改或拒绝").await;
    assert!(opened(&world, deputy).await.button("approve").is_some());
    world.clock.advance(Duration::from_secs(11 * 60));
    world.hears(&format!("D{}", &chief[1..]), "整理笔记").await;
    assert!(opened(&world, chief).await.button("approve").is_some());
    world.end().await;
}

/// reach §3: a chat that the settings serve no more has nothing on the tab; a plan whose time is over has not either.
#[tokio::test]
async fn chats_that_are_not_served_and_plans_that_lapsed_are_not_listed() {
    let (c, u1) = (ON.chat("c1"), ON.user("u1"));
    let mut world = World::frozen_on(ON, &[], reporter).await;
    world.say(u1, c, "整理笔记", GROUP).await;
    world.plan_card(c).await;
    assert!(opened(&world, u1).await.button("approve").is_some());
    world.restart(&[("CHAT__ALLOWED_CHATS", &format!("[{}]", ON.chat("c2")))]).await;
    assert_eq!(opened(&world, u1).await.button("approve"), None);
    world.restart(&[("CHAT__ALLOWED_CHATS", "[]")]).await;
    assert!(opened(&world, u1).await.button("approve").is_some());
    world.clock.advance(Duration::from_secs(24 * 60 * 60));
    assert_eq!(opened(&world, u1).await.button("approve"), None);
    world.end().await;
}

/// reach §3: below what waits the tab has the person's own tasks, a line each: how each stands, and where.
#[tokio::test]
async fn a_persons_own_tasks_are_listed() {
    let (c, u1) = (ON.chat("c1"), ON.user("u1"));
    let world = World::start_on(ON, &[], reporter).await;
    let gate = Gate::new();
    world.model.script("慢任务", Script::new().then(gated(&gate, say("做完了"))));
    world.model.script("下一个", Script::new().text("也做完了"));
    world.say(u1, c, "慢任务", GROUP).await;
    gate.reached().await;
    world.say(u1, c, "下一个", GROUP).await;
    world.hears(c, "已排队").await;
    world
        .say(
            u1,
            c,
            "整理笔记",
            To {
                thread: Some("other"),
                ..GROUP
            },
        )
        .await;
    world.plan_card(c).await;
    let words = opened(&world, u1).await.words();
    for line in ["慢任务 · 执行中 · ", "下一个 · 排队中 · ", "整理笔记 · 等待确认计划 · "] {
        assert!(words.contains(&format!("{line}#{c}")), "{line} in {words}");
    }
    assert!(!opened(&world, ON.user("u2")).await.words().contains("慢任务"));
    gate.open();
    world.hears(c, "也做完了").await;
    world.end().await;
}

/// reach §3: a plan that is asked for again and waits its turn is listed by its request.
#[tokio::test]
async fn a_task_that_is_asked_for_again_is_listed() {
    let (c, u1) = (ON.chat("c1"), ON.user("u1"));
    let world = World::frozen_on(ON, &[], reporter).await;
    world.say(u1, c, "整理笔记", GROUP).await;
    world.plan_card(c).await;
    let review = world.api.review_in(c).await["id"].as_str().unwrap().to_owned();
    world.clock.advance(Duration::from_secs(61 * 60));
    world.hears(c, "等待超时").await;
    let gate = Gate::new();
    world.model.script("慢任务", Script::new().then(gated(&gate, say("做完了"))));
    world.say(u1, c, "慢任务", GROUP).await;
    gate.reached().await;
    let press = [("review", review.as_str()), ("decision", "ask_again")];
    let pressed = form(&world, "/console/decide", &press, &[("sec-fetch-site", "same-origin")]).await;
    assert_eq!(pressed.status, 303, "{pressed:?}");
    let words = opened(&world, u1).await.words();
    assert!(words.contains(&format!("整理笔记 · 排队中 · #{c}")), "{words}");
    gate.open();
    world.end().await;
}

/// interface §10: a task that ended lately says what of it was not carried out.
#[tokio::test]
async fn an_ended_task_says_what_was_not_carried_out() {
    let (c, u1) = (ON.chat("c1"), ON.user("u1"));
    let world = World::start_on(ON, &[], in_order(vec![writes(&["a.md"]), say("写好了")])).await;
    world.say(u1, c, "写文件", GROUP).await;
    let card = world.card_titled(c, "操作确认").await;
    world.tap(u1, c, &card, "reject", None).await;
    world.hears(c, "写好了").await;
    world.caught_up().await;
    let words = opened(&world, u1).await.words();
    assert!(words.contains("写文件 · 已完成，1 个被拒绝 · "), "{words}");
    world.end().await;
}

/// reach §3: what has no room as a whole card is listed by what it is about, without buttons; nothing is left out.
#[tokio::test]
async fn what_does_not_fit_is_listed_without_buttons() {
    const MANY: usize = 12;
    let u1 = ON.user("u1");
    let world = World::start_on(ON, &[], reporter).await;
    for at in 0..MANY {
        let chat = ON.chat(&format!("many{at}"));
        world.say(u1, chat, "整理笔记", GROUP).await;
        world.plan_card(chat).await;
    }
    let home = opened(&world, u1).await;
    assert!(home.content["blocks"].as_array().unwrap().len() <= 100);
    let buttons = home.buttons().iter().filter(|value| value["action"] == "approve").count();
    let (_, rest) = home
        .words()
        .split_once("这里放不下的")
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .unwrap();
    let (rest, tasks) = rest.split_once("你的任务").unwrap();
    let listed = rest.lines().filter(|line| line.contains("整理笔记 · #")).count();
    assert!(buttons > 0 && listed > 0, "{buttons} {listed}");
    assert_eq!(
        (buttons + listed, tasks.lines().filter(|line| line.contains("等待确认计划")).count()),
        (MANY, MANY)
    );
    world.end().await;
}
