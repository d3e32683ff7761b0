//! Nobody answers at half of the time: those who may decide are reminded once.

use std::time::Duration;

use countersign_playground::Fault;

use crate::support::fake_model::say;
use crate::support::platform::{On, on_both, on_either};
use crate::support::quiet::stored;
use crate::support::scripts::{in_order, reporter, writes};
use crate::support::world::{GROUP, World};

on_both! {
    at_half_of_the_time_those_who_may_decide_are_reminded_once,
    a_reminder_names_those_who_may_decide,
    a_question_and_a_call_remind_too,
}

on_either! {
    nobody_is_reminded_after_the_decision,
    a_reminder_that_waits_to_be_sent_is_dropped_with_the_decision,
    without_reminders_none_comes,
}

const MINUTE: Duration = Duration::from_secs(60);
const TASK: &str = "整理笔记";
const APPROVERS: &str = "CHAT__PLAN_REVIEW_APPROVERS";
const QUORUM: &str = "CHAT__PLAN_REVIEW_QUORUM";
const PERCENT: &str = "CHAT__REMINDER_PERCENT";
const WAITS: &str = "还在等待";

/// A setting that lists these people.
pub(super) fn list(on: On, names: &[&str]) -> String {
    let ids: Vec<&str> = names.iter().map(|name| on.user(name)).collect();
    format!("[{}]", ids.join(", "))
}

/// The mention of a person in a text message.
pub(super) fn called(on: On, user: &str) -> String {
    match on {
        On::Lark => format!("<at user_id=\"{user}\"></at>"),
        On::Slack => format!("@{user}"),
    }
}

/// The timeline of the newest task of `chat`.
pub(super) async fn event_types(world: &World, chat: &str) -> Vec<String> {
    let turn = world.turns_in(chat).await.pop().unwrap();
    world.api.event_types(&turn).await
}

/// interface: at `reminder_percent` of the time from the delivery to the end the chat is told once what waits, until when and for whom, in
/// reply to the card; a mention calls the person. The task's timeline and the trail have it.
async fn at_half_of_the_time_those_who_may_decide_are_reminded_once(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::frozen_on(on, &[], reporter).await;
    world.say(u, c, TASK, GROUP).await;
    let card = world.plan_card(c).await;
    world.clock.advance(30 * MINUTE - Duration::from_millis(1));
    world.caught_up().await;
    assert_eq!(world.count(c, WAITS), 0, "not before the time");
    world.clock.advance(Duration::from_millis(1));
    let told = world.hears(c, WAITS).await;
    for words in [called(on, u).as_str(), "这份计划还在等待确认", "还剩 30 分钟", "UTC"] {
        assert!(told.words().contains(words), "{words} in {}", told.words());
    }
    match on {
        On::Lark => assert_eq!(told.reply_to.as_deref(), Some(card.id.as_str())),
        On::Slack => assert_eq!(told.reply_to, card.reply_to, "in the thread of the card"),
    }
    world.clock.advance(20 * MINUTE);
    world.caught_up().await;
    assert_eq!(world.count(c, WAITS), 1, "once");
    assert_eq!(
        event_types(&world, c).await,
        ["turn_started", "plan_created", "turn_paused", "reminded"]
    );
    assert_eq!(stored(&world, "SELECT kind FROM audit WHERE kind = 'reminded'").await, ["reminded"]);
    world.tap(u, c, &card, "approve", None).await.done("已确认");
    world.hears(c, "全部完成").await;
    world.end().await;
}

/// interface: those who are listed are mentioned, without those who have voted; under `anyone` the requester; where others than the requester
/// must decide nobody is.
async fn a_reminder_names_those_who_may_decide(on: On) {
    let (u, boss, chief, other) = (on.user("u1"), on.user("boss"), on.user("chief"), on.user("u9"));
    let listed = list(on, &["boss", "chief"]);
    for (name, approvers, quorum, named, not_named) in [
        ("listed", listed.as_str(), "2", vec![chief], vec![u, boss]),
        ("anyone", "anyone", "2", vec![u], vec![boss]),
        ("not", "not_requester", "2", vec![], vec![u, boss]),
    ] {
        let c = on.chat(name);
        let world = World::frozen_on(on, &[(APPROVERS, approvers), (QUORUM, quorum)], reporter).await;
        world.say(u, c, TASK, GROUP).await;
        let card = world.plan_card(c).await;
        world.tap(boss, c, &card, "approve", None).await.done("1/2");
        world.clock.advance(31 * MINUTE);
        let told = world.hears(c, WAITS).await;
        assert!(told.words().contains("需要 2 人，已有 1 人"), "{}", told.words());
        for id in named {
            assert!(told.words().contains(&called(on, id)), "{name}: {id} in {}", told.words());
        }
        for id in not_named.into_iter().chain([other]) {
            assert!(!told.words().contains(id), "{name}: {id} not in {}", told.words());
        }
        world.end().await;
    }
}

/// A question reminds its requester, calls those who may approve them.
async fn a_question_and_a_call_remind_too(on: On) {
    let (c, u, boss) = (on.chat("c1"), on.user("u1"), on.user("boss"));
    let answers = in_order(vec![writes(&["a.md"]), say("好了")]);
    let world = World::frozen_on(on, &[(APPROVERS, &list(on, &["boss"]))], answers).await;
    world.say(u, c, "写", GROUP).await;
    let card = world.card_titled(c, "操作确认").await;
    world.clock.advance(31 * MINUTE);
    let told = world.hears(c, "操作还在等待批准").await;
    assert!(
        told.words().contains(&called(on, boss)) && !told.words().contains(u),
        "{}",
        told.words()
    );
    world.tap(boss, c, &card, "approve", None).await;
    world.hears(c, "好了").await;
    world.end().await;
}

/// Who has answered needs no reminder.
async fn nobody_is_reminded_after_the_decision(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::frozen_on(on, &[], reporter).await;
    world.say(u, c, TASK, GROUP).await;
    let card = world.plan_card(c).await;
    world.tap(u, c, &card, "cancel", None).await;
    world.api.turn_in(c, "cancelled").await;
    world.clock.advance(31 * MINUTE);
    world.caught_up().await;
    assert_eq!(world.count(c, WAITS), 0);
    world.end().await;
}

/// A reminder that the platform does not take is not tried again once somebody has decided.
async fn a_reminder_that_waits_to_be_sent_is_dropped_with_the_decision(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::frozen_on(on, &[], reporter).await;
    world.say(u, c, TASK, GROUP).await;
    let card = world.plan_card(c).await;
    let busy = Fault::Answer {
        status: 429,
        code: 99_991_400,
        header: Some((String::from("retry-after"), String::from("60"))),
    };
    world.chat.fault("reply", busy);
    world.clock.advance(31 * MINUTE);
    world
        .seen("the reminder that is refused", |seen| (seen.count("reply") > 1).then_some(()))
        .await;
    world.caught_up().await;
    world.tap(u, c, &card, "cancel", None).await.done("已取消");
    world.api.turn_in(c, "cancelled").await;
    world.clock.advance(5 * MINUTE);
    world.caught_up().await;
    assert_eq!(world.count(c, WAITS), 0, "it came to nothing");
    assert_eq!(stored(&world, "SELECT kind FROM audit WHERE kind = 'reminded'").await.len(), 1);
    world.end().await;
}

/// interface: `reminder_percent: 0` never reminds.
async fn without_reminders_none_comes(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::frozen_on(on, &[(PERCENT, "0")], reporter).await;
    world.say(u, c, TASK, GROUP).await;
    world.plan_card(c).await;
    world.clock.advance(59 * MINUTE);
    world.caught_up().await;
    assert_eq!(world.count(c, WAITS), 0);
    world.end().await;
}
