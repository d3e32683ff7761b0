//! `/stop`, `/new`, `/status`, `/help`, and what is done to messages and chats: recalled, edited, left.

use serde_json::json;

use crate::support::api::eventually;
use crate::support::fake_model::{Gate, Script, call, say};
use crate::support::people::reply;
use crate::support::platform::{On, on_both, on_either};
use crate::support::scripts::{clarified, gated, in_order, planned, reporter, writes};
use crate::support::world::{GROUP, World};

on_both! {
    stop_as_a_reply_ends_that_task,
}

on_either! {
    stop_ends_a_turn_in_the_middle_of_a_model_call,
    stop_with_nothing_to_stop_says_so,
    an_ok_and_at_once_a_stop_runs_nothing,
    a_stop_between_two_calls_lists_what_ran,
    stop_ends_the_running_task_and_leaves_the_queue,
    new_takes_the_place_of_the_plan_that_waits,
    status_tells_where_the_task_stands,
}

const WRITE: &[(&str, &[&str])] = &[("写报告", &["write_file"])];

/// design: `/stop` ends a turn in the middle of a model call that never answers.
async fn stop_ends_a_turn_in_the_middle_of_a_model_call(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], reporter).await;
    let gate = Gate::new();
    world.model.script("慢任务", Script::new().then(gated(&gate, say("晚了"))));
    world.say(u, c, "慢任务", GROUP).await;
    gate.reached().await;
    world.say(u, c, "/stop", GROUP).await;
    let turn = world.api.turn_in(c, "cancelled").await;
    assert_eq!(turn["reason"], "cancelled");
    world.hears(c, "没有做任何改动").await;
    // The lane is free although the model never answered.
    world.model.script("下一个", Script::new().text("做好了"));
    world.say(u, c, "下一个", GROUP).await;
    world.hears(c, "做好了").await;
    gate.open();
    world.caught_up().await;
    assert_eq!(world.count(c, "晚了"), 0);
    world.end().await;
}

/// design: `/stop` with nothing to stop says so.
async fn stop_with_nothing_to_stop_says_so(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], reporter).await;
    world.say(u, c, "/stop", GROUP).await;
    world.hears(c, "现在没有正在进行的任务").await;
    world.end().await;
}

/// F-H18: OK and at once `/stop`: nothing runs, whichever was looked at first.
async fn an_ok_and_at_once_a_stop_runs_nothing(on: On) {
    let u = on.user("u1");
    let world = World::start_on(on, &[], reporter).await;
    for round in 0..5 {
        let chat = on.chat(&format!("round{round}"));
        world.say(u, chat, "整理笔记", GROUP).await;
        let card = world.plan_card(chat).await;
        world.tap(u, chat, &card, "approve", None).await;
        world.say(u, chat, "/stop", GROUP).await;
        world.api.turn_in(chat, "cancelled").await;
    }
    world.caught_up().await;
    assert_eq!(world.file("report.md"), None);
    world.end().await;
}

/// F-H18: a stop between two calls: the second is never made, and the last word lists what ran.
async fn a_stop_between_two_calls_lists_what_ran(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], reporter).await;
    let gate = Gate::new();
    let script = Script::new()
        .message(planned("写", WRITE))
        .message(clarified())
        .message(writes(&["a.md"]))
        .then(gated(&gate, writes(&["b.md"])));
    world.model.script("两次", script);
    world.say(u, c, "两次", GROUP).await;
    let card = world.plan_card(c).await;
    world.tap(u, c, &card, "approve", None).await;
    gate.reached().await;
    world.say(u, c, "/stop", GROUP).await;
    let last = world.hears(c, "停止前已经执行").await;
    assert!(last.words().contains("a.md"), "{}", last.words());
    world.api.turn_in(c, "cancelled").await;
    gate.open();
    world.caught_up().await;
    assert_eq!((world.file("a.md").is_some(), world.file("b.md")), (true, None));
    world.end().await;
}

/// design: `/stop` acts on turns that are older than itself; what is asked for afterwards runs.
async fn stop_ends_the_running_task_and_leaves_the_queue(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], reporter).await;
    let gate = Gate::new();
    world.model.script("第一个", Script::new().then(gated(&gate, say("一"))));
    world.model.script("第二个", Script::new().text("二做好了"));
    world.model.script("第三个", Script::new().text("三做好了"));
    world.say(u, c, "第一个", GROUP).await;
    gate.reached().await;
    world.say(u, c, "第二个", GROUP).await;
    world.hears(c, "已排队").await;
    world.say(u, c, "/stop", GROUP).await;
    let told = world.hears(c, "已停止：第一个").await.words();
    assert!(told.contains("没有做任何改动") && told.contains("接下来处理：第二个"), "{told}");
    world.say(u, c, "第三个", GROUP).await;
    world.hears(c, "三做好了").await;
    let turns = world.turns_in(c).await;
    let told: Vec<(&str, &str)> = turns
        .iter()
        .map(|turn| (turn["text"].as_str().unwrap(), turn["status"].as_str().unwrap()))
        .collect();
    assert_eq!(told, [("第一个", "cancelled"), ("第二个", "completed"), ("第三个", "completed")]);
    world.end().await;
}

/// F-H8: `/new …` supersedes the plan that waits: its card says so, a click on it is told so, the new task is what follows the word.
async fn new_takes_the_place_of_the_plan_that_waits(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], reporter).await;
    world.model.script("列出文件", Script::new().text("一个文件"));
    world.say(u, c, "整理笔记", GROUP).await;
    let card = world.plan_card(c).await;
    world.say(u, c, "/new 列出文件", GROUP).await;
    world.hears(c, "一个文件").await;
    let old = world.repainted(&card, "已被取代").await;
    assert!(old.button("approve").is_none());
    assert_eq!(world.api.turn_in(c, "cancelled").await["reason"], "superseded");
    world.tap(u, c, &card, "approve", None).await.told("取代").await;
    let done = world.api.turn_in(c, "completed").await;
    assert_eq!(done["text"], "列出文件");
    let request = world.model.seen_of("列出文件").pop().unwrap();
    assert_eq!(request["messages"].as_array().unwrap().last().unwrap()["content"], "列出文件");
    assert_eq!(world.file("report.md"), None);
    world.end().await;
}

/// S4-13, design: `/status` tells where one's task stands: waiting, running, nothing; unknown commands get the help.
async fn status_tells_where_the_task_stands(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], reporter).await;
    world.say(u, c, "/status", GROUP).await;
    world.hears(c, "状态：空闲").await;
    world.say(u, c, "整理笔记", GROUP).await;
    world.plan_card(c).await;
    world.say(u, c, "/status", GROUP).await;
    let told = world.hears(c, "等待确认计划").await;
    assert!(
        told.words().contains("整理笔记") && told.words().contains("读取笔记"),
        "{}",
        told.words()
    );
    world.say(on.user("u2"), c, "/status", GROUP).await;
    world
        .seen("nothing of hers", |seen| {
            (seen.in_chat(c).filter(|m| m.words().contains("状态：空闲")).count() == 2).then_some(())
        })
        .await;
    let gate = Gate::new();
    world.model.script("慢任务", Script::new().then(gated(&gate, say("好"))));
    world.say(on.user("u2"), c, "慢任务", GROUP).await;
    gate.reached().await;
    world.say(on.user("u2"), c, "/plan", GROUP).await;
    world.hears(c, "状态：执行中").await;
    gate.open();
    world.say(u, c, "/dance", GROUP).await;
    world.hears(c, "/new 内容").await;
    world.hears(c, "好").await;
    eventually("her task is done", || async {
        (world.turns_in(c).await[1]["status"] == "completed").then_some(())
    })
    .await;
    world.end().await;
}

/// design: a reply to the request with `/stop` ends that task, wherever the sender's other tasks are.
async fn stop_as_a_reply_ends_that_task(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(
        on,
        &[],
        in_order(vec![call([("request_user", json!({ "message": "哪个？" }))]), say("好")]),
    )
    .await;
    let topic = |thread| crate::support::world::To {
        thread: Some(thread),
        ..GROUP
    };
    let first = world.say(u, c, "甲", topic("omt_a")).await;
    world.say(u, c, "乙", topic("omt_b")).await;
    eventually("both wait", || async {
        let turns = world.turns_in(c).await;
        (turns.len() == 2 && turns.iter().all(|turn| turn["status"] == "paused")).then_some(())
    })
    .await;
    world.say(u, c, "/stop", reply(&first)).await;
    let ended = world.api.turn_in(c, "cancelled").await;
    assert_eq!(ended["text"], "甲");
    world.caught_up().await;
    assert_eq!(world.api.turn_in(c, "paused").await["text"], "乙");
    world.end().await;
}
