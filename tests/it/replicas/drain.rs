//! SIGTERM to one of two: the other goes on at once, and does not wait for a lease to run out.

use std::time::{Duration, Instant};

use crate::kills::kit::{Handshake, TASK};
use crate::support::api::eventually;
use crate::support::fake_model::{Gate, Script, Step, say};
use crate::support::fleet::{Fleet, LONG};
use crate::support::platform::On;
use crate::support::scripts::reporter;

/// Far below the lease of 30 s, far above what it takes.
const SOON: Duration = Duration::from_secs(12);

/// A waiting plan before two processes with the lease of production.
async fn waiting(extra: &[(&str, &str)]) -> Option<(Fleet, Handshake)> {
    let (fleet, world) = Fleet::open(On::Lark, LONG, &[&[], &[]], extra, reporter).await?;
    Some((fleet, Handshake::within(world)))
}

/// Approves the plan; gives who is in the middle of its write call.
async fn in_the_middle_of_the_write(fleet: &Fleet, hand: &mut Handshake, lag: u64) -> usize {
    hand.ask().await;
    let card = hand.card().await;
    fleet.lag("action_sent", lag);
    hand.press(&card, "approve").await;
    eventually("a process in the middle of the write", || async {
        fleet.who_says("write call sent")
    })
    .await
}

/// F-P2: drained while the model thinks: exit 0 at once, and the other asks the model again at once.
#[tokio::test]
async fn the_other_goes_on_at_once() {
    let Some((mut fleet, mut hand)) = waiting(&[]).await else { return };
    let gate = Gate::new();
    let held = Step::Gated(gate.clone(), Box::new(Step::Message(say("太晚了"), None)));
    hand.world.model.script(TASK, Script::new().then(held));
    hand.ask().await;
    gate.reached().await;
    let worker = fleet.worker().await;
    let asked = Instant::now();
    fleet.process(worker).terminate();
    hand.card().await;
    println!("F-P2: the other went on after {:.1} s", asked.elapsed().as_secs_f32());
    assert!(asked.elapsed() < SOON, "{:?}", asked.elapsed());
    assert_eq!(fleet.ended(worker).await.code(), Some(0));
    gate.open();
    hand.carried_out().await;
}

/// F-P3: drained in the middle of a write call that ends within the grace: its result is journaled, and the other goes on from it.
#[tokio::test]
async fn a_write_that_ends_in_the_grace_is_not_asked_about() {
    let Some((mut fleet, mut hand)) = waiting(&[]).await else { return };
    let worker = in_the_middle_of_the_write(&fleet, &mut hand, 1500).await;
    let (status, took) = fleet.drain(worker).await;
    assert_eq!(status.code(), Some(0));
    assert!(took < SOON, "{took:?}");
    assert!(hand.world.file("report.md").is_some(), "it ended before its write had run");
    hand.ends_whole().await;
}

/// F-P3: one that outlasts the grace is dropped within it, its lane given back: the other asks about it at once.
#[tokio::test]
async fn a_write_that_outlasts_the_grace_is_asked_about_by_the_other() {
    let Some((mut fleet, mut hand)) = waiting(&[("SERVER__SHUTDOWN_GRACE_SECONDS", "4")]).await else {
        return;
    };
    let worker = in_the_middle_of_the_write(&fleet, &mut hand, 60_000).await;
    let (status, took) = fleet.drain(worker).await;
    assert_eq!(status.code(), Some(0));
    assert!(took < Duration::from_millis(4900), "the grace is 4 s: {took:?}");
    let ended = Instant::now();
    let card = hand.lost_call(None).await;
    println!(
        "F-P3: ended after {:.1} s of 4 s; the other asked {:.1} s later",
        took.as_secs_f32(),
        ended.elapsed().as_secs_f32()
    );
    assert!(ended.elapsed() < SOON, "{:?}", ended.elapsed());
    hand.press(&card, "reject").await;
    hand.ended(2).await;
    hand.same_when_pushed_again().await;
}
