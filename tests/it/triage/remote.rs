//! Decisions over the API.

use countersign_agent::domain::SignalKind;
use countersign_agent::domain::{ActionId, ActionStatus, Approvers, ChannelKind, DecisionKind, Gate, GateId, GateKind, TurnId, Via};
use countersign_gateway::conversation::{Answered, ApiDecision, DecideError, Verb, words_of};
use countersign_gateway::store::{GateRecord, TurnRow};

use super::cards::TTL;
use super::words::{Words, says};
use super::world::World;

fn asks(kind: DecisionKind, feedback: Option<&str>, user: &str) -> ApiDecision {
    let words = words_of(feedback);
    ApiDecision {
        verb: match kind {
            DecisionKind::Approve => Verb::Approve(words),
            DecisionKind::Revise => Verb::Revise(words),
            _ => Verb::Refuse(words),
        },
        edit: None,
        user_id: user.to_owned(),
        principal: "token".to_owned(),
    }
}

async fn decide(world: &World, gate: &GateId, asked: ApiDecision) -> Result<GateRecord, DecideError> {
    let answered = world.conversations.decide_review(gate, asked).await?;
    Ok(answered.taken()?.record)
}

async fn act(world: &World, row: &ActionId, gate: Option<&GateId>, asked: ApiDecision) -> Result<Answered, DecideError> {
    world.conversations.decide_action(row, gate, asked).await?.taken()
}

fn on_console(mut words: Words) -> Words {
    words.inbound.conversation.channel = ChannelKind::Console;
    words.direct()
}

async fn waiting(world: &mut World, words: Words, kind: GateKind, quorum: u32) -> (TurnRow, Gate) {
    world.hear(words).await;
    let turn = world.begin().await;
    let gate = world.gate(&turn, kind, quorum).await;
    (turn, gate)
}

/// api: the token's holder decides on behalf of a user; the same again is the first result; another decision is a conflict.
#[tokio::test]
async fn decides_repeats_conflicts() {
    let mut world = World::new().await;
    let (_, gate) = waiting(&mut world, says("1", "u1", "写周报"), GateKind::PlanReview, 1).await;
    let revise = asks(DecisionKind::Revise, Some("先备份"), "u7");
    let first = decide(&world, &gate.id, revise.clone()).await.unwrap();
    let decision = first.decision.clone().unwrap();
    assert_eq!(
        (decision.kind, decision.via, decision.by.as_deref()),
        (DecisionKind::Revise, Via::Api, Some("u7"))
    );
    world.clock.advance(TTL);
    assert_eq!(decide(&world, &gate.id, revise).await.unwrap(), first);
    let other = decide(&world, &gate.id, asks(DecisionKind::Approve, None, "u7")).await;
    assert!(matches!(other, Err(DecideError::Conflict { by: Some(by), at, .. }) if by == "u7" && at == decision.at));
}

/// api: a decision by button is not the token's own: approving it again is a conflict that names who was first.
#[tokio::test]
async fn conflict_with_a_button() {
    let mut world = World::new().await;
    let (_, gate) = waiting(&mut world, says("1", "u1", "写周报"), GateKind::PlanReview, 1).await;
    world.hear(says("2", "u1", "OK")).await;
    let again = decide(&world, &gate.id, asks(DecisionKind::Approve, None, "u1")).await;
    assert!(matches!(again, Err(DecideError::Conflict { by: Some(by), .. }) if by == "u1"));
}

/// api: 404, 410 and 422.
#[tokio::test]
async fn unknown_expired_invalid() {
    let mut world = World::new().await;
    let (_, gate) = waiting(&mut world, says("1", "u1", "写周报"), GateKind::PlanReview, 1).await;
    let unknown = decide(&world, &GateId::new("rv_x"), asks(DecisionKind::Approve, None, "u1")).await;
    assert!(matches!(unknown, Err(DecideError::NotFound)));
    let invalid = decide(&world, &gate.id, asks(DecisionKind::Revise, Some(" "), "u1")).await;
    assert!(matches!(invalid, Err(DecideError::Invalid(_))));
    world.clock.advance(TTL);
    let late = asks(DecisionKind::Approve, None, "u1");
    for _ in 0..2 {
        let gone = decide(&world, &gate.id, late.clone()).await;
        assert!(matches!(gone, Err(DecideError::Gone)));
    }
    assert_eq!(world.decision(&gate).await, "expire ");
}

/// api: in the console channel the user is the principal: the approver rule applies, and repeating is per person.
#[tokio::test]
async fn console_users_are_principals() {
    let mut world = World::new().await;
    let (turn, gate) = waiting(&mut world, on_console(says("1", "u1", "写周报")), GateKind::PlanReview, 1).await;
    let refused = decide(&world, &gate.id, asks(DecisionKind::Approve, None, "u2")).await;
    assert!(matches!(refused, Err(DecideError::Forbidden)));
    assert!(matches!(
        world.conversations.cancel_turn(&turn.id, "u2", "local").await,
        Err(DecideError::Forbidden)
    ));
    assert_eq!(world.decision(&gate).await, "open");
    let approve = asks(DecisionKind::Approve, None, "u1");
    decide(&world, &gate.id, approve.clone()).await.unwrap();
    decide(&world, &gate.id, approve).await.unwrap();
    let other = decide(&world, &gate.id, asks(DecisionKind::Approve, None, "u2")).await;
    assert!(matches!(other, Err(DecideError::Conflict { .. })));
}

/// api: on a platform's gate the token is the voter, whomever it speaks for: two of its votes are one, and a person's makes two.
#[tokio::test]
async fn votes_over_the_api() {
    let mut world = World::with(|live| live.lark.approvers = Approvers::Listed(vec!["u1".to_owned()])).await;
    let (_, gate) = waiting(&mut world, says("1", "u1", "写周报"), GateKind::PlanReview, 2).await;
    for user in ["u7", "u7", "u8"] {
        let record = decide(&world, &gate.id, asks(DecisionKind::Approve, None, user)).await.unwrap();
        assert_eq!(record.decision, None, "one token is one voter, also for {user}");
    }
    world.hear(says("2", "u1", "OK")).await;
    assert_eq!(world.decision(&gate).await, "approve u1");
}

/// api: in the console channel the users are the voters.
#[tokio::test]
async fn votes_of_console_users() {
    let mut world = World::with(|live| live.console.approvers = Approvers::Anyone).await;
    let (_, gate) = waiting(&mut world, on_console(says("1", "u1", "写周报")), GateKind::PlanReview, 2).await;
    for (user, decided) in [("u7", false), ("u7", false), ("u8", true)] {
        let record = decide(&world, &gate.id, asks(DecisionKind::Approve, None, user)).await.unwrap();
        assert_eq!(record.decision.is_some(), decided, "{user}");
    }
}

/// api: actions are decided one by one; the last one settles the gate; repeats and conflicts as for reviews.
#[tokio::test]
async fn actions_one_by_one() {
    let mut world = World::new().await;
    let (_, gate) = waiting(&mut world, says("1", "u1", "写周报"), GateKind::ToolApproval, 1).await;
    let [a, b] = <[_; 2]>::try_from(world.actions(&gate).await).unwrap().map(|row| row.id);
    let reject = asks(DecisionKind::Reject, Some("路径错了"), "u1");
    for _ in 0..2 {
        act(&world, &a, None, reject.clone()).await.unwrap();
        let row = world.actions(&gate).await.remove(0);
        assert_eq!(row.status, ActionStatus::Rejected);
        assert_eq!(row.decision.unwrap().text.as_deref(), Some("路径错了"));
    }
    let conflict = act(&world, &a, None, asks(DecisionKind::Approve, None, "u1")).await;
    assert!(matches!(conflict, Err(DecideError::Conflict { .. })));
    assert_eq!(world.decision(&gate).await, "open");
    world.clock.advance(TTL);
    let gone = act(&world, &b, None, asks(DecisionKind::Approve, None, "u1")).await;
    assert!(matches!(gone, Err(DecideError::Gone)));
    assert_eq!(world.actions(&gate).await[1].status, ActionStatus::Expired);
    let gone = act(&world, &b, None, asks(DecisionKind::Approve, None, "u1")).await;
    assert!(matches!(gone, Err(DecideError::Gone)));
}

/// api: after a call's outcome was lost it is asked about again under its id: a decision that names no question, or the first one, is
/// no word on the second, so that a client that sends its approval again runs nothing twice.
#[tokio::test]
async fn a_repeated_approval_is_none_of_the_second_try() {
    let mut world = World::new().await;
    let (turn, first) = waiting(&mut world, says("1", "u1", "写周报"), GateKind::ToolApproval, 1).await;
    let row = world.actions(&first).await[0].id.clone();
    let approve = || asks(DecisionKind::Approve, None, "u1");
    act(&world, &row, Some(&first.id), approve()).await.unwrap();
    let other = world.actions(&first).await[1].id.clone();
    act(&world, &other, None, approve()).await.unwrap();
    let second = world.open(&turn, GateKind::ToolApproval, 1).await;
    world.asks_again(&turn, &row, &second).await;
    for named in [None, Some(&first.id)] {
        let repeated = act(&world, &row, named, approve()).await;
        assert!(matches!(repeated, Err(DecideError::AskedAgain)), "{named:?}: {repeated:?}");
    }
    let found = |rows: Vec<countersign_agent::domain::Action>| rows.into_iter().find(|one| one.id == row).unwrap().status;
    assert_eq!(found(world.actions(&second).await), ActionStatus::Unknown);
    act(&world, &row, Some(&second.id), approve()).await.unwrap();
    assert_eq!(found(world.actions(&second).await), ActionStatus::Approved);
}

/// interface: on the console one person is one voter, however their id is written; ids of the settings are read the same way.
#[tokio::test]
async fn spellings_of_one_console_person() {
    let mut world = World::with(|live| live.console.approvers = Approvers::Listed(vec!["Alice".to_owned(), "bob".to_owned()])).await;
    let (_, gate) = waiting(&mut world, on_console(says("1", "u1", "写周报")), GateKind::PlanReview, 2).await;
    for user in ["alice", "alice ", "ALICE", "ａｌｉｃｅ"] {
        let record = decide(&world, &gate.id, asks(DecisionKind::Approve, None, user)).await.unwrap();
        assert_eq!((record.decision, record.votes.len()), (None, 1), "{user}");
    }
    world.clock.advance(TTL / 2);
    let record = decide(&world, &gate.id, asks(DecisionKind::Approve, None, "Bob")).await.unwrap();
    let approvers: Vec<String> = record.decision.unwrap().approvers.into_iter().map(|one| one.by).collect();
    assert_eq!(approvers, ["alice", "bob"]);
}

/// api: a question is answered by revise; approving one makes no sense.
#[tokio::test]
async fn answers_over_the_api() {
    let mut world = World::new().await;
    let (_, gate) = waiting(&mut world, says("1", "u1", "写周报"), GateKind::Question, 1).await;
    let approve = decide(&world, &gate.id, asks(DecisionKind::Approve, None, "u1")).await;
    assert!(matches!(approve, Err(DecideError::Invalid(_))));
    decide(&world, &gate.id, asks(DecisionKind::Revise, Some("三月"), "u1"))
        .await
        .unwrap();
    assert_eq!(world.record(&gate.id).await.decision.unwrap().text.as_deref(), Some("三月"));
}

/// api: cancelling a turn signals it and closes its gate, once; a turn that ended otherwise is a conflict.
#[tokio::test]
async fn cancels_turns() {
    let mut world = World::new().await;
    let (turn, gate) = waiting(&mut world, says("1", "u1", "写周报"), GateKind::PlanReview, 1).await;
    for _ in 0..2 {
        world.conversations.cancel_turn(&turn.id, "u7", "local").await.unwrap();
    }
    assert_eq!(world.signals(&turn).await, [SignalKind::Cancel]);
    assert_eq!(world.decision(&gate).await, "cancel u7");
    world.finish(&turn).await;
    assert!(matches!(
        world.conversations.cancel_turn(&turn.id, "u7", "local").await,
        Err(DecideError::Conflict { .. })
    ));
    let unknown = world.conversations.cancel_turn(&TurnId::new("turn_x"), "u7", "local").await;
    assert!(matches!(unknown, Err(DecideError::NotFound)));
}
