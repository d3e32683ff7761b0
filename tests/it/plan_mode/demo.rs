//! The demo model in plan mode: no key, no network.

use crate::support::fake_model::say;
use crate::support::platform::{On, on_either};
use crate::support::world::{DIRECT, World};

on_either! {
    the_demo_carries_a_plan_out,
    the_demo_tells_what_was_refused,
}

/// S2-3, S2-4: `/plan` with the demo model: countersigned, read, written, read back, concluded; every word is labelled.
async fn the_demo_carries_a_plan_out(on: On) {
    let (p, u) = (on.direct("p1"), on.user("u1"));
    let world = World::start_on(on, &[("MODEL__PROVIDER", "demo")], |_| say("")).await;
    world.say(u, p, "/plan 汇总笔记，写到 brief.md", DIRECT).await;
    let card = world.plan_card(p).await;
    assert!(card.words().contains("brief"), "{}", card.words());
    world.tap(u, p, &card, "approve", None).await;
    let answer = world.hears(p, "计划已按步骤走完").await;
    for words in ["演示模型", "✓ 查看工作区", "brief"] {
        assert!(answer.words().replace('\\', "").contains(words), "{words} in {}", answer.words());
    }
    assert!(world.file("brief.md").unwrap().contains("ship the report"));
    let turn = world.api.turn_in(p, "completed").await;
    let steps = turn["plan"]["steps"].as_array().unwrap();
    assert!(steps.iter().all(|step| step["status"] == "completed"), "{steps:#?}");
    assert!(
        steps[2]["result"]["output"].as_str().unwrap().contains("读回了 `brief.md`"),
        "{steps:#?}"
    );
    let reflections = world
        .api
        .event_types(&turn)
        .await
        .iter()
        .filter(|kind| *kind == "reflected")
        .count();
    assert_eq!(reflections, 3);
    world.end().await;
}

/// S2-2, C3: what a person refuses is a step that failed, and the demo's last word says so.
async fn the_demo_tells_what_was_refused(on: On) {
    let (p, u) = (on.direct("p1"), on.user("u1"));
    let settings = [("MODEL__PROVIDER", "demo"), ("AGENT__MODE", "plan"), ("AGENT__APPROVAL", "always")];
    let world = World::start_on(on, &settings, |_| say("")).await;
    world.say(u, p, "汇总笔记，写到 brief.md", DIRECT).await;
    let card = world.plan_card(p).await;
    world.tap(u, p, &card, "approve", None).await;
    let ask = world.card_titled(p, "操作确认").await;
    world.tap(u, p, &ask, "reject", None).await;
    let answer = world.hears(p, "计划已按步骤走完").await;
    assert!(answer.words().contains("没有写入文件"), "{}", answer.words());
    let turn = world.api.turn_in(p, "completed").await;
    assert_eq!(world.file("brief.md"), None);
    assert_eq!(turn["plan"]["steps"][1]["status"], "failed");
    assert_eq!(turn["plan"]["steps"][2]["status"], "failed", "there is nothing to read back");
    world.end().await;
}
