//! Nobody answers: other people get the card in direct messages, and any of them may decide.

use std::time::Duration;

use countersign_playground::{Fault, Posted};
use futures_util::future::join;
use serde_json::{Value, json};

use super::reminders::{called, event_types, list};
use crate::support::api::eventually;
use crate::support::fake_model::say;
use crate::support::people::in_full;
use crate::support::platform::{On, on_both};
use crate::support::quiet::stored;
use crate::support::scripts::{in_order, reporter, writes};
use crate::support::world::{DIRECT, GROUP, To, World};

on_both! {
    people_are_asked_in_direct_messages_and_any_of_them_decides,
    a_press_in_the_group_settles_the_direct_messages,
    of_two_copies_that_are_pressed_together_one_decides,
    a_vote_on_a_copy_counts_once_and_shows_everywhere,
    the_time_passes_while_the_process_is_down,
    a_requester_who_may_not_approve_is_not_asked,
    who_was_taken_off_the_list_may_not_decide_any_more,
    who_was_taken_off_the_list_gets_no_new_card,
    a_copy_of_a_card_whose_chat_is_served_no_more_decides_nothing,
    a_forwarded_copy_decides_nothing,
    a_press_that_is_faster_than_the_receipt_counts,
    the_end_of_the_time_shows_on_all_copies,
    a_person_out_of_reach_holds_up_nothing,
    calls_are_escalated_too,
}

pub(super) const MINUTE: Duration = Duration::from_secs(60);
pub(super) const TASK: &str = "整理笔记";
const APPROVERS: &str = "CHAT__PLAN_REVIEW_APPROVERS";
const QUORUM: &str = "CHAT__PLAN_REVIEW_QUORUM";
const PERCENT: &str = "CHAT__REMINDER_PERCENT";
const TO: &str = "CHAT__ESCALATE_TO";
const AFTER: &str = "CHAT__ESCALATE_AFTER_MINUTES";
const WAITS: &str = "还在等待";

/// The card of `u`'s task, which nobody answers in time.
pub(super) async fn unanswered(world: &World, c: &str, u: &str) -> Posted {
    world.say(u, c, TASK, GROUP).await;
    let card = world.plan_card(c).await;
    world.clock.advance(10 * MINUTE);
    card
}

/// The direct chat of the bot with this person.
pub(super) fn direct_of(on: On, user: &str) -> String {
    match on {
        On::Lark => format!("oc_p2p_{}", user.strip_prefix("ou_").unwrap()),
        On::Slack => format!("D{}", &user[1..]),
    }
}

/// A world whose plans are escalated to chief and deputy after ten minutes.
pub(super) async fn escalating(on: On, extra: &[(&str, &str)], answer: impl Fn(&Value) -> Value + Send + Sync + 'static) -> World {
    let to = list(on, &["chief", "deputy"]);
    let mut settings = vec![(TO, to.as_str()), (AFTER, "10"), (PERCENT, "0")];
    settings.extend(extra);
    World::frozen_on(on, &settings, answer).await
}

/// The copy of the card that this person has.
pub(super) async fn copy(world: &World, user: &str) -> Posted {
    let chat = direct_of(world.on, user);
    world
        .seen(&format!("a copy in {chat}"), |seen| {
            seen.in_chat(&chat).find(|posted| posted.title().is_some()).cloned()
        })
        .await
}

/// interface: after `escalate_after_minutes` each of `escalate_to` has the same card in a direct message, which says why; the group is told.
/// They may decide from then on, whoever the approvers are. A decision shows on the card of the group and on the other copies.
async fn people_are_asked_in_direct_messages_and_any_of_them_decides(on: On) {
    let (c, u, chief, deputy) = (on.chat("c1"), on.user("u1"), on.user("chief"), on.user("deputy"));
    let world = escalating(on, &[], reporter).await;
    world.say(u, c, TASK, GROUP).await;
    let card = world.plan_card(c).await;
    world.tap(chief, c, &card, "approve", None).await.told("没有生效").await;
    world.clock.advance(10 * MINUTE);
    let (first, second) = (copy(&world, chief).await, copy(&world, deputy).await);
    for copy in [&first, &second] {
        assert_eq!(copy.title(), Some("计划确认"));
        let time = if on == On::Lark { "<local_datetime" } else { "20" };
        let times = [format!("从 {time}"), format!("有效期到 {time}")];
        for words in ["读取笔记", "也请你决定", &times[0], &times[1], on.at(u).as_str(), c] {
            assert!(copy.words().contains(words), "{words} in {}", copy.words());
        }
        assert!(
            copy.button("approve") == card.button("approve") && !copy.words().contains("@我"),
            "{}",
            copy.words()
        );
    }
    let told = world.hears(c, "已私信请").await;
    assert!(
        told.words().contains(&called(on, chief)) && told.words().contains(&called(on, deputy)),
        "{}",
        told.words()
    );
    assert_eq!(event_types(&world, c).await.last().unwrap(), "escalated");
    let event = world
        .api
        .get(&format!(
            "/api/v1/turns/{}/events",
            world.turns_in(c).await[0]["id"].as_str().unwrap()
        ))
        .await;
    assert_eq!(
        event["items"].as_array().unwrap().last().unwrap()["data"]["to"],
        json!([chief, deputy])
    );
    let heard = world.tap(chief, &direct_of(on, chief), &first, "approve", None).await;
    heard.done("已确认");
    world.hears(c, "全部完成").await;
    for shown in [&card, &first, &second] {
        let painted = world.repainted(shown, "已确认").await;
        assert!(
            painted.buttons().is_empty() && painted.words().contains(chief),
            "{}",
            painted.words()
        );
    }
    assert_eq!(world.review_of(&card).await["decision"]["by"], chief);
    let told = world
        .press(deputy, &direct_of(on, deputy), &second, &second.button("approve").unwrap(), None)
        .await;
    let told = told.told("已经处理过了").await;
    assert!(told.contains(chief), "{told}");
    world.end().await;
}

/// A decision in the group settles the copies.
async fn a_press_in_the_group_settles_the_direct_messages(on: On) {
    let (c, u, chief, deputy) = (on.chat("c1"), on.user("u1"), on.user("chief"), on.user("deputy"));
    let world = escalating(on, &[], reporter).await;
    let card = unanswered(&world, c, u).await;
    let copies = [copy(&world, chief).await, copy(&world, deputy).await];
    world.tap(u, c, &card, "cancel", None).await.done("已取消");
    for copy in &copies {
        let painted = world.repainted(copy, "已取消").await;
        assert!(painted.buttons().is_empty(), "{}", painted.words());
    }
    world.end().await;
}

/// Two copies are pressed together: one decides, the other is told who was first.
async fn of_two_copies_that_are_pressed_together_one_decides(on: On) {
    let (c, u, chief, deputy) = (on.chat("c1"), on.user("u1"), on.user("chief"), on.user("deputy"));
    let world = escalating(on, &[], reporter).await;
    let card = unanswered(&world, c, u).await;
    let (first, second) = (copy(&world, chief).await, copy(&world, deputy).await);
    let (there, elsewhere) = (direct_of(on, chief), direct_of(on, deputy));
    let (one, two) = join(
        world.tap(chief, &there, &first, "approve", None),
        world.tap(deputy, &elsewhere, &second, "approve", None),
    )
    .await;
    let decided = world.review_of(&card).await["decision"]["by"].clone();
    let (won, lost, winner) = if decided == chief { (one, two, chief) } else { (two, one, deputy) };
    won.done("已确认");
    let told = lost.told("已经处理过了").await;
    assert!(told.contains(winner), "{told}");
    world.hears(c, "全部完成").await;
    assert_eq!(world.continuations(), 1);
    world.end().await;
}

/// A vote of a person who was asked counts in the quorum, once, wherever it is given; all cards show it.
async fn a_vote_on_a_copy_counts_once_and_shows_everywhere(on: On) {
    let (c, u, boss, chief, deputy) = (on.chat("c1"), on.user("u1"), on.user("boss"), on.user("chief"), on.user("deputy"));
    let extra = [(APPROVERS, list(on, &["boss", "u9"])), (QUORUM, String::from("2"))];
    let extra = extra.each_ref().map(|(key, value)| (*key, value.as_str()));
    let world = escalating(on, &extra, reporter).await;
    let card = unanswered(&world, c, u).await;
    let (first, second) = (copy(&world, chief).await, copy(&world, deputy).await);
    world.tap(chief, &direct_of(on, chief), &first, "approve", None).await.done("1/2");
    world.tap(chief, c, &card, "approve", None).await.done("1/2");
    for shown in [&card, &first, &second] {
        let painted = world.repainted(shown, "已有 1 人").await;
        assert!(painted.button("approve").is_some(), "{}", painted.words());
    }
    world.tap(boss, c, &card, "approve", None).await.done("已确认");
    for copy in [&first, &second] {
        world.repainted(copy, "已确认").await;
    }
    world.hears(c, "全部完成").await;
    world.end().await;
}

/// The moments pass while no process runs: what is due is done at the start, once.
async fn the_time_passes_while_the_process_is_down(on: On) {
    let (c, u, chief, deputy) = (on.chat("c1"), on.user("u1"), on.user("chief"), on.user("deputy"));
    let mut world = escalating(on, &[(PERCENT, "50")], reporter).await;
    world.say(u, c, TASK, GROUP).await;
    let card = world.plan_card(c).await;
    world.stop().await;
    world.clock.advance(40 * MINUTE);
    world.restart(&[]).await;
    let told = world.hears(c, WAITS).await;
    assert!(told.words().contains("还剩 20 分钟"), "{}", told.words());
    let first = copy(&world, chief).await;
    copy(&world, deputy).await;
    world.restart(&[]).await;
    world.caught_up().await;
    assert_eq!((world.count(c, WAITS), world.count(c, "已私信请")), (1, 1));
    assert_eq!(world.posts(&direct_of(on, chief)), 1);
    world
        .tap(chief, &direct_of(on, chief), &first, "approve", None)
        .await
        .done("已确认");
    world.repainted(&card, "已确认").await;
    world.hears(c, "全部完成").await;
    world.end().await;
}

/// interface: a requester who may not decide about their own task may not as one of `escalate_to` either, and gets no card.
async fn a_requester_who_may_not_approve_is_not_asked(on: On) {
    let (c, chief, deputy) = (on.chat("c1"), on.user("chief"), on.user("deputy"));
    let world = escalating(on, &[(APPROVERS, "not_requester")], reporter).await;
    world.say(chief, c, TASK, GROUP).await;
    let card = world.plan_card(c).await;
    world.clock.advance(10 * MINUTE);
    let copy = copy(&world, deputy).await;
    world.caught_up().await;
    assert_eq!(world.posts(&direct_of(on, chief)), 0);
    world.tap(chief, c, &card, "approve", None).await.told("没有生效").await;
    world
        .tap(deputy, &direct_of(on, deputy), &copy, "approve", None)
        .await
        .done("已确认");
    world.hears(c, "全部完成").await;
    world.end().await;
}

/// interface: who may decide is read when they do: the settings must still name a person who was asked.
async fn who_was_taken_off_the_list_may_not_decide_any_more(on: On) {
    let (c, u, chief, deputy) = (on.chat("c1"), on.user("u1"), on.user("chief"), on.user("deputy"));
    let mut world = escalating(on, &[], reporter).await;
    world.say(u, c, TASK, GROUP).await;
    world.plan_card(c).await;
    world.clock.advance(10 * MINUTE);
    let (first, second) = (copy(&world, chief).await, copy(&world, deputy).await);
    world.caught_up().await;
    world.restart(&[(TO, &list(on, &["deputy", "boss"]))]).await;
    world
        .tap(chief, &direct_of(on, chief), &first, "approve", None)
        .await
        .told("没有生效")
        .await;
    world
        .tap(deputy, &direct_of(on, deputy), &second, "approve", None)
        .await
        .done("已确认");
    world.hears(c, "全部完成").await;
    world.end().await;
}

/// Whom the settings name no more gets no card either, when a question about the plan brings a new one.
async fn who_was_taken_off_the_list_gets_no_new_card(on: On) {
    let (c, u, chief, deputy) = (on.chat("c1"), on.user("u1"), on.user("chief"), on.user("deputy"));
    let mut world = escalating(on, &[], reporter).await;
    let card = unanswered(&world, c, u).await;
    copy(&world, chief).await;
    let first = copy(&world, deputy).await;
    world.caught_up().await;
    world.restart(&[(TO, &list(on, &["deputy", "boss"]))]).await;
    let to = To {
        reply_to: Some(&card.id),
        ..GROUP
    };
    world.say(u, c, &in_full("这一步会删数据吗？"), to).await;
    world.card_after(c, &card).await;
    let there = direct_of(on, deputy);
    world
        .seen("the copy of the card that takes its place", |seen| {
            seen.in_chat(&there)
                .find(|posted| posted.id != first.id && posted.title().is_some())
                .cloned()
        })
        .await;
    world.caught_up().await;
    assert_eq!(world.titled(&direct_of(on, chief), "计划确认"), 1);
    world.end().await;
}

/// interface: in a chat that `allowed_chats` no longer names nothing is decided, neither by a press on a copy nor by words in the direct chat.
async fn a_copy_of_a_card_whose_chat_is_served_no_more_decides_nothing(on: On) {
    let (c, u, chief) = (on.chat("c1"), on.user("u1"), on.user("chief"));
    let mut world = escalating(on, &[], reporter).await;
    let card = unanswered(&world, c, u).await;
    let (copy, there) = (copy(&world, chief).await, direct_of(on, chief));
    world.caught_up().await;
    world.restart(&[("CHAT__ALLOWED_CHATS", &format!("[{there}]"))]).await;
    world
        .tap(chief, &there, &copy, "approve", None)
        .await
        .told("不允许我在这个会话")
        .await;
    world.clock.advance(MINUTE);
    let said = world.say(chief, &there, "OK", DIRECT).await;
    let told = world.word_back(&there, &said).await;
    assert!(told.words().contains("不允许我在这个会话"), "{}", told.words());
    assert_eq!(world.review_of(&card).await["status"], "pending");
    world.end().await;
}

/// A copy decides nothing where it was forwarded to, and nothing for another person.
async fn a_forwarded_copy_decides_nothing(on: On) {
    let (c, u, chief, deputy) = (on.chat("c1"), on.user("u1"), on.user("chief"), on.user("deputy"));
    let world = escalating(on, &[], reporter).await;
    let card = unanswered(&world, c, u).await;
    let first = copy(&world, chief).await;
    copy(&world, deputy).await;
    world.caught_up().await;
    let value = first.button("approve").unwrap();
    for (who, chat) in [
        (deputy, direct_of(on, chief)),
        (deputy, direct_of(on, deputy)),
        (chief, on.chat("elsewhere").to_owned()),
        (on.user("u9"), direct_of(on, on.user("u9"))),
    ] {
        world.press(who, &chat, &first, &value, None).await.told("已经不在了").await;
    }
    assert_eq!(world.review_of(&card).await["status"], "pending");
    world.tap(u, c, &card, "cancel", None).await;
    world.end().await;
}

/// A direct card can be pressed while nobody has told yet as which message it was posted: the press counts at once, for the person who has it.
async fn a_press_that_is_faster_than_the_receipt_counts(on: On) {
    let (c, u, chief) = (on.chat("c1"), on.user("u1"), on.user("chief"));
    let to = list(on, &["chief"]);
    let world = World::frozen_on(on, &[(TO, to.as_str()), (AFTER, "10"), (PERCENT, "0")], reporter).await;
    world.say(u, c, TASK, GROUP).await;
    let card = world.plan_card(c).await;
    world.chat.fault("create", Fault::LoseAnswer);
    world.clock.advance(10 * MINUTE);
    let first = copy(&world, chief).await;
    // The clock stands: the post is not tried again, and no receipt comes.
    let known = stored(&world, "SELECT person FROM cards WHERE person <> '' AND message IS NULL").await;
    assert_eq!(known, [chief]);
    let value = first.button("approve").unwrap();
    let other = on.user("u9");
    world
        .press(other, &direct_of(on, other), &first, &value, None)
        .await
        .told("已经不在了")
        .await;
    world
        .tap(chief, &direct_of(on, chief), &first, "approve", None)
        .await
        .done("已确认");
    world.hears(c, "全部完成").await;
    assert_eq!(world.review_of(&card).await["decision"]["by"], chief);
    eventually("the decision on the direct card", || async {
        world.clock.advance(Duration::from_secs(2));
        let shown = world.chat.snapshot();
        let first = shown.messages.iter().find(|posted| posted.id == first.id)?;
        first.words().contains("已确认").then_some(())
    })
    .await;
    assert_eq!(world.posts(&direct_of(on, chief)), 1);
    world.end().await;
}

/// The end of the time shows on all copies.
async fn the_end_of_the_time_shows_on_all_copies(on: On) {
    let (c, u, chief, deputy) = (on.chat("c1"), on.user("u1"), on.user("chief"), on.user("deputy"));
    let world = escalating(on, &[], reporter).await;
    let card = unanswered(&world, c, u).await;
    let (first, second) = (copy(&world, chief).await, copy(&world, deputy).await);
    world.caught_up().await;
    world.clock.advance(50 * MINUTE);
    for shown in [&card, &first, &second] {
        let painted = world.repainted(shown, "已过期").await;
        assert!(painted.button("approve").is_none(), "{}", painted.words());
    }
    world.end().await;
}

/// A direct message that cannot be delivered is in the trail; the review goes on, also for that person in the group.
async fn a_person_out_of_reach_holds_up_nothing(on: On) {
    let (c, u, chief, deputy) = (on.chat("c1"), on.user("u1"), on.user("chief"), on.user("deputy"));
    let world = escalating(on, &[], reporter).await;
    world.chat.set_unreachable(chief);
    let card = unanswered(&world, c, u).await;
    copy(&world, deputy).await;
    eventually("the entry in the trail", || async {
        let told = stored(&world, "SELECT details FROM audit WHERE kind = 'escalation_failed'").await;
        told.iter().any(|details| details.contains(chief)).then_some(())
    })
    .await;
    world.tap(chief, c, &card, "approve", None).await.done("已确认");
    world.hears(c, "全部完成").await;
    world.end().await;
}

/// Tool calls are escalated like plans; each row is decided on the copy.
async fn calls_are_escalated_too(on: On) {
    let (c, u, chief) = (on.chat("c1"), on.user("u1"), on.user("chief"));
    let answers = in_order(vec![writes(&["a.md"]), say("好了")]);
    let world = escalating(on, &[], answers).await;
    world.say(u, c, "写", GROUP).await;
    let card = world.card_titled(c, "操作确认").await;
    world.clock.advance(10 * MINUTE);
    let first = copy(&world, chief).await;
    world.caught_up().await;
    let heard = world.tap(chief, &direct_of(on, chief), &first, "approve", None).await;
    heard.done("已");
    world.hears(c, "好了").await;
    for shown in [&card, &first] {
        let painted = world.repainted(shown, "已批准").await;
        assert!(painted.buttons().is_empty(), "{}", painted.words());
    }
    assert!(world.file("a.md").is_some());
    world.end().await;
}
