//! Limits: the budget, its card and what grants it again; a model that only talks.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::fake_model::{Gate, Script, Step, call, say};
use crate::support::people::reply;
use crate::support::scripts::{clarified, finished, in_order, planned, reads, writes};
use crate::support::world::{GROUP, World};

const C: &str = "oc_c1";
const U: &str = "ou_u1";
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
async fn at_the_limit(frozen: bool) -> (World, countersign::cli::demo::Posted) {
    let settings = [(STEPS, "3")];
    let world = if frozen {
        World::frozen(&settings, in_order(reading())).await
    } else {
        World::start(&settings, in_order(reading())).await
    };
    world.say(U, C, "读", GROUP).await;
    let plan = world.plan_card(C).await;
    world.tap(U, C, &plan, "approve", None).await;
    let card = world.card_titled(C, "还要继续吗？").await;
    assert!(
        card.words().contains("只完成了一部分") && card.words().contains("读取笔记"),
        "{}",
        card.words()
    );
    let turn = world.api.turn_in(C, "paused").await;
    assert_eq!(
        (&turn["steps_used"], &turn["steps_limit"], &turn["gate"]["kind"]),
        (&json!(4), &json!(3), &json!("budget"))
    );
    (world, card)
}

/// B17, H21, S4-9: the limit counts over all pauses; an OK grants it once more and the task is finished.
#[tokio::test]
async fn at_the_limit_an_ok_grants_it_once_more() {
    let (world, card) = at_the_limit(false).await;
    world.say(U, C, "OK", reply(&card.id)).await;
    world.hears(C, "好了").await;
    let turn = world.api.turn_in(C, "completed").await;
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

/// B17, H21: what was used before a pause stays used: a plan, a question and a call that asked have their steps counted together.
#[tokio::test]
async fn steps_are_counted_over_three_pauses() {
    let asks = call([("request_user", json!({ "message": "哪一份？" }))]);
    let script = vec![planned("读", READ), asks, clarified(), writes(&["a.md"]), finished(), say("好了")];
    let world = World::start(&[(STEPS, "5")], in_order(script)).await;
    let used = async |at: u64, kind: &str| {
        let turn = world.api.turn_in(C, "paused").await;
        assert_eq!((&turn["steps_used"], &turn["gate"]["kind"]), (&json!(at), &json!(kind)));
    };
    world.say(U, C, "读", GROUP).await;
    let plan = world.plan_card(C).await;
    used(1, "plan_review").await;
    world.tap(U, C, &plan, "approve", None).await;
    let question = world.card_titled(C, "需要你的回答").await;
    used(2, "question").await;
    world.say(U, C, "第一份", reply(&question.id)).await;
    let approval = world.card_titled(C, "操作确认").await;
    used(4, "tool_approval").await;
    world.tap(U, C, &approval, "approve", None).await;
    world.hears(C, "只完成了一部分").await;
    let turn = world.api.turn_in(C, "completed").await;
    assert_eq!((&turn["reason"], &turn["pauses"]), (&json!("budget_exhausted"), &json!(3)));
    assert_eq!(world.model.seen_of("读").len(), 6, "five steps and the last call");
    world.end().await;
}

/// S4-10: a refusal ends the task as failed, with what was done; other words ask again.
#[tokio::test]
async fn at_the_limit_a_refusal_ends_the_task() {
    let (world, card) = at_the_limit(false).await;
    world.say(U, C, "再想想", reply(&card.id)).await;
    world
        .seen("asked again", |lark| {
            (lark.in_chat(C).filter(|m| m.title() == Some("还要继续吗？")).count() == 2).then_some(())
        })
        .await;
    assert_eq!(world.api.turn_in(C, "paused").await["gate"]["kind"], "budget");
    let toast = world.tap(U, C, &card, "approve", None).await;
    assert!(toast.contains("最新的卡片"), "{toast}");
    let again = world.card_titled(C, "还要继续吗？").await;
    let toast = world.tap(U, C, &again, "cancel", None).await;
    assert!(toast.contains("已取消"), "{toast}");
    let turn = world.api.turn_in(C, "failed").await;
    assert_eq!(
        (&turn["reason"], &turn["answer"]),
        (&json!("budget_exhausted"), &json!("只完成了一部分。"))
    );
    let last = world.hears(C, "用量上限").await;
    assert!(
        last.words().contains("只完成了一部分") && last.words().contains("读取笔记"),
        "{}",
        last.words()
    );
    world.end().await;
}

/// S4-10: words that were handed over before the card came do not keep the refusal from ending the task.
#[tokio::test]
async fn words_handed_over_at_the_limit_do_not_hold_up_its_refusal() {
    let world = World::start(&[(STEPS, "3"), ("AGENT__QUEUE_MODE", "steer")], |_| say("?")).await;
    let gate = Gate::new();
    let last = Step::Gated(gate.clone(), Box::new(Step::Message(say("只完成了一部分。"), None)));
    let script = Script::new().message(planned("读", READ)).message(clarified()).message(reads());
    world.model.script("读", script.then(last));
    world.say(U, C, "读", GROUP).await;
    let plan = world.plan_card(C).await;
    world.tap(U, C, &plan, "approve", None).await;
    gate.reached().await;
    world.lark.hold("reply");
    gate.open();
    assert_eq!(world.api.turn_in(C, "paused").await["gate"]["kind"], "budget");
    world.say(U, C, "快一点", GROUP).await;
    world.quiet().await;
    world.lark.release("reply");
    world.hears(C, "已转给").await;
    let card = world.card_titled(C, "还要继续吗？").await;
    world.tap(U, C, &card, "cancel", None).await;
    assert_eq!(world.api.turn_in(C, "failed").await["reason"], "budget_exhausted");
    world.end().await;
}

/// design: a limit that nobody answers ends the task as failed too.
#[tokio::test]
async fn at_the_limit_silence_ends_the_task() {
    let (world, card) = at_the_limit(true).await;
    world.clock.advance(Duration::from_secs(61 * 60));
    assert_eq!(world.api.turn_in(C, "failed").await["reason"], "budget_exhausted");
    world.repainted(&card, "已过期").await;
    world.end().await;
}

/// design: without a plan the limit is the end: what is done is said, and nobody is asked.
#[tokio::test]
async fn without_a_plan_the_limit_is_the_end() {
    let world = World::start(&[(STEPS, "2")], in_order(vec![reads()])).await;
    world.say(U, C, "读", GROUP).await;
    world.hears(C, "只完成了一部分").await;
    assert_eq!(world.api.turn_in(C, "completed").await["reason"], "budget_exhausted");
    assert_eq!(world.titled(C, "还要继续吗？"), 0);
    world.end().await;
}

/// S0-8, H23: a model that only talks under an approved plan is nudged five times; then its words are the answer, and the steps
/// that are open are named.
#[tokio::test]
async fn a_model_that_only_talks_is_nudged_five_times() {
    let world = World::start(&[], in_order(vec![planned("读", READ), say("我在想。")])).await;
    world.say(U, C, "读", GROUP).await;
    let card = world.plan_card(C).await;
    world.quiet().await;
    assert_eq!(
        (world.model.seen_of("读").len(), &world.review_of(&card).await["status"]),
        (1, &json!("pending")),
        "waiting is no nudge"
    );
    world.tap(U, C, &card, "approve", None).await;
    let last = world.hears(C, "没有完成的步骤").await;
    assert!(last.words().contains("读取笔记"), "{}", last.words());
    let turn = world.api.turn_in(C, "completed").await;
    assert_eq!(
        (&turn["reason"], &turn["budget"]["nudges"]["used"]),
        (&json!("final_answer"), &json!(5))
    );
    assert_eq!(world.model.seen_of("读").len(), 7);
    world.end().await;
}
