//! The requester's own words about the plan: changes, questions, refusals, and what counts as a yes.

use crate::support::fake_model::{Gate, Script, say};
use crate::support::people::{aside, in_full, reply};
use crate::support::platform::{On, on_both, on_either};
use crate::support::scripts::{clarified, finished, gated, in_order, planned, reporter};
use crate::support::world::{ASIDE, DIRECT, GROUP, To, World, place};

on_both! {
    changes_by_text_make_a_new_plan_that_waits_again,
    a_question_about_the_plan_is_answered_and_the_plan_still_waits,
    changes_by_the_edit_form_make_a_new_plan,
    a_full_width_ok_with_a_mention_approves,
    a_reply_without_mention_to_card_or_request_means_the_plan,
    a_reply_to_the_earlier_card_counts_after_an_answer,
    unmentioned_words_in_a_group_do_not_count_except_ok,
}

on_either! {
    a_press_on_the_earlier_card_counts_after_an_answer,
    a_press_while_words_are_worked_on_counts_for_nothing,
    a_plan_cancelled_by_text_is_over,
    a_plan_cancelled_by_button_is_over,
    an_ok_with_a_but_is_a_change,
    the_same_plan_again_needs_no_second_card,
    after_five_rounds_of_changes_the_task_ends_with_a_notice,
    a_word_beside_two_waiting_plans_is_asked_about,
}

/// S0-34, B7: changes make a new plan that waits anew; the old card shows the changes and decides nothing any more.
async fn changes_by_text_make_a_new_plan_that_waits_again(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], reporter).await;
    world.say(u, c, "整理笔记", GROUP).await;
    let first = world.plan_card(c).await;
    world.say(u, c, "写到 report-v2.md", GROUP).await;
    let second = world.card_after(c, &first).await;
    assert!(second.words().contains("第 2 版"), "{}", second.words());
    let old = world.repainted(&first, "已提出修改").await;
    assert!(
        old.words().contains("写到 report") && old.button("approve").is_none(),
        "{}",
        old.words()
    );
    world.tap(u, c, &first, "approve", None).await.told("最新的卡片").await;
    if on == On::Lark {
        // In a thread a word cannot point at one card of several.
        world.say(u, c, "OK", reply(&first.id)).await;
        world.hears(c, "请在最新的卡片上操作").await;
    }
    assert_eq!(world.review_of(&second).await["status"], "pending");
    world.say(u, c, "OK", reply(&second.id)).await;
    world.hears(c, "全部完成").await;
    assert!(world.file("report-v2.md").is_some() && world.file("report.md").is_none());
    assert_eq!(world.review_of(&first).await["decision"]["text"], "写到 report-v2.md");
    assert_eq!(world.continuations(), 2, "one for the changes, one for the OK");
    world.end().await;
}

/// S0-34: the card's form says the same as a text; an empty form changes nothing.
async fn changes_by_the_edit_form_make_a_new_plan(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], reporter).await;
    world.say(u, c, "整理笔记", GROUP).await;
    let first = world.plan_card(c).await;
    world.tap(u, c, &first, "revise", Some("  ")).await.told("还没有写修改意见").await;
    assert_eq!(world.review_of(&first).await["status"], "pending");
    world
        .tap(u, c, &first, "revise", Some("写到 report-v2.md"))
        .await
        .done("修改意见已收到");
    let second = world.card_after(c, &first).await;
    world.tap(u, c, &second, "approve", None).await;
    world.hears(c, "全部完成").await;
    assert!(world.file("report-v2.md").is_some() && world.file("report.md").is_none());
    world.end().await;
}

/// B14: a question is answered on a new card, the review stays open, the old card points to the new one.
async fn a_question_about_the_plan_is_answered_and_the_plan_still_waits(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], reporter).await;
    world.say(u, c, "整理笔记", GROUP).await;
    let first = world.plan_card(c).await;
    world.say(u, c, &in_full("这一步会删数据吗？"), reply(&first.id)).await;
    let second = world.card_after(c, &first).await;
    assert!(second.words().contains("不会删除任何数据"), "{}", second.words());
    if on == On::Lark {
        assert_eq!(
            second.reply_to.as_deref(),
            Some(first.id.as_str()),
            "the two cards lead to each other"
        );
    }
    let (old, new) = (world.review_of(&first).await, world.review_of(&second).await);
    assert_eq!((&old["plan_version"], &old["digest"]), (&new["plan_version"], &new["digest"]));
    assert_eq!(new["status"], "pending");
    assert_eq!(new["replaces"], world.review_of(&first).await["id"]);
    let old = world.repainted(&first, "计划未改动").await;
    assert!(old.button("approve").is_none() && !old.words().contains("修改"), "{}", old.words());
    assert_eq!(world.file("report.md"), None);
    world.say(u, c, "OK", GROUP).await;
    world.hears(c, "全部完成").await;
    assert!(world.file("report.md").is_some());
    world.end().await;
}

/// interface: a press on the earlier card counts for the review that is open after the answer, which asks for the same.
async fn a_press_on_the_earlier_card_counts_after_an_answer(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], reporter).await;
    world.say(u, c, "整理笔记", GROUP).await;
    let first = world.plan_card(c).await;
    world.say(u, c, &in_full("这一步会删数据吗？"), reply(&first.id)).await;
    let second = world.card_after(c, &first).await;
    world.say(u, c, &in_full("那会覆盖吗？"), reply(&second.id)).await;
    let third = world.card_after(c, &second).await;
    world.tap(u, c, &first, "approve", None).await.done("已确认");
    world.hears(c, "全部完成").await;
    assert_eq!(world.review_of(&third).await["status"], "approved");
    world.end().await;
}

/// interface: so does a reply to the earlier card, and a decision about the earlier review over the API.
async fn a_reply_to_the_earlier_card_counts_after_an_answer(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], reporter).await;
    world.say(u, c, "整理笔记", GROUP).await;
    let first = world.plan_card(c).await;
    world.say(u, c, &in_full("这一步会删数据吗？"), reply(&first.id)).await;
    let second = world.card_after(c, &first).await;
    world.say(u, c, "OK", reply(&first.id)).await;
    world.hears(c, "全部完成").await;
    assert_eq!(world.review_of(&second).await["status"], "approved");
    let d = on.chat("c2");
    world.say(u, d, "整理笔记", GROUP).await;
    let first = world.plan_card(d).await;
    world.say(u, d, &in_full("这一步会删数据吗？"), reply(&first.id)).await;
    let second = world.card_after(d, &first).await;
    let (status, decided) = world.api.decide(&world.review_of(&first).await, "approve", u).await;
    assert_eq!((status, &decided["id"]), (200, &world.review_of(&second).await["id"]), "{decided}");
    world.hears(d, "全部完成").await;
    world.end().await;
}

/// interface: a press while the model still works on somebody's words counts for nothing and is told so; no card calls them changes.
async fn a_press_while_words_are_worked_on_counts_for_nothing(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], reporter).await;
    let gate = Gate::new();
    let script = Script::new()
        .message(planned("整理笔记", &[("写报告", &["write_file"])]))
        .then(gated(&gate, say("不会覆盖。")))
        .message(clarified())
        .message(finished())
        .text("全部完成");
    world.model.script("看一下", script);
    world.say(u, c, "看一下", GROUP).await;
    let first = world.plan_card(c).await;
    world.say(u, c, &in_full("会覆盖吗？"), reply(&first.id)).await;
    let replied = world.repainted(&first, "已收到回复").await;
    assert!(!replied.words().contains("修改"), "{}", replied.words());
    world.tap(u, c, &first, "approve", None).await.told("没有计入").await;
    world.say(u, c, "OK", reply(&first.id)).await;
    world.hears(c, "没有计入").await;
    gate.open();
    let second = world.card_after(c, &first).await;
    assert_eq!(world.review_of(&second).await["votes"], serde_json::json!([]));
    world.tap(u, c, &second, "approve", None).await;
    world.hears(c, "全部完成").await;
    world.end().await;
}

/// C16: a refusal by word ends the task; nothing ran and the model is not asked again.
async fn a_plan_cancelled_by_text_is_over(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], reporter).await;
    world.say(u, c, "整理笔记", GROUP).await;
    let card = world.plan_card(c).await;
    world.say(u, c, "取消", GROUP).await;
    let turn = world.api.turn_in(c, "cancelled").await;
    assert_eq!(turn["reason"], "cancelled");
    let card = world.repainted(&card, "已取消").await;
    assert!(card.button("approve").is_none());
    world.hears(c, "没有做任何改动").await;
    world.caught_up().await;
    assert_eq!((world.file("report.md"), world.model.seen_of("整理笔记").len()), (None, 1));
    world.end().await;
}

/// M-5: the cancel button is equal to the word.
async fn a_plan_cancelled_by_button_is_over(on: On) {
    let u = on.user("u1");
    let world = World::start_on(on, &[], reporter).await;
    world.say(u, on.direct("p1"), "整理笔记", DIRECT).await;
    let card = world.plan_card(on.direct("p1")).await;
    world.tap(u, on.direct("p1"), &card, "cancel", None).await.done("已取消");
    world.api.turn_in(on.direct("p1"), "cancelled").await;
    world
        .tap(u, on.direct("p1"), &card, "approve", None)
        .await
        .told("已经处理过了：已取消")
        .await;
    world.caught_up().await;
    assert_eq!((world.file("report.md"), world.model.seen_of("整理笔记").len()), (None, 1));
    world.end().await;
}

/// B12: a full-width OK with a mention and a full stop approves.
async fn a_full_width_ok_with_a_mention_approves(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], reporter).await;
    world.say(u, c, "整理笔记", GROUP).await;
    world.plan_card(c).await;
    world.say(u, c, "　ＯＫ。", GROUP).await;
    world.hears(c, "全部完成").await;
    world.end().await;
}

/// B13: "OK, but" is a change and no OK.
async fn an_ok_with_a_but_is_a_change(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], reporter).await;
    world.say(u, c, "整理笔记", GROUP).await;
    let first = world.plan_card(c).await;
    world.say(u, c, "OK 但是第二步别做，第三步再说", reply(&first.id)).await;
    let second = world.card_after(c, &first).await;
    assert_eq!(world.review_of(&first).await["status"], "revised");
    assert_eq!(world.review_of(&second).await["status"], "pending");
    assert_eq!((world.file("report.md"), world.file("report-v2.md")), (None, None));
    world.end().await;
}

/// design: in a group, without mention, reply or thread, only `OK` itself counts.
async fn unmentioned_words_in_a_group_do_not_count_except_ok(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], reporter).await;
    world.say(u, c, "整理笔记", GROUP).await;
    let card = world.plan_card(c).await;
    let posts = world.posts(c);
    for words in ["好的", "取消", "写到 report-v2.md", "OK?", "同意"] {
        world.say(u, c, words, ASIDE).await;
    }
    world.caught_up().await;
    assert_eq!(world.review_of(&card).await["status"], "pending");
    assert_eq!((world.posts(c), world.turns_in(c).await.len()), (posts, 1));
    world.say(u, c, "ok!", ASIDE).await;
    world.hears(c, "全部完成").await;
    world.end().await;
}

/// design: a reply, mention or not, to the card or to the request means that plan.
async fn a_reply_without_mention_to_card_or_request_means_the_plan(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], reporter).await;
    let request = world.say(u, c, "整理笔记", GROUP).await;
    let first = world.plan_card(c).await;
    world.say(u, c, "写到 report-v2.md", aside(&first.id)).await;
    world.card_after(c, &first).await;
    world.say(u, c, "好的", aside(&request)).await;
    world.hears(c, "全部完成").await;
    assert!(world.file("report-v2.md").is_some());
    world.end().await;
}

/// B16: planning the same again after the OK asks nobody again.
async fn the_same_plan_again_needs_no_second_card(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let steps: &[(&str, &[&str])] = &[("读取笔记", &["read_file"])];
    let script = vec![
        planned("整理", steps),
        clarified(),
        planned("整理", steps),
        clarified(),
        finished(),
        say("整理好了"),
    ];
    let world = World::start_on(on, &[], in_order(script)).await;
    world.say(u, c, "整理", GROUP).await;
    let card = world.plan_card(c).await;
    world.tap(u, c, &card, "approve", None).await;
    world.hears(c, "整理好了").await;
    let turn = world.api.turn_in(c, "completed").await;
    assert_eq!((world.titled(c, "计划确认"), &turn["pauses"]), (1, &serde_json::json!(1)));
    assert_eq!(turn["plan"]["version"], 2);
    world.end().await;
}

/// F-H22: five rounds of changes are carried out; the sixth ends the task with a word, not with a card.
async fn after_five_rounds_of_changes_the_task_ends_with_a_notice(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], |request| {
        planned(&format!("第{}稿", place(request)), &[("写", &["write_file"])])
    })
    .await;
    world.say(u, c, "起草", GROUP).await;
    let mut card = world.plan_card(c).await;
    for round in 1..=5 {
        world.say(u, c, &in_full(&format!("再改第{round}次")), GROUP).await;
        card = world.card_after(c, &card).await;
    }
    world.say(u, c, &in_full("再改第6次"), GROUP).await;
    let turn = world.api.turn_in(c, "failed").await;
    assert_eq!(turn["reason"], "rounds");
    world.hears(c, "改了很多轮").await;
    assert_eq!(world.titled(c, "计划确认"), 6);
    assert_eq!(world.model.seen_of("起草").len(), 6);
    world.end().await;
}

/// F-H9: two plans of one person wait in two topics: a word in a topic means its plan, a word beside them is asked about.
async fn a_word_beside_two_waiting_plans_is_asked_about(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], |request| match place(request) {
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
    world.say(u, c, "甲任务", topic("omt_a")).await;
    world.say(u, c, "乙任务", topic("omt_b")).await;
    let both = crate::support::api::eventually("two reviews", || async {
        let list = world.api.get(&format!("/api/v1/reviews?chat={c}")).await;
        let items = list["items"].as_array().unwrap().clone();
        (items.iter().filter(|review| !review["message_id"].is_null()).count() == 2).then_some(items)
    })
    .await;
    world.say(u, c, "OK", GROUP).await;
    let which = world.hears(c, "这里有几件事在等你").await;
    assert!(
        which.words().contains("甲任务") && which.words().contains("乙任务"),
        "{}",
        which.words()
    );
    world.caught_up().await;
    assert_eq!(world.continuations(), 0);
    world.say(u, c, "OK", topic("omt_b")).await;
    world.hears(c, "好了").await;
    let done = world.api.turn_in(c, "completed").await;
    assert_eq!(
        (&done["text"], &done["thread_id"]),
        (&serde_json::json!("乙任务"), &serde_json::json!(world.topic(u, c, "omt_b")))
    );
    let left = both
        .iter()
        .find(|review| review["thread_id"] == world.topic(u, c, "omt_a"))
        .unwrap();
    assert_eq!(
        world.api.get(&format!("/api/v1/reviews/{}", left["id"].as_str().unwrap())).await["status"],
        "pending"
    );
    world.end().await;
}
