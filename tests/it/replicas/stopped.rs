//! A process that stands still for longer than its lease (SIGSTOP): another takes over, and it does nothing when it wakes.

use crate::kills::kit::{Handshake, TASK};
use crate::support::api::eventually;
use crate::support::fake_model::{Gate, Script, Step, say};
use crate::support::fleet::{Fleet, SHORT};
use crate::support::platform::{On, on_both, on_either};
use crate::support::scripts::reporter;

on_both! {
    one_that_stood_still_over_a_delivery_delivers_nothing,
}

on_either! {
    one_that_stood_still_over_the_model_says_nothing,
    one_that_stood_still_over_a_write_does_not_write,
}

/// F-P4: stopped while the model thinks: the other asks again; what the first hears on waking is nobody's.
async fn one_that_stood_still_over_the_model_says_nothing(on: On) {
    let Some((mut fleet, world)) = Fleet::open(on, SHORT, &[&[], &[]], &[], reporter).await else {
        return;
    };
    let mut hand = Handshake::within(world);
    let gate = Gate::new();
    let held = Step::Gated(gate.clone(), Box::new(Step::Message(say("这句话没有人听到"), None)));
    hand.world.model.script(TASK, Script::new().then(held));
    hand.ask().await;
    gate.reached().await;
    let worker = fleet.worker().await;
    fleet.stop(worker);
    hand.card().await;
    gate.open();
    fleet.go_on(worker);
    fleet.says(worker, "lease lost").await;
    assert_eq!(hand.world.count(hand.chat, "没有人听到"), 0);
    hand.carried_out().await;
}

/// F-P4: stopped after `sent` and before the call itself: the other asks a person, and the first does not make the call on waking.
async fn one_that_stood_still_over_a_write_does_not_write(on: On) {
    let Some((mut fleet, world)) = Fleet::open(on, SHORT, &[&[], &[]], &[], reporter).await else {
        return;
    };
    let mut hand = Handshake::within(world);
    hand.ask().await;
    let card = hand.card().await;
    // Long enough to be stopped in, over when it wakes.
    fleet.lag("action_sent", 4000);
    hand.press(&card, "approve").await;
    let worker = eventually("a process in the middle of the write", || async {
        fleet.who_says("write call sent")
    })
    .await;
    fleet.stop(worker);
    let asked = hand.lost_call(None).await;
    fleet.go_on(worker);
    fleet.says(worker, "lease lost").await;
    hand.press(&asked, "reject").await;
    let turn = hand.ended(2).await;
    assert_eq!(hand.executed(&turn).await, Vec::<serde_json::Value>::new());
    assert_eq!(hand.world.file("report.md"), None, "it was written by the one that woke");
    hand.same_when_pushed_again().await;
}

/// F-P4: stopped with the card's call in a socket, where nobody can take it back: the other repeats it under the same key, or
/// finds it there; one card. (On Slack a call that lands after the other has looked is the one double that cannot be told.)
async fn one_that_stood_still_over_a_delivery_delivers_nothing(on: On) {
    let Some((mut fleet, world)) = Fleet::prepare(on, SHORT, &[&[], &[]], &[], reporter).await else {
        return;
    };
    // The first alone, so that it is the one that delivers.
    fleet.start(0).await;
    let mut hand = Handshake::within(world);
    hand.world.chat.hold("reply");
    hand.ask().await;
    hand.world
        .seen("the card's call", |seen| (seen.count("reply") > 0).then_some(()))
        .await;
    fleet.stop(0);
    if on == On::Slack {
        hand.world.chat.release("reply");
    }
    fleet.start(1).await;
    if on == On::Lark {
        hand.world
            .seen("the other's try", |seen| (seen.count("reply") > 1).then_some(()))
            .await;
        hand.world.chat.release("reply");
    }
    hand.card().await;
    fleet.go_on(0);
    fleet.says(0, "outcome of a delivery not recorded").await;
    hand.carried_out().await;
}
