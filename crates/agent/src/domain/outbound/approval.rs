//! The card that asks for tool calls, a row for each.

use serde::{Deserialize, Serialize};

use super::CardHead;
use crate::domain::{ActionId, ActionStatus, Approvers, Deciders, EffectClass, GateId, StandingMade, StandingOffer};

/// One row of an approval card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionView {
    /// The call.
    pub id: ActionId,
    /// Tool name.
    pub tool: String,
    /// Write or destructive.
    pub effect: EffectClass,
    /// What it will do; foreign text.
    pub justification: String,
    /// Arguments as pretty JSON, whole unless `hidden` says otherwise; foreign text.
    pub arguments: String,
    /// Characters of the arguments that no card has room for. Such a row is decided by its own button, never by a word for the card.
    #[serde(default)]
    pub hidden: u64,
    /// What the call would change, as its tool foresaw it when the card was made: for files a unified diff, capped;
    /// foreign text.
    #[serde(default)]
    pub preview: Option<String>,
    /// Different people needed to approve it. 0 on older cards, which need one.
    #[serde(default)]
    pub quorum: u32,
    /// Who may approve it. `None` means the approvers of the card.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approvers: Option<Approvers>,
    /// Approvals so far, while it waits.
    #[serde(default)]
    pub votes: u32,
    /// What its button "always here" allows. `None` means that it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub always: Option<Box<StandingOffer>>,
    /// The standing grant that was made with its approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standing: Option<Box<StandingMade>>,
    /// Where it stands.
    pub status: ActionStatus,
    /// It was approved, and asks again: what it would change is no longer what its preview showed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outdated: bool,
    /// A person changed the arguments when they approved the call; these are theirs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub edited: bool,
    /// First lines of its output once it ran; foreign text.
    pub output: Option<String>,
}

impl ActionView {
    /// The words, by their key, that warn the person who decides about this row.
    #[must_use]
    pub fn warning(&self) -> Option<&'static str> {
        match (self.status, self.outdated) {
            (ActionStatus::Unknown, _) => Some("approval.unknown"),
            (ActionStatus::Pending, true) => Some("approval.outdated"),
            _ if self.edited => Some("approval.edited"),
            _ => None,
        }
    }

    /// Who may approve it, of a task of `requester`. A call that asks nobody of its own asks `approvers`.
    #[must_use]
    pub fn deciders<'a>(&'a self, approvers: &'a Approvers, requester: &'a str) -> Deciders<'a> {
        Approvers::deciders_of_call(self.approvers.as_ref(), self.quorum, approvers, requester)
    }

    /// The call was approved once and asks again.
    pub(super) fn asks_anew(&self) -> bool {
        self.status == ActionStatus::Unknown || (self.status == ActionStatus::Pending && self.outdated)
    }

    /// The id on this row's buttons, at the gate that asks.
    #[must_use]
    pub fn button_id(&self, gate: &GateId) -> ActionId {
        if self.asks_anew() { self.id.marked(gate) } else { self.id.clone() }
    }
}

/// The approval card: one row a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalCard {
    /// The gate, for whole-card answers.
    pub gate_id: GateId,
    /// Whom it asks, and how it stands.
    #[serde(flatten)]
    pub head: CardHead,
    /// The calls in order.
    pub actions: Vec<ActionView>,
    /// What the model said with them; foreign text.
    pub note: Option<String>,
    /// Calls of the same reply that have no room here: they are asked about on the next card.
    #[serde(default)]
    pub later: usize,
    /// It went out as text, and the text was cut.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

impl ApprovalCard {
    /// Who may decide one of its calls that wait. Where none waits: one of all.
    #[must_use]
    pub fn deciders(&self) -> Deciders<'_> {
        self.deciders_by(self.head.approvers())
    }

    /// The same; calls that ask nobody of their own ask `approvers`.
    #[must_use]
    pub fn deciders_by<'a>(&'a self, approvers: &'a Approvers) -> Deciders<'a> {
        let any_waits = self.actions.iter().any(|row| row.status.waits());
        let rows = self.actions.iter().filter(|row| row.status.waits() || !any_waits);
        let requester = &self.head.requester;
        let each = rows.map(|row| row.deciders(approvers, requester));
        each.reduce(Deciders::or).unwrap_or_else(|| approvers.deciders(requester))
    }
}
