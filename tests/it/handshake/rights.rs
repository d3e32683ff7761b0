//! Who may decide: the requester, others, several, a list; and those who never may.

use futures_util::future::join;
use serde_json::json;

use crate::support::fake_model::{Script, say};
use crate::support::people::{aside, reply};
use crate::support::scripts::reporter;
use crate::support::world::{ASIDE, GROUP, World};

const C: &str = "oc_c1";
const U1: &str = "ou_u1";
const U2: &str = "ou_u2";
const APPROVERS: &str = "CHANNELS__LARK__PLAN_REVIEW_APPROVERS";
const QUORUM: &str = "CHANNELS__LARK__PLAN_REVIEW_QUORUM";

/// H7, B1: another member's OK by text, reply or button is refused in place; the review and its time stay as they were.
#[tokio::test]
async fn another_members_ok_is_refused_in_place() {
    let world = World::start(&[], reporter).await;
    world.say(U1, C, "整理笔记", GROUP).await;
    let card = world.plan_card(C).await;
    let before = world.review_of(&card).await;
    let by_mention = world.say(U2, C, "OK", GROUP).await;
    let by_reply = world.say(U2, C, "我看可以", aside(&card.id)).await;
    for message in [&by_mention, &by_reply] {
        let told = world
            .seen("a refusal", |lark| {
                lark.messages.iter().find(|m| m.reply_to.as_ref() == Some(message)).cloned()
            })
            .await;
        assert!(told.words().contains("没有生效"), "{}", told.words());
    }
    for verb in ["approve", "cancel"] {
        let toast = world.tap(U2, C, &card, verb, None).await;
        assert!(toast.contains("没有生效"), "{toast}");
    }
    // A bare OK among people who talk to each other is not even refused.
    world.say(U2, C, "OK", ASIDE).await;
    world.quiet().await;
    assert_eq!(world.review_of(&card).await, before);
    assert_eq!((world.count(C, "没有生效"), world.turns_in(C).await.len()), (2, 1));
    assert_eq!((world.file("report.md"), world.model.seen_of("整理笔记").len()), (None, 1));
    world.say(U1, C, "OK", GROUP).await;
    world.hears(C, "全部完成").await;
    world.end().await;
}

/// B1: what else another member says is a task of their own, in a lane of their own, beside the one that waits.
#[tokio::test]
async fn another_members_words_are_their_own_task_in_their_own_lane() {
    let world = World::start(&[], reporter).await;
    world.model.script("有几个文件", Script::new().text("一个文件"));
    world.say(U1, C, "整理笔记", GROUP).await;
    let card = world.plan_card(C).await;
    world.say(U2, C, "有几个文件", GROUP).await;
    world.hears(C, "一个文件").await;
    assert_eq!(world.api.turn_in(C, "completed").await["user_id"], U2);
    assert_eq!(world.api.turn_in(C, "paused").await["user_id"], U1);
    assert_eq!(world.review_of(&card).await["status"], "pending");
    world.tap(U1, C, &card, "approve", None).await;
    world.hears(C, "全部完成").await;
    world.end().await;
}

/// design: two of two: the same person twice counts once, the card shows how many, the second person lets it run.
#[tokio::test]
async fn two_different_people_are_needed_and_nobody_counts_twice() {
    let world = World::start(&[(APPROVERS, "anyone"), (QUORUM, "2")], reporter).await;
    world.say(U1, C, "整理笔记", GROUP).await;
    let card = world.plan_card(C).await;
    assert!(card.words().contains("需要 2 人同意，已有 0 人"), "{}", card.words());
    for _ in 0..2 {
        let toast = world.tap(U1, C, &card, "approve", None).await;
        assert!(toast.contains("1/2"), "{toast}");
    }
    world.say(U1, C, "OK", reply(&card.id)).await;
    world.hears(C, "1/2").await;
    world.repainted(&card, "需要 2 人同意，已有 1 人").await;
    world.quiet().await;
    let review = world.review_of(&card).await;
    assert_eq!(
        (&review["status"], review["votes"].as_array().unwrap().len()),
        (&json!("pending"), 1)
    );
    assert_eq!((world.file("report.md"), world.continuations()), (None, 0));
    world.say(U2, C, "同意", reply(&card.id)).await;
    world.hears(C, "全部完成").await;
    let review = world.review_of(&card).await;
    assert_eq!(
        (&review["decision"]["by"], review["votes"].as_array().unwrap().len()),
        (&json!(U2), 2)
    );
    assert_eq!(world.continuations(), 1);
    world.end().await;
}

/// design: of several needed, one change settles at once: the votes were for the old plan.
#[tokio::test]
async fn votes_for_an_old_plan_do_not_count_for_the_new_one() {
    let world = World::start(&[(APPROVERS, "anyone"), (QUORUM, "2")], reporter).await;
    world.say(U1, C, "整理笔记", GROUP).await;
    let first = world.plan_card(C).await;
    world.tap(U1, C, &first, "approve", None).await;
    world.say(U2, C, "写到 report-v2.md", aside(&first.id)).await;
    let second = world.card_after(C, &first).await;
    let toast = world.tap(U2, C, &second, "approve", None).await;
    assert!(toast.contains("1/2"), "{toast}");
    assert_eq!(world.review_of(&second).await["status"], "pending");
    world.tap(U1, C, &second, "approve", None).await;
    world.hears(C, "全部完成").await;
    world.end().await;
}

/// design: with a list, only those on it approve; a requester who is not may change and cancel the plan, never approve it.
#[tokio::test]
async fn a_requester_who_is_no_approver_may_change_or_cancel_but_not_approve() {
    let world = World::start(&[(APPROVERS, "[ou_boss, ou_chief]")], reporter).await;
    world.say(U1, C, "整理笔记", GROUP).await;
    let first = world.plan_card(C).await;
    let toast = world.tap(U1, C, &first, "approve", None).await;
    assert!(toast.contains("没有生效") && toast.contains("ou_boss"), "{toast}");
    world.say(U1, C, "OK", GROUP).await;
    world.hears(C, "没有生效").await;
    assert_eq!(world.review_of(&first).await["status"], "pending");
    world.say(U1, C, "写到 report-v2.md", GROUP).await;
    let second = world.card_after(C, &first).await;
    world.say("ou_chief", C, "OK", aside(&second.id)).await;
    world.hears(C, "全部完成").await;
    assert_eq!(world.review_of(&second).await["decision"]["by"], "ou_chief");
    world.say(U1, C, "整理笔记", GROUP).await;
    world.card_after(C, &second).await;
    world.say(U1, C, "取消", GROUP).await;
    world.api.turn_in(C, "cancelled").await;
    world.end().await;
}

/// design: an approver who asked for nothing here may say a listed word with a mention when exactly one plan waits.
#[tokio::test]
async fn a_listed_approver_may_answer_by_mention_when_one_plan_waits() {
    let world = World::start(&[(APPROVERS, "[ou_boss]")], reporter).await;
    world.say(U1, C, "整理笔记", GROUP).await;
    world.plan_card(C).await;
    world.say("ou_boss", C, "批准", GROUP).await;
    world.hears(C, "全部完成").await;
    world.end().await;
}

/// S0-30, design: a plan that waits survives a restart, and who may approve it is what the settings say then.
#[tokio::test]
async fn who_may_approve_is_read_when_the_decision_is_made() {
    let mut world = World::start(&[], reporter).await;
    world.say(U1, C, "整理笔记", GROUP).await;
    let card = world.plan_card(C).await;
    world.restart(&[(APPROVERS, "[ou_boss]")]).await;
    let toast = world.tap(U1, C, &card, "approve", None).await;
    assert!(toast.contains("没有生效"), "{toast}");
    let toast = world.tap("ou_boss", C, &card, "approve", None).await;
    assert!(toast.contains("已确认"), "{toast}");
    world.hears(C, "全部完成").await;
    assert_eq!(world.titled(C, "计划确认"), 1);
    world.end().await;
}

/// B6: two approvers click together: one settles it, the other hears who did.
#[tokio::test]
async fn of_two_who_click_together_one_decides_and_the_other_hears_who() {
    let world = World::start(&[(APPROVERS, "anyone")], reporter).await;
    for round in 0..5 {
        let chat = format!("oc_round{round}");
        world.say(U1, &chat, "整理笔记", GROUP).await;
        let card = world.plan_card(&chat).await;
        let (one, two) = join(
            world.tap(U1, &chat, &card, "approve", None),
            world.tap(U2, &chat, &card, "approve", None),
        )
        .await;
        let (won, told, winner) = if one.starts_with("已确认") {
            (one, two, U1)
        } else {
            (two, one, U2)
        };
        assert!(
            won.starts_with("已确认") && told.contains("已经处理过了") && told.contains(winner),
            "{won} / {told}"
        );
        world.hears(&chat, "全部完成").await;
    }
    assert_eq!(world.continuations(), 5);
    world.end().await;
}

/// design: whoever clicks after the decision hears who decided, how and when.
#[tokio::test]
async fn the_second_click_hears_who_decided() {
    let world = World::start(&[], reporter).await;
    world.say(U1, C, "整理笔记", GROUP).await;
    let card = world.plan_card(C).await;
    world.tap(U1, C, &card, "approve", None).await;
    world.hears(C, "全部完成").await;
    for (who, verb) in [(U2, "approve"), (U1, "approve"), (U1, "cancel")] {
        let toast = world.tap(who, C, &card, verb, None).await;
        assert!(
            toast.contains("已经处理过了：已确认") && toast.contains(U1) && toast.contains("UTC"),
            "{toast}"
        );
    }
    assert_eq!(world.continuations(), 1);
    world.end().await;
}

/// B20: neither our own messages nor other bots' decide or ask for anything.
#[tokio::test]
async fn bots_never_decide() {
    let world = World::start(&[(APPROVERS, "anyone")], reporter).await;
    world.say(U1, C, "整理笔记", GROUP).await;
    let card = world.plan_card(C).await;
    let words = |user| countersign::cli::demo::Words {
        user,
        chat: C,
        text: "OK",
        group: true,
        mention: true,
        reply_to: Some(&card.id),
        thread: None,
    };
    for kind in ["app", "bot", ""] {
        let mut event = world.tenant.message(&words("ou_other_bot"));
        event.body["event"]["sender"]["sender_type"] = json!(kind);
        world.push(&event).await;
    }
    // Our own echo, even if the platform called us a user.
    world.push(&world.tenant.message(&words(countersign::cli::demo::BOT))).await;
    world.quiet().await;
    let review = world.review_of(&card).await;
    assert_eq!((&review["status"], &review["votes"]), (&json!("pending"), &json!([])));
    assert_eq!(world.turns_in(C).await.len(), 1);
    world.end().await;
}

/// design: a mention of somebody else takes a word away from us; nobody asked us.
#[tokio::test]
async fn words_to_somebody_else_are_not_for_us() {
    let world = World::start(&[], |_| say("?")).await;
    let mut event = world.tenant.message(&countersign::cli::demo::Words {
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
    world.quiet().await;
    assert_eq!((world.posts(C), world.turns_in(C).await.len()), (0, 0));
    world.end().await;
}
