//! What Slack shows beside the messages: how a task stands, and what a person may ask for. Nothing depends on it.

use std::time::Duration;

use countersign_playground::{Fault, Posted, Snapshot, Words};
use serde_json::{Value, json};

use crate::support::fake_model::{Gate, Script, say};
use crate::support::platform::On;
use crate::support::scripts::{gated, reporter};
use crate::support::world::{GROUP, To, World};

const ON: On = On::Slack;

fn bodies(seen: &Snapshot, endpoint: &str) -> Vec<Value> {
    let calls = seen.calls.iter().filter(|call| call.endpoint == endpoint);
    calls.map(|call| call.body.clone()).collect()
}

/// Asks for the notes in a group and approves the plan; gives the request once the task is done.
async fn carried_out(world: &World) -> String {
    let (c, u) = (ON.chat("c1"), ON.user("u1"));
    let request = world.say(u, c, "整理笔记", GROUP).await;
    let card = world.plan_card(c).await;
    world.tap(u, c, &card, "approve", None).await;
    world.hears(c, "全部完成").await;
    request
}

/// reach §3: the thread shows that the task works, that it waits for a person, and at the end that nothing is under way.
#[tokio::test]
async fn a_thread_shows_how_its_task_stands() {
    let world = World::start_on(ON, &[], reporter).await;
    let request = carried_out(&world).await;
    let told = world
        .seen("the last status", |seen| {
            let told = bodies(seen, "session");
            told.last().is_some_and(|last| last["status"] == "active").then_some(told)
        })
        .await;
    let statuses: Vec<&Value> = told.iter().map(|body| &body["status"]).collect();
    assert_eq!(statuses, ["processing", "suspended", "processing", "active"]);
    for body in &told {
        assert_eq!((&body["channel_id"], &body["thread_ts"]), (&json!(ON.chat("c1")), &json!(request)));
    }
    world.end().await;
}

/// reach §3: two people work in one thread: it shows that something is under way until the last task has ended.
#[tokio::test]
async fn a_thread_shows_what_is_under_way_of_any_task() {
    let c = ON.chat("c1");
    let world = World::start_on(ON, &[], reporter).await;
    let tasks = [("甲任务", ON.user("u1")), ("乙任务", ON.user("u2"))].map(|(task, user)| (task, user, Gate::new()));
    let mut root = None;
    for (task, user, gate) in &tasks {
        world
            .model
            .script(task, Script::new().then(gated(gate, say(&format!("{task}做完了")))));
        let words = Words {
            user,
            chat: c,
            text: task,
            group: true,
            mention: true,
            reply_to: None,
            thread: root.as_deref(),
        };
        let request = world.tenant.message(&words);
        world.push(&request).await;
        gate.reached().await;
        root = Some(request.message_id);
    }
    let statuses = || -> Vec<Value> {
        let told = bodies(&world.chat.snapshot(), "session");
        told.iter().map(|body| body["status"].clone()).collect()
    };
    for (done, (task, _, gate)) in tasks.iter().enumerate() {
        assert_eq!(statuses(), ["processing"], "{done} of two have ended");
        gate.open();
        world.hears(c, &format!("{task}做完了")).await;
        world.caught_up().await;
    }
    assert_eq!(statuses(), ["processing", "active"]);
    world.end().await;
}

/// reach §3: a workspace without such a place is asked once, and no task suffers.
#[tokio::test]
async fn a_workspace_without_sessions_is_asked_once() {
    let world = World::start_on(ON, &[], reporter).await;
    world.chat.fault("session", Fault::Error("feature_disabled"));
    carried_out(&world).await;
    crate::support::quiet::quiet(&world).await;
    assert_eq!(world.chat.snapshot().count("session"), 1);
    world.end().await;
}

/// reach §3: what was not told when the process was killed is told by the next one, so no task seems to go on after its end.
#[tokio::test]
async fn a_task_that_ended_is_told_after_a_kill() {
    let mut world = World::process_on(ON, &[], Some("answer_posted"), reporter).await;
    let (c, u) = (ON.chat("c1"), ON.user("u1"));
    world.chat.hold("session");
    world.say(u, c, "整理笔记", GROUP).await;
    let card = world.plan_card(c).await;
    world.tap(u, c, &card, "approve", None).await;
    world.ended().await;
    world.chat.release("session");
    world.restart_process(None);
    world
        .seen("the last status", |seen| {
            bodies(seen, "session").last().filter(|last| last["status"] == "active").map(|_| ())
        })
        .await;
    world.end().await;
}

/// reach §3: whom the channel serves is offered up to four prompts on opening the chat with the bot, once a day.
#[tokio::test]
async fn who_opens_the_chat_is_offered_prompts_once() {
    let (u, other) = (ON.user("u1"), ON.user("u2"));
    let world = World::start_on(ON, &[("CHAT__ALLOWED_USERS", &format!("[{u}]"))], reporter).await;
    let open = |user: &str, tab: &str| {
        let event = json!({ "user": user, "channel": ON.direct("d1"), "tab": tab, "event_ts": "1780000000.000100" });
        world.tenant.other("app_home_opened", event)
    };
    for (user, tab) in [(other, "messages"), (u, "about"), (u, "messages"), (u, "messages")] {
        world.push(&open(user, tab)).await;
    }
    let offered = world.seen("prompts", |seen| bodies(seen, "suggest").first().cloned()).await;
    assert_eq!(offered["channel_id"], ON.direct("d1"));
    assert_eq!(offered["prompts"].as_array().unwrap().len(), 4);
    // The next word comes after whatever the events before it led to.
    carried_out(&world).await;
    assert_eq!(world.chat.snapshot().count("suggest"), 1);
    world.end().await;
}

/// reach §3: a workspace that refuses prompts is asked again an hour later, for the same person too: an admin may have added the scope.
#[tokio::test]
async fn refused_prompts_are_offered_again_after_an_hour() {
    let world = World::frozen_on(ON, &[], reporter).await;
    world.chat.fault("suggest", Fault::Error("missing_scope"));
    let open = || {
        let event = json!({ "user": ON.user("u1"), "channel": ON.direct("d1"), "tab": "messages", "event_ts": "1780000000.000100" });
        world.tenant.other("app_home_opened", event)
    };
    let offers = |number| move |seen: &Snapshot| (seen.count("suggest") == number).then_some(());
    world.push(&open()).await;
    world.seen("the first offer", offers(1)).await;
    world.push(&open()).await;
    carried_out(&world).await;
    crate::support::quiet::quiet(&world).await;
    offers(1)(&world.chat.snapshot()).expect("one offer in this hour");
    world.clock.advance(Duration::from_hours(1));
    world.push(&open()).await;
    world.seen("the second offer", offers(2)).await;
    world.end().await;
}

/// reach §3: Slack's own stop button ends the task of the person who pressed it, in that thread. Other tasks of theirs go on, and those of other people;
/// delivered again, it does nothing and says nothing.
#[tokio::test]
async fn the_stop_button_ends_the_persons_task_of_that_thread() {
    let (c, u1, u2) = (ON.chat("c1"), ON.user("u1"), ON.user("u2"));
    let world = World::start_on(ON, &[], reporter).await;
    let tasks = [("甲任务", u1), ("乙任务", u1), ("丙任务", u2)].map(|(task, user)| (task, user, Gate::new()));
    let mut roots = Vec::new();
    for (task, user, gate) in &tasks {
        world.model.script(task, Script::new().then(gated(gate, say("做完了"))));
        roots.push(
            world
                .say(
                    user,
                    c,
                    task,
                    To {
                        thread: Some(task),
                        ..GROUP
                    },
                )
                .await,
        );
        gate.reached().await;
    }
    let stop = |user: &str, root: &str| {
        let event = json!({ "channel": c, "user": user, "thread_ts": root, "streaming_message_ts": [], "event_ts": root });
        world.tenant.other("agent_session_stopped", event)
    };
    let first = stop(u1, &roots[0]);
    world.push(&first).await;
    world.hears(c, "没有做任何改动").await;
    world.api.turn_in(c, "cancelled").await;
    world.caught_up().await;
    let posts = world.posts(c);
    world.push(&first).await;
    // Nobody stops the task of somebody else.
    world.push(&stop(ON.user("u9"), &roots[1])).await;
    world.caught_up().await;
    let mut stands: Vec<(Value, Value)> = world
        .turns_in(c)
        .await
        .into_iter()
        .map(|turn| (turn["user_id"].clone(), turn["status"].clone()))
        .collect();
    stands.sort_by_key(|stand| format!("{stand:?}"));
    assert_eq!(
        stands,
        [(u1, "cancelled"), (u1, "running"), (u2, "running")].map(|(user, status)| (json!(user), json!(status)))
    );
    let said = world.chat.snapshot().in_chat(c).skip(posts).map(Posted::words).collect::<Vec<_>>();
    assert!(
        said.len() == 1 && said[0].contains("现在没有正在进行的任务"),
        "the stranger is told: {said:?}"
    );
    tasks.iter().for_each(|(_, _, gate)| gate.open());
    world.end().await;
}
