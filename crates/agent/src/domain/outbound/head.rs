//! What the cards of all gates have in common.

use serde::{Deserialize, Serialize};

use super::{ApprovalCard, BudgetCard, CardState, Outbound, PlanCard, QuestionCard};
use crate::domain::{Absence, Approvers, CardCopy, Deciders};

/// What the card of every gate says: whom it asks, for how long, and how it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CardHead {
    /// Whose task it is.
    pub requester: String,
    /// Who may approve, as it was when the card was made. `None` on a question: its requester answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approvers: Option<Approvers>,
    /// Those of the people asked who were away when the card was made, with who decides in their place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub away: Vec<Absence>,
    /// True in groups: a second line says how to answer there. `None` on a limit card, which does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<bool>,
    /// How long it waits, as far as known when the card was made.
    pub ttl_ms: i64,
    /// How it stands.
    pub state: CardState,
    /// It is a copy for one person, who is asked because nobody answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy: Option<Box<CardCopy>>,
}

impl CardHead {
    /// Of a card that asks the requester, until [`Outbound::ask`] says whom.
    #[must_use]
    pub fn new(requester: String, group: bool, ttl_ms: i64, state: CardState) -> Self {
        Self {
            requester,
            approvers: Some(Approvers::Requester),
            away: Vec::new(),
            group: Some(group),
            ttl_ms,
            state,
            copy: None,
        }
    }

    /// Who may approve.
    #[must_use]
    pub fn approvers(&self) -> &Approvers {
        self.approvers.as_ref().unwrap_or(&Approvers::Requester)
    }

    /// Who may approve what this requester asked for.
    #[must_use]
    pub fn deciders(&self) -> Deciders<'_> {
        self.approvers().deciders(&self.requester)
    }

    /// Does it stand in a group?
    #[must_use]
    pub fn in_group(&self) -> bool {
        self.group == Some(true)
    }
}

impl Outbound {
    /// What the card of a gate says like every other.
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
