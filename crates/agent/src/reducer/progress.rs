//! The card that shows how far the plan is.
//!
//! After the approval the plan's card becomes the progress card. It says who approved it, so it goes on showing the approved plan
//! (`replaced_plan`) when another plan takes its place; steps that the new plan does not go on with are shown as left out.

use crate::domain::{CardState, GateId, Outbound, Plan, PlanEnd, ProgressView, Role, StepStatus, StepView};

use super::escape::clip;
use super::{Showing, Turn, finish, gates};

/// Bytes of the model's own words that the card shows while it works.
const NOTE_CAP: usize = 2000;

pub(super) fn steps(plan: &Plan) -> Vec<StepView> {
    plan.steps.iter().map(StepView::from).collect()
}

/// What [`Effect::Progress`](super::Effect::Progress) shows: the gate whose card is repainted (`None` means a card of the turn's own), and
/// the view. Gives `None` when there is nothing to show.
#[must_use]
pub fn progress(turn: &Turn) -> Option<(Option<GateId>, Outbound)> {
    let (gate, card) = shown(turn)?;
    let approved = turn.state.review.approved_card.as_ref();
    let replaced = approved.is_some_and(|card| card.replaced_plan.is_some());
    let end = if replaced { Some(PlanEnd::Replaced) } else { plan_end(turn) };
    let card = match end {
        Some(end) => card.ended(end),
        None => card,
    };
    Some((gate, card))
}

/// How the turn ended, if it is over, as the card of its plan says it.
#[must_use]
pub fn plan_end(turn: &Turn) -> Option<PlanEnd> {
    let state = &turn.state;
    let over = state.status.is_final();
    over.then(|| PlanEnd::of(state.status, state.reason, !finish::open_steps(state).is_empty()))
}

fn shown(turn: &Turn) -> Option<(Option<GateId>, Outbound)> {
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
    if let Some(approved) = &state.review.approved_card {
        let decided = CardState::Decided {
            decision: approved.decision.clone(),
        };
        let gate = Some(approved.gate.clone());
        let card = match &approved.replaced_plan {
            Some(replaced) => gates::plan_card(state, &left(replaced, plan), gate.clone(), None, decided),
            None => gates::plan_card(state, plan, gate.clone(), note, decided),
        };
        return Some((gate, Outbound::PlanCard(card)));
    }
    match state.review.showing {
        // The review's own card shows this plan; nobody approved it yet.
        Showing::Review | Showing::Nothing => None,
        Showing::Informed => {
            let card = gates::plan_card(state, plan, None, note, CardState::Informed);
            Some((None, Outbound::PlanCard(card)))
        }
        Showing::Progress => Some((
            None,
            Outbound::Progress(ProgressView {
                goal: plan.goal.clone(),
                steps: steps(plan),
                finished: plan.done || state.status.is_final(),
                end: None,
            }),
        )),
    }
}

/// A plan whose place `now` has taken, as it ended: what `now` goes on with stands as it does there, what else was open is left out.
fn left(approved: &Plan, now: &Plan) -> Plan {
    let mut plan = approved.clone();
    for step in &mut plan.steps {
        let same = now.steps.iter().find(|other| other.id == step.id && other.content == step.content);
        step.status = match (same, step.status) {
            (Some(same), _) => same.status,
            (None, StepStatus::Pending | StepStatus::InProgress) => StepStatus::Skipped,
            (None, status) => status,
        };
    }
    plan
}
