//! The switch is thrown while messages flow.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{review, save, writer};
use crate::support::api::eventually;
use crate::support::fake_model::say;
use crate::support::quiet::quiet;
use crate::support::world::{DIRECT, World, user_words};

/// What the interface allows from the save to the effect.
const PROMISED: Duration = Duration::from_secs(2);
/// Chats that talk all the time.
const TALKERS: usize = 4;

/// Small talk is answered in words that name it; anything else is a task with a plan.
fn model() -> impl Fn(&Value) -> Value + Send + Sync + 'static {
    let task = writer();
    move |request| match user_words(request).strip_prefix("闲聊 ") {
        Some(number) => say(&format!("回答〔{number}〕")),
        None => task(request),
    }
}

/// Talks in `chat` until it is over; gives how often.
async fn talk(world: &World, talker: usize, over: &AtomicBool) -> usize {
    let chat = format!("oc_talk_{talker}");
    let mut said = 0;
    while !over.load(Ordering::SeqCst) {
        world
            .say(&format!("ou_t{talker}"), &chat, &format!("闲聊 {talker}-{said}"), DIRECT)
            .await;
        said += 1;
        eventually("the answer", || async {
            (world.count(&chat, &format!("〔{talker}-{}〕", said - 1)) > 0).then_some(())
        })
        .await;
    }
    said
}

/// Asks for tasks, one after the other, until one is treated as `gate` says; gives when that one was asked for. A task that is
/// asked for later than promised must be treated so.
async fn takes_effect(world: &World, saved: Instant, gate: &str, probes: &AtomicUsize) -> Duration {
    loop {
        let chat = format!("oc_probe_{}", probes.fetch_add(1, Ordering::SeqCst));
        let asked = saved.elapsed();
        world.say("ou_probe", &chat, "整理笔记", DIRECT).await;
        let turn = eventually("a task that waits for a person", || async {
            let turns = world.turns_in(&chat).await;
            turns.into_iter().find(|turn| !turn["gate"].is_null())
        })
        .await;
        if turn["gate"]["kind"] == gate {
            return asked;
        }
        assert!(asked < PROMISED, "asked {asked:?} after the save, and still treated as before");
    }
}

/// S0-35, F-H11: `plan_review_enabled` is switched in the file, there and back, on a busy gateway without a restart: within two
/// seconds new tasks go by it, and every message is answered exactly once.
#[tokio::test]
#[expect(clippy::print_stdout, reason = "the measure is for whoever reads the run")]
async fn the_switch_is_in_force_within_two_seconds() {
    let mut world = World::by_file(&[], &[], &review(true), model()).await;
    let pid = world.child().id();
    let (over, probes) = (AtomicBool::new(false), AtomicUsize::new(0));
    let edits = async {
        takes_effect(&world, Instant::now(), "plan_review", &probes).await;
        let mut taken = Vec::new();
        for (on, gate) in [
            (false, "tool_approval"),
            (true, "plan_review"),
            (false, "tool_approval"),
            (true, "plan_review"),
        ] {
            save(&world, &review(on));
            taken.push(takes_effect(&world, Instant::now(), gate, &probes).await);
        }
        over.store(true, Ordering::SeqCst);
        taken
    };
    let (taken, a, b, c, d) = tokio::join!(
        edits,
        talk(&world, 0, &over),
        talk(&world, 1, &over),
        talk(&world, 2, &over),
        talk(&world, 3, &over)
    );
    println!("from the save to the first task that goes by it: {taken:?}; meanwhile {a} + {b} + {c} + {d} messages");
    quiet(&world).await;
    for (talker, said) in [a, b, c, d].into_iter().enumerate().take(TALKERS) {
        assert!(said > 2, "talker {talker} was held up: {said}");
        let chat = format!("oc_talk_{talker}");
        for number in 0..said {
            assert_eq!(
                world.count(&chat, &format!("〔{talker}-{number}〕")),
                1,
                "message {talker}-{number}"
            );
        }
    }
    assert_eq!(world.child().id(), pid, "the same process");
    world.end().await;
}
