//! Thumbs on cards, as triage sees them: which gate, who, and when they wait.

use std::time::Duration;

use countersign_agent::domain::{Approvers, Gate, GateKind, InboundBody, Reaction, Thumb, Via};
use countersign_gateway::config::Live;

use super::cards::TTL;
use super::words::{Words, happens, says};
use super::world::World;

/// A thumb of `who` on a message, as Lark tells of it: without a chat.
fn thumb(id: &str, who: &str, message_id: &str, thumb: Thumb, taken_away: bool) -> Words {
    let message_id = message_id.to_owned();
    let reaction = Reaction {
        message_id,
        thumb,
        taken_away,
    };
    happens(id, who, InboundBody::Reaction(reaction)).chat("")
}

/// A gate of `kind` that u1's task opened, its card delivered.
async fn gate(world: &mut World, kind: GateKind, quorum: u32) -> Gate {
    world.hear(says("1", "u1", "写周报")).await;
    let turn = world.begin().await;
    world.gate(&turn, kind, quorum).await
}

/// interface (I): a thumb that comes before the news of its card waits for it; one on a message that is none of ours does not wait for ever.
#[tokio::test]
async fn a_thumb_waits_for_the_news_of_its_card() {
    let mut world = World::new().await;
    world.hear(says("1", "u1", "写周报")).await;
    let turn = world.begin().await;
    let gate = world.open(&turn, GateKind::PlanReview, 1).await;
    world.hear(thumb("t1", "u1", "om_out_3", Thumb::Up, false)).await;
    assert_eq!((world.untriaged().await, world.decision(&gate).await), (1, "open".to_owned()));
    world.deliver().await;
    let known = world.record(&gate.id).await.gate;
    assert_eq!(known.card_message.as_deref(), Some("om_out_3"), "the third post of the play");
    world.conversations.triage().await.unwrap();
    assert_eq!((world.untriaged().await, world.decision(&gate).await), (0, "approve u1".to_owned()));

    let mut world = World::new().await;
    world.hear(says("1", "u1", "写周报")).await;
    let turn = world.begin().await;
    world.open(&turn, GateKind::PlanReview, 1).await;
    world.hear(thumb("t1", "u1", "om_else", Thumb::Up, false)).await;
    assert_eq!(world.untriaged().await, 1);
    world.clock.advance(Duration::from_secs(30));
    world.conversations.triage().await.unwrap();
    assert_eq!(world.untriaged().await, 0);
}

/// interface (I): on a copy of the card the thumb of the person who has it counts, and nobody else's.
#[tokio::test]
async fn a_thumb_on_a_copy() {
    let escalating = |live: &mut Live| live.lark.escalate_to = vec!["boss".to_owned()];
    let mut world = World::with(escalating).await;
    world.hear(says("1", "u1", "写周报")).await;
    let turn = world.begin().await;
    let gate = world.gate(&turn, GateKind::PlanReview, 1).await;
    world.escalates(&turn, &gate, "boss").await;
    world.deliver().await;
    let card: u32 = gate.card_message.as_deref().unwrap().trim_start_matches("om_out_").parse().unwrap();
    let copy = format!("om_out_{}", card + 1);
    world.hear(thumb("t1", "u1", &copy, Thumb::Down, false)).await;
    assert_eq!(world.decision(&gate).await, "open", "not their copy");
    world.hear(thumb("t2", "boss", &copy, Thumb::Up, false)).await;
    assert_eq!(world.decision(&gate).await, "approve boss");
    assert_eq!(world.record(&gate.id).await.decision.unwrap().via, Via::Reaction);
}

/// interface (I): after its time a card takes no thumb, and nothing is withdrawn from it.
#[tokio::test]
async fn a_thumb_after_the_time() {
    let two = |live: &mut Live| live.lark.approvers = Approvers::Listed(["u1", "u2"].map(String::from).to_vec());
    let mut world = World::with(two).await;
    let gate = gate(&mut world, GateKind::PlanReview, 2).await;
    let card = gate.card_message.clone().unwrap();
    world.hear(thumb("t1", "u1", &card, Thumb::Up, false)).await;
    assert_eq!(world.record(&gate.id).await.votes.len(), 1);
    world.clock.advance(TTL);
    world.hear(thumb("t2", "u1", &card, Thumb::Up, true)).await;
    assert_eq!(world.record(&gate.id).await.votes.len(), 1);
    world.hear(thumb("t3", "u2", &card, Thumb::Up, false)).await;
    assert_eq!(world.decision(&gate).await, "expire ");
}

/// interface (I): a thumb of another organisation, and one that depends on a group nobody tells of, decide nothing and are not answered.
#[tokio::test]
async fn thumbs_of_outsiders_and_of_unknown_groups() {
    let group = |live: &mut Live| live.lark.approvers = Approvers::Listed(vec!["od-ops".to_owned()]);
    for (edit, outside) in [(None, true), (Some(group), false)] {
        let mut world = World::with(|live| edit.map_or((), |edit| edit(live))).await;
        let gate = gate(&mut world, GateKind::PlanReview, 1).await;
        world.deliver().await;
        let mut words = thumb(
            "t1",
            if outside { "u1" } else { "u2" },
            &gate.card_message.clone().unwrap(),
            Thumb::Up,
            false,
        );
        if outside {
            words.inbound.sender_teams = vec!["t2".to_owned()];
        }
        world.hear(words).await;
        assert_eq!((world.untriaged().await, world.decision(&gate).await), (0, "open".to_owned()));
        assert!(world.notices().await.is_empty());
    }
}
