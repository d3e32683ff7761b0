//! Approval cards with the button "always here", and after it was pressed.

use countersign_agent::domain::{
    ActionStatus, ArgumentSense, CardState, DecisionKind, Millis, Outbound, Scope, StandingMade, StandingOffer,
};

use super::{approval, decided, grant};

/// A card whose first call may be allowed for longer than once; `made`: somebody did.
pub fn allowed_here(made: bool) -> Outbound {
    let (status, state) = match made {
        true => (ActionStatus::Executed, decided(DecisionKind::Approve, Some("ou_u2"), None)),
        false => (ActionStatus::Pending, CardState::Open { votes: 0 }),
    };
    let Outbound::ApprovalCard(mut card) = approval([status; 2], state) else {
        panic!("no approval card")
    };
    card.actions[0].always = Some(Box::new(StandingOffer {
        call: grant("write_file", "path", "周报 <b>.md").call,
        definition: String::from("0f"),
        scope: Scope::argument("path", ArgumentSense::Path),
        days: 30,
    }));
    card.actions[0].standing = made.then(|| {
        Box::new(StandingMade {
            id: String::from("sg_1"),
            number: 3,
            by: String::from("ou_u2"),
            until: Millis(1_765_432_100_123),
        })
    });
    Outbound::ApprovalCard(card)
}
