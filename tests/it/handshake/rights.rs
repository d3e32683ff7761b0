//! Who may decide: the requester, others, several, a list; and those who never may.

use futures_util::future::join;
use serde_json::json;

use crate::support::fake_model::{Script, say};
use crate::support::lark_push::with;
use crate::support::people::{aside, in_full, reply};
use crate::support::platform::{On, on_both, on_either};
use crate::support::quiet::stored;
use crate::support::scripts::{in_order, reporter, writes};
use crate::support::world::{ASIDE, GROUP, World};

on_both! {
    the_card_asks_anyone_where_anyone_may_decide,
    another_members_ok_is_refused_in_place,
    bots_never_decide,
    a_listed_approver_may_answer_by_mention_when_one_plan_waits,
}

on_either! {
    the_card_asks_those_who_may_decide,
    the_card_of_a_call_asks_those_who_may_decide,
    another_members_words_are_their_own_task_in_their_own_lane,
    two_different_people_are_needed_and_nobody_counts_twice,
    votes_for_an_old_plan_do_not_count_for_the_new_one,
    votes_stay_when_a_question_is_answered,
    a_requester_who_is_no_approver_may_change_or_cancel_but_not_approve,
    who_may_approve_is_read_when_the_decision_is_made,
    of_two_who_click_together_one_decides_and_the_other_hears_who,
    the_second_click_hears_who_decided,
}

const C: &str = "oc_c1";
const U1: &str = "ou_u1";
const U2: &str = "ou_u2";
const APPROVERS: &str = "CHAT__PLAN_REVIEW_APPROVERS";
const QUORUM: &str = "CHAT__PLAN_REVIEW_QUORUM";

/// `plan_review_approvers` with these people.
fn listed(on: On, names: &[&str]) -> String {
    let ids: Vec<&str> = names.iter().map(|name| on.user(name)).collect();
    format!("[{}]", ids.join(", "))
}

/// interface: the card mentions those who may decide and says whose plan it is; it tells the requester whom it waits for. It shows what
/// held when it was made; a refusal names those who may decide now.
async fn the_card_asks_those_who_may_decide(on: On) {
    let (c, u1, boss, chief) = (on.chat("c1"), on.user("u1"), on.user("boss"), on.user("chief"));
    let mut world = World::start_on(on, &[(APPROVERS, &listed(on, &["boss", "chief"])), (QUORUM, "2")], reporter).await;
    world.say(u1, c, "整理笔记", GROUP).await;
    let card = world.plan_card(c).await;
    let asks = format!("{} {} 请确认 {} 发起的计划", on.at(boss), on.at(chief), on.at(u1));
    assert!(card.words().contains(&asks), "{asks} in {}", card.words());
    let waits = format!("等待 {} {} 确认", on.at(boss), on.at(chief));
    assert!(
        card.words().contains(&waits) && card.words().contains("不能自己确认"),
        "{waits} in {}",
        card.words()
    );
    assert!(card.words().contains("需要 2 人确认"), "{}", card.words());
    world.restart(&[(APPROVERS, &listed(on, &["chief", "u9"]))]).await;
    let told = world.tap(boss, c, &card, "approve", None).await.told("没有生效").await;
    assert!(
        told.contains(chief) && told.contains(on.user("u9")) && !told.contains(boss),
        "{told}"
    );
    world.tap(chief, c, &card, "approve", None).await;
    let card = world.repainted(&card, "已有 1 人").await;
    assert!(card.words().contains(&asks), "{asks} in {}", card.words());
    world.end().await;
}

/// interface: so does the card of a tool call, and the requester reads whom it waits for.
async fn the_card_of_a_call_asks_those_who_may_decide(on: On) {
    let (c, u1, boss) = (on.chat("c1"), on.user("u1"), on.user("boss"));
    let answers = in_order(vec![writes(&["a.md"]), say("好了")]);
    let world = World::start_on(on, &[(APPROVERS, &listed(on, &["boss"]))], answers).await;
    world.say(u1, c, "写", GROUP).await;
    let card = world.card_titled(c, "操作确认").await;
    let asks = format!("{} 请批准 {} 的任务要执行的操作", on.at(boss), on.at(u1));
    assert!(card.words().contains(&asks), "{asks} in {}", card.words());
    assert!(card.words().contains(&format!("等待 {} 批准", on.at(boss))), "{}", card.words());
    world.tap(boss, c, &card, "approve", None).await;
    world.hears(c, "好了").await;
    world.end().await;
}

/// interface: where anyone may decide, the card says so and mentions the requester alone.
async fn the_card_asks_anyone_where_anyone_may_decide(on: On) {
    let (c, u1) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[(APPROVERS, "anyone")], reporter).await;
    world.say(u1, c, "整理笔记", GROUP).await;
    let card = world.plan_card(c).await;
    let asks = format!("{} 发起了下面的计划，群里任何人都可以确认", on.at(u1));
    let asks = if on == On::Slack {
        asks.replace("群里", "频道里")
    } else {
        asks
    };
    assert!(card.words().contains(&asks), "{asks} in {}", card.words());
    world.end().await;
}

/// F-H7, B1: another member's OK by text, reply or button is refused in place; the review and its time stay as they were.
async fn another_members_ok_is_refused_in_place(on: On) {
    let (c, u1, u2) = (on.chat("c1"), on.user("u1"), on.user("u2"));
    let world = World::start_on(on, &[], reporter).await;
    world.say(u1, c, "整理笔记", GROUP).await;
    let card = world.plan_card(c).await;
    let before = world.review_of(&card).await;
    let by_mention = world.say(u2, c, "OK", GROUP).await;
    // Free words in a thread are talk among people; there it takes a word of consent.
    let words = if on == On::Lark { "我看可以" } else { "同意" };
    let by_reply = world.say(on.user("u3"), c, words, aside(&card.id)).await;
    for message in [&by_mention, &by_reply] {
        let told = world.word_back(c, message).await;
        assert!(told.words().contains("没有生效"), "{}", told.words());
    }
    for verb in ["approve", "cancel"] {
        world.tap(u2, c, &card, verb, None).await.told("没有生效").await;
    }
    // A bare OK among people who talk to each other is not even refused.
    world.say(u2, c, "OK", ASIDE).await;
    world.caught_up().await;
    assert_eq!(world.review_of(&card).await, before);
    assert_eq!((world.count(c, "没有生效"), world.turns_in(c).await.len()), (2, 1));
    assert_eq!((world.file("report.md"), world.model.seen_of("整理笔记").len()), (None, 1));
    world.say(u1, c, "OK", GROUP).await;
    world.hears(c, "全部完成").await;
    world.end().await;
}

/// B1: what else another member says is a task of their own, in a lane of their own, beside the one that waits.
async fn another_members_words_are_their_own_task_in_their_own_lane(on: On) {
    let (c, u1, u2) = (on.chat("c1"), on.user("u1"), on.user("u2"));
    let world = World::start_on(on, &[], reporter).await;
    world.model.script("有几个文件", Script::new().text("一个文件"));
    world.say(u1, c, "整理笔记", GROUP).await;
    let card = world.plan_card(c).await;
    world.say(u2, c, "有几个文件", GROUP).await;
    world.hears(c, "一个文件").await;
    assert_eq!(world.api.turn_in(c, "completed").await["user_id"], u2);
    assert_eq!(world.api.turn_in(c, "paused").await["user_id"], u1);
    assert_eq!(world.review_of(&card).await["status"], "pending");
    world.tap(u1, c, &card, "approve", None).await;
    world.hears(c, "全部完成").await;
    world.end().await;
}

/// design: two of two: the same person twice counts once, the card shows how many, the second person lets it run.
async fn two_different_people_are_needed_and_nobody_counts_twice(on: On) {
    let (c, u1, u2) = (on.chat("c1"), on.user("u1"), on.user("u2"));
    let world = World::start_on(on, &[(APPROVERS, "anyone"), (QUORUM, "2")], reporter).await;
    world.say(u1, c, "整理笔记", GROUP).await;
    let card = world.plan_card(c).await;
    assert!(card.words().contains("需要 2 人确认，已有 0 人"), "{}", card.words());
    for _ in 0..2 {
        world.tap(u1, c, &card, "approve", None).await.done("1/2");
    }
    world.say(u1, c, "OK", reply(&card.id)).await;
    world.hears(c, "1/2").await;
    world.repainted(&card, "需要 2 人确认，已有 1 人").await;
    world.caught_up().await;
    let review = world.review_of(&card).await;
    assert_eq!(
        (&review["status"], review["votes"].as_array().unwrap().len()),
        (&json!("pending"), 1)
    );
    assert_eq!((world.file("report.md"), world.continuations()), (None, 0));
    world.say(u2, c, "同意", reply(&card.id)).await;
    world.hears(c, "全部完成").await;
    let review = world.review_of(&card).await;
    assert_eq!(
        (&review["decision"]["by"], review["votes"].as_array().unwrap().len()),
        (&json!(u2), 2)
    );
    assert_eq!(world.continuations(), 1);
    world.end().await;
}

/// design: of several needed, one change settles at once: the votes were for the old plan.
async fn votes_for_an_old_plan_do_not_count_for_the_new_one(on: On) {
    let (c, u1, u2) = (on.chat("c1"), on.user("u1"), on.user("u2"));
    let world = World::start_on(on, &[(APPROVERS, "anyone"), (QUORUM, "2")], reporter).await;
    world.say(u1, c, "整理笔记", GROUP).await;
    let first = world.plan_card(c).await;
    world.tap(u1, c, &first, "approve", None).await;
    world.say(u2, c, "写到 report-v2.md", reply(&first.id)).await;
    let second = world.card_after(c, &first).await;
    world.tap(u2, c, &second, "approve", None).await.done("1/2");
    assert_eq!(world.review_of(&second).await["status"], "pending");
    world.tap(u1, c, &second, "approve", None).await;
    world.hears(c, "全部完成").await;
    world.end().await;
}

/// interface: a question leaves the votes that were given: one approves, the API does in two names and counts once, another asks, is answered
/// and approves.
async fn votes_stay_when_a_question_is_answered(on: On) {
    let (c, u1, u2) = (on.chat("c1"), on.user("u1"), on.user("u2"));
    let (boss, chief) = (on.user("boss"), on.user("chief"));
    let world = World::start_on(on, &[(APPROVERS, "anyone"), (QUORUM, "3")], reporter).await;
    world.say(u1, c, "整理笔记", GROUP).await;
    let first = world.plan_card(c).await;
    world.tap(u1, c, &first, "approve", None).await.done("1/3");
    for name in [boss, chief] {
        assert_eq!(world.api.decide(&world.review_of(&first).await, "approve", name).await.0, 200);
    }
    world.say(u2, c, &in_full("这一步会删数据吗？"), reply(&first.id)).await;
    let second = world.card_after(c, &first).await;
    assert!(second.words().contains("已有 2 人"), "{}", second.words());
    world.tap(u1, c, &second, "approve", None).await.done("2/3");
    world.tap(u2, c, &first, "approve", None).await.done("已确认");
    world.hears(c, "全部完成").await;
    let review = world.review_of(&second).await;
    let by: Vec<&str> = review["votes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|vote| vote["by"].as_str().unwrap())
        .collect();
    assert_eq!((by, review["status"].as_str()), (vec![u1, boss, chief, u2], Some("approved")));
    let (status, again) = world.api.decide(&review, "approve", boss).await;
    assert_eq!(
        (status, &again["id"]),
        (200, &review["id"]),
        "what counted before, sent again: {again}"
    );
    // The trail says of each carried vote who gave it.
    let carried = "SELECT principal || CASE WHEN details LIKE '%on_behalf_of%' THEN ' for somebody' ELSE '' END FROM audit
        WHERE kind = 'vote' AND details LIKE '%given_at%' ORDER BY seq";
    assert_eq!(stored(&world, carried).await, [u1, "api for somebody", "api for somebody"]);
    world.end().await;
}

/// design: with a list, only those on it approve; a requester who is not may change and cancel the plan, never approve it.
async fn a_requester_who_is_no_approver_may_change_or_cancel_but_not_approve(on: On) {
    let (c, u1) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[(APPROVERS, &listed(on, &["boss", "chief"]))], reporter).await;
    world.say(u1, c, "整理笔记", GROUP).await;
    let first = world.plan_card(c).await;
    let told = world.tap(u1, c, &first, "approve", None).await.told("没有生效").await;
    assert!(told.contains(on.user("boss")), "{told}");
    world.say(u1, c, "OK", GROUP).await;
    world.hears(c, "没有生效").await;
    assert_eq!(world.review_of(&first).await["status"], "pending");
    world.say(u1, c, "写到 report-v2.md", GROUP).await;
    let second = world.card_after(c, &first).await;
    world.say(on.user("chief"), c, "OK", aside(&second.id)).await;
    world.hears(c, "全部完成").await;
    assert_eq!(world.review_of(&second).await["decision"]["by"], on.user("chief"));
    world.say(u1, c, "整理笔记", GROUP).await;
    world.card_after(c, &second).await;
    world.say(u1, c, "取消", GROUP).await;
    world.api.turn_in(c, "cancelled").await;
    world.end().await;
}

/// design: an approver who asked for nothing here may say a listed word with a mention when exactly one plan waits.
async fn a_listed_approver_may_answer_by_mention_when_one_plan_waits(on: On) {
    let (c, u1) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[(APPROVERS, &listed(on, &["boss"]))], reporter).await;
    world.say(u1, c, "整理笔记", GROUP).await;
    world.plan_card(c).await;
    world.say(on.user("boss"), c, "批准", GROUP).await;
    world.hears(c, "全部完成").await;
    world.end().await;
}

/// S0-30, design: a plan that waits survives a restart although no task is told of earlier ones, and who may approve it is what the settings say then.
async fn who_may_approve_is_read_when_the_decision_is_made(on: On) {
    let (c, u1) = (on.chat("c1"), on.user("u1"));
    let alone = [("CHAT__SESSION_MODE", "fresh"), ("AGENT__HISTORY_LIMIT", "0")];
    let mut world = World::start_on(on, &alone, reporter).await;
    world.say(u1, c, "整理笔记", GROUP).await;
    let card = world.plan_card(c).await;
    world.restart(&[(APPROVERS, &listed(on, &["boss"]))]).await;
    world.tap(u1, c, &card, "approve", None).await.told("没有生效").await;
    world.tap(on.user("boss"), c, &card, "approve", None).await.done("已确认");
    world.hears(c, "全部完成").await;
    assert_eq!(world.titled(c, "计划确认"), 1);
    world.end().await;
}

/// B6: two approvers click together: one settles it, the other hears who did.
async fn of_two_who_click_together_one_decides_and_the_other_hears_who(on: On) {
    let (u1, u2) = (on.user("u1"), on.user("u2"));
    let world = World::start_on(on, &[(APPROVERS, "anyone")], reporter).await;
    for round in 0..5 {
        let chat = on.chat(&format!("round{round}"));
        world.say(u1, chat, "整理笔记", GROUP).await;
        let card = world.plan_card(chat).await;
        let (one, two) = join(
            world.tap(u1, chat, &card, "approve", None),
            world.tap(u2, chat, &card, "approve", None),
        )
        .await;
        let decided = world.review_of(&card).await["decision"]["by"].clone();
        let (won, lost, winner) = if decided == u1 { (one, two, u1) } else { (two, one, u2) };
        won.done("已确认");
        let told = lost.told("已经处理过了").await;
        assert!(told.contains(winner), "{told}");
        world.hears(chat, "全部完成").await;
    }
    assert_eq!(world.continuations(), 5);
    world.end().await;
}

/// design: whoever clicks after the decision hears who decided, how and when.
async fn the_second_click_hears_who_decided(on: On) {
    let (c, u1, u2) = (on.chat("c1"), on.user("u1"), on.user("u2"));
    let world = World::start_on(on, &[], reporter).await;
    world.say(u1, c, "整理笔记", GROUP).await;
    let card = world.plan_card(c).await;
    world.tap(u1, c, &card, "approve", None).await;
    world.hears(c, "全部完成").await;
    for (who, verb) in [(u2, "approve"), (u1, "approve"), (u1, "cancel")] {
        let told = world.tap(who, c, &card, verb, None).await.told("已经处理过了：已确认").await;
        assert!(told.contains(u1) && told.contains("UTC"), "{told}");
    }
    assert_eq!(world.continuations(), 1);
    world.end().await;
}

/// B20: neither our own messages nor other bots' decide or ask for anything.
async fn bots_never_decide(on: On) {
    let (c, u1) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[(APPROVERS, "anyone")], reporter).await;
    world.say(u1, c, "整理笔记", GROUP).await;
    let card = world.plan_card(c).await;
    let says = |user| world.message(user, c, "OK", reply(&card.id));
    let bots = match on {
        On::Lark => vec![
            ("/event/sender/sender_type", json!("app")),
            ("/event/sender/sender_type", json!("bot")),
            ("/event/sender/sender_type", json!("")),
        ],
        On::Slack => vec![
            ("/event/bot_id", json!("B0OTHER")),
            ("/event/app_id", json!("A0OTHER")),
            ("/event/subtype", json!("bot_message")),
        ],
    };
    for (member, value) in bots {
        let mut event = says(on.user("other_bot"));
        for body in std::iter::once(&mut event.body).chain(&mut event.twin) {
            *body = with(body.take(), member, value.clone());
        }
        world.push(&event).await;
    }
    // Our own echo, even if the platform called us a user.
    world.push(&says(on.bot())).await;
    world.caught_up().await;
    let review = world.review_of(&card).await;
    assert_eq!((&review["status"], &review["votes"]), (&json!("pending"), &json!([])));
    assert_eq!(world.turns_in(c).await.len(), 1);
    world.end().await;
}

/// design: a mention of somebody else takes a word away from us; nobody asked us.
#[tokio::test]
async fn words_to_somebody_else_are_not_for_us() {
    let world = World::start(&[], |_| say("?")).await;
    let mut event = world.tenant.message(&countersign_playground::Words {
        user: U1,
        chat: C,
        text: "帮忙看看",
        group: true,
        mention: true,
        reply_to: None,
        thread: None,
    });
    event.body["event"]["message"]["mentions"][0]["id"]["open_id"] = json!(U2);
    world.push(&event).await;
    world.caught_up().await;
    assert_eq!((world.posts(C), world.turns_in(C).await.len()), (0, 0));
    world.end().await;
}
