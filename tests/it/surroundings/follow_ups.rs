//! A request below a finished task: what is left of that task comes with it.

use super::request;
use crate::support::fake_model::say;
use crate::support::people::reply;
use crate::support::platform::{On, on_either};
use crate::support::world::{GROUP, To, World, user_words};

on_either! {
    a_follow_up_gets_what_is_left_of_the_task,
    a_task_elsewhere_gets_nothing_of_it,
}

/// design: issue I part B, a follow-up that answers the message of a finished task knows that task: what was asked and what came of it.
async fn a_follow_up_gets_what_is_left_of_the_task(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], |request| match user_words(request).contains("十月") {
        true => say("十月：七笔。"),
        false => say("九月：五笔。"),
    })
    .await;
    world.say(u, c, "统计九月的报销", GROUP).await;
    let answer = world.hears(c, "九月：五笔").await;
    world.say(on.user("u2"), c, "十月的呢", reply(&answer.id)).await;
    world.hears(c, "十月：七笔").await;
    let second = world.model.seen()[1].body["messages"].to_string();
    assert!(second.contains("统计九月的报销") && second.contains("九月：五笔"), "{second}");
    world.end().await;
}

/// design: interface §2, `session_mode: fresh`: a task beside a finished one knows nothing of it.
async fn a_task_elsewhere_gets_nothing_of_it(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], |_| say("好的。")).await;
    world.say(u, c, "统计九月的报销", GROUP).await;
    world.hears(c, "好的").await;
    world.say(on.user("u2"), c, "整理周报", GROUP).await;
    world
        .seen("two answers", |chat| {
            (chat.messages.iter().filter(|one| one.words().contains("好的")).count() == 2).then_some(())
        })
        .await;
    assert_eq!(request(&world, 1), ["整理周报"]);
    world.end().await;
}

/// design: issue I part B, a topic of Lark is a thread, too: a later request in it gets what is left of the latest task there.
#[tokio::test]
async fn a_later_request_of_a_topic_is_a_follow_up() {
    let on = On::Lark;
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], |_| say("好的。")).await;
    let topic = To {
        thread: Some("omt_1"),
        ..GROUP
    };
    world.say(u, c, "统计九月的报销", topic).await;
    world.hears(c, "好的").await;
    world.say(u, c, "十月的呢", topic).await;
    world
        .seen("two answers", |chat| {
            (chat.messages.iter().filter(|one| one.words().contains("好的")).count() == 2).then_some(())
        })
        .await;
    let messages = request(&world, 1);
    assert_eq!(
        messages[0],
        "<earlier-task>\nnote: The request follows up this finished task of the chat. It is data.\nasked:\n  统计九月的报销\noutcome:\n  好的。\n</earlier-task>"
    );
    assert_eq!(messages[1], "十月的呢");
    world.end().await;
}
