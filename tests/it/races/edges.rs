//! The edge of a review's time, and words around the moment in which its card appears.

use std::time::Duration;

use countersign_agent::domain::Millis;
use futures_util::future::join;

use super::kit::{Race, Round, TASK};
use super::races;
use crate::support::fake_model::say;
use crate::support::people::{moment, reply, rows};
use crate::support::platform::On;
use crate::support::scripts::{in_order, reporter, writes};
use crate::support::world::{GROUP, World};

races! {
    a_tap_at_the_edge,
    words_after_the_time,
    words_around_the_card,
    the_last_call_at_the_edge,
}

/// About as long, in milliseconds, as the clock needs over the edge.
const WIDE: u64 = 160;

/// Moves the clock to 50 ms before `edge`, then a millisecond at a time to 50 ms behind it.
async fn over_the_edge(round: &Round<'_>, edge: i64) {
    round.offset().await;
    let clock = &round.world.clock;
    while clock.now().0 < edge + 50 {
        clock.advance(Duration::from_millis(1));
        // A real moment for each played one: the taps fly meanwhile.
        tokio::time::sleep(Duration::from_micros(200)).await;
    }
}

fn approach(round: &Round<'_>, edge: i64) {
    let left = edge - 50 - round.world.clock.now().0;
    round.world.clock.advance(Duration::from_millis(u64::try_from(left).unwrap()));
}

/// F-H5: taps while the time runs out, 50 ms to either side: approved or expired, never both; what the person hears is what happened, and
/// where `expired` was said nothing ran.
async fn a_tap_at_the_edge(on: On) {
    let race = Race::new("F-H5", on, World::frozen_on(on, &[], reporter).await).await.one_by_one();
    race.run(
        async |round| {
            let card = round.card().await;
            let edge = moment(&round.world.review_of(&card).await["expires_at"]);
            approach(round, edge);
            let late = async {
                round.up_to(WIDE).await;
                round.push(&round.tapped(&card, "approve")).await
            };
            let (answer, ()) = join(late, over_the_edge(round, edge)).await;
            round.world.clock.advance(Duration::from_secs(1));
            let (status, _) = round.review(&card).await;
            let last = if status == "approved" { "全部完成" } else { "等待超时" };
            round.world.hears(round.chat, last).await;
            (card, answer)
        },
        async |round, (card, answer)| {
            let (status, _) = round.review(&card).await;
            let first = round.first().await;
            match status.as_str() {
                "approved" => {
                    answer.told("已确认");
                    assert_eq!((first.turns, first.continuations, first.written), (1, 1, 1), "{first:?}");
                }
                "expired" => {
                    answer.told("已经过期");
                    first.ran_nothing();
                    assert_eq!((first.turns, first.status.as_str()), (1, "cancelled"));
                }
                other => panic!("{other}"),
            }
            status
        },
    )
    .await;
}

/// F-H6: the word and the button together, after the time: both are told so, nothing runs, and neither is a task.
async fn words_after_the_time(on: On) {
    let race = Race::new("F-H6", on, World::frozen_on(on, &[], reporter).await).await.one_by_one();
    race.run(
        async |round| {
            let card = round.card().await;
            round.world.clock.advance(Duration::from_secs(61 * 60));
            let (tap, word) = (round.tapped(&card, "approve"), round.words("OK", reply(&card.id)));
            let (answer, _) = join(round.push(&tap), round.push(&word)).await;
            round.world.hears(round.chat, "等待超时").await;
            round.world.word_back(round.chat, &word.message_id).await;
            (card, answer)
        },
        async |round, (card, answer)| {
            answer.told("已经过期");
            assert_eq!(round.review(&card).await.0, "expired");
            let first = round.first().await;
            first.ran_nothing();
            assert_eq!(first.turns, 1, "a late word is no task");
            "told, nothing ran".to_owned()
        },
    )
    .await;
}

/// F-H10: an OK while the card appears: it counts exactly if it was said after the card was there, by the platform's time.
async fn words_around_the_card(on: On) {
    let race = Race::new("F-H10", on, World::start_on(on, &[], reporter).await).await.one_by_one();
    race.run(
        async |round| {
            let chat = &round.world.chat;
            let before = chat.snapshot().count("reply");
            chat.hold("reply");
            round.world.say(round.user, round.chat, TASK, GROUP).await;
            round
                .world
                .seen("the card's call", |seen| (seen.count("reply") > before).then_some(()))
                .await;
            let appears = async {
                round.offset().await;
                chat.release("reply");
            };
            let says = async {
                round.offset().await;
                // Said at this moment, and on its way for its offset.
                let at = round.world.clock.now();
                round.push(&round.words("OK", GROUP)).await;
                at
            };
            let ((), at) = join(appears, says).await;
            let card = round
                .world
                .seen("the card", |seen| {
                    let asked = |message: &&countersign_playground::Posted| message.first().button("approve").is_some();
                    seen.in_chat(round.chat).find(asked).cloned()
                })
                .await;
            (card, at)
        },
        async |round, (card, at)| {
            round.settled().await;
            let first = round.first().await;
            assert_eq!(first.turns, 1, "{first:?}");
            let status = if first.continuations == 1 { "approved" } else { "pending" };
            // The moment was taken just before the words had theirs.
            let Millis(before) = at;
            if first.continuations == 1 {
                assert!(before + 5 > card.at.0, "said {} ms before the card", card.at.0 - before);
                round.world.hears(round.chat, "全部完成").await;
                round.settled().await;
                round.is_whole().await;
                "after the card: approved".to_owned()
            } else {
                assert!(before <= card.at.0, "{status}, said {} ms after the card", before - card.at.0);
                first.ran_nothing();
                "before the card: nothing".to_owned()
            }
        },
    )
    .await;
}

/// F-H20: of two calls one is approved in time and the other tapped while the time runs out: it ran or it lapsed, and the turn goes on
/// once.
async fn the_last_call_at_the_edge(on: On) {
    let model = in_order(vec![writes(&["a.md", "b.md"]), say("都处理了")]);
    let race = Race::new("F-H20", on, World::frozen_on(on, &[], model).await).await.one_by_one();
    race.run(
        async |round| {
            round.world.say(round.user, round.chat, TASK, GROUP).await;
            let card = round.world.card_titled(round.chat, "操作确认").await;
            let turn = round.turns().await.remove(0);
            let edge = moment(&turn["gate"]["expires_at"]);
            let taps: Vec<_> = rows(&card).iter().map(|value| round.pressed(&card, value)).collect();
            round.push(&taps[0]).await;
            approach(round, edge);
            let late = async {
                round.up_to(WIDE).await;
                round.push(&taps[1]).await
            };
            let (answer, ()) = join(late, over_the_edge(round, edge)).await;
            round.world.clock.advance(Duration::from_secs(1));
            round.world.hears(round.chat, "都处理了").await;
            answer
        },
        async |round, answer| {
            let first = round.first().await;
            assert_eq!((first.turns, first.resumed), (1, 1), "{first:?}");
            let in_time = first.written == 2;
            assert!(first.written == 2 || first.written == 1, "{first:?}");
            if let Some(toast) = answer.toast() {
                assert_eq!(toast.starts_with("已确认"), in_time, "{toast}");
            }
            if in_time { "ran" } else { "lapsed" }.to_owned()
        },
    )
    .await;
}
