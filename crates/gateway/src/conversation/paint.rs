//! How a gate's card looks after something happened to it: painted from the card as it was posted.

use countersign_agent::domain::{Action, AskedAgain, CardState, Decision, GateKind, Millis, Outbound, PlanCard};

use crate::store::{GateRecord, Read, StoreError};

use super::rights::Rights;

/// Longest goal inside a notice, characters.
const GOAL_LIMIT: usize = 80;

/// Decided: no buttons any more, who decided and how, and who `asked` for its plan again since. `rows`: the gate's actions as they stand now.
pub(super) fn decided(card: &Outbound, decision: &Decision, asked: Option<&AskedAgain>, rows: &[Action]) -> Outbound {
    let decision = decision.clone();
    match card.painted(CardState::Decided { decision }, rows) {
        Outbound::PlanCard(plan) => Outbound::PlanCard(PlanCard {
            asked_again: asked.cloned().map(Box::new),
            ..plan
        }),
        other => other,
    }
}

/// Still open, with the approvals so far, as they count by `rights`: of the gate, or of each of its `rows`. It says who is away `now`.
pub(super) async fn open(
    read: &mut Read,
    record: &GateRecord,
    rows: &[Action],
    rights: &Rights,
    now: Millis,
) -> Result<Outbound, StoreError> {
    let mut card = with_votes(record, rows, rights);
    let away = read.absences(&record.gate.conversation, &card.asked(), now).await?;
    card.set_away(away);
    Ok(card)
}

fn with_votes(record: &GateRecord, rows: &[Action], rights: &Rights) -> Outbound {
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
pub(super) async fn edited(read: &mut Read, record: &GateRecord, rights: &Rights, now: Millis) -> Result<Option<Outbound>, StoreError> {
    Ok(match open(read, record, &[], rights, now).await? {
        Outbound::PlanCard(mut plan) => {
            plan.request_edited = true;
            Some(Outbound::PlanCard(plan))
        }
        _ => None,
    })
}

/// What the card is about, in a few words of foreign text.
pub(super) fn goal(card: &Outbound) -> String {
    let text = match card {
        Outbound::PlanCard(plan) => plan.goal.as_str(),
        Outbound::ApprovalCard(card) => card.actions.first().map_or("", |action| action.justification.as_str()),
        Outbound::QuestionCard(card) => card.question.as_str(),
        Outbound::BudgetCard(card) => card.summary.as_str(),
        _ => "",
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
