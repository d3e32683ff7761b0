//! The configuration changes while people answer: the real binary and its file.

use super::kit::{Race, TASK};
use super::races;
use crate::support::api::eventually;
use crate::support::fake_model::{Gate, Script, say};
use crate::support::platform::On;
use crate::support::scripts::{clarified, finished, gated, planned, reads, reporter};
use crate::support::world::{GROUP, World};

races! {
    the_review_is_switched_off,
    the_review_is_switched_on,
    broken_edits,
}

const SWITCHED: &str = "in force for every turn that starts now";

fn review(on: On, enabled: impl std::fmt::Display) -> String {
    format!("channels:\n  {}:\n    plan_review_enabled: {enabled}\n", on.name())
}

fn save(world: &World, yaml: &str) {
    std::fs::write(world.folder.path().join("config.yaml"), yaml).unwrap();
}

/// Waits until the log holds `count` lines with `words`.
async fn logged(world: &World, words: &str, count: usize) {
    eventually(words, || async {
        let log = std::fs::read_to_string(world.folder.path().join("gateway.log")).unwrap();
        (log.lines().filter(|line| line.contains(words)).count() >= count).then_some(())
    })
    .await;
}

/// F-H11: the review is switched off while plans wait and people tap: each keeps the policy it began with and runs once, by its tap.
async fn the_review_is_switched_off(on: On) {
    let world = World::by_file_on(on, &[], &[], &review(on, true), reporter).await;
    let race = Race::new("F-H11", on, world).await.one_by_one();
    race.run(
        async |round| {
            let card = round.card().await;
            save(round.world, &review(on, false));
            if round.number % 2 == 0 {
                logged(round.world, SWITCHED, round.number * 2 + 1).await;
            }
            let when = if round.number % 2 == 0 {
                "after the switch"
            } else {
                "during the switch"
            };
            round.push(&round.tapped(&card, "approve")).await;
            round.world.hears(round.chat, "全部完成").await;
            logged(round.world, SWITCHED, round.number * 2 + 1).await;
            save(round.world, &review(on, true));
            logged(round.world, SWITCHED, round.number * 2 + 2).await;
            when
        },
        async |round, when| {
            round.is_whole().await;
            assert_eq!(
                round.world.titled(round.chat, "操作确认"),
                0,
                "the plan was approved with its write"
            );
            when.to_owned()
        },
    )
    .await;
}

/// F-H12: the review is switched on in the middle of a turn: that turn goes on without one, the next message's plan waits.
async fn the_review_is_switched_on(on: On) {
    let world = World::by_file_on(on, &[], &[], &review(on, false), |_| say("?")).await;
    let race = Race::new("F-H12", on, world).await.one_by_one();
    race.run(
        async |round| {
            let (running, next) = (format!("甲{}。", round.number), format!("乙{}。", round.number));
            let plan = || planned("读", &[("读取笔记", &["read_file"])]);
            let gate = Gate::new();
            let script = Script::new().message(reads()).then(gated(&gate, plan()));
            let script = script.message(clarified()).message(finished()).text("好了");
            round.world.model.script(&running, script);
            round.world.model.script(&next, Script::new().message(plan()));
            round.world.say(round.user, round.chat, &running, GROUP).await;
            gate.reached().await;
            save(round.world, &review(on, true));
            logged(round.world, SWITCHED, round.number * 2 + 1).await;
            gate.open();
            round.world.hears(round.chat, "好了").await;
            assert!(round.world.api.get(&format!("/api/v1/reviews?chat={}", round.chat)).await["items"] == serde_json::json!([]));
            round.world.say(round.user, round.chat, &next, GROUP).await;
            round.world.plan_card(round.chat).await;
            save(round.world, &review(on, false));
            logged(round.world, SWITCHED, round.number * 2 + 2).await;
        },
        async |round, ()| {
            let turns = round.turns().await;
            assert_eq!(turns.len(), 2, "{turns:#?}");
            let types = round.world.api.event_types(&turns[0]).await;
            assert!(!types.iter().any(|kind| kind == "turn_paused"), "{types:?}");
            assert_eq!((&turns[0]["status"], &turns[1]["status"]), (&"completed".into(), &"paused".into()));
            "from the next turn on".to_owned()
        },
    )
    .await;
}

/// F-H13: broken files are saved while a task is asked for and approved: nobody notices.
async fn broken_edits(on: On) {
    let good = review(on, true);
    let world = World::by_file_on(on, &[], &[], &good, reporter).await;
    let race = Race::new("F-H13", on, world).await.one_by_one();
    let wrong = review(on, "perhaps");
    let broken = ["channels: [", &wrong, "\u{0}", "agent: {mode: never}\n"];
    race.run(
        async |round| {
            save(round.world, broken[round.number % broken.len()]);
            round.offset().await;
            round.world.say(round.user, round.chat, TASK, GROUP).await;
            let card = round.world.plan_card(round.chat).await;
            save(round.world, broken[(round.number + 1) % broken.len()]);
            round.push(&round.tapped(&card, "approve")).await;
            round.world.hears(round.chat, "全部完成").await;
            let (status, ready) = round.world.api.try_get("/readyz").await;
            assert_eq!(status, 200, "{ready}");
            save(round.world, &good);
        },
        async |round, ()| {
            round.is_whole().await;
            "as if nothing was saved".to_owned()
        },
    )
    .await;
}
