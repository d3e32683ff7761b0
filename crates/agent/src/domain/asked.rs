//! Whom a card asks, and which of them are away.

use super::{Absence, Approvers, Outbound};

impl Outbound {
    /// Writes onto a card that waits who may approve at the moment when it is made.
    pub fn ask(&mut self, approvers: Approvers) {
        match self {
            Self::PlanCard(card) => card.approvers = approvers,
            Self::ApprovalCard(card) => card.approvers = approvers,
            Self::BudgetCard(card) => card.approvers = approvers,
            // A question is answered by its requester, not by the approvers.
            _ => (),
        }
    }

    /// The people whom it asks by their ids, groups among them.
    #[must_use]
    pub fn asked(&self) -> Vec<&str> {
        match self {
            Self::PlanCard(card) => card.approvers.deciders(&card.requester).people,
            Self::ApprovalCard(card) => card.deciders().people,
            Self::QuestionCard(card) => vec![&card.requester],
            Self::BudgetCard(card) => card.approvers.deciders(&card.requester).people,
            _ => Vec::new(),
        }
    }

    /// Those of the people asked who are away, as the card says.
    #[must_use]
    pub fn away(&self) -> &[Absence] {
        match self {
            Self::PlanCard(card) => &card.away,
            Self::ApprovalCard(card) => &card.away,
            Self::QuestionCard(card) => &card.away,
            Self::BudgetCard(card) => &card.away,
            _ => &[],
        }
    }

    /// Writes onto a card that waits which of the people asked are away.
    pub fn set_away(&mut self, absences: Vec<Absence>) {
        match self {
            Self::PlanCard(card) => card.away = absences,
            Self::ApprovalCard(card) => card.away = absences,
            Self::QuestionCard(card) => card.away = absences,
            Self::BudgetCard(card) => card.away = absences,
            _ => (),
        }
    }
}
