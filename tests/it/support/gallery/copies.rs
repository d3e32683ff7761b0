//! What is said when nobody answers: the reminders, and copies of cards in direct messages.

use countersign_agent::domain::{ActionStatus, CardCopy, CardState, DecisionKind, GateKind, Notice, Outbound};

use super::{AT, approval, decided, plan};

/// The card as `ou_u3` has it in the direct chat with the bot. It waits in a group; on Lark that has an id which cannot be linked.
fn copy(mut card: Outbound) -> Outbound {
    let head = card.head_mut().unwrap();
    head.group = Some(false);
    head.copy = Some(Box::new(CardCopy {
        person: String::from("ou_u3"),
        chat: Some(String::from("C0GROUP01")),
        since: AT,
        until: Some(AT),
    }));
    card
}

pub fn cards() -> [(&'static str, Outbound); 3] {
    let open = CardState::Open { votes: 0 };
    let settled = decided(DecisionKind::Approve, Some("ou_u3"), Some("OK"));
    [
        ("plan_copy_open", copy(Outbound::PlanCard(plan(open.clone())))),
        ("plan_copy_approved", copy(Outbound::PlanCard(plan(settled)))),
        (
            "approval_copy_open",
            copy(approval([ActionStatus::Pending, ActionStatus::Pending], open)),
        ),
    ]
}

/// The reminders, and what the group is told when other people were asked.
pub fn notices() -> Vec<Notice> {
    let reminder = |gate, people: &[&str], more, (votes, quorum)| Notice::Reminder {
        gate,
        people: people.iter().map(|id| (*id).to_owned()).collect(),
        more,
        minutes: if votes > 0 { 1 } else { 30 },
        until: String::from("2025-12-11T05:48:20.123Z"),
        votes,
        quorum,
    };
    let escalated = |gate| Notice::Escalated {
        gate,
        people: vec![String::from("ou_u2"), String::from("ou_u3")],
    };
    vec![
        reminder(GateKind::PlanReview, &["ou_u1"], 0, (0, 1)),
        reminder(GateKind::PlanReview, &["ou_u2", "ou_u3"], 2, (1, 3)),
        reminder(GateKind::PlanReview, &[], 0, (0, 1)),
        reminder(GateKind::ToolApproval, &["ou_u2"], 0, (0, 2)),
        reminder(GateKind::Question, &["ou_u1"], 0, (0, 1)),
        reminder(GateKind::Budget, &["ou_u1"], 0, (0, 1)),
        escalated(GateKind::PlanReview),
        escalated(GateKind::ToolApproval),
    ]
}
