//! Everybody but the requester, and groups of the platform among those who may decide.

use std::time::Duration;

use countersign_playground::Fault;
use futures_util::future::join;
use serde_json::json;

use crate::support::people::reply;
use crate::support::platform::{On, on_both, on_either};
use crate::support::scripts::reporter;
use crate::support::world::{GROUP, World};

on_both! {
    a_member_of_a_group_approves_and_a_stranger_does_not,
    a_member_says_so_in_words,
    a_group_that_cannot_be_looked_up_lets_nobody_in,
    a_slow_platform_costs_no_press,
    a_vote_stays_when_its_giver_leaves_the_group,
    many_presses_are_one_question_to_the_platform,
}

on_either! {
    everybody_but_the_requester_may_approve,
}

const APPROVERS: &str = "CHAT__PLAN_REVIEW_APPROVERS";
const QUORUM: &str = "CHAT__PLAN_REVIEW_QUORUM";
const USERS: &str = "CHAT__ALLOWED_USERS";

/// Id of the group on this platform.
fn ops(on: On) -> &'static str {
    match on {
        On::Lark => "od-0a1b2c3d",
        On::Slack => "S0614TZR7",
    }
}

/// The group as a card names it.
fn named(on: On) -> String {
    match on {
        On::Lark => String::from("部门 od"),
        On::Slack => format!("@{}", ops(on)),
    }
}

/// interface (H): with `not_requester` the requester changes and cancels, and somebody else of the chat approves. The card and the API say so.
async fn everybody_but_the_requester_may_approve(on: On) {
    let (c, u1, u2) = (on.chat("c1"), on.user("u1"), on.user("u2"));
    let world = World::start_on(on, &[(APPROVERS, "not_requester")], reporter).await;
    world.say(u1, c, "整理笔记", GROUP).await;
    let first = world.plan_card(c).await;
    for words in ["的其他人确认", "等待 其他人 确认", "不能自己确认"] {
        assert!(first.words().contains(words), "{words} in {}", first.words());
    }
    assert_eq!(world.review_of(&first).await["approvers"], "not_requester");
    world.tap(u1, c, &first, "approve", None).await.told("这是你自己发起的任务").await;
    world.say(u1, c, "OK", reply(&first.id)).await;
    world.hears(c, "这是你自己发起的任务").await;
    assert_eq!(world.review_of(&first).await["status"], "pending");
    world.say(u1, c, "写到 report-v2.md", reply(&first.id)).await;
    let second = world.card_after(c, &first).await;
    world.tap(u2, c, &second, "approve", None).await;
    world.hears(c, "全部完成").await;
    assert_eq!(world.review_of(&second).await["decision"]["by"], u2);
    world.end().await;
}

/// interface (H): of a list with a group its members decide, also one whom `allowed_users` does not name; a stranger does not. The card names the
/// group, the vote says by which group.
async fn a_member_of_a_group_approves_and_a_stranger_does_not(on: On) {
    let (c, u1, u2, member) = (on.chat("c1"), on.user("u1"), on.user("u2"), on.user("member"));
    let (list, users) = (format!("[{}]", ops(on)), format!("[{u1}, {u2}]"));
    let world = World::start_on(on, &[(APPROVERS, &list), (QUORUM, "2"), (USERS, &users)], reporter).await;
    world.chat.set_group(ops(on), &[member, u1]);
    world.say(u1, c, "整理笔记", GROUP).await;
    let card = world.plan_card(c).await;
    assert!(card.words().contains(&named(on)), "{} in {}", named(on), card.words());
    world.tap(u2, c, &card, "approve", None).await.told("没有生效").await;
    world.tap(on.user("u9"), c, &card, "approve", None).await.told("没有把你列入").await;
    world.tap(member, c, &card, "approve", None).await.done("1/2");
    let votes = world.review_of(&card).await["votes"].clone();
    assert_eq!((&votes[0]["by"], &votes[0]["group"]), (&json!(member), &json!(ops(on))));
    // The requester is one of the group.
    world.tap(u1, c, &card, "approve", None).await.done("已确认");
    world.hears(c, "全部完成").await;
    assert_eq!(
        world.chat.snapshot().count("members"),
        1,
        "one question to the platform for all presses of a minute"
    );
    world.end().await;
}

/// interface (H): the same by words: a member's reply approves, a stranger's is refused in place.
async fn a_member_says_so_in_words(on: On) {
    let (c, u1, u2, member) = (on.chat("c1"), on.user("u1"), on.user("u2"), on.user("member"));
    let world = World::start_on(on, &[(APPROVERS, &format!("[{}]", ops(on)))], reporter).await;
    world.chat.set_group(ops(on), &[member]);
    world.say(u1, c, "整理笔记", GROUP).await;
    let card = world.plan_card(c).await;
    let said = world.say(u2, c, "OK", reply(&card.id)).await;
    assert!(world.word_back(c, &said).await.words().contains("没有生效"));
    world.say(member, c, "OK", reply(&card.id)).await;
    world.hears(c, "全部完成").await;
    assert_eq!(world.review_of(&card).await["decision"]["by"], member);
    world.end().await;
}

/// interface (H): while the platform does not tell who is in the group, a press and a word are refused and count for nothing, and the next one, once it
/// tells, counts. A person who is named themselves decides all the same.
async fn a_group_that_cannot_be_looked_up_lets_nobody_in(on: On) {
    let (c, u1, member, boss) = (on.chat("c1"), on.user("u1"), on.user("member"), on.user("boss"));
    let list = format!("[{}, {boss}]", ops(on));
    let world = World::start_on(on, &[(APPROVERS, &list), (QUORUM, "2")], reporter).await;
    world.say(u1, c, "整理笔记", GROUP).await;
    let card = world.plan_card(c).await;
    let told = world.tap(member, c, &card, "approve", None).await.told("没有计入").await;
    assert!(told.contains(ops(on)) || told.contains("部门"), "{told}");
    let said = world.say(member, c, "OK", reply(&card.id)).await;
    assert!(world.word_back(c, &said).await.words().contains("没有计入"));
    let refusal = match on {
        On::Lark => Fault::Answer {
            status: 400,
            code: 99_991_672,
            header: None,
        },
        On::Slack => Fault::Error("missing_scope"),
    };
    world.chat.set_group(ops(on), &[member]);
    world.chat.fault("members", refusal);
    world.tap(member, c, &card, "approve", None).await.told("没有计入").await;
    assert_eq!(world.review_of(&card).await["votes"], json!([]));
    world.chat.fault("members", Fault::LoseAnswer);
    world.tap(boss, c, &card, "approve", None).await.done("1/2");
    world.tap(member, c, &card, "approve", None).await.told("没有计入").await;
    world.tap(member, c, &card, "approve", None).await.done("已确认");
    world.hears(c, "全部完成").await;
    world.end().await;
}

/// interface (H): a platform that takes long is not waited for; its answer counts for the next press.
async fn a_slow_platform_costs_no_press(on: On) {
    let (c, u1, member) = (on.chat("c1"), on.user("u1"), on.user("member"));
    let world = World::start_on(on, &[(APPROVERS, &format!("[{}]", ops(on)))], reporter).await;
    world.chat.set_group(ops(on), &[member]);
    world.say(u1, c, "整理笔记", GROUP).await;
    let card = world.plan_card(c).await;
    world.chat.hold("members");
    world.tap(member, c, &card, "approve", None).await.told("没有计入").await;
    world.chat.release("members");
    world.tap(member, c, &card, "approve", None).await.done("已确认");
    world.hears(c, "全部完成").await;
    assert_eq!(
        world.chat.snapshot().count("members"),
        1,
        "the first question was answered in the end"
    );
    world.end().await;
}

/// interface §9: a member votes and leaves the group; their vote stays, and they approve nothing any more. Who joined in between decides.
async fn a_vote_stays_when_its_giver_leaves_the_group(on: On) {
    let (c, u1, one, two) = (on.chat("c1"), on.user("u1"), on.user("one"), on.user("two"));
    let world = World::frozen_on(on, &[(APPROVERS, &format!("[{}]", ops(on))), (QUORUM, "2")], reporter).await;
    world.chat.set_group(ops(on), &[one]);
    world.say(u1, c, "整理笔记", GROUP).await;
    let card = world.plan_card(c).await;
    world.clock.advance(Duration::from_secs(1));
    world.tap(one, c, &card, "approve", None).await.done("1/2");
    world.chat.set_group(ops(on), &[two]);
    world.tap(two, c, &card, "approve", None).await.told("没有生效").await;
    // The answer of the platform is a minute old.
    world.clock.advance(Duration::from_secs(60));
    world.tap(one, c, &card, "cancel", None).await.told("没有生效").await;
    world.tap(two, c, &card, "approve", None).await.done("已确认");
    let decision = world.review_of(&card).await["decision"].clone();
    assert_eq!(decision["approvers"], json!([one, two]));
    world.hears(c, "全部完成").await;
    world.end().await;
}

/// Two members press at once, and both count: the platform is asked once.
async fn many_presses_are_one_question_to_the_platform(on: On) {
    let (c, u1, one, two) = (on.chat("c1"), on.user("u1"), on.user("one"), on.user("two"));
    let world = World::start_on(on, &[(APPROVERS, &format!("[{}]", ops(on))), (QUORUM, "2")], reporter).await;
    world.chat.set_group(ops(on), &[one, two]);
    world.say(u1, c, "整理笔记", GROUP).await;
    let card = world.plan_card(c).await;
    join(world.tap(one, c, &card, "approve", None), world.tap(two, c, &card, "approve", None)).await;
    world.hears(c, "全部完成").await;
    assert_eq!(world.review_of(&card).await["decision"]["approvers"].as_array().unwrap().len(), 2);
    assert_eq!(world.chat.snapshot().count("members"), 1);
    world.end().await;
}

/// Of a department all pages are read.
#[tokio::test]
async fn a_department_of_several_pages() {
    let (on, everybody): (On, Vec<String>) = (On::Lark, (0..120).map(|number| format!("ou_m{number}")).collect());
    let members: Vec<&str> = everybody.iter().map(String::as_str).collect();
    let world = World::start_on(on, &[(APPROVERS, &format!("[{}]", ops(on)))], reporter).await;
    world.chat.set_group(ops(on), &members);
    let c = on.chat("c1");
    world.say(on.user("u1"), c, "整理笔记", GROUP).await;
    let card = world.plan_card(c).await;
    world.tap("ou_m119", c, &card, "approve", None).await.done("已确认");
    world.hears(c, "全部完成").await;
    assert_eq!(world.chat.snapshot().count("members"), 3);
    world.end().await;
}

/// A department that is larger than we read is as one that cannot be looked up: nobody is let in by half of it.
#[tokio::test]
async fn a_department_that_is_too_large() {
    let (on, everybody): (On, Vec<String>) = (On::Lark, (0..1001).map(|number| format!("ou_m{number}")).collect());
    let members: Vec<&str> = everybody.iter().map(String::as_str).collect();
    let world = World::start_on(on, &[(APPROVERS, &format!("[{}]", ops(on)))], reporter).await;
    world.chat.set_group(ops(on), &members);
    let c = on.chat("c1");
    world.say(on.user("u1"), c, "整理笔记", GROUP).await;
    let card = world.plan_card(c).await;
    world.tap("ou_m0", c, &card, "approve", None).await.told("没有计入").await;
    world.end().await;
}
