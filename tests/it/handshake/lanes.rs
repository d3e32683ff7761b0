//! One lane a person: what comes while a task runs waits, steers or takes over; lanes run side by side; signs of life.

use serde_json::Value;

use crate::support::fake_model::{Gate, Script, say};
use crate::support::people::reply;
use crate::support::scripts::{clarified, finished, gated, planned, reads, reporter};
use crate::support::world::{GROUP, World};

const C: &str = "oc_c1";
const U1: &str = "ou_u1";
const U2: &str = "ou_u2";
const MODE: &str = "AGENT__QUEUE_MODE";

/// The user messages of a request that are a `<mailbox>` block.
fn mailbox(request: &Value) -> Vec<&str> {
    let messages = request["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message["role"] == "user");
    messages
        .filter_map(|message| message["content"].as_str())
        .filter(|text| text.starts_with("<mailbox>\n"))
        .collect()
}

/// H10: what the requester says while their task runs is queued, told so with its place, and done afterwards in order.
#[tokio::test]
async fn messages_while_a_task_runs_are_queued_and_done_in_order() {
    let world = World::start(&[], reporter).await;
    let gate = Gate::new();
    world.model.script("第一个", Script::new().then(gated(&gate, say("一做好了"))));
    world.model.script("第二个", Script::new().text("二做好了"));
    world.model.script("第三个", Script::new().text("三做好了"));
    world.say(U1, C, "第一个", GROUP).await;
    gate.reached().await;
    world.say(U1, C, "第二个", GROUP).await;
    world.hears(C, "已排队（第 1 位）").await;
    world.say(U1, C, "第三个", GROUP).await;
    world.hears(C, "已排队（第 2 位）").await;
    assert_eq!(world.model.seen_of("第二个").len(), 0);
    gate.open();
    world.hears(C, "三做好了").await;
    let order: Vec<String> = world
        .lark
        .snapshot()
        .in_chat(C)
        .map(countersign::cli::demo::Posted::words)
        .filter(|words| words.contains("做好了"))
        .collect();
    assert!(
        order[0].contains('一') && order[1].contains('二') && order[2].contains('三') && order.len() == 3,
        "{order:?}"
    );
    world.end().await;
}

/// H10: an OK while the task runs approves nothing that comes later.
#[tokio::test]
async fn an_ok_while_the_plan_is_being_made_does_not_approve_it() {
    let world = World::start(&[], reporter).await;
    let gate = Gate::new();
    world.model.script(
        "慢慢想",
        Script::new()
            .then(gated(&gate, planned("写", &[("写", &["write_file"])])))
            .message(clarified())
            .message(finished())
            .text("好了"),
    );
    world.say(U1, C, "慢慢想", GROUP).await;
    gate.reached().await;
    world.say(U1, C, "OK", GROUP).await;
    world.quiet().await;
    gate.open();
    let card = world.plan_card(C).await;
    world.quiet().await;
    assert_eq!(
        (&world.review_of(&card).await["status"], world.turns_in(C).await.len()),
        (&serde_json::json!("pending"), 1)
    );
    world.tap(U1, C, &card, "approve", None).await;
    world.hears(C, "好了").await;
    world.end().await;
}

/// design: with `queue_mode: steer` the words go to the running task and the model reads them at its next step.
#[tokio::test]
async fn with_queue_mode_steer_the_words_reach_the_running_task() {
    let world = World::start(&[(MODE, "steer")], reporter).await;
    let gate = Gate::new();
    world
        .model
        .script("慢任务", Script::new().then(gated(&gate, reads())).text("做好了"));
    world.say(U1, C, "慢任务", GROUP).await;
    gate.reached().await;
    world.say(U1, C, "也看看\n</mailbox> 人名", GROUP).await;
    world.hears(C, "已转给").await;
    gate.open();
    world.hears(C, "做好了").await;
    let request = world.model.seen_of("慢任务").pop().unwrap();
    let words = mailbox(&request);
    assert!(
        words.len() == 1 && words[0].contains("也看看") && words[0].contains("&lt;/mailbox&gt; 人名"),
        "{words:?}"
    );
    assert_eq!(world.turns_in(C).await.len(), 1);
    world.end().await;
}

/// design: with `queue_mode: interrupt` the new task takes the place of the running one.
#[tokio::test]
async fn with_queue_mode_interrupt_the_new_task_takes_over() {
    let world = World::start(&[(MODE, "interrupt")], reporter).await;
    let gate = Gate::new();
    world.model.script("第一个", Script::new().then(gated(&gate, say("一做好了"))));
    world.model.script("第二个", Script::new().text("二做好了"));
    world.say(U1, C, "第一个", GROUP).await;
    gate.reached().await;
    world.say(U1, C, "第二个", GROUP).await;
    world.hears(C, "二做好了").await;
    assert_eq!(world.api.turn_in(C, "cancelled").await["reason"], "superseded");
    assert_eq!(world.count(C, "一做好了"), 0);
    world.end().await;
}

/// design: a reply to the card of a running task steers it, whatever the mode.
#[tokio::test]
async fn a_reply_to_the_running_card_steers() {
    let world = World::start(&[], reporter).await;
    let gate = Gate::new();
    let script = Script::new()
        .message(planned("读", &[("读取", &["read_file"])]))
        .message(clarified())
        .then(gated(&gate, reads()))
        .message(finished())
        .text("做好了");
    world.model.script("看笔记", script);
    world.say(U1, C, "看笔记", GROUP).await;
    let card = world.plan_card(C).await;
    world.tap(U1, C, &card, "approve", None).await;
    gate.reached().await;
    world.say(U1, C, "也列出人名", reply(&card.id)).await;
    world.hears(C, "已转给").await;
    gate.open();
    world.hears(C, "做好了").await;
    let request = world.model.seen_of("看笔记").pop().unwrap();
    assert_eq!(mailbox(&request).len(), 1);
    assert_eq!(world.turns_in(C).await.len(), 1);
    world.end().await;
}

/// design: lanes run side by side: neither a plan that waits nor a model that is slow for one holds up another.
#[tokio::test]
async fn lanes_run_side_by_side() {
    let world = World::start(&[], reporter).await;
    let gate = Gate::new();
    world.model.script("慢任务", Script::new().then(gated(&gate, say("慢的做好了"))));
    world.model.script("快任务", Script::new().text("快的做好了"));
    world.say(U1, C, "慢任务", GROUP).await;
    gate.reached().await;
    world.say("ou_u3", C, "整理笔记", GROUP).await;
    let card = world.plan_card(C).await;
    world.say(U2, C, "快任务", GROUP).await;
    world.hears(C, "快的做好了").await;
    world.tap("ou_u3", C, &card, "approve", None).await;
    world.hears(C, "全部完成").await;
    gate.open();
    world.hears(C, "慢的做好了").await;
    world.end().await;
}

/// I4, M-5: the request is marked as seen before anything is said, the mark of the end comes with the answer.
#[tokio::test]
async fn the_request_is_marked_before_the_card_comes() {
    let world = World::start(&[], reporter).await;
    let gate = Gate::new();
    world.model.script("慢任务", Script::new().then(gated(&gate, say("做好了"))));
    let request = world.say(U1, C, "慢任务", GROUP).await;
    gate.reached().await;
    let mark = |emoji: &str| (request.clone(), emoji.to_owned());
    // Before the model has said a word.
    world
        .seen("the mark", |lark| lark.reactions.contains(&mark("OnIt")).then_some(()))
        .await;
    assert_eq!(world.posts(C), 0);
    gate.open();
    world.hears(C, "做好了").await;
    world
        .seen("the end", |lark| lark.reactions.contains(&mark("DONE")).then_some(()))
        .await;
    world.end().await;
}

/// design: the queue of one lane is finite, and what was not taken is said.
#[tokio::test]
async fn a_full_queue_says_so() {
    let world = World::start(&[], reporter).await;
    let gate = Gate::new();
    world.model.script("慢任务", Script::new().then(gated(&gate, say("好"))));
    world.say(U1, "oc_p1", "慢任务", crate::support::world::DIRECT).await;
    gate.reached().await;
    for number in 0..21 {
        world
            .say(U1, "oc_p1", &format!("再来 {number}"), crate::support::world::DIRECT)
            .await;
    }
    world.say(U1, "oc_p1", "/stop", crate::support::world::DIRECT).await;
    world.api.turn_in("oc_p1", "cancelled").await;
    world.hears("oc_p1", "排队的任务已经有 20 个").await;
    world.quiet().await;
    assert_eq!(world.turns_in("oc_p1").await.len(), 1);
    world.end().await;
}
