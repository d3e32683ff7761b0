//! What the plan card says once its turn is over: how it ended, and no step that still claims to be under way.

use crate::support::fake_model::{Gate, Script, say};
use crate::support::people::{in_full, reply};
use crate::support::platform::{On, on_either};
use crate::support::scripts::{clarified, gated, planned, reporter, writes};
use crate::support::world::{GROUP, World};

on_either! {
    a_stopped_plan_says_so_and_what_was_not_finished,
    a_plan_that_the_model_fails_says_so,
    a_change_that_leads_to_no_new_plan_says_how_it_ended,
    a_plan_that_another_replaces_is_not_under_way,
    a_progress_card_says_that_its_task_was_stopped,
    a_finished_plan_says_so_although_the_process_died_over_it,
}

const STEPS: &[(&str, &[&str])] = &[("写 a", &["write_file"]), ("写 b", &["write_file"])];

/// The plan with two steps, approved; then whatever `script` goes on with.
fn at_work() -> Script {
    Script::new().message(planned("写两份", STEPS)).message(clarified())
}

/// interface: a stopped plan is repainted as stopped; the step that was under way is not finished.
async fn a_stopped_plan_says_so_and_what_was_not_finished(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], reporter).await;
    let gate = Gate::new();
    world.model.script("写两份", at_work().then(gated(&gate, say("晚了"))));
    world.say(u, c, "写两份", GROUP).await;
    let card = world.plan_card(c).await;
    world.tap(u, c, &card, "approve", None).await;
    gate.reached().await;
    world.repainted(&card, "⏳").await;
    world.say(u, c, "/stop", GROUP).await;
    let card = world.repainted(&card, "已停止").await;
    gate.open();
    let words = card.words();
    assert!(words.contains("未完成") && !words.contains('⏳'), "{words}");
    assert!(words.contains("0/2"), "{words}");
    world.end().await;
}

/// interface: a plan whose model fails half-way is repainted as not done, with the reason in a sentence.
async fn a_plan_that_the_model_fails_says_so(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], reporter).await;
    world.model.script("写两份", at_work().message(writes(&["a.md"])).status(401, &[]));
    world.say(u, c, "写两份", GROUP).await;
    let card = world.plan_card(c).await;
    world.tap(u, c, &card, "approve", None).await;
    world.hears(c, "问题编号").await;
    let card = world.repainted(&card, "任务没有完成").await;
    assert!(!card.words().contains('⏳'), "{}", card.words());
    world.end().await;
}

/// interface: words to the plan settle it; when the turn ends without a new plan, the card does not point at one.
async fn a_change_that_leads_to_no_new_plan_says_how_it_ended(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], reporter).await;
    world
        .model
        .script("写两份", Script::new().message(planned("写两份", STEPS)).status(401, &[]));
    world.say(u, c, "写两份", GROUP).await;
    let card = world.plan_card(c).await;
    world.say(u, c, &in_full("先写 b"), reply(&card.id)).await;
    world.hears(c, "问题编号").await;
    let card = world.repainted(&card, "任务没有完成").await;
    assert!(!card.words().contains("新的卡片"), "{}", card.words());
    world.end().await;
}

/// interface: a plan whose place another takes is shown as replaced, and no step of it as under way.
async fn a_plan_that_another_replaces_is_not_under_way(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], reporter).await;
    world.model.script(
        "写两份",
        at_work().message(planned(
            "写三份",
            &[("写 a", &["write_file"]), ("写 b", &["write_file"]), ("写 c", &["write_file"])],
        )),
    );
    world.say(u, c, "写两份", GROUP).await;
    let first = world.plan_card(c).await;
    world.tap(u, c, &first, "approve", None).await;
    let second = world.card_after(c, &first).await;
    let first = world.repainted(&first, "已被取代").await;
    assert!(!first.words().contains('⏳'), "{}", first.words());
    world.say(u, c, "/stop", GROUP).await;
    world.repainted(&second, "已取消").await;
    world.end().await;
}

/// interface: a plan that nobody had to confirm is repainted at the end as well.
async fn a_progress_card_says_that_its_task_was_stopped(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[("CHAT__PLAN_REVIEW_ENABLED", "false")], reporter).await;
    let gate = Gate::new();
    world.model.script("写两份", at_work().then(gated(&gate, say("晚了"))));
    world.say(u, c, "写两份", GROUP).await;
    gate.reached().await;
    let card = world.hears(c, "⏳").await;
    world.say(u, c, "/stop", GROUP).await;
    let card = world.repainted(&card, "已停止").await;
    gate.open();
    assert!(card.words().contains("未完成") && !card.words().contains('⏳'), "{}", card.words());
    world.end().await;
}

/// interface: the repaint is written with the end of the turn: a process that dies there leaves it to the next.
async fn a_finished_plan_says_so_although_the_process_died_over_it(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let mut world = World::process_on(on, &[], Some("finish_journaled"), reporter).await;
    world.say(u, c, "整理笔记", GROUP).await;
    let card = world.plan_card(c).await;
    world.tap(u, c, &card, "approve", None).await;
    world.ended().await;
    world.restart_process(None);
    let card = world.repainted(&card, "已完成").await;
    assert!(card.words().contains("3/3") && !card.words().contains('⏳'), "{}", card.words());
    world.end().await;
}
