//! Ids that look alike when put together, and ids that cannot be.

use countersign_playground::{Posted, Words};
use serde_json::Value;

use crate::support::api::eventually;
use crate::support::platform::{On, on_both};
use crate::support::scripts::reporter;
use crate::support::world::{GROUP, World};

on_both! {
    odd_ids_do_not_collide,
}

/// F-I6: chats and people whose ids, put together, look alike stay apart: separators, other alphabets, one letter in two
/// encodings, upper and lower case, patterns, and the longest ids that there are.
async fn odd_ids_do_not_collide(on: On) {
    let world = World::start_on(on, &[], reporter).await;
    let (long, longer) = ("c".repeat(256), format!("{}d", "c".repeat(255)));
    let lark = vec![
        ("oc_a:b", "ou_c"),
        ("oc_a", "b:ou_c"),
        ("oc_a|ou_b", "c"),
        ("oc_a", "ou_b|c"),
        ("oc_甲", "ou_乙"),
        ("oc_甲ou_", "乙"),
        ("oc_caf\u{e9}", "ou_e"),
        ("oc_cafe\u{301}", "ou_e"),
        ("OC_A:B", "ou_c"),
        ("oc_%", "ou_%"),
        ("oc_*", "ou_*"),
        ("oc_'; DROP TABLE turns; --", "ou_\"><at id=all>"),
        ("../../etc/passwd", "{{7*7}}"),
        (long.as_str(), long.as_str()),
        (longer.as_str(), long.as_str()),
    ];
    // Slack spells its ids with capitals and digits.
    let slack = vec![("C0A", "UBUC"), ("C0AUB", "UC"), ("C0A", "WBUC"), ("C0AWB", "UC"), ("G0A", "UBUC")];
    let people = if on == On::Lark { lark } else { slack };
    let mut cards = Vec::new();
    for (chat, user) in &people {
        world.say(user, chat, "整理笔记", GROUP).await;
        cards.push(card_of(&world, chat, user).await);
    }
    for (at, (chat, user)) in people.iter().enumerate() {
        world.say(user, chat, "OK", GROUP).await;
        world.caught_up().await;
        for (other, card) in cards.iter().enumerate() {
            let expected = if other <= at { "approved" } else { "pending" };
            assert_eq!(
                world.review_of(card).await["status"],
                expected,
                "{:?} after {:?}",
                people[other],
                people[at]
            );
        }
    }
    eventually("all done", || async {
        let turns = world.api.turns().await;
        (turns
            .iter()
            .filter(|turn| turn["channel"] == on.name() && turn["status"] == "completed")
            .count()
            == people.len())
        .then_some(())
    })
    .await;
    assert_eq!(world.continuations(), people.len());
    world.end().await;
}

/// F-I6: an id that is too long or holds a control character is refused, not cut.
#[tokio::test]
async fn ids_that_cannot_be_are_refused() {
    let world = World::start(&[], reporter).await;
    for chat in ["c".repeat(257), "oc\na".to_owned(), "oc\u{0}".to_owned()] {
        let event = world.tenant.message(&Words {
            user: "ou_u1",
            chat: &chat,
            text: "整理笔记",
            ..Words::default()
        });
        world.push_unreadable(&event).await;
    }
    world.caught_up().await;
    assert_eq!(world.api.turns().await.iter().filter(|turn| turn["channel"] == "lark").count(), 0);
    world.end().await;
}

/// The plan card of one person in one chat.
async fn card_of(world: &World, chat: &str, user: &str) -> Posted {
    let id = eventually(&format!("a review of {user} in {chat}"), || async {
        let list = world.api.get("/api/v1/reviews?limit=200").await;
        let mine = |review: &&Value| review["chat_id"] == chat && review["user_id"] == user;
        list["items"].as_array().unwrap().iter().find(mine)?["message_id"]
            .as_str()
            .map(str::to_owned)
    })
    .await;
    world
        .seen("the card", |seen| seen.messages.iter().find(|message| message.id == id).cloned())
        .await
}
