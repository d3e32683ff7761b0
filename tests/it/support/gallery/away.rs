//! Cards on which a person who is asked is away.

use countersign_agent::domain::{Absence, CardState, Decision, DecisionKind, Outbound};

use super::{AT, decided, plan, running};

/// Its requester is away.
pub fn open() -> Outbound {
    let mut card = Outbound::PlanCard(plan(CardState::Open { votes: 0 }));
    card.set_away(vec![Absence {
        person: String::from("ou_u1"),
        deputy: String::from("ou_u2"),
        since: AT,
        until: AT,
        teams: Vec::new(),
    }]);
    card
}

/// A deputy approved it.
pub fn approved() -> Outbound {
    let state = match decided(DecisionKind::Approve, Some("ou_u2"), Some("OK")) {
        CardState::Decided { decision } => CardState::Decided {
            decision: Decision {
                in_place_of: Some(String::from("ou_u1")),
                ..decision
            },
        },
        state => state,
    };
    Outbound::PlanCard(running(plan(state)))
}
