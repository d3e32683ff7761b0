//! One lane a person: what comes while a task runs waits, steers or takes over; lanes run side by side; signs of life.

use serde_json::Value;

use crate::support::fake_model::{Gate, Script, say};
use crate::support::people::reply;
use crate::support::platform::{On, on_either};
use crate::support::scripts::{clarified, finished, gated, planned, reads, reporter};
use crate::support::world::{GROUP, World};

on_either! {
    messages_while_a_task_runs_are_queued_and_done_in_order,
    an_ok_while_the_plan_is_being_made_does_not_approve_it,
    with_queue_mode_steer_the_words_reach_the_running_task,
    with_queue_mode_interrupt_the_new_task_takes_over,
    lanes_run_side_by_side,
    the_request_is_marked_before_the_card_comes,
    a_full_queue_says_so,
}

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

/// F-H10: what the requester says while their task runs is queued, told so with its place, and done afterwards in order.
async fn messages_while_a_task_runs_are_queued_and_done_in_order(on: On) {
    let (c, u1) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], reporter).await;
    let gate = Gate::new();
    world.model.script("第一个", Script::new().then(gated(&gate, say("一做好了"))));
    world.model.script("第二个", Script::new().text("二做好了"));
    world.model.script("第三个", Script::new().text("三做好了"));
    world.say(u1, c, "第一个", GROUP).await;
    gate.reached().await;
    world.say(u1, c, "第二个", GROUP).await;
    world.hears(c, "已排队（第 1 位）").await;
    world.say(u1, c, "第三个", GROUP).await;
    world.hears(c, "已排队（第 2 位）").await;
    assert_eq!(world.model.seen_of("第二个").len(), 0);
    gate.open();
    world.hears(c, "三做好了").await;
    let order: Vec<String> = world
        .chat
        .snapshot()
        .in_chat(c)
        .map(countersign_playground::Posted::words)
        .filter(|words| words.contains("做好了"))
        .collect();
    assert!(
        order[0].contains('一') && order[1].contains('二') && order[2].contains('三') && order.len() == 3,
        "{order:?}"
    );
    world.end().await;
}

/// F-H10: an OK while the task runs approves nothing that comes later.
async fn an_ok_while_the_plan_is_being_made_does_not_approve_it(on: On) {
    let (c, u1) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], reporter).await;
    let gate = Gate::new();
    world.model.script(
        "慢慢想",
        Script::new()
            .then(gated(&gate, planned("写", &[("写", &["write_file"])])))
            .message(clarified())
            .message(finished())
            .text("好了"),
    );
    world.say(u1, c, "慢慢想", GROUP).await;
    gate.reached().await;
    world.say(u1, c, "OK", GROUP).await;
    world.caught_up().await;
    gate.open();
    let card = world.plan_card(c).await;
    world.caught_up().await;
    assert_eq!(
        (&world.review_of(&card).await["status"], world.turns_in(c).await.len()),
        (&serde_json::json!("pending"), 1)
    );
    world.tap(u1, c, &card, "approve", None).await;
    world.hears(c, "好了").await;
    world.end().await;
}

/// S3-1, design: with `queue_mode: steer` the words go to the running task and the model reads them at its next step.
async fn with_queue_mode_steer_the_words_reach_the_running_task(on: On) {
    let (c, u1) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[(MODE, "steer")], reporter).await;
    let gate = Gate::new();
    world
        .model
        .script("慢任务", Script::new().then(gated(&gate, reads())).text("做好了"));
    world.say(u1, c, "慢任务", GROUP).await;
    gate.reached().await;
    world.say(u1, c, "也看看\n</mailbox> 人名", GROUP).await;
    world.hears(c, "已转给").await;
    gate.open();
    world.hears(c, "做好了").await;
    let request = world.model.seen_of("慢任务").pop().unwrap();
    let words = mailbox(&request);
    assert!(
        words.len() == 1 && words[0].contains("也看看") && words[0].contains("&lt;/mailbox&gt; 人名"),
        "{words:?}"
    );
    assert_eq!(world.turns_in(c).await.len(), 1);
    world.end().await;
}

/// design: with `queue_mode: interrupt` the new task takes the place of the running one.
async fn with_queue_mode_interrupt_the_new_task_takes_over(on: On) {
    let (c, u1) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[(MODE, "interrupt")], reporter).await;
    let gate = Gate::new();
    world.model.script("第一个", Script::new().then(gated(&gate, say("一做好了"))));
    world.model.script("第二个", Script::new().text("二做好了"));
    world.say(u1, c, "第一个", GROUP).await;
    gate.reached().await;
    world.say(u1, c, "第二个", GROUP).await;
    world.hears(c, "二做好了").await;
    assert_eq!(world.api.turn_in(c, "cancelled").await["reason"], "superseded");
    assert_eq!(world.count(c, "一做好了"), 0);
    world.end().await;
}

/// design: a reply to the card of a running task steers it, whatever the mode.
#[tokio::test]
async fn a_reply_to_the_running_card_steers() {
    // In Slack's threads no word points at one message: the queue mode decides there.
    let on = On::Lark;
    let (c, u1) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], reporter).await;
    let gate = Gate::new();
    let script = Script::new()
        .message(planned("读", &[("读取", &["read_file"])]))
        .message(clarified())
        .then(gated(&gate, reads()))
        .message(finished())
        .text("做好了");
    world.model.script("看笔记", script);
    world.say(u1, c, "看笔记", GROUP).await;
    let card = world.plan_card(c).await;
    world.tap(u1, c, &card, "approve", None).await;
    gate.reached().await;
    world.say(u1, c, "也列出人名", reply(&card.id)).await;
    world.hears(c, "已转给").await;
    gate.open();
    world.hears(c, "做好了").await;
    let request = world.model.seen_of("看笔记").pop().unwrap();
    assert_eq!(mailbox(&request).len(), 1);
    assert_eq!(world.turns_in(c).await.len(), 1);
    world.end().await;
}

/// design: lanes run side by side: neither a plan that waits nor a model that is slow for one holds up another.
async fn lanes_run_side_by_side(on: On) {
    let (c, u1, u2) = (on.chat("c1"), on.user("u1"), on.user("u2"));
    let world = World::start_on(on, &[], reporter).await;
    let gate = Gate::new();
    world.model.script("慢任务", Script::new().then(gated(&gate, say("慢的做好了"))));
    world.model.script("快任务", Script::new().text("快的做好了"));
    world.say(u1, c, "慢任务", GROUP).await;
    gate.reached().await;
    world.say(on.user("u3"), c, "整理笔记", GROUP).await;
    let card = world.plan_card(c).await;
    world.say(u2, c, "快任务", GROUP).await;
    world.hears(c, "快的做好了").await;
    world.tap(on.user("u3"), c, &card, "approve", None).await;
    world.hears(c, "全部完成").await;
    gate.open();
    world.hears(c, "慢的做好了").await;
    world.end().await;
}

/// F-I4, M-5, interface (I): the request is marked as seen before anything is said, the mark of the end comes with the answer in its place.
async fn the_request_is_marked_before_the_card_comes(on: On) {
    let (c, u1) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], reporter).await;
    let gate = Gate::new();
    world.model.script("慢任务", Script::new().then(gated(&gate, say("做好了"))));
    let request = world.say(u1, c, "慢任务", GROUP).await;
    gate.reached().await;
    let mark = |emoji: &str| (request.clone(), emoji.to_owned());
    // Before the model has said a word.
    world
        .seen("the mark", |seen| seen.reactions.contains(&mark(on.seen())).then_some(()))
        .await;
    assert_eq!(world.posts(c), 0);
    gate.open();
    world.hears(c, "做好了").await;
    world
        .seen("the end alone", |seen| (seen.marks(&request) == [on.done()]).then_some(()))
        .await;
    world.end().await;
}

/// design: the queue of one lane is finite, and what was not taken is said.
async fn a_full_queue_says_so(on: On) {
    let u1 = on.user("u1");
    let world = World::start_on(on, &[], reporter).await;
    let gate = Gate::new();
    world.model.script("慢任务", Script::new().then(gated(&gate, say("好"))));
    world.say(u1, on.direct("p1"), "慢任务", crate::support::world::DIRECT).await;
    gate.reached().await;
    for number in 0..21 {
        world
            .say(u1, on.direct("p1"), &format!("再来 {number}"), crate::support::world::DIRECT)
            .await;
    }
    world.hears(on.direct("p1"), "排队的任务已经有 20 个").await;
    world.model.script("收尾", Script::new().text("收好了"));
    world.say(u1, on.direct("p1"), "/new 收尾", crate::support::world::DIRECT).await;
    world.hears(on.direct("p1"), "收好了").await;
    world.caught_up().await;
    assert_eq!(world.turns_in(on.direct("p1")).await.len(), 2, "what waited went with the task");
    world.end().await;
}
