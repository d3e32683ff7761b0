//! The head that the cards of all gates have.

use serde::{Deserialize, Serialize};

use super::CardState;
use crate::domain::{Absence, Approvers, CardCopy, Deciders};

/// The part of a gate's card that is alike for all kinds: whom the card asks, for how long, and how it stands.
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
    /// Of a card that asks the requester, until [`Outbound::ask`](super::Outbound::ask) says whom.
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

    /// The people who may approve this card, by its approvers and its requester.
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
