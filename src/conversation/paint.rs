//! How a gate's card looks after something happened to it: painted from the card as it was posted.

use countersign_agent::domain::{Action, AskedAgain, CardState, Decision, GateKind, Outbound, PlanCard};

use crate::store::GateRecord;

use super::rights::Rights;

/// Longest goal inside a notice, characters.
const GOAL_LIMIT: usize = 80;

/// Decided: no buttons any more, who decided and how. `rows`: the gate's actions as they stand now.
pub(super) fn decided(card: &Outbound, decision: &Decision, rows: &[Action]) -> Outbound {
    let decision = decision.clone();
    card.painted(CardState::Decided { decision }, rows)
}

/// As [`decided`], with who had its plan asked for again since.
pub(super) fn asked_again(card: &Outbound, decision: &Decision, asked: Option<&AskedAgain>) -> Outbound {
    match decided(card, decision, &[]) {
        Outbound::PlanCard(plan) => Outbound::PlanCard(PlanCard {
            asked_again: asked.cloned().map(Box::new),
            ..plan
        }),
        other => other,
    }
}

/// Still open, with the approvals so far, as they count by `rights`: of the gate, or of each of its `rows`.
pub(super) fn open(record: &GateRecord, rows: &[Action], rights: &Rights) -> Outbound {
    let votes = match record.gate.kind {
        GateKind::ToolApproval => 0,
        GateKind::PlanReview | GateKind::Question | GateKind::Budget => rights.count(record, None, None),
    };
    let mut card = record.gate.card.painted(CardState::Open { votes }, rows);
    if let Outbound::ApprovalCard(card) = &mut card {
        for row in &mut card.actions {
            row.votes = rights.count(record, Some(&row.id), row.approvers.as_ref());
        }
    }
    card
}

/// The plan card with the note that its request was edited; none for other cards.
pub(super) fn edited(record: &GateRecord, rights: &Rights) -> Option<Outbound> {
    match open(record, &[], rights) {
        Outbound::PlanCard(mut plan) => {
            plan.request_edited = true;
            Some(Outbound::PlanCard(plan))
        }
        _ => None,
    }
}

/// What the card is about, in a few words of foreign text.
pub(super) fn goal(card: &Outbound) -> String {
    let text = match card {
        Outbound::PlanCard(plan) => plan.goal.as_str(),
        Outbound::ApprovalCard(card) => card.actions.first().map_or("", |action| action.justification.as_str()),
        Outbound::QuestionCard(card) => card.question.as_str(),
        Outbound::BudgetCard(card) => card.summary.as_str(),
        Outbound::Progress(_) | Outbound::Answer(_) | Outbound::Notice(_) | Outbound::Text { .. } | Outbound::Reaction(_) => "",
    };
    brief(text)
}

/// The first line of a foreign text, cut to what fits into a notice.
pub(super) fn brief(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default().trim();
    match line.char_indices().nth(GOAL_LIMIT) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}
