//! The card that shows how far the plan is.

use crate::domain::{CardState, GateId, Outbound, Plan, ProgressView, Role, StepView};

use super::escape::clip;
use super::{Showing, Turn, gates};

/// Bytes of the model's own words that the card shows while it works.
const NOTE_CAP: usize = 2000;

pub(super) fn steps(plan: &Plan) -> Vec<StepView> {
    let view = |step: &crate::domain::Step| StepView {
        id: step.id.clone(),
        content: step.content.clone(),
        status: step.status,
        tools: step.tools.clone(),
    };
    plan.steps.iter().map(view).collect()
}

pub(super) fn progress(turn: &Turn) -> Option<(Option<GateId>, Outbound)> {
    let state = &turn.state;
    let plan = state.plan.as_ref()?;
    // The answer is a message of its own, it is not repeated on the card.
    let note = || {
        turn.log.iter().rev().find(|message| {
            message.role == Role::Assistant && !message.content.trim().is_empty() && (state.run.is_none() || message.step.is_some())
        })
    };
    let note = if state.status.is_final() {
        None
    } else {
        note().map(|message| clip(&message.content, NOTE_CAP).to_owned())
    };
    match (&state.plan_card, &state.plan_decision, state.showing) {
        (Some(gate), Some(decision), _) => {
            let decided = CardState::Decided {
                decision: decision.clone(),
            };
            let card = gates::plan_card(turn, Some(gate.clone()), note, decided)?;
            Some((Some(gate.clone()), Outbound::PlanCard(card)))
        }
        // The review's own card shows this plan; nobody approved it yet.
        (_, _, Showing::Review | Showing::Nothing) => None,
        (_, _, Showing::Informed) => Some((None, Outbound::PlanCard(gates::plan_card(turn, None, note, CardState::Informed)?))),
        (_, _, Showing::Progress) => Some((
            None,
            Outbound::Progress(ProgressView {
                goal: plan.goal.clone(),
                steps: steps(plan),
                finished: plan.done || state.status.is_final(),
            }),
        )),
    }
}
