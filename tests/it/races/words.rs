//! Words against words: an OK and a change, changes without end, a model that only talks.

use futures_util::future::join;

use super::kit::Race;
use super::races;
use crate::support::people::{in_full, reply};
use crate::support::platform::On;
use crate::support::scripts::{planned, reporter};
use crate::support::world::{GROUP, World, place};

races! {
    an_ok_and_a_change,
    changes_without_end,
    a_model_that_only_talks,
}

/// F-H3: `OK` and a change at once: one of them decides, and the other is not taken for an answer to what was decided.
async fn an_ok_and_a_change(on: On) {
    let race = Race::new("F-H3", on, World::start_on(on, &[], reporter).await).await;
    race.run(
        async |round| {
            let card = round.card().await;
            round.world.breath().await;
            let ok = round.words("OK", reply(&card.id));
            let change = round.words("写到 report-v2.md", reply(&card.id));
            join(round.push(&ok), round.push(&change)).await;
            card
        },
        async |round, card| {
            round.settled().await;
            let (status, decision) = round.review(&card).await;
            let first = round.first().await;
            match status.as_str() {
                "approved" => {
                    assert_eq!(decision["text"], "OK", "{decision}");
                    assert!(first.continuations == 1 && first.written <= 1, "{first:?}");
                    // The change went to the running turn, or is a task of its own, at once or behind the first, and its plan waits.
                    round
                        .world
                        .seen("what became of the change", |seen| {
                            let told = seen.in_chat(round.chat).any(|message| message.words().contains("已转给"));
                            let cards = seen.in_chat(round.chat).filter(|message| message.title() == Some("计划确认"));
                            (told || cards.count() == 2).then_some(())
                        })
                        .await;
                    "the OK first".to_owned()
                }
                "revised" => {
                    let second = round.world.card_after(round.chat, &card).await;
                    assert_eq!(round.review(&second).await.0, "pending", "an OK to the old card approves nothing");
                    assert_eq!((first.turns, first.continuations, first.written), (1, 1, 0), "{first:?}");
                    "the change first".to_owned()
                }
                other => panic!("{other}"),
            }
        },
    )
    .await;
}

/// F-H22: five rounds of changes are carried out; the sixth ends the task with a word.
async fn changes_without_end(on: On) {
    let world = World::start_on(on, &[], |request| {
        planned(&format!("第{}稿", place(request)), &[("写", &["write_file"])])
    })
    .await;
    let race = Race::new("F-H22", on, world).await;
    race.run(
        async |round| {
            let mut card = round.card().await;
            for change in 1..=5 {
                round.world.breath().await;
                round.push(&round.words(&in_full(&format!("再改第{change}次")), GROUP)).await;
                card = round.world.card_after(round.chat, &card).await;
            }
            round.world.breath().await;
            round.push(&round.words(&in_full("再改第6次"), GROUP)).await;
            round.world.hears(round.chat, "改了很多轮").await;
        },
        async |round, ()| {
            let first = round.first().await;
            assert_eq!((first.turns, first.status.as_str(), first.cards), (1, "failed", 6), "{first:?}");
            assert_eq!(round.turns().await[0]["reason"], "rounds");
            "ended with a word".to_owned()
        },
    )
    .await;
}

/// F-H23: a model that answers questions about its plan in words only: the valve against endless talk opens nothing, and the plan still
/// waits.
async fn a_model_that_only_talks(on: On) {
    let race = Race::new("F-H23", on, World::start_on(on, &[], reporter).await).await;
    race.run(
        async |round| {
            let mut card = round.card().await;
            for question in ["会删除数据吗？", "真的不会吗？"] {
                round.world.breath().await;
                round.push(&round.words(&in_full(question), reply(&card.id))).await;
                card = round.world.card_after(round.chat, &card).await;
            }
            card
        },
        async |round, card| {
            let first = round.first().await;
            assert_eq!((first.turns, first.status.as_str(), first.written), (1, "paused", 0), "{first:?}");
            assert_eq!(round.review(&card).await.0, "pending");
            "still waits".to_owned()
        },
    )
    .await;
}
