//! The head of a gate's card: reading and changing it, whatever the kind of gate.

use super::{ApprovalCard, BudgetCard, CardHead, Outbound, PlanCard, QuestionCard};
use crate::domain::{Absence, Approvers};

impl Outbound {
    /// The head of a gate's card. `None` means that this is no such card.
    #[must_use]
    pub fn head(&self) -> Option<&CardHead> {
        match self {
            Self::PlanCard(PlanCard { head, .. })
            | Self::ApprovalCard(ApprovalCard { head, .. })
            | Self::QuestionCard(QuestionCard { head, .. })
            | Self::BudgetCard(BudgetCard { head, .. }) => Some(head),
            _ => None,
        }
    }

    /// [`Outbound::head`], to change it.
    pub fn head_mut(&mut self) -> Option<&mut CardHead> {
        match self {
            Self::PlanCard(PlanCard { head, .. })
            | Self::ApprovalCard(ApprovalCard { head, .. })
            | Self::QuestionCard(QuestionCard { head, .. })
            | Self::BudgetCard(BudgetCard { head, .. }) => Some(head),
            _ => None,
        }
    }

    /// Writes onto a card that waits who may approve at the moment when it is made. A question is answered by its requester, not by the
    /// approvers.
    pub fn ask(&mut self, approvers: Approvers) {
        if let Some(asked) = self.head_mut().and_then(|head| head.approvers.as_mut()) {
            *asked = approvers;
        }
    }

    /// The people whom it asks by their ids, groups among them.
    #[must_use]
    pub fn asked(&self) -> Vec<&str> {
        match self {
            Self::ApprovalCard(card) => card.deciders().people,
            _ => self.head().map_or_else(Vec::new, |head| head.deciders().people),
        }
    }

    /// Those of the people asked who are away, as the card says.
    #[must_use]
    pub fn away(&self) -> &[Absence] {
        self.head().map_or(&[], |head| &head.away)
    }

    /// Writes onto a card that waits which of the people asked are away.
    pub fn set_away(&mut self, absences: Vec<Absence>) {
        if let Some(head) = self.head_mut() {
            head.away = absences;
        }
    }
}
