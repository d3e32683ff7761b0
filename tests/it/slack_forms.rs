//! The button for changes on Slack, which opens a form, and words beside the thread.

use serde_json::{Value, json};

use crate::support::platform::On;
use crate::support::quiet::quiet;
use crate::support::scripts::reporter;
use crate::support::world::{ASIDE, GROUP, To, World};

/// M-5: the button opens a form for who may change the plan; what is sent closes it, and what comes too late stays in it.
#[tokio::test]
async fn a_form_for_changes() {
    let world = World::start_on(On::Slack, &[], reporter).await;
    world.say("U0U1", "C0C1", "整理笔记", GROUP).await;
    let card = world.plan_card("C0C1").await;
    let press = world.tenant.tap("U0U1", "C0C1", &card.id, &card.button("revise").unwrap(), None);
    for _ in 0..2 {
        // Pressed again because nothing happened at once: a trigger opens one form.
        assert_eq!(world.push(&press).await, Value::Null);
    }
    let form = world.seen("the form", |seen| seen.forms.first().cloned()).await;
    let review = world.api.review_in("C0C1").await;
    assert_eq!(
        (&review["status"], &review["votes"]),
        (&json!("pending"), &json!([])),
        "a press is no decision"
    );

    let empty = world.tenant.submit("U0U1", &form, "  ").unwrap();
    assert_eq!(world.push(&empty).await["response_action"], "errors");
    let sent = world.tenant.submit("U0U1", &form, "写到 report-v2.md").unwrap();
    assert_eq!(world.push(&sent).await, Value::Null, "the form closes");
    assert_eq!(world.push(&sent).await, Value::Null, "and closes when it is sent once more");
    world.hears("C0C1", "整理笔记（修改后）").await;
    let late = world.tenant.submit("U0U1", &form, "等等").unwrap();
    let answer = world.push(&late).await;
    assert_eq!(answer["response_action"], "errors", "{answer}");
    // The card that was answered has no buttons any more, although the press was answered with nothing.
    world
        .seen("the repainted card", |seen| {
            seen.messages
                .iter()
                .find(|message| message.id == card.id && message.buttons().is_empty())
                .cloned()
        })
        .await;
    quiet(&world).await;
    assert_eq!(world.api.turns().await.len(), 1);
}

/// M-5: a bystander is told in a note that this is not theirs, before any form; so is who presses a card that is closed.
#[tokio::test]
async fn rights_come_before_words() {
    let world = World::start_on(On::Slack, &[], reporter).await;
    world.say("U0U1", "C0C1", "整理笔记", GROUP).await;
    let card = world.plan_card("C0C1").await;
    let revise = card.button("revise").unwrap();
    world.press("U0U2", "C0C1", &card, &revise, None).await.told("U0U1").await;
    world.tap("U0U1", "C0C1", &card, "cancel", None).await.done("");
    world.press("U0U1", "C0C1", &card, &revise, None).await.told("").await;
    assert_eq!(world.chat.snapshot().forms.len(), 0);
    let notes = world.chat.snapshot().notes.clone();
    assert!(notes.iter().all(|note| note.thread.is_some()), "below the request: {notes:?}");
    world.api.turn_in("C0C1", "cancelled").await;
    quiet(&world).await;
    world.end().await;
}

/// M-5: a form that does not open leaves a note that says how to answer instead.
#[tokio::test]
async fn a_form_that_does_not_open() {
    let world = World::start_on(On::Slack, &[], reporter).await;
    world.say("U0U1", "C0C1", "整理笔记", GROUP).await;
    let card = world.plan_card("C0C1").await;
    let mut press = world.tenant.tap("U0U1", "C0C1", &card.id, &card.button("revise").unwrap(), None);
    press.body["trigger_id"] = json!("1.2.unknown");
    world.push(&press).await;
    world
        .seen("a note", |seen| {
            seen.notes
                .iter()
                .find(|note| note.user == "U0U1" && note.text.contains("回复"))
                .cloned()
        })
        .await;
    assert_eq!(world.chat.snapshot().forms.len(), 0);
    let answer = To {
        reply_to: Some(&card.id),
        ..ASIDE
    };
    world.say("U0U1", "C0C1", "OK", answer).await;
    world.hears("C0C1", "全部完成").await;
    quiet(&world).await;
    // The unknown trigger is the test's own doing.
    assert!(world.chat.snapshot().violations.iter().all(|what| what.contains("trigger")));
}

/// design: in a channel a flat message is a thread of its own; a stop word beside the thread still finds the one task.
#[tokio::test]
async fn stop_beside_the_thread() {
    for words in ["/stop", "cancel"] {
        let world = World::start_on(On::Slack, &[], reporter).await;
        let request = world.say("U0U1", "C0C1", "整理笔记", GROUP).await;
        let card = world.plan_card("C0C1").await;
        assert_eq!(card.reply_to.as_deref(), Some(request.as_str()));
        // Not said to us: people talk.
        world.say("U0U1", "C0C1", words, ASIDE).await;
        quiet(&world).await;
        assert_eq!(world.api.review_in("C0C1").await["status"], "pending", "{words}");
        let beside = To {
            thread: Some("another topic"),
            ..GROUP
        };
        world.say("U0U1", "C0C1", words, beside).await;
        world.api.turn_in("C0C1", "cancelled").await;
        quiet(&world).await;
        assert_eq!(world.api.turns().await.len(), 1, "{words} is no task");
        world.end().await;
    }
}
