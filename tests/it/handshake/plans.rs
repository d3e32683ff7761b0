//! The requester's own words about the plan: changes, questions, refusals, and what counts as a yes.

use crate::support::fake_model::say;
use crate::support::people::{aside, reply};
use crate::support::scripts::{clarified, finished, in_order, planned, reporter};
use crate::support::world::{ASIDE, DIRECT, GROUP, To, World, place};

const C: &str = "oc_c1";
const U: &str = "ou_u1";

/// S0-34, B7: changes make a new plan that waits anew; the old card shows the changes and decides nothing any more.
#[tokio::test]
async fn changes_by_text_make_a_new_plan_that_waits_again() {
    let world = World::start(&[], reporter).await;
    world.say(U, C, "整理笔记", GROUP).await;
    let first = world.plan_card(C).await;
    world.say(U, C, "写到 report-v2.md", GROUP).await;
    let second = world.card_after(C, &first).await;
    assert!(second.words().contains("第 2 版"), "{}", second.words());
    let old = world.repainted(&first, "已提出修改").await;
    assert!(
        old.words().contains("写到 report") && old.button("approve").is_none(),
        "{}",
        old.words()
    );
    let toast = world.tap(U, C, &first, "approve", None).await;
    assert!(toast.contains("最新的卡片"), "{toast}");
    world.say(U, C, "OK", reply(&first.id)).await;
    world.hears(C, "请在最新的卡片上操作").await;
    assert_eq!(world.review_of(&second).await["status"], "pending");
    world.say(U, C, "OK", reply(&second.id)).await;
    world.hears(C, "全部完成").await;
    assert!(world.file("report-v2.md").is_some() && world.file("report.md").is_none());
    assert_eq!(world.review_of(&first).await["decision"]["text"], "写到 report-v2.md");
    assert_eq!(world.continuations(), 2, "one for the changes, one for the OK");
    world.end().await;
}

/// S0-34: the card's form says the same as a text; an empty form changes nothing.
#[tokio::test]
async fn changes_by_the_edit_form_make_a_new_plan() {
    let world = World::start(&[], reporter).await;
    world.say(U, C, "整理笔记", GROUP).await;
    let first = world.plan_card(C).await;
    let toast = world.tap(U, C, &first, "revise", Some("  ")).await;
    assert!(toast.contains("还没有写修改意见"), "{toast}");
    assert_eq!(world.review_of(&first).await["status"], "pending");
    let toast = world.tap(U, C, &first, "revise", Some("写到 report-v2.md")).await;
    assert!(toast.contains("修改意见已收到"), "{toast}");
    let second = world.card_after(C, &first).await;
    world.tap(U, C, &second, "approve", None).await;
    world.hears(C, "全部完成").await;
    assert!(world.file("report-v2.md").is_some() && world.file("report.md").is_none());
    world.end().await;
}

/// B14: a question is answered on a new card, the review stays open, the old card points to the new one.
#[tokio::test]
async fn a_question_about_the_plan_is_answered_and_the_plan_still_waits() {
    let world = World::start(&[], reporter).await;
    world.say(U, C, "整理笔记", GROUP).await;
    let first = world.plan_card(C).await;
    world.say(U, C, "这一步会删数据吗？", reply(&first.id)).await;
    let second = world.card_after(C, &first).await;
    assert!(second.words().contains("不会删除任何数据"), "{}", second.words());
    let (old, new) = (world.review_of(&first).await, world.review_of(&second).await);
    assert_eq!((&old["plan_version"], &old["digest"]), (&new["plan_version"], &new["digest"]));
    assert_eq!(new["status"], "pending");
    let old = world.repainted(&first, "新的卡片").await;
    assert!(old.button("approve").is_none(), "{}", old.words());
    let toast = world.tap(U, C, &first, "approve", None).await;
    assert!(toast.contains("最新的卡片"), "{toast}");
    assert_eq!(world.file("report.md"), None);
    world.say(U, C, "OK", GROUP).await;
    world.hears(C, "全部完成").await;
    assert!(world.file("report.md").is_some());
    world.end().await;
}

/// S0-31: a refusal by word ends the task; nothing ran and the model is not asked again.
#[tokio::test]
async fn a_plan_cancelled_by_text_is_over() {
    let world = World::start(&[], reporter).await;
    world.say(U, C, "整理笔记", GROUP).await;
    let card = world.plan_card(C).await;
    world.say(U, C, "取消", GROUP).await;
    let turn = world.api.turn_in(C, "cancelled").await;
    assert_eq!(turn["reason"], "cancelled");
    let card = world.repainted(&card, "已取消").await;
    assert!(card.button("approve").is_none());
    world.hears(C, "不会再执行任何操作").await;
    world.quiet().await;
    assert_eq!((world.file("report.md"), world.model.seen_of("整理笔记").len()), (None, 1));
    world.end().await;
}

/// M-5: the cancel button is equal to the word.
#[tokio::test]
async fn a_plan_cancelled_by_button_is_over() {
    let world = World::start(&[], reporter).await;
    world.say(U, "oc_p1", "整理笔记", DIRECT).await;
    let card = world.plan_card("oc_p1").await;
    let toast = world.tap(U, "oc_p1", &card, "cancel", None).await;
    assert!(toast.contains("已取消"), "{toast}");
    world.api.turn_in("oc_p1", "cancelled").await;
    let toast = world.tap(U, "oc_p1", &card, "approve", None).await;
    assert!(toast.contains("已经处理过了：已取消"), "{toast}");
    world.quiet().await;
    assert_eq!((world.file("report.md"), world.model.seen_of("整理笔记").len()), (None, 1));
    world.end().await;
}

/// B12: a full-width OK with a mention and a full stop approves.
#[tokio::test]
async fn a_full_width_ok_with_a_mention_approves() {
    let world = World::start(&[], reporter).await;
    world.say(U, C, "整理笔记", GROUP).await;
    world.plan_card(C).await;
    world.say(U, C, "　ＯＫ。", GROUP).await;
    world.hears(C, "全部完成").await;
    world.end().await;
}

/// B13: "OK, but" is a change and no OK.
#[tokio::test]
async fn an_ok_with_a_but_is_a_change() {
    let world = World::start(&[], reporter).await;
    world.say(U, C, "整理笔记", GROUP).await;
    let first = world.plan_card(C).await;
    world.say(U, C, "OK 但是第二步别做", reply(&first.id)).await;
    let second = world.card_after(C, &first).await;
    assert_eq!(world.review_of(&first).await["status"], "revised");
    assert_eq!(world.review_of(&second).await["status"], "pending");
    assert_eq!((world.file("report.md"), world.file("report-v2.md")), (None, None));
    world.end().await;
}

/// design: in a group, without mention, reply or thread, only `OK` itself counts.
#[tokio::test]
async fn unmentioned_words_in_a_group_do_not_count_except_ok() {
    let world = World::start(&[], reporter).await;
    world.say(U, C, "整理笔记", GROUP).await;
    let card = world.plan_card(C).await;
    let posts = world.posts(C);
    for words in ["好的", "取消", "写到 report-v2.md", "OK?", "同意"] {
        world.say(U, C, words, ASIDE).await;
    }
    world.quiet().await;
    assert_eq!(world.review_of(&card).await["status"], "pending");
    assert_eq!((world.posts(C), world.turns_in(C).await.len()), (posts, 1));
    world.say(U, C, "ok!", ASIDE).await;
    world.hears(C, "全部完成").await;
    world.end().await;
}

/// design: a reply, mention or not, to the card or to the request means that plan.
#[tokio::test]
async fn a_reply_without_mention_to_card_or_request_means_the_plan() {
    let world = World::start(&[], reporter).await;
    let request = world.say(U, C, "整理笔记", GROUP).await;
    let first = world.plan_card(C).await;
    world.say(U, C, "写到 report-v2.md", aside(&first.id)).await;
    world.card_after(C, &first).await;
    world.say(U, C, "好的", aside(&request)).await;
    world.hears(C, "全部完成").await;
    assert!(world.file("report-v2.md").is_some());
    world.end().await;
}

/// B16: planning the same again after the OK asks nobody again.
#[tokio::test]
async fn the_same_plan_again_needs_no_second_card() {
    let steps: &[(&str, &[&str])] = &[("读取笔记", &["read_file"])];
    let script = vec![
        planned("整理", steps),
        clarified(),
        planned("整理", steps),
        clarified(),
        finished(),
        say("整理好了"),
    ];
    let world = World::start(&[], in_order(script)).await;
    world.say(U, C, "整理", GROUP).await;
    let card = world.plan_card(C).await;
    world.tap(U, C, &card, "approve", None).await;
    world.hears(C, "整理好了").await;
    let turn = world.api.turn_in(C, "completed").await;
    assert_eq!((world.titled(C, "计划确认"), &turn["pauses"]), (1, &serde_json::json!(1)));
    assert_eq!(turn["plan"]["version"], 2);
    world.end().await;
}

/// H22: five rounds of changes are carried out; the sixth ends the task with a word, not with a card.
#[tokio::test]
async fn after_five_rounds_of_changes_the_task_ends_with_a_notice() {
    let world = World::start(&[], |request| {
        planned(&format!("第{}稿", place(request)), &[("写", &["write_file"])])
    })
    .await;
    world.say(U, C, "起草", GROUP).await;
    let mut card = world.plan_card(C).await;
    for round in 1..=5 {
        world.say(U, C, &format!("再改第{round}次"), GROUP).await;
        card = world.card_after(C, &card).await;
    }
    world.say(U, C, "再改第6次", GROUP).await;
    let turn = world.api.turn_in(C, "failed").await;
    assert_eq!(turn["reason"], "rounds");
    world.hears(C, "改了很多轮").await;
    assert_eq!(world.titled(C, "计划确认"), 6);
    assert_eq!(world.model.seen_of("起草").len(), 6);
    world.end().await;
}

/// H9: two plans of one person wait in two topics: a word in a topic means its plan, a word beside them is asked about.
#[tokio::test]
async fn a_word_beside_two_waiting_plans_is_asked_about() {
    let world = World::start(&[], |request| match place(request) {
        0 => planned(crate::support::world::user_words(request).trim(), &[("写", &["write_file"])]),
        1 => clarified(),
        2 => finished(),
        _ => say("好了"),
    })
    .await;
    let topic = |thread| To {
        thread: Some(thread),
        ..GROUP
    };
    world.say(U, C, "甲任务", topic("omt_a")).await;
    world.say(U, C, "乙任务", topic("omt_b")).await;
    let both = crate::support::api::eventually("two reviews", || async {
        let list = world.api.get(&format!("/api/v1/reviews?chat={C}")).await;
        let items = list["items"].as_array().unwrap().clone();
        (items.iter().filter(|review| !review["message_id"].is_null()).count() == 2).then_some(items)
    })
    .await;
    world.say(U, C, "OK", GROUP).await;
    let which = world.hears(C, "这里有几件事在等你").await;
    assert!(
        which.words().contains("甲任务") && which.words().contains("乙任务"),
        "{}",
        which.words()
    );
    world.quiet().await;
    assert_eq!(world.continuations(), 0);
    world.say(U, C, "OK", topic("omt_b")).await;
    world.hears(C, "好了").await;
    let done = world.api.turn_in(C, "completed").await;
    assert_eq!(
        (&done["text"], &done["thread_id"]),
        (&serde_json::json!("乙任务"), &serde_json::json!("omt_b"))
    );
    let left = both.iter().find(|review| review["thread_id"] == "omt_a").unwrap();
    assert_eq!(
        world.api.get(&format!("/api/v1/reviews/{}", left["id"].as_str().unwrap())).await["status"],
        "pending"
    );
    world.end().await;
}
