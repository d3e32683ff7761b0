//! Two processes get the same events.

use futures_util::stream::{self, StreamExt};

use crate::support::api::eventually;
use crate::support::fleet::{Fleet, LONG};
use crate::support::platform::{On, on_either};
use crate::support::scripts::planned;
use crate::support::world::GROUP;

on_either! {
    the_same_events_at_two_processes_are_one_turn_each,
}

const EVENTS: usize = 200;

/// F-H4, F-S1: 200 requests, each pushed to both processes at once: 200 turns, 200 cards.
async fn the_same_events_at_two_processes_are_one_turn_each(on: On) {
    let plan = |_: &serde_json::Value| planned("整理笔记", &[("写", &["write_file"])]);
    let Some((mut fleet, world)) = Fleet::open(on, LONG, &[&[], &[]], &[], plan).await else {
        return;
    };
    stream::iter(0..EVENTS)
        .for_each_concurrent(4, |number| {
            let world = &world;
            async move {
                let (user, chat) = (on.user(&format!("h{number}")), on.chat(&format!("h{number}")));
                let event = world.message(user, chat, "整理笔记", GROUP);
                // A gateway that is too slow says 503, and a platform pushes again.
                let sealed = world.tenant.seal(&event);
                eventually("a request that is taken", || async {
                    let (status, _) = world.tenant.post(&sealed).await.unwrap();
                    (status == 200).then_some(())
                })
                .await;
            }
        })
        .await;
    for number in 0..EVENTS {
        let chat = on.chat(&format!("h{number}"));
        world.seen("a card", |seen| seen.in_chat(chat).next().map(|_| ())).await;
    }
    // All is settled when nothing runs any more.
    eventually("200 paused turns", || async {
        let page = world.api.get("/api/v1/turns?limit=200").await;
        let turns = page["items"].as_array().unwrap();
        (turns.len() == EVENTS && page["next_cursor"].is_null() && turns.iter().all(|turn| turn["status"] == "paused")).then_some(())
    })
    .await;
    let seen = world.chat.snapshot();
    for number in 0..EVENTS {
        assert_eq!(seen.in_chat(on.chat(&format!("h{number}"))).count(), 1, "cards in chat {number}");
    }
    let worked = [0, 1].map(|number| fleet.process(number).log().matches("turn taken up").count());
    println!(
        "F-H4 {}: {EVENTS} events at two processes, {EVENTS} turns, {EVENTS} cards; taken up by {worked:?}",
        on.name()
    );
    world.end().await;
}
