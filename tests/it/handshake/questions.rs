//! Questions of the agent, greetings, and messages that say nothing.

use serde_json::{Value, json};

use crate::support::fake_model::{call, say};
use crate::support::people::{aside, reply};
use crate::support::platform::{On, on_both, on_either};
use crate::support::scripts::{finished, in_order, planned, reads, reporter};
use crate::support::world::{DIRECT, GROUP, To, World, last};

on_both! {
    a_question_is_the_requesters_and_stop_ends_it,
    an_attachment_is_never_an_ok,
    any_words_answer_a_question_verbatim,
    a_bare_mention_is_greeted_and_never_decides,
}

on_either! {
    clarify_may_ask_and_the_plan_goes_on_with_the_answer,
    a_message_that_is_too_long_is_told_so,
}

pub fn asks(question: &str) -> Value {
    call([("request_user", json!({ "message": question }))])
}

/// design: any words are the answer, exactly as they were said: an OK is no approval here and a refusal ends nothing.
async fn any_words_answer_a_question_verbatim(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    for (at, words) in ["OK", "取消", "notes.md，\n第二行 <plan_feedback> & 'x'", "👍"]
        .into_iter()
        .enumerate()
    {
        let world = World::start_on(on, &[], in_order(vec![asks("要哪个文件？"), say("明白了")])).await;
        world.say(u, c, "整理", GROUP).await;
        let card = world.card_titled(c, "需要你的回答").await;
        assert!(card.words().contains("要哪个文件？"), "{}", card.words());
        // By reply, by mention, by reply without mention: all the same.
        let to = [reply(&card.id), GROUP, aside(&card.id), GROUP][at];
        world.say(u, c, words, to).await;
        world.hears(c, "明白了").await;
        let request = world.model.seen_of("整理").pop().unwrap();
        let answer = last(&request)["content"].as_str().unwrap();
        assert_eq!(last(&request)["role"], "tool");
        if words.contains('<') {
            assert!(answer.starts_with("notes.md，\n第二行 ") && answer.ends_with("& 'x'"), "{answer}");
        } else {
            assert_eq!(answer, words);
        }
        let settled = world.repainted(&card, "已回答").await;
        assert!(settled.words().contains(words.lines().next().unwrap()), "{}", settled.words());
        world.end().await;
    }
}

/// design: `clarify` may ask too; the plan that was approved goes on with the answer.
async fn clarify_may_ask_and_the_plan_goes_on_with_the_answer(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let clarify = call([(
        "clarify",
        json!({ "task_goal_ui": "读取", "needs_user_input": true, "question_to_user": "哪一份？" }),
    )]);
    let script = vec![
        planned("读", &[("读取", &["read_file"])]),
        clarify,
        reads(),
        finished(),
        say("好了"),
    ];
    let world = World::start_on(on, &[], in_order(script)).await;
    world.say(u, c, "读", GROUP).await;
    let plan = world.plan_card(c).await;
    world.tap(u, c, &plan, "approve", None).await;
    world.card_titled(c, "需要你的回答").await;
    world.say(u, c, "第一份", GROUP).await;
    world.hears(c, "好了").await;
    assert_eq!(world.api.turn_in(c, "completed").await["pauses"], 2);
    world.end().await;
}

/// design: what another member says does not answer the question, and `/stop` is the one word that ends it.
async fn a_question_is_the_requesters_and_stop_ends_it(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], in_order(vec![asks("要哪个文件？"), say("不该到这里")])).await;
    world.say(u, c, "整理", GROUP).await;
    let card = world.card_titled(c, "需要你的回答").await;
    if on == On::Lark {
        // In a thread such words point at no card: there they are a task of their own.
        let other = world.say(on.user("u2"), c, "notes.md", reply(&card.id)).await;
        let told = world.word_back(c, &other).await;
        assert!(told.words().contains("没有生效"), "{}", told.words());
    }
    assert_eq!(world.api.turn_in(c, "paused").await["gate"]["kind"], "question");
    world.say(u, c, "/stop", GROUP).await;
    world.api.turn_in(c, "cancelled").await;
    world.repainted(&card, "已取消").await;
    world.caught_up().await;
    assert_eq!(world.model.seen_of("整理").len(), 1);
    world.end().await;
}

/// M-5: a bare mention is greeted; while a plan waits it says nothing and changes nothing.
async fn a_bare_mention_is_greeted_and_never_decides(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], reporter).await;
    world.say(u, c, "", GROUP).await;
    world.hears(c, "你好，需要我做什么").await;
    assert_eq!(world.turns_in(c).await.len(), 0);
    world.say(u, c, "整理笔记", GROUP).await;
    let card = world.plan_card(c).await;
    let before = world.review_of(&card).await;
    let posts = world.posts(c);
    world.say(u, c, " ！", GROUP).await;
    world.say(u, c, "", reply(&card.id)).await;
    world.caught_up().await;
    assert_eq!((world.review_of(&card).await, world.posts(c)), (before, posts));
    world.end().await;
}

/// design: an image, a sticker or a file is never an OK; the person hears that only words are read.
async fn an_attachment_is_never_an_ok(on: On) {
    let u = on.user("u1");
    let world = World::start_on(on, &[], reporter).await;
    world.say(u, on.direct("p1"), "整理笔记", DIRECT).await;
    let card = world.plan_card(on.direct("p1")).await;
    let before = world.review_of(&card).await;
    for kind in ["image", "sticker", "file"] {
        let to = To {
            reply_to: Some(&card.id),
            ..DIRECT
        };
        let mut event = world.message(u, on.direct("p1"), "", to);
        match on {
            On::Lark => {
                event.body["event"]["message"]["message_type"] = json!(kind);
                event.body["event"]["message"]["content"] = json!(json!({ "image_key": "OK", "file_name": "OK" }).to_string());
            }
            On::Slack => {
                event.body["event"]["subtype"] = json!("file_share");
                event.body["event"]["files"] = json!([{ "id": "F0FILE", "name": "OK", "title": "OK", "filetype": kind }]);
            }
        }
        world.push(&event).await;
    }
    // Each word back is said once: pictures and files are seen, a sticker is no text.
    let expected: &[&str] = match on {
        On::Lark => &["已看到文件", "只看得懂文字"],
        On::Slack => &["已看到文件"],
    };
    for words in expected {
        world.hears(on.direct("p1"), words).await;
    }
    world.caught_up().await;
    assert_eq!(world.posts(on.direct("p1")), 1 + expected.len());
    assert_eq!(
        (world.review_of(&card).await, world.turns_in(on.direct("p1")).await.len()),
        (before, 1)
    );
    world.end().await;
}

/// design: a message longer than we read is no answer and no task, and its sender is told.
async fn a_message_that_is_too_long_is_told_so(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], reporter).await;
    world.say(u, c, &"长".repeat(16_385), GROUP).await;
    world.hears(c, "太长了").await;
    assert_eq!(world.turns_in(c).await.len(), 0);
    world.end().await;
}
