//! Buttons: the same one by many hands, and buttons against words.

use futures_util::future::{join, join_all};

use super::kit::{Heard, Race, TASK};
use super::races;
use crate::support::fake_model::say;
use crate::support::people::{reply, rows};
use crate::support::platform::On;
use crate::support::scripts::{clarified, finished, in_order, planned, reads, reporter, writes};
use crate::support::world::{GROUP, World};

races! {
    many_taps,
    a_word_and_a_tap,
    copies_of_a_request,
    a_tap_and_a_stop,
    the_last_two_calls,
    taps_at_the_limit,
}

/// F-H1: four taps, one of them pushed five times over: one decision, one continuation, one write; all are answered, and who comes later
/// hears that it is done.
async fn many_taps(on: On) {
    let race = Race::new("F-H1", on, World::unhurried_on(on, &[], reporter).await).await;
    race.run(
        async |round| {
            let card = round.card().await;
            let taps: Vec<_> = (0..4).map(|_| round.tapped(&card, "approve")).collect();
            let copies = std::iter::repeat_n(&taps[0], 4).chain(&taps);
            let answers = join_all(copies.map(|tap| round.push(tap))).await;
            round.world.hears(round.chat, "全部完成").await;
            answers
        },
        async |round, answers| {
            round.is_whole().await;
            let toasts: Vec<&str> = answers.iter().filter_map(Heard::toast).collect();
            let late = toasts.iter().filter(|toast| toast.contains("已经处理过了")).count();
            let won = toasts.iter().filter(|toast| toast.starts_with("已确认")).count();
            assert_eq!(won + late, toasts.len(), "{toasts:?}");
            if toasts.len() == 8 {
                assert!(
                    won == 1 || won == 5,
                    "one tap won, or the one that was pushed five times: {toasts:?}"
                );
            }
            "one continuation".to_owned()
        },
    )
    .await;
}

/// F-H2: the button and the word at once: one settles it, the other is no task.
async fn a_word_and_a_tap(on: On) {
    let race = Race::new("F-H2", on, World::unhurried_on(on, &[], reporter).await).await;
    race.run(
        async |round| {
            let card = round.card().await;
            round.world.breath().await;
            let (tap, word) = (round.tapped(&card, "approve"), round.words("OK", reply(&card.id)));
            let (answer, _) = join(round.push_within(80, &tap), round.push(&word)).await;
            round.world.hears(round.chat, "全部完成").await;
            (card, answer)
        },
        async |round, (card, answer)| {
            round.is_whole().await;
            let (status, decision) = round.review(&card).await;
            assert_eq!(status, "approved");
            let via = decision["via"].as_str().unwrap();
            if let Some(toast) = answer.toast() {
                assert_eq!(toast.contains("已经处理过了"), via != "button", "{toast} {decision}");
            }
            format!("by {via}")
        },
    )
    .await;
}

/// F-H4, F-S1: one delivery five times at once, to every gateway there is: one turn, one card.
async fn copies_of_a_request(on: On) {
    let race = Race::new("F-H4", on, World::unhurried_on(on, &[], reporter).await).await;
    race.run(
        async |round| {
            let asked = round.words(TASK, GROUP);
            join_all((0..5).map(|_| round.push(&asked))).await;
            round.world.plan_card(round.chat).await;
        },
        async |round, ()| {
            let first = round.first().await;
            assert_eq!((first.turns, first.cards), (1, 1), "{first:?}");
            "one turn".to_owned()
        },
    )
    .await;
}

/// F-H18: approve and `/stop` at once: what the review says is what happened, and after the stop nothing runs.
async fn a_tap_and_a_stop(on: On) {
    let race = Race::new("F-H18", on, World::unhurried_on(on, &[], reporter).await).await;
    race.run(
        async |round| {
            let card = round.card().await;
            round.world.breath().await;
            let (tap, stop) = (round.tapped(&card, "approve"), round.words("/stop", GROUP));
            join(round.push_within(80, &tap), round.push(&stop)).await;
            round.settled().await;
            card
        },
        async |round, card| {
            round.settled().await;
            let (status, _) = round.review(&card).await;
            let first = round.first().await;
            assert!(first.turns == 1 && first.written <= 1 && first.continuations <= 1, "{first:?}");
            match (status.as_str(), first.status.as_str()) {
                ("approved", "cancelled") => {
                    assert_eq!(first.answers, 0);
                    "approved, then stopped".to_owned()
                }
                ("approved", "completed") => "done before the stop".to_owned(),
                (_, "cancelled") => {
                    first.ran_nothing();
                    "stopped first".to_owned()
                }
                other => panic!("{other:?}: {first:?}"),
            }
        },
    )
    .await;
}

/// F-H19: the two calls of a card approved at once: the turn goes on once, each runs once.
async fn the_last_two_calls(on: On) {
    let model = in_order(vec![writes(&["a.md", "b.md"]), say("都写好了")]);
    let race = Race::new("F-H19", on, World::unhurried_on(on, &[], model).await).await;
    race.run(
        async |round| {
            round.world.say(round.user, round.chat, TASK, GROUP).await;
            let card = round.world.card_titled(round.chat, "操作确认").await;
            let taps: Vec<_> = rows(&card).iter().map(|value| round.pressed(&card, value)).collect();
            assert_eq!(taps.len(), 2);
            join_all(taps.iter().chain(&taps).map(|tap| round.push(tap))).await;
            round.world.hears(round.chat, "都写好了").await;
        },
        async |round, ()| {
            let first = round.first().await;
            assert_eq!((first.turns, first.resumed, first.written), (1, 1, 2), "{first:?}");
            "one resume".to_owned()
        },
    )
    .await;
}

/// F-H21: the card at the step limit tapped by four hands at once grants the limit once more, not four times; the steps of before and
/// after count together.
async fn taps_at_the_limit(on: On) {
    let plan = planned("读", &[("读取笔记", &["read_file"])]);
    let script = vec![
        plan,
        clarified(),
        reads(),
        say("只完成了一部分。"),
        reads(),
        finished(),
        say("好了"),
    ];
    let world = World::unhurried_on(on, &[("AGENT__MAX_ITERATIONS", "3")], in_order(script)).await;
    let race = Race::new("F-H21", on, world).await;
    race.run(
        async |round| {
            let card = round.card().await;
            round.push(&round.tapped(&card, "approve")).await;
            let limit = round.world.card_titled(round.chat, "还要继续吗？").await;
            let taps: Vec<_> = (0..4).map(|_| round.tapped(&limit, "approve")).collect();
            join_all(taps.iter().map(|tap| round.push(tap))).await;
            round.world.hears(round.chat, "好了").await;
        },
        async |round, ()| {
            let turn = &round.turns().await[0];
            let turn = round
                .world
                .api
                .get(&format!("/api/v1/turns/{}", turn["id"].as_str().unwrap()))
                .await;
            assert_eq!((&turn["status"], &turn["pauses"]), (&"completed".into(), &2.into()), "{turn:#}");
            let (used, limit) = (turn["steps_used"].as_u64().unwrap(), turn["steps_limit"].as_u64().unwrap());
            assert!(limit == 7 && used <= limit, "{used} of {limit}");
            "granted once".to_owned()
        },
    )
    .await;
}
