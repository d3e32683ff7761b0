//! What a person is told about their act at a gate.

use countersign_agent::domain::handshake::{BadChoice, Refusal};
use countersign_agent::domain::{Action, AskedAgain, Decision, DecisionKind, Gate, GateKind, Notice};

use crate::store::GateRecord;

use super::paint;
use super::rights::Rights;

/// For the person whose act settled a gate, or one call.
pub(super) fn done(gate: GateKind, decision: &Decision) -> Notice {
    if let Some(made) = &decision.standing {
        return Notice::AllowedHere {
            number: made.number,
            until: made.until.rfc3339(),
        };
    }
    match &decision.in_place_of {
        Some(person) if gate != GateKind::Question => Notice::DecidedInPlace {
            kind: decision.kind,
            person: person.clone(),
        },
        _ => done_so(gate, decision.kind),
    }
}

/// For the person who settled a gate, or rows of it, so.
pub(super) fn done_so(gate: GateKind, kind: DecisionKind) -> Notice {
    match kind {
        DecisionKind::Approve => Notice::Approved {},
        DecisionKind::Revise if gate == GateKind::Question => Notice::Answered {},
        DecisionKind::Revise => Notice::Revised {},
        DecisionKind::Reject => Notice::Rejected {},
        DecisionKind::Cancel | DecisionKind::Expire | DecisionKind::Supersede => Notice::Cancelled {},
    }
}

/// For a person whose act has no effect.
pub(super) fn refused(refusal: Refusal, gate: &Gate, row: Option<&Action>, rights: &Rights) -> Notice {
    match refusal {
        Refusal::NotEntitled => rights.not_entitled(gate, row),
        Refusal::GroupUnknown(groups) => Notice::GroupUnknown { groups },
        Refusal::NotShownWhole => Notice::NotShownWhole {},
        Refusal::NoWords => Notice::EmptyFeedback {},
        // That it was decided is told by its decision.
        Refusal::BadChoice(BadChoice::NoSuchStep) | Refusal::Decided | Refusal::Lapsed => Notice::UnknownReview {},
        Refusal::BadChoice(BadChoice::AllKept) => Notice::AllStepsKept {},
        Refusal::BadChoice(BadChoice::NoneKept) => Notice::NoStepsKept {},
    }
}

/// For a person who acts at a closed gate. `under_way`: the model still works on the words that settled it.
pub(super) fn too_late(record: &GateRecord, under_way: bool) -> Notice {
    if let Some(first) = &record.asked_again {
        return asked_before(first);
    }
    match &record.decision {
        Some(_) if under_way => Notice::WordsFirst {},
        Some(decision) => after(decision, &record.gate),
        None => Notice::UnknownReview {},
    }
}

/// For a person who comes after `decision`.
pub(super) fn after(decision: &Decision, gate: &Gate) -> Notice {
    match decision.kind {
        DecisionKind::Expire => Notice::Expired {
            goal: paint::goal(&gate.card),
            again: gate.kind == GateKind::PlanReview,
        },
        DecisionKind::Supersede => Notice::Superseded {},
        DecisionKind::Approve | DecisionKind::Revise | DecisionKind::Cancel | DecisionKind::Reject => Notice::AlreadyDecided {
            kind: decision.kind,
            by: decision.by.clone(),
            through_api: decision.through_api,
            in_place_of: decision.in_place_of.clone(),
            at: decision.at.rfc3339(),
        },
    }
}

/// For a person who comes after the plan was asked for again.
pub(super) fn asked_before(first: &AskedAgain) -> Notice {
    Notice::AskedBefore {
        by: first.by.clone(),
        through_api: first.through_api,
        at: first.at.rfc3339(),
    }
}
