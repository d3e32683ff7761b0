//! `group_trigger: thread`: where a thread holds a task of theirs, people go on without a mention.

use crate::support::fake_model::{Gate, Script, say};
use crate::support::people::aside;
use crate::support::platform::{On, on_both};
use crate::support::quiet::{heard, quiet};
use crate::support::scripts::{gated, reporter};
use crate::support::world::{ASIDE, DIRECT, GROUP, To, World};

on_both! {
    a_follow_up_of_the_requester_needs_no_mention,
    while_the_task_runs_a_follow_up_waits_behind_it,
    others_and_words_to_others_are_left_alone,
    without_the_setting_a_follow_up_needs_a_mention,
    a_yes_below_an_older_message_of_a_direct_chat_means_what_waits,
}

const TRIGGER: (&str, &str) = ("CHAT__GROUP_TRIGGER", "thread");

/// Words below `request`, in its thread, without a mention.
fn below<'a>(on: On, request: &'a str) -> To<'a> {
    match on {
        On::Lark => To {
            thread: Some("omt_1"),
            ..ASIDE
        },
        On::Slack => aside(request),
    }
}

/// The request in a thread of its own: on Lark in a topic.
const REQUEST: To<'static> = To {
    thread: Some("omt_1"),
    ..GROUP
};

/// interface (I): the requester's next words in the thread are their next task there, and their change to a plan changes it.
async fn a_follow_up_of_the_requester_needs_no_mention(on: On) {
    let (c, u1) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[TRIGGER], reporter).await;
    world.model.script("写周报", Script::new().text("写好了"));
    world.model.script("再短一点", Script::new().text("短了"));
    let request = world.say(u1, c, "写周报", REQUEST).await;
    world.hears(c, "写好了").await;
    let more = world.say(u1, c, "再短一点", below(on, &request)).await;
    world.hears(c, "短了").await;
    let turns = world.turns_in(c).await;
    assert_eq!(turns.len(), 2);
    assert_eq!(turns[0]["thread_id"], turns[1]["thread_id"], "in the same lane");
    world
        .seen("the end of the follow-up", |seen| {
            seen.marks(&more).contains(&on.done()).then_some(())
        })
        .await;
    world.say(u1, c, "整理笔记", below(on, &request)).await;
    let card = world.plan_card(c).await;
    world.say(u1, c, "写到 report-v2.md", below(on, &request)).await;
    let second = world.card_after(c, &card).await;
    world.say(u1, c, "OK", below(on, &request)).await;
    world.hears(c, "全部完成").await;
    assert_eq!(world.review_of(&second).await["status"], "approved");
    world.end().await;
}

/// interface (I): what comes while the task runs goes the way of what is said with a mention: behind it, and `/stop` ends it.
async fn while_the_task_runs_a_follow_up_waits_behind_it(on: On) {
    let (c, u1) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[TRIGGER], reporter).await;
    let gate = Gate::new();
    world.model.script("慢任务", Script::new().then(gated(&gate, say("慢的做好了"))));
    world.model.script("下一个", Script::new().text("下一个也好了"));
    let request = world.say(u1, c, "慢任务", REQUEST).await;
    gate.reached().await;
    world.say(u1, c, "下一个", below(on, &request)).await;
    world.hears(c, "已排队（第 1 位）").await;
    world.say(u1, c, "/stop", below(on, &request)).await;
    world.hears(c, "下一个也好了").await;
    assert_eq!(world.api.turn_in(c, "cancelled").await["text"], "慢任务");
    world.end().await;
}

/// interface (I): only the requester, only in their thread, and not what they say to somebody else.
async fn others_and_words_to_others_are_left_alone(on: On) {
    let (c, u1, u2) = (on.chat("c1"), on.user("u1"), on.user("u2"));
    let world = World::start_on(on, &[TRIGGER], reporter).await;
    world.model.script("写周报", Script::new().text("写好了"));
    let request = world.say(u1, c, "写周报", REQUEST).await;
    world.hears(c, "写好了").await;
    world.say(u2, c, "我觉得可以再短", below(on, &request)).await;
    world.say(u1, c, &format!("{{@{u2}}} 你看呢"), below(on, &request)).await;
    world.say(u1, c, "别的话", ASIDE).await;
    heard(&world).await;
    assert_eq!(world.turns_in(c).await.len(), 1);
    world.end().await;
}

/// M-5: by default a follow-up needs a mention.
async fn without_the_setting_a_follow_up_needs_a_mention(on: On) {
    let (c, u1) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], reporter).await;
    world.model.script("写周报", Script::new().text("写好了"));
    let request = world.say(u1, c, "写周报", REQUEST).await;
    world.hears(c, "写好了").await;
    world.say(u1, c, "再短一点", below(on, &request)).await;
    heard(&world).await;
    assert_eq!(world.turns_in(c).await.len(), 1);
    world.end().await;
}

/// interface §10 Chats: alone with the bot, `OK` in reply to an older message means the only thing that waits there.
async fn a_yes_below_an_older_message_of_a_direct_chat_means_what_waits(on: On) {
    let (d, u1) = (on.direct("d1"), on.user("u1"));
    let world = World::start_on(on, &[], reporter).await;
    world.model.script("写周报", Script::new().text("写好了"));
    world.say(u1, d, "写周报", DIRECT).await;
    let answer = world.hears(d, "写好了").await;
    let unseen = world.message(u1, d, "早上好", DIRECT).message_id;
    for older in [&answer.id, &unseen] {
        world.say(u1, d, "整理笔记", DIRECT).await;
        let card = world.plan_card(d).await;
        let below = To {
            reply_to: Some(older),
            ..DIRECT
        };
        world.say(u1, d, "OK", below).await;
        world.repainted(&card, "已确认").await;
        assert_eq!(world.review_of(&card).await["status"], "approved");
        world.api.turn_in(d, "completed").await;
        quiet(&world).await;
    }
    world.end().await;
}

/// interface (I): in a group of Lark without topics the thread is the chain of replies: to their request, or to words of theirs that became one.
#[tokio::test]
async fn a_chain_of_replies_is_a_thread() {
    let on = On::Lark;
    let (c, u1, u2) = (on.chat("c1"), on.user("u1"), on.user("u2"));
    let world = World::start_on(on, &[TRIGGER], reporter).await;
    for (task, answer) in [("写周报", "写好了"), ("再短一点", "短了"), ("再长一点", "长了")] {
        world.model.script(task, Script::new().text(answer));
    }
    let request = world.say(u1, c, "写周报", GROUP).await;
    world.hears(c, "写好了").await;
    let more = world.say(u1, c, "再短一点", aside(&request)).await;
    world.hears(c, "短了").await;
    world.say(u1, c, "再长一点", aside(&more)).await;
    world.hears(c, "长了").await;
    world.say(u2, c, "不用了吧", aside(&request)).await;
    world.say(u1, c, "没有回复任何消息", ASIDE).await;
    heard(&world).await;
    assert_eq!(world.turns_in(c).await.len(), 3);
    world.end().await;
}
