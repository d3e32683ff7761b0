//! Around a card's delivery: the platform has it, and we do not know yet.

use countersign_playground::Fault;

use crate::support::platform::{On, on_both};
use crate::support::quiet::quiet;
use crate::support::scripts::reporter;
use crate::support::world::{GROUP, To, World};

on_both! {
    a_refused_card_becomes_text_and_can_be_answered,
    an_ok_counts_although_the_cards_arrival_is_not_known_yet,
}

/// F-I2, F-C1: the card reached the chat but the platform's answer got lost; an OK said before we ask again is not lost, and there
/// is one card.
async fn an_ok_counts_although_the_cards_arrival_is_not_known_yet(on: On) {
    let world = World::start_on(on, &[], reporter).await;
    world.chat.fault("reply", Fault::LoseAnswer);
    world.say(on.user("u1"), on.chat("c1"), "整理笔记", GROUP).await;
    let card = world
        .seen("the card", |seen| {
            seen.in_chat(on.chat("c1"))
                .find(|message| message.button("approve").is_some())
                .cloned()
        })
        .await;
    world
        .say(
            on.user("u1"),
            on.chat("c1"),
            "OK",
            To {
                reply_to: Some(&card.id),
                mention: false,
                ..GROUP
            },
        )
        .await;
    world.hears(on.chat("c1"), "全部完成").await;
    assert_eq!(
        world
            .chat
            .snapshot()
            .messages
            .iter()
            .filter(|message| message.title() == Some("计划确认"))
            .count(),
        1
    );
    world.end().await;
}

/// F-C1: a channel that takes one message a second hears more than that at once: what had to wait is posted when its turn comes,
/// without reading the channel first. Only what may have arrived is looked for.
#[tokio::test]
async fn what_was_held_back_is_not_looked_for() {
    let world = World::start_on(On::Slack, &[], reporter).await;
    for _ in 0..2 {
        let header = Some((String::from("retry-after"), String::from("0")));
        world.chat.fault(
            "reply",
            Fault::Answer {
                status: 429,
                code: 0,
                header,
            },
        );
    }
    world.say("U0U1", "C0C1", "整理笔记", GROUP).await;
    world.plan_card("C0C1").await;
    let seen = world.chat.snapshot();
    assert!(seen.count("reply") >= 3, "refused twice: {:?}", seen.count("reply"));
    assert_eq!(seen.count("replies") + seen.count("history"), 0, "nothing to look for");
    world.chat.fault("reply", Fault::LoseAnswer);
    world.say("U0U1", "C0C1", "cancel", GROUP).await;
    world.api.turn_in("C0C1", "cancelled").await;
    world.seen("a look", |seen| (seen.count("replies") > 0).then_some(())).await;
    quiet(&world).await;
    world.end().await;
}

/// F-C2: a card that the platform refuses becomes text that says how to answer, and the answer counts.
async fn a_refused_card_becomes_text_and_can_be_answered(on: On) {
    let world = World::start_on(on, &[], reporter).await;
    // Lark refuses the card that it keeps, which is tried three times, and the one in the message.
    let faults = match on {
        On::Lark => vec![
            Fault::Answer {
                status: 400,
                code: 230_099,
                header: None,
            };
            4
        ],
        On::Slack => vec![Fault::Error("invalid_blocks")],
    };
    for fault in faults {
        world.chat.fault("reply", fault);
    }
    world.say(on.user("u1"), on.chat("c1"), "整理笔记", GROUP).await;
    let text = world.hears(on.chat("c1"), bold_ok(on)).await;
    assert_eq!(text.kind, "text");
    world.api.review_in(on.chat("c1")).await;
    world
        .say(
            on.user("u1"),
            on.chat("c1"),
            "OK",
            To {
                reply_to: Some(&text.id),
                mention: false,
                ..GROUP
            },
        )
        .await;
    world.hears(on.chat("c1"), "全部完成").await;
    world.end().await;
}

/// How the platform's plain text spells the prompt's bold word.
fn bold_ok(on: On) -> &'static str {
    match on {
        On::Lark => "请回复 **OK** 继续",
        On::Slack => "请回复 *OK* 继续",
    }
}
