//! Answers that come when nothing waits for them any more.

use std::time::Duration;

use countersign_agent::domain::{Approvers, ClickTarget, ClickVerb, GateKind, Notice, Outbound, OutboxOp};

use super::cards::TTL;
use super::words::says;
use super::world::World;

/// The same word back is said to a person again after this time.
const SELDOM: Duration = Duration::from_secs(5);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// B5, F-H6: OK after expiry is told, not executed, not a new task; other text is one; after a day nobody remembers.
#[tokio::test]
async fn ok_after_expiry() {
    let mut world = World::new().await;
    world.hear(says("1", "u1", "写周报")).await;
    let turn = world.begin().await;
    let gate = world.gate(&turn, GateKind::PlanReview, 1).await;
    world.clock.advance(TTL);
    world.hear(says("2", "u1", "OK")).await;
    assert_eq!(world.decision(&gate).await, "expire ");
    let goal = "写周报".to_owned();
    let expired = Notice::Expired { goal, again: true };
    assert_eq!(world.notices().await, std::slice::from_ref(&expired));
    world.finish(&turn).await;
    world.clock.advance(SELDOM);
    world.hear(says("3", "u1", "好的")).await;
    let card = gate.card_message.unwrap();
    world.clock.advance(SELDOM);
    world.hear(says("4", "u1", "先备份").plain().reply(&[&card])).await;
    assert_eq!(world.notices().await, [expired.clone(), expired]);
    assert_eq!(world.queue("u1", "").await, Vec::<String>::new());
    world.hear(says("5", "u1", "重新写周报")).await;
    assert_eq!(world.queue("u1", "").await, ["重新写周报"]);
    world.finish(&world.begin().await).await;
    world.clock.advance(DAY);
    world.hear(says("6", "u1", "OK")).await;
    assert_eq!(world.queue("u1", "").await, ["OK"]);
}

/// F-H5: nothing happens at the very edge but one thing: a word in the last moment counts, one moment later it is late.
#[tokio::test]
async fn edge_of_the_time() {
    for (short, expected) in [(Duration::from_millis(1), "approve u1"), (Duration::ZERO, "expire ")] {
        let mut world = World::new().await;
        world.hear(says("1", "u1", "写周报")).await;
        let turn = world.begin().await;
        let gate = world.gate(&turn, GateKind::PlanReview, 1).await;
        world.accept(says("2", "u1", "OK")).await;
        let left = gate.expires_at.since(world.clock.now());
        world.clock.advance(left.checked_sub(short).unwrap());
        world.conversations.triage().await.unwrap();
        assert_eq!(world.decision(&gate).await, expected, "{short:?}");
    }
}

/// design: a gate whose time is over is none of those that a word may mean: it approves the one that still waits, and nobody is asked which.
#[tokio::test]
async fn a_word_means_the_gate_that_still_waits() {
    let mut world = World::with(|live| live.lark.approvers = Approvers::Anyone).await;
    world.hear(says("1", "u1", "写周报")).await;
    let turn = world.begin().await;
    let over = world.gate(&turn, GateKind::PlanReview, 1).await;
    world.clock.advance(TTL / 2);
    world.hear(says("2", "u2", "整理笔记")).await;
    let turn = world.begin().await;
    let waits = world.gate(&turn, GateKind::PlanReview, 1).await;
    world.clock.advance(over.expires_at.since(world.clock.now()));
    world.hear(says("3", "u3", "OK")).await;
    assert_eq!(world.decision(&over).await, "expire ");
    assert_eq!(world.decision(&waits).await, "approve u3");
}

/// B6: the approver whose word comes second hears who was first; their word is no task.
#[tokio::test]
async fn second_approvers_word() {
    let mut world = World::with(|live| live.lark.approvers = Approvers::Anyone).await;
    world.hear(says("1", "u1", "写周报")).await;
    let turn = world.begin().await;
    let gate = world.gate(&turn, GateKind::PlanReview, 1).await;
    world.accept(says("2", "u2", "OK")).await;
    world.accept(says("3", "u3", "同意")).await;
    while world.conversations.triage().await.unwrap() > 0 {}
    assert_eq!(world.decision(&gate).await, "approve u2");
    let told = world.notices().await;
    assert!(
        matches!(told.as_slice(), [Notice::AlreadyDecided { by: Some(by), .. }] if by == "u2"),
        "{told:?}"
    );
    assert_eq!(world.queue("u3", "").await, Vec::<String>::new());
}

/// design: a late word is about a review that its sender might have decided. Of another one nobody is told who decided it.
#[tokio::test]
async fn a_late_word_is_about_ones_own_reviews() {
    let mut world = World::new().await;
    world.hear(says("1", "u1", "写周报")).await;
    let turn = world.begin().await;
    let gate = world.gate(&turn, GateKind::PlanReview, 1).await;
    world.hear(says("2", "u1", "OK")).await;
    assert_eq!(world.decision(&gate).await, "approve u1");
    world.hear(says("3", "u2", "OK")).await;
    assert_eq!(world.notices().await, []);
    assert_eq!(world.queue("u2", "").await, ["OK"]);
}

/// F-H3: other text that comes second queues behind the turn, and its sender is told so.
#[tokio::test]
async fn second_text_queues() {
    let mut world = World::new().await;
    world.hear(says("1", "u1", "写周报")).await;
    let turn = world.begin().await;
    let gate = world.gate(&turn, GateKind::PlanReview, 1).await;
    world.accept(says("2", "u1", "先备份")).await;
    let target = ClickTarget::Gate(gate.id.clone());
    assert_eq!(world.click("u1", ClickVerb::Approve, target).await, Notice::Approved {});
    world.conversations.triage().await.unwrap();
    assert_eq!(world.decision(&gate).await, "approve u1");
    assert_eq!(world.notices().await, [Notice::Queued { position: 1 }]);
    assert_eq!(world.queue("u1", "").await, ["先备份"]);
}

/// A word beside a copy whose time is over is told so, also while nobody has written the end down: it is no task.
#[tokio::test]
async fn a_late_word_beside_a_copy_is_told_so() {
    for late in [false, true] {
        let mut world = World::with(|live| live.lark.escalate_to = vec![String::from("boss")]).await;
        world.hear(says("1", "u1", "写周报")).await;
        let turn = world.begin().await;
        let gate = world.gate(&turn, GateKind::PlanReview, 1).await;
        world.escalates(&turn, &gate, "boss").await;
        world.deliver().await;
        if late {
            world.clock.advance(TTL);
        }
        world.hear(says("2", "boss", "OK").direct().chat("boss")).await;
        let told = world.notices().await;
        if late {
            assert!(matches!(told.as_slice(), [Notice::Expired { .. }]), "{told:?}");
        } else {
            assert_eq!(world.decision(&gate).await, "approve boss");
        }
    }
}

/// A copy that waits in line while its card is decided is withdrawn.
#[tokio::test]
async fn a_copy_that_waits_is_withdrawn_by_the_decision() {
    let mut world = World::new().await;
    world.hear(says("1", "u1", "写周报")).await;
    let turn = world.begin().await;
    let gate = world.gate(&turn, GateKind::PlanReview, 1).await;
    world.escalates(&turn, &gate, "boss").await;
    world.hear(says("2", "u1", "OK")).await;
    assert_eq!(world.decision(&gate).await, "approve u1");
    let sent = world.deliver().await;
    assert!(!sent.iter().any(|sent| matches!(sent.op, OutboxOp::Post { .. })), "{sent:?}");
}

/// A copy that the platform held back while its card was decided is not posted any more.
#[tokio::test]
async fn a_copy_is_not_tried_again_after_the_decision() {
    for decided in [false, true] {
        let mut world = World::new().await;
        world.hear(says("1", "u1", "写周报")).await;
        let turn = world.begin().await;
        let gate = world.gate(&turn, GateKind::PlanReview, 1).await;
        world.escalates(&turn, &gate, "boss").await;
        let mut tx = world.ledger.begin().await.unwrap();
        let taken = tx.claim_outbox("d", 10_000, 64, &[]).await.unwrap();
        tx.commit().await.unwrap();
        let copies = taken.iter().filter(|row| row.new.conversation.chat == "boss").collect::<Vec<_>>();
        assert_eq!(copies.len(), 1);
        if decided {
            world.hear(says("2", "u1", "OK")).await;
            assert_eq!(world.decision(&gate).await, "approve u1");
        }
        let mut tx = world.ledger.begin().await.unwrap();
        tx.outbox_retry(copies[0], world.clock.now(), "429", false, false).await.unwrap();
        tx.commit().await.unwrap();
        let sent = world.deliver().await;
        let posted = sent.iter().any(|sent| {
            matches!(
                &sent.op,
                OutboxOp::Post {
                    content: Outbound::PlanCard(_),
                    ..
                }
            )
        });
        assert_eq!(posted, !decided);
    }
}
