//! Around a card's delivery: the platform has it, and we do not know yet.

use countersign::cli::demo::Fault;

use crate::support::scripts::reporter;
use crate::support::world::{GROUP, To, World};

/// I2, C1: the card reached the chat but the platform's answer got lost; an OK said before we ask again is not lost, and there
/// is one card.
#[tokio::test]
async fn an_ok_counts_although_the_cards_arrival_is_not_known_yet() {
    let world = World::start(&[], reporter).await;
    world.lark.fault("reply", Fault::LoseAnswer);
    world.say("ou_u1", "oc_c1", "整理笔记", GROUP).await;
    let card = world
        .seen("the card", |lark| {
            lark.in_chat("oc_c1").find(|message| message.button("approve").is_some()).cloned()
        })
        .await;
    world
        .say(
            "ou_u1",
            "oc_c1",
            "OK",
            To {
                reply_to: Some(&card.id),
                mention: false,
                ..GROUP
            },
        )
        .await;
    world.hears("oc_c1", "全部完成").await;
    assert_eq!(
        world
            .lark
            .snapshot()
            .messages
            .iter()
            .filter(|message| message.title() == Some("计划确认"))
            .count(),
        1
    );
    world.end().await;
}

/// C2: a card that the platform refuses becomes text that says how to answer, and the answer counts.
#[tokio::test]
async fn a_refused_card_becomes_text_and_can_be_answered() {
    let world = World::start(&[], reporter).await;
    world.lark.fault(
        "reply",
        Fault::Answer {
            status: 400,
            code: 230_099,
            header: None,
        },
    );
    world.say("ou_u1", "oc_c1", "整理笔记", GROUP).await;
    let text = world.hears("oc_c1", "请回复 **OK** 继续").await;
    assert_eq!(text.kind, "text");
    world.api.review_in("oc_c1").await;
    world
        .say(
            "ou_u1",
            "oc_c1",
            "OK",
            To {
                reply_to: Some(&text.id),
                mention: false,
                ..GROUP
            },
        )
        .await;
    world.hears("oc_c1", "全部完成").await;
    world.end().await;
}
