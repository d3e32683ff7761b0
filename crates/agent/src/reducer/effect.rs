//! What a step gives: effects to be journaled, and the gate that one of them opens.

use crate::domain::{Action, ActionStatus, Decision, Demand, Event, GateId, GateKind, Outbound};

/// A gate to open, with the card that shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct GateOpening {
    /// `rv_…`.
    pub id: GateId,
    /// Why.
    pub kind: GateKind,
    /// What is decided about.
    pub digest: String,
    /// Plan version, else 0.
    pub plan_version: u32,
    /// Different people needed.
    pub quorum: u32,
    /// The card, state `Open`.
    pub card: Outbound,
    /// The gate whose place this one takes: the two cards are tied together, so that the older one leads to the newer.
    pub replaces: Option<GateId>,
}

/// What a step wants written. The engine journals all effects of one step in one transaction, then acts on
/// [`TurnState::next`](super::TurnState::next).
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Post this to the chat.
    Say(Box<Outbound>),
    /// Show the plan's progress: repaint the plan card, or post and repaint a progress card of its own.
    Progress,
    /// Record this proposed (or granted) call. Boxed: it is by far the largest.
    Propose(Box<Action>),
    /// A proposed call moved on without the store's doing (for example `unknown`).
    ActionMoved {
        /// `act_…`.
        action: String,
        /// New status.
        status: ActionStatus,
    },
    /// Nobody knows whether this call ran: a new gate asks about it.
    ActionReopened {
        /// `act_…`.
        action: String,
        /// The gate.
        gate: GateId,
        /// Whom the call asks now. The rules may have changed since it was proposed.
        demand: Demand,
    },
    /// A rule denies this proposed call, which a person may have approved, and which was not sent.
    ActionDenied {
        /// `act_…`.
        action: String,
        /// The rule's, in place of the person's.
        decision: Box<Decision>,
    },
    /// Open a gate and wait.
    OpenGate(Box<GateOpening>),
    /// Put this on the timeline.
    Emit {
        /// Iteration (model calls so far, 1-based; 0 before the first).
        iteration: u64,
        /// What happened.
        event: Event,
        /// At most 200 characters, starting with the phase tag when the event has a phase.
        summary: String,
    },
    /// The turn is over; status, reason, answer are in the state.
    Finish,
}
