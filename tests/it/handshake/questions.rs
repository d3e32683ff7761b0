//! Questions of the agent, greetings, and messages that say nothing.

use serde_json::{Value, json};

use crate::support::fake_model::{call, say};
use crate::support::people::{aside, reply};
use crate::support::scripts::{finished, in_order, planned, reads, reporter};
use crate::support::world::{DIRECT, GROUP, World, last};

const C: &str = "oc_c1";
const U: &str = "ou_u1";

fn asks(question: &str) -> Value {
    call([("request_user", json!({ "message": question }))])
}

/// design: any words are the answer, exactly as they were said: an OK is no approval here and a refusal ends nothing.
#[tokio::test]
async fn any_words_answer_a_question_verbatim() {
    for (at, words) in ["OK", "取消", "notes.md，\n第二行 <plan_feedback> & 'x'", "👍"]
        .into_iter()
        .enumerate()
    {
        let world = World::start(&[], in_order(vec![asks("要哪个文件？"), say("明白了")])).await;
        world.say(U, C, "整理", GROUP).await;
        let card = world.card_titled(C, "需要你的回答").await;
        assert!(card.words().contains("要哪个文件？"), "{}", card.words());
        // By reply, by mention, by reply without mention: all the same.
        let to = [reply(&card.id), GROUP, aside(&card.id), GROUP][at];
        world.say(U, C, words, to).await;
        world.hears(C, "明白了").await;
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
#[tokio::test]
async fn clarify_may_ask_and_the_plan_goes_on_with_the_answer() {
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
    let world = World::start(&[], in_order(script)).await;
    world.say(U, C, "读", GROUP).await;
    let plan = world.plan_card(C).await;
    world.tap(U, C, &plan, "approve", None).await;
    world.card_titled(C, "需要你的回答").await;
    world.say(U, C, "第一份", GROUP).await;
    world.hears(C, "好了").await;
    assert_eq!(world.api.turn_in(C, "completed").await["pauses"], 2);
    world.end().await;
}

/// design: what another member says does not answer the question, and `/stop` is the one word that ends it.
#[tokio::test]
async fn a_question_is_the_requesters_and_stop_ends_it() {
    let world = World::start(&[], in_order(vec![asks("要哪个文件？"), say("不该到这里")])).await;
    world.say(U, C, "整理", GROUP).await;
    let card = world.card_titled(C, "需要你的回答").await;
    let other = world.say("ou_u2", C, "notes.md", reply(&card.id)).await;
    let told = world
        .seen("a refusal", |lark| {
            lark.messages.iter().find(|m| m.reply_to.as_ref() == Some(&other)).cloned()
        })
        .await;
    assert!(told.words().contains("没有生效"), "{}", told.words());
    assert_eq!(world.api.turn_in(C, "paused").await["gate"]["kind"], "question");
    world.say(U, C, "/stop", GROUP).await;
    world.api.turn_in(C, "cancelled").await;
    world.repainted(&card, "已取消").await;
    world.quiet().await;
    assert_eq!(world.model.seen_of("整理").len(), 1);
    world.end().await;
}

/// M-5: a bare mention is greeted; while a plan waits it says nothing and changes nothing.
#[tokio::test]
async fn a_bare_mention_is_greeted_and_never_decides() {
    let world = World::start(&[], reporter).await;
    world.say(U, C, "", GROUP).await;
    world.hears(C, "你好，需要我做什么").await;
    assert_eq!(world.turns_in(C).await.len(), 0);
    world.say(U, C, "整理笔记", GROUP).await;
    let card = world.plan_card(C).await;
    let before = world.review_of(&card).await;
    let posts = world.posts(C);
    world.say(U, C, " ！", GROUP).await;
    world.say(U, C, "", reply(&card.id)).await;
    world.quiet().await;
    assert_eq!((world.review_of(&card).await, world.posts(C)), (before, posts));
    world.end().await;
}

/// design: an image, a sticker or a file is never an OK; the person hears that only words are read.
#[tokio::test]
async fn an_attachment_is_never_an_ok() {
    let world = World::start(&[], reporter).await;
    world.say(U, "oc_p1", "整理笔记", DIRECT).await;
    let card = world.plan_card("oc_p1").await;
    let before = world.review_of(&card).await;
    for (kind, content) in [
        ("image", json!({ "image_key": "OK" })),
        ("sticker", json!({ "file_key": "OK" })),
        ("file", json!({ "file_name": "OK" })),
    ] {
        let mut event = world.tenant.message(&countersign::cli::demo::Words {
            user: U,
            chat: "oc_p1",
            reply_to: Some(&card.id),
            ..Default::default()
        });
        world.lark.learn(&event.message_id, "oc_p1");
        event.body["event"]["message"]["message_type"] = json!(kind);
        event.body["event"]["message"]["content"] = json!(content.to_string());
        world.push(&event).await;
    }
    world
        .seen("three words back", |lark| {
            (lark.in_chat("oc_p1").filter(|m| m.words().contains("只看得懂文字")).count() == 3).then_some(())
        })
        .await;
    world.quiet().await;
    assert_eq!((world.review_of(&card).await, world.turns_in("oc_p1").await.len()), (before, 1));
    world.end().await;
}

/// design: a message longer than we read is no answer and no task, and its sender is told.
#[tokio::test]
async fn a_message_that_is_too_long_is_told_so() {
    let world = World::start(&[], reporter).await;
    world.say(U, C, &"长".repeat(16_385), GROUP).await;
    world.hears(C, "太长了").await;
    assert_eq!(world.turns_in(C).await.len(), 0);
    world.end().await;
}
