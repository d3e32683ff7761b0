//! Answers by text: who decides what, once, with its trail and its repaint.

use countersign_agent::domain::{Approvers, CardState, DecisionKind, GateKind, Millis, Notice, Outbound, ReactionMark, Via};
use countersign_gateway::store::OutboxOp;

use super::words::says;
use super::world::World;
use crate::support::people::in_full;

/// S0-31, C16: the requester's next message is the answer; the decision carries who, by which road, the words and the evidence.
#[tokio::test]
async fn ok_approves_with_evidence() {
    let mut world = World::new().await;
    world.hear(says("1", "u1", "写周报")).await;
    let turn = world.begin().await;
    let gate = world.gate(&turn, GateKind::PlanReview, 1).await;
    let before = world.trail().await;
    world.hear(says("2", "u1", "好的！")).await;
    let decision = world.record(&gate.id).await.decision.unwrap();
    assert_eq!((decision.kind, decision.via), (DecisionKind::Approve, Via::Text));
    assert_eq!(decision.by.as_deref(), Some("u1"));
    assert_eq!(decision.text.as_deref(), Some("好的！"));
    assert_eq!(decision.event_id.as_deref(), Some("ev_2"));
    assert_eq!(world.trail().await, before + 1);
    assert_eq!(world.queue("u1", "").await, Vec::<String>::new());
    let sent = world.deliver().await;
    let repaints: Vec<_> = sent.iter().filter(|sent| matches!(sent.op, OutboxOp::Patch { .. })).collect();
    assert_eq!(repaints.len(), 1);
    let OutboxOp::Patch {
        content: Outbound::PlanCard(card),
        ..
    } = &repaints[0].op
    else {
        panic!("the plan card is repainted")
    };
    assert_eq!(card.head.state, CardState::Decided { decision });
    // Nothing is said about it: the card tells everybody, and the mark tells the one who answered.
    assert!(!sent.iter().any(|sent| matches!(sent.op, OutboxOp::Post { .. })));
    let understood = OutboxOp::React {
        message_id: "om_2".to_owned(),
        mark: Some(ReactionMark::Seen),
        shown: None,
    };
    assert!(sent.iter().any(|sent| sent.op == understood), "{sent:?}");
}

/// design: a task gets its mark at once, and nothing else.
#[tokio::test]
async fn a_task_is_seen() {
    let mut world = World::new().await;
    world.hear(says("1", "u1", "写周报")).await;
    assert_eq!(world.queue("u1", "").await, ["写周报"]);
    let sent = world.deliver().await;
    assert_eq!(sent.len(), 1);
    let seen = OutboxOp::React {
        message_id: "om_1".to_owned(),
        mark: Some(ReactionMark::Working),
        shown: None,
    };
    assert_eq!(sent[0].op, seen);
}

/// design: any revise or cancel by an entitled person settles at once.
#[tokio::test]
async fn changes_and_refusal_settle() {
    for (words, expected, text) in [
        ("第二步先备份到另一台机器上去", "revise u1", Some("第二步先备份到另一台机器上去")),
        ("取消", "cancel u1", None),
    ] {
        let mut world = World::new().await;
        world.hear(says("1", "u1", "写周报")).await;
        let turn = world.begin().await;
        let gate = world.gate(&turn, GateKind::PlanReview, 2).await;
        world.hear(says("2", "u1", words)).await;
        assert_eq!(world.decision(&gate).await, expected);
        assert_eq!(world.record(&gate.id).await.decision.unwrap().text.as_deref(), text);
    }
}

/// B2, F-H10: an OK that was sent before the card, but read after it, decides nothing; the next one does.
#[tokio::test]
async fn ok_from_before_the_card() {
    let mut world = World::new().await;
    world.hear(says("1", "u1", "写周报")).await;
    let turn = world.begin().await;
    let gate = world.open(&turn, GateKind::PlanReview, 1).await;
    world.hear(says("2", "u1", "OK")).await;
    assert_eq!(world.decision(&gate).await, "open", "the card is not out yet");
    world.deliver().await;
    let shown = world.record(&gate.id).await.gate.card_at.unwrap();
    world.hear(says("3", "u1", "OK").at(Millis(shown.0 - 10))).await;
    world.hear(says("4", "u1", "OK").at(shown)).await;
    assert_eq!(world.decision(&gate).await, "open", "said before it was there to read");
    assert_eq!(world.queue("u1", "").await, Vec::<String>::new(), "and no task either");
    world.hear(says("5", "u1", "OK")).await;
    assert_eq!(world.decision(&gate).await, "approve u1");
}

/// B1, F-H7: another member's OK is refused in place and leaves the gate and its time alone; their other words are their own task.
#[tokio::test]
async fn other_members_words() {
    let mut world = World::new().await;
    world.hear(says("1", "u1", "写周报")).await;
    let turn = world.begin().await;
    let gate = world.gate(&turn, GateKind::PlanReview, 1).await;
    let before = world.trail().await;
    world.hear(says("2", "u2", "OK")).await;
    let record = world.record(&gate.id).await;
    assert_eq!((record.decision, record.votes, record.gate), (None, Vec::new(), gate.clone()));
    assert_eq!(world.trail().await, before + 1, "the refusal is in the trail");
    let requester = "u1".to_owned();
    assert_eq!(world.notices().await, [Notice::NotEntitled { requester }]);
    world.hear(says("3", "u2", "查天气")).await;
    assert_eq!(world.queue("u2", "").await, ["查天气"]);
    assert_eq!(world.decision(&gate).await, "open");
}

/// design: approve when the quorum is reached: two different people, each counted once.
#[tokio::test]
async fn two_of_two_approvers() {
    let mut world = World::with(|live| live.lark.approvers = Approvers::Anyone).await;
    world.hear(says("1", "u1", "写周报")).await;
    let turn = world.begin().await;
    let gate = world.gate(&turn, GateKind::PlanReview, 2).await;
    for id in ["2", "3"] {
        world.hear(says(id, "u1", "OK")).await;
        assert_eq!(world.decision(&gate).await, "open");
        let (votes, quorum) = (1, 2);
        assert_eq!(world.notices().await, [Notice::VoteRecorded { votes, quorum }]);
    }
    world.hear(says("4", "u2", "同意")).await;
    assert_eq!(world.decision(&gate).await, "approve u2");
    assert_eq!(world.notices().await, []);
}

/// interface: who may approve is read at decision time: the vote of somebody who may not any more does not count.
#[tokio::test]
async fn votes_of_former_approvers_do_not_count() {
    let approvers = |ids: &[&str]| Approvers::Listed(ids.iter().map(|id| (*id).to_owned()).collect());
    let mut world = World::with(|live| live.lark.approvers = approvers(&["a", "b"])).await;
    world.hear(says("1", "u1", "写周报")).await;
    let turn = world.begin().await;
    let gate = world.gate(&turn, GateKind::PlanReview, 2).await;
    world.hear(says("2", "a", "OK")).await;
    world.conversations = world.conversations_with(|live| live.lark.approvers = approvers(&["b", "c"]));
    world.hear(says("3", "b", "OK")).await;
    assert_eq!(world.decision(&gate).await, "open", "a is no approver any more");
    world.hear(says("4", "a", "OK")).await;
    assert_eq!(world.decision(&gate).await, "open");
    world.hear(says("5", "c", "OK")).await;
    assert_eq!(world.decision(&gate).await, "approve c");
}

/// design: one word on a tool approval settles all its open rows; other words reject all of them and are the reason.
#[tokio::test]
async fn words_on_tool_approvals() {
    let table = [
        ("OK", "approve u1", "approved", Some("OK")),
        ("不行", "reject u1", "rejected", None),
        ("路径错了", "reject u1", "rejected", Some("路径错了")),
    ];
    for (words, gate_decision, status, text) in table {
        let mut world = World::new().await;
        world.hear(says("1", "u1", "写周报")).await;
        let turn = world.begin().await;
        let gate = world.gate(&turn, GateKind::ToolApproval, 1).await;
        world.hear(says("2", "u1", words)).await;
        assert_eq!(world.decision(&gate).await, gate_decision, "{words}");
        for row in world.actions(&gate).await {
            assert_eq!(row.status.as_str(), status, "{words}");
            assert_eq!(row.decision.unwrap().text.as_deref(), text, "{words}");
        }
    }
}

/// design: a question takes any text, verbatim; a budget takes yes or no and is asked again otherwise.
#[tokio::test]
async fn questions_and_budgets() {
    let mut world = World::new().await;
    world.hear(says("1", "u1", "写周报")).await;
    let turn = world.begin().await;
    let question = world.gate(&turn, GateKind::Question, 1).await;
    world.hear(says("2", "u1", "取消")).await;
    assert_eq!(world.decision(&question).await, "revise u1");
    assert_eq!(world.record(&question.id).await.decision.unwrap().text.as_deref(), Some("取消"));
    let budget = world.gate(&turn, GateKind::Budget, 1).await;
    world.hear(says("3", "u1", "还要多久？")).await;
    assert_eq!(
        world.decision(&budget).await,
        "revise u1",
        "neither yes nor no: the agent asks again"
    );
    let budget = world.gate(&turn, GateKind::Budget, 1).await;
    world.hear(says("4", "u1", "继续")).await;
    assert_eq!(world.decision(&budget).await, "approve u1");
}

/// F-H9: a reply finds its gate across the threads of the chat; two open and no reply: ask which.
#[tokio::test]
async fn replies_across_threads() {
    let mut world = World::new().await;
    let mut gates = Vec::new();
    for (id, thread, text) in [("1", "omt_a", "写周报"), ("2", "omt_b", "写月报")] {
        world.hear(says(id, "u1", text).thread(thread)).await;
        let turn = world.begin().await;
        gates.push(world.gate(&turn, GateKind::PlanReview, 1).await);
    }
    world.hear(says("3", "u1", "OK")).await;
    let goals = vec!["写周报".to_owned(), "写月报".to_owned()];
    assert_eq!(world.notices().await, [Notice::WhichOne { goals }]);
    let card = gates[1].card_message.clone().unwrap();
    world.hear(says("4", "u1", "OK").plain().reply(&[&card])).await;
    assert_eq!(world.decision(&gates[1]).await, "approve u1");
    world.hear(says("5", "u1", "OK").plain().reply(&["om_unknown", "om_1"])).await;
    assert_eq!(world.decision(&gates[0]).await, "approve u1", "the request itself, as root");
}

/// B7, F-H8: an OK under the first card when a second one waits goes to neither; changes go to the one that waits.
#[tokio::test]
async fn ok_under_an_older_card() {
    let mut world = World::new().await;
    world.hear(says("1", "u1", "写周报")).await;
    let turn = world.begin().await;
    let first = world.gate(&turn, GateKind::PlanReview, 1).await;
    world.hear(says("2", "u1", &in_full("先备份"))).await;
    world.deliver().await;
    let second = world.gate(&turn, GateKind::PlanReview, 1).await;
    let older = first.card_message.clone().unwrap();
    world.hear(says("3", "u1", "OK").plain().reply(&[&older, "om_1"])).await;
    assert_eq!(world.decision(&second).await, "open");
    assert_eq!(world.notices().await, [Notice::Superseded {}]);
    world
        .hear(says("4", "u1", &in_full("再加一步")).plain().reply(&[&older, "om_1"]))
        .await;
    assert_eq!(world.decision(&second).await, "revise u1");
}

/// B7: an OK in reply to other words of the task approves nothing: only its card shows what is asked.
#[tokio::test]
async fn ok_under_other_words_of_the_task() {
    let mut world = World::new().await;
    world.hear(says("1", "u1", "写周报")).await;
    let turn = world.begin().await;
    let gate = world.gate(&turn, GateKind::PlanReview, 1).await;
    let words = world.words(&turn, "先看看上周的").await;
    world.hear(says("2", "u1", "OK").plain().reply(&[&words])).await;
    assert_eq!(world.decision(&gate).await, "open");
    assert_eq!(world.notices().await, [Notice::Superseded {}]);
}

/// B20: our own words decide nothing, nor do attachments.
#[tokio::test]
async fn own_posts_and_attachments() {
    let mut world = World::with(|live| live.lark.approvers = Approvers::Anyone).await;
    world.hear(says("1", "u1", "写周报")).await;
    let turn = world.begin().await;
    let gate = world.gate(&turn, GateKind::PlanReview, 1).await;
    world.hear(says("2", super::words::BOT, "OK")).await;
    assert_eq!(world.notices().await, []);
    world.hear(says("3", "u1", "[image]").attachment()).await;
    assert_eq!(world.notices().await, [Notice::NotText {}]);
    assert_eq!(world.decision(&gate).await, "open");
}

/// A mention that is told twice asks the platform once who belongs to the approvers' group.
#[tokio::test]
async fn a_copy_asks_no_platform() {
    let mut world = World::with(|live| live.lark.approvers = Approvers::Listed(vec![String::from("od-ops")])).await;
    world.hear(says("1", "u1", "写周报")).await;
    let turn = world.begin().await;
    world.gate(&turn, GateKind::PlanReview, 1).await;
    let before = world.trail().await;
    let word = says("2", "u2", "OK");
    world.accept(word.clone()).await;
    let mut twin = word.inbound;
    twin.event_key = String::from("ev_twin");
    world.receive(twin).await;
    world.conversations.triage().await.unwrap();
    assert_eq!(world.groups_asked(), 1);
    assert!(matches!(world.notices().await.as_slice(), [Notice::GroupUnknown { .. }]));
    assert_eq!(
        world.trail().await,
        before,
        "nobody is refused before it is known who belongs to the group"
    );
}

/// interface §10 Words: a few words to a plan get a hint, once for each gate and person, before they cost a round; the same words after it,
/// or others, are changes. More words, and words to anything but a plan, need none.
#[tokio::test]
async fn a_few_words_get_a_hint_first() {
    for (first, then) in [("行", "行"), ("sure thing", "再短一点"), ("十二个字的话就这么多了吧", "OK")] {
        let mut world = World::new().await;
        world.hear(says("1", "u1", "写周报")).await;
        let turn = world.begin().await;
        let gate = world.gate(&turn, GateKind::PlanReview, 1).await;
        world.hear(says("2", "u1", first)).await;
        assert_eq!(world.decision(&gate).await, "open", "{first}");
        assert_eq!(world.notices().await, [Notice::FewWords {}], "{first}");
        world.hear(says("3", "u1", then)).await;
        let decided = if then == "OK" { "approve u1" } else { "revise u1" };
        assert_eq!(world.decision(&gate).await, decided, "{first} {then}");
        let next = world.gate(&turn, GateKind::PlanReview, 1).await;
        world.hear(says("4", "u1", first)).await;
        assert_eq!(world.decision(&next).await, "open", "another gate, another hint");
        world.hear(says("5", "u1", "十三个字的话就算是修改意见")).await;
        assert_eq!(world.decision(&next).await, "revise u1");
    }
    for kind in [GateKind::Question, GateKind::ToolApproval, GateKind::Budget] {
        let mut world = World::new().await;
        world.hear(says("1", "u1", "写周报")).await;
        let turn = world.begin().await;
        let gate = world.gate(&turn, kind, 1).await;
        world.hear(says("2", "u1", "行")).await;
        assert_ne!(world.decision(&gate).await, "open", "{kind:?}");
    }
}
