//! Limits: the budget, its card and what grants it again; a model that only talks.

use std::time::Duration;

use countersign_playground::Snapshot;
use serde_json::{Value, json};

use crate::support::fake_model::{Gate, Script, Step, call, say};
use crate::support::people::reply;
use crate::support::platform::{On, on_either};
use crate::support::scripts::{clarified, finished, in_order, planned, reads, writes};
use crate::support::world::{GROUP, World};

on_either! {
    at_the_limit_an_ok_grants_it_once_more,
    steps_are_counted_over_three_pauses,
    at_the_limit_a_refusal_ends_the_task,
    words_handed_over_at_the_limit_do_not_hold_up_its_refusal,
    at_the_limit_silence_ends_the_task,
    without_a_plan_the_limit_is_the_end,
    a_model_that_only_talks_is_nudged_five_times,
    a_batch_does_not_run_on_past_the_time,
}

const STEPS: &str = "AGENT__MAX_ITERATIONS";
const READ: &[(&str, &[&str])] = &[("读取笔记", &["read_file"])];

fn reading() -> Vec<Value> {
    vec![
        planned("读", READ),
        clarified(),
        reads(),
        say("只完成了一部分。"),
        reads(),
        finished(),
        say("好了"),
    ]
}

/// A world that is at its limit of three steps: plan, clarify, read; the last call said what is done.
async fn at_the_limit(on: On, frozen: bool) -> (World, countersign_playground::Posted) {
    let settings = [(STEPS, "3")];
    let world = if frozen {
        World::frozen_on(on, &settings, in_order(reading())).await
    } else {
        World::start_on(on, &settings, in_order(reading())).await
    };
    let (c, u) = (on.chat("c1"), on.user("u1"));
    world.say(u, c, "读", GROUP).await;
    let plan = world.plan_card(c).await;
    world.tap(u, c, &plan, "approve", None).await;
    let card = world.card_titled(c, "还要继续吗？").await;
    assert!(
        card.words().contains("只完成了一部分") && card.words().contains("读取笔记"),
        "{}",
        card.words()
    );
    let turn = world.api.turn_in(c, "paused").await;
    assert_eq!(
        (&turn["steps_used"], &turn["steps_limit"], &turn["gate"]["kind"]),
        (&json!(4), &json!(3), &json!("budget"))
    );
    (world, card)
}

/// B17, F-H21, S4-9: the limit counts over all pauses; an OK grants it once more and the task is finished.
async fn at_the_limit_an_ok_grants_it_once_more(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let (world, card) = at_the_limit(on, false).await;
    world.say(u, c, "OK", reply(&card.id)).await;
    world.hears(c, "好了").await;
    let turn = world.api.turn_in(c, "completed").await;
    assert_eq!(
        (&turn["reason"], &turn["budget"]["steps"]["limit"], &turn["pauses"]),
        (&json!("final_answer"), &json!(7), &json!(2))
    );
    let offered: Vec<usize> = world
        .model
        .seen_of("读")
        .iter()
        .map(|request| request["tools"].as_array().map_or(0, Vec::len))
        .collect();
    assert_eq!(
        offered.iter().filter(|tools| **tools == 0).count(),
        1,
        "one last call without tools: {offered:?}"
    );
    world.end().await;
}

/// B17, F-H21: what was used before a pause stays used: a plan, a question and a call that asked have their steps counted together.
async fn steps_are_counted_over_three_pauses(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let asks = call([("request_user", json!({ "message": "哪一份？" }))]);
    let script = vec![planned("读", READ), asks, clarified(), writes(&["a.md"]), finished(), say("好了")];
    let world = World::start_on(on, &[(STEPS, "5")], in_order(script)).await;
    let used = async |at: u64, kind: &str| {
        let turn = world.api.turn_in(c, "paused").await;
        assert_eq!((&turn["steps_used"], &turn["gate"]["kind"]), (&json!(at), &json!(kind)));
    };
    world.say(u, c, "读", GROUP).await;
    let plan = world.plan_card(c).await;
    used(1, "plan_review").await;
    world.tap(u, c, &plan, "approve", None).await;
    let question = world.card_titled(c, "需要你的回答").await;
    used(2, "question").await;
    world.say(u, c, "第一份", reply(&question.id)).await;
    let approval = world.card_titled(c, "操作确认").await;
    used(4, "tool_approval").await;
    world.tap(u, c, &approval, "approve", None).await;
    world.hears(c, "只完成了一部分").await;
    let turn = world.api.turn_in(c, "completed").await;
    assert_eq!((&turn["reason"], &turn["pauses"]), (&json!("budget_exhausted"), &json!(3)));
    assert_eq!(world.model.seen_of("读").len(), 6, "five steps and the last call");
    world.end().await;
}

/// S4-10: a refusal ends the task as failed, with what was done; other words ask again.
async fn at_the_limit_a_refusal_ends_the_task(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let (world, card) = at_the_limit(on, false).await;
    world.say(u, c, "再想想", reply(&card.id)).await;
    world
        .seen("asked again", |seen| {
            (seen.in_chat(c).filter(|m| m.title() == Some("还要继续吗？")).count() == 2).then_some(())
        })
        .await;
    assert_eq!(world.api.turn_in(c, "paused").await["gate"]["kind"], "budget");
    world.tap(u, c, &card, "approve", None).await.told("最新的卡片").await;
    let again = world.card_titled(c, "还要继续吗？").await;
    world.tap(u, c, &again, "cancel", None).await.done("已取消");
    let turn = world.api.turn_in(c, "failed").await;
    assert_eq!(
        (&turn["reason"], &turn["answer"]),
        (&json!("budget_exhausted"), &json!("只完成了一部分。"))
    );
    let answer = |seen: &Snapshot| {
        let mut posts = seen.in_chat(c);
        posts
            .find(|post| post.title().is_none() && post.words().contains("只完成了一部分"))
            .cloned()
    };
    let last = world.seen("the last word", answer).await;
    assert!(
        last.words().contains("只完成了一部分") && last.words().contains("读取笔记"),
        "{}",
        last.words()
    );
    world.end().await;
}

/// S4-10: words that were handed over before the card came do not keep the refusal from ending the task.
async fn words_handed_over_at_the_limit_do_not_hold_up_its_refusal(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[(STEPS, "3"), ("AGENT__QUEUE_MODE", "steer")], |_| say("?")).await;
    let gate = Gate::new();
    let last = Step::Gated(gate.clone(), Box::new(Step::Message(say("只完成了一部分。"), None)));
    let script = Script::new().message(planned("读", READ)).message(clarified()).message(reads());
    world.model.script("读", script.then(last));
    world.say(u, c, "读", GROUP).await;
    let plan = world.plan_card(c).await;
    world.tap(u, c, &plan, "approve", None).await;
    gate.reached().await;
    world.chat.hold("reply");
    gate.open();
    assert_eq!(world.api.turn_in(c, "paused").await["gate"]["kind"], "budget");
    world.say(u, c, "快一点", GROUP).await;
    world.caught_up().await;
    world.chat.release("reply");
    world.hears(c, "已转给").await;
    let card = world.card_titled(c, "还要继续吗？").await;
    world.tap(u, c, &card, "cancel", None).await;
    assert_eq!(world.api.turn_in(c, "failed").await["reason"], "budget_exhausted");
    world.end().await;
}

/// design: a limit that nobody answers ends the task as failed too.
async fn at_the_limit_silence_ends_the_task(on: On) {
    let c = on.chat("c1");
    let (world, card) = at_the_limit(on, true).await;
    world.clock.advance(Duration::from_secs(61 * 60));
    assert_eq!(world.api.turn_in(c, "failed").await["reason"], "budget_exhausted");
    world.repainted(&card, "已过期").await;
    world.end().await;
}

/// design: without a plan the limit is the end: what is done is said, and nobody is asked.
async fn without_a_plan_the_limit_is_the_end(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[(STEPS, "2")], in_order(vec![reads()])).await;
    world.say(u, c, "读", GROUP).await;
    world.hears(c, "只完成了一部分").await;
    assert_eq!(world.api.turn_in(c, "completed").await["reason"], "budget_exhausted");
    assert_eq!(world.titled(c, "还要继续吗？"), 0);
    world.end().await;
}

/// S0-8, S0-C3, F-H23: a model that only talks under an approved plan is nudged five times; then its words are the answer, and the steps
/// that are open are named.
async fn a_model_that_only_talks_is_nudged_five_times(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], in_order(vec![planned("读", READ), say("我在想。")])).await;
    world.say(u, c, "读", GROUP).await;
    let card = world.plan_card(c).await;
    world.caught_up().await;
    assert_eq!(
        (world.model.seen_of("读").len(), &world.review_of(&card).await["status"]),
        (1, &json!("pending")),
        "waiting is no nudge"
    );
    world.tap(u, c, &card, "approve", None).await;
    let last = world.hears(c, "没有完成的步骤").await;
    assert!(last.words().contains("读取笔记"), "{}", last.words());
    let turn = world.api.turn_in(c, "completed").await;
    assert_eq!(
        (&turn["reason"], &turn["budget"]["nudges"]["used"]),
        (&json!("final_answer"), &json!(5))
    );
    assert_eq!(world.model.seen_of("读").len(), 7);
    world.end().await;
}

/// S4-10, S4-14: of two approved calls the first takes all the time that the task has: the second is not begun, and the model is told.
async fn a_batch_does_not_run_on_past_the_time(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let command = |text: &str| ("run_bash", json!({ "command": text }));
    let batch = call([command("touch first; sleep 3"), command("touch second")]);
    let settings = [("TOOLS__RUN_BASH", "true"), ("AGENT__TURN_TIMEOUT_SECONDS", "2")];
    let world = World::start_on(on, &settings, in_order(vec![batch])).await;
    world.say(u, c, "跑", GROUP).await;
    let card = world.card_titled(c, "操作确认").await;
    world.say(u, c, "OK", reply(&card.id)).await;
    world.hears(c, "只完成了一部分").await;
    let turn = world.api.turn_in(c, "completed").await;
    assert_eq!(turn["reason"], "budget_exhausted");
    let messages = world.api.messages(&turn).await;
    let told: Vec<&str> = messages.iter().filter_map(|message| message["content"].as_str()).collect();
    let not_run = |text: &&&str| text.starts_with("[tool_result:run_bash] error: budget_exhausted: not run");
    assert_eq!(told.iter().filter(not_run).count(), 1, "{told:?}");
    assert!(world.file("first").is_some() && world.file("second").is_none());
    world.end().await;
}
