//! Around "always here": one press makes one grant, and one call uses it once.

use countersign_playground::Posted;
use serde_json::{Value, json};

use super::kit::{Handshake, TASK};
use crate::support::fake_model::say;
use crate::support::platform::{On, on_either};
use crate::support::scripts::writes;
use crate::support::world::{GROUP, World, place};

on_either! {
    a_grant_outlives_the_process_that_read_its_approval,
    a_call_under_a_grant_that_ended_before_it_was_sent_asks,
    a_call_under_a_grant_uses_it_once_however_often_it_runs,
}

const STANDING: (&str, &str) = ("AGENT__STANDING_GRANTS", "true");

fn script(request: &Value) -> Value {
    if place(request) > 0 { say("做完了") } else { writes(&["a.md"]) }
}

async fn grants(world: &World) -> Vec<Value> {
    world.api.get("/api/v1/grants").await["items"].as_array().unwrap().clone()
}

async fn card(world: &World, chat: &str) -> Posted {
    world.card_titled(chat, "操作确认").await
}

/// A gateway in which a person allowed the write. It dies at `point` when the next task writes.
async fn dies_at_the_next_write(on: On, point: &str) -> Handshake {
    let mut hand = Handshake::within(World::process_on(on, &[STANDING], None, script).await);
    assert_eq!(hand.ask().await, Some(200));
    let asks = card(&hand.world, hand.chat).await;
    hand.press(&asks, "approve_always").await;
    hand.world.hears(hand.chat, "做完了").await;
    hand.world.caught_up().await;
    hand.world.restart_process(Some(point));
    hand.world.say(hand.user, hand.chat, TASK, GROUP).await;
    hand.dies().await;
    hand
}

/// F-K13: the process dies after the press and before its call runs: the grant is there once, and the call runs once.
async fn a_grant_outlives_the_process_that_read_its_approval(on: On) {
    let mut hand = Handshake::within(World::process_on(on, &[STANDING], Some("decision_read"), script).await);
    assert_eq!(hand.ask().await, Some(200));
    let asks = card(&hand.world, hand.chat).await;
    hand.press(&asks, "approve_always").await;
    hand.dies().await;
    hand.restart();
    hand.world.hears(hand.chat, "做完了").await;
    let made = grants(&hand.world).await;
    assert_eq!(
        (made.len(), &made[0]["used"]),
        (1, &json!(0)),
        "a person approved that call: {made:?}"
    );
    assert!(hand.world.file("a.md").is_some());
}

/// interface §9 H: the call was let through and not sent when the process died; the grants are switched off meanwhile: it does not run, a person
/// is asked.
async fn a_call_under_a_grant_that_ended_before_it_was_sent_asks(on: On) {
    let mut hand = dies_at_the_next_write(on, "action_unsent").await;
    hand.world.set(&[("AGENT__STANDING_GRANTS", "false")]);
    hand.restart();
    let cards = hand
        .world
        .seen("the second card", |seen| {
            let cards: Vec<Posted> = seen
                .in_chat(hand.chat)
                .filter(|card| card.title() == Some("操作确认"))
                .cloned()
                .collect();
            (cards.len() == 2).then_some(cards)
        })
        .await;
    assert!(cards[1].button("approve").is_some());
    let pending = hand.world.api.get("/api/v1/actions?status=pending").await;
    assert_eq!(pending["items"].as_array().unwrap().len(), 1);
    let expired = hand.world.api.get("/api/v1/actions?status=expired").await;
    assert_eq!(expired["items"][0]["covered_by"]["kind"], "standing", "{expired}");
    assert_eq!(grants(&hand.world).await[0]["used"], 0);
    hand.press(&cards[1], "approve").await;
    hand.world
        .seen("the second answer", |seen| {
            (seen.in_chat(hand.chat).filter(|said| said.words().contains("做完了")).count() == 2).then_some(())
        })
        .await;
}

/// F-K14: the call was sent under the grant, and nobody knows whether it ran: a person is asked; approved, it runs under their word, and the grant
/// was used once.
async fn a_call_under_a_grant_uses_it_once_however_often_it_runs(on: On) {
    let mut hand = dies_at_the_next_write(on, "action_sent").await;
    hand.restart();
    let lost = hand.lost_call(None).await;
    assert!(lost.button("approve_always").is_none(), "{}", lost.words());
    hand.press(&lost, "approve").await;
    hand.world
        .seen("the second answer", |seen| {
            (seen.in_chat(hand.chat).filter(|said| said.words().contains("做完了")).count() == 2).then_some(())
        })
        .await;
    assert_eq!(grants(&hand.world).await[0]["used"], 1);
}
