//! A model that cannot be reached, refuses or talks nonsense, and a ledger that cannot be written.

use std::time::Duration;

use crate::support::deliveries::Delivery;
use crate::support::fake_model::{Gate, Script, Step, say};
use crate::support::platform::{On, on_either};
use crate::support::quiet::hold;
use crate::support::scripts::{clarified, finished, gated, planned};
use crate::support::world::{DIRECT, GROUP, World};

on_either! {
    a_plan_that_cannot_be_stored_waits_for_the_store,
}

const C: &str = "oc_c1";
const U: &str = "ou_u1";
const READ: &[(&str, &[&str])] = &[("读取笔记", &["read_file"])];

/// F-L5, F-I5: a model that fails for good: one clear message, with a number that the log has too. (One that is away: `outage.rs`.)
#[tokio::test]
async fn a_failed_model_is_told_once_with_a_number_that_the_log_has() {
    let mut world = World::process(&[], None, |_| say("?")).await;
    world.model.script("在吗", Script::new().status(403, &[]));
    world.say(U, "oc_p1", "在吗", DIRECT).await;
    let told = world.hears("oc_p1", "拒绝了请求").await;
    assert_eq!(world.posts("oc_p1"), 1);
    let words = told.words();
    let (_, number) = words.split_once("问题编号：").unwrap();
    let number: String = number.chars().take_while(char::is_ascii_alphanumeric).collect();
    assert!(number.len() >= 6, "{words}");
    assert!(!words.contains("127.0.0.1") && !words.contains("error"), "no internals: {words}");
    assert_eq!(world.api.turn_in("oc_p1", "failed").await["reason"], "model_error");
    assert!(world.child().log().contains(&number), "{}", world.child().log());
}

/// F-L4, F-L5, F-I5: a key that is refused and an answer that is none end in one message each, without the server's words.
#[tokio::test]
async fn a_refusing_or_senseless_model_is_told_once() {
    let world = World::start(&[], |_| say("?")).await;
    let html = || Step::Verbatim("text/html", b"<html>canary</html>".to_vec());
    let cases = [
        ("钥匙", Script::new().status(401, &[]), "拒绝了请求"),
        ("没有权限", Script::new().status(403, &[]), "拒绝了请求"),
        ("胡话", Script::new().then(html()).then(html()).then(html()), "无法理解"),
    ];
    for (at, (word, script, told)) in cases.into_iter().enumerate() {
        let chat = format!("oc_p{at}");
        world.model.script(word, script);
        world.say(U, &chat, word, DIRECT).await;
        let message = world.hears(&chat, told).await;
        assert!(
            message.words().contains("问题编号") && !message.words().contains("canary"),
            "{}",
            message.words()
        );
        assert_eq!(world.api.turn_in(&chat, "failed").await["reason"], "model_error");
        assert_eq!(world.posts(&chat), 1);
    }
    // The next task is served as if nothing had been.
    world.model.script("再来", Script::new().text("好了"));
    world.say(U, "oc_p0", "再来", DIRECT).await;
    world.hears("oc_p0", "好了").await;
    world.end().await;
}

/// F-L2: two passing failures are tried again and nobody notices.
#[tokio::test]
async fn passing_failures_of_the_model_are_tried_again() {
    let world = World::start(&[], |_| say("?")).await;
    world.model.script(
        "试试",
        Script::new()
            .status(429, &[("retry-after", "0")])
            .status(503, &[("retry-after", "0")])
            .text("好了"),
    );
    world.say(U, C, "试试", GROUP).await;
    world.hears(C, "好了").await;
    assert_eq!(world.posts(C), 1);
    world.end().await;
}

/// B11, F-Q2: while the ledger cannot be written a plan that is ready goes nowhere and events are refused, so that they come
/// again; afterwards there is one card, and its OK runs once.
async fn a_plan_that_cannot_be_stored_waits_for_the_store(on: On) {
    if !Delivery::Webhook.runs() {
        return;
    }
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::frozen_on(on, &[], |_| say("?")).await;
    let gate = Gate::new();
    let plan = || planned("读", READ);
    // Asked again when the first answer could not be written down.
    let script = Script::new()
        .then(gated(&gate, plan()))
        .message(plan())
        .message(clarified())
        .message(finished())
        .text("好了");
    world.model.script("慢慢想", script);
    world.say(u, c, "慢慢想", GROUP).await;
    gate.reached().await;
    let held = hold(&world).await;
    gate.open();
    let mut refused = 0;
    while refused < 6 {
        let (_, status) = world.try_say(on.user("u2"), on.direct("p2"), "/status", DIRECT).await;
        assert_eq!(status, Some(503));
        refused += 1;
    }
    assert_eq!((world.posts(c), world.continuations()), (0, 0));
    held.release().await;
    // Whoever held the lane gave up on it; its lease runs out.
    world.clock.advance(Duration::from_secs(31));
    let card = world.plan_card(c).await;
    world.clock.advance(Duration::from_secs(1));
    world.tap(u, c, &card, "approve", None).await;
    world.hears(c, "好了").await;
    assert_eq!(
        (world.titled(c, "计划确认"), world.turns_in(c).await.len(), world.continuations()),
        (1, 1, 1)
    );
    world.end().await;
}
