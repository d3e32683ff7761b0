//! The plan's card: what of a plan people see, and how far it is.
//!
//! After the approval the plan's card becomes the progress card. It says who approved it, so it goes on showing the approved plan
//! (`replaced_plan`) when another plan takes its place; steps that the new plan does not go on with are shown as left out.

use crate::domain::foreign::clip;
use crate::domain::{
    ApprovalMode, CardState, Complexity, CoverageGap, EffectClass, GateId, Grant, Millis, Outbound, Plan, PlanCard, PlanEnd, PlanWords,
    Policy, ProgressView, Role, StepStatus, StepView, ToolSpec,
};
use crate::reducer::prompt::specs;
use crate::reducer::writer::Reducer;
use crate::reducer::{Effect, Showing, Turn, TurnState};

use super::steps::open_steps;

/// Bytes of the model's own words that the card shows while it works.
const NOTE_CAP: usize = 2000;

/// What people see of `plan`. Row 3 of `docs/agent.md` reviews complex plans and those that declare a tool which is not
/// read-only. A name that is no tool of ours cannot be run, so it is only shown.
pub(in crate::reducer) fn showing(policy: &Policy, plan: &Plan, tools: &[ToolSpec]) -> Showing {
    let complex = plan.complexity == Complexity::Complex;
    let changes = declared(plan, tools).any(|spec| spec.effect != EffectClass::Read);
    match (policy.review_enabled, policy.require_confirmation) {
        (true, true) if complex || changes => Showing::Review,
        (true, false) if complex || changes => Showing::Informed,
        (false, _) if complex => Showing::Progress,
        _ => Showing::Nothing,
    }
}

/// What a plan's card says of the calls to come.
pub(in crate::reducer) struct Announcement {
    /// Declared calls that run after the OK without another question.
    pub(in crate::reducer) grants: Vec<Grant>,
    /// Tools that change something and that a step names without a call that is covered. They ask.
    pub(in crate::reducer) asks: Vec<String>,
    /// Why a declared call is not covered: the number of its step, its tool, the reason.
    pub(in crate::reducer) gaps: Vec<(usize, String, CoverageGap)>,
}

/// What `plan` announces. Steps that are done declare nothing any more.
pub(in crate::reducer) fn announced(policy: &Policy, plan: &Plan, tools: &[ToolSpec]) -> Announcement {
    let confirmed = policy.review_enabled && policy.require_confirmation && policy.approval != ApprovalMode::Always;
    let mut announced = Announcement {
        grants: Vec::new(),
        asks: Vec::new(),
        gaps: Vec::new(),
    };
    let open = (1..).zip(&plan.steps).filter(|(_, step)| !step.status.is_settled());
    for (number, step) in open {
        for spec in named(&step.tools, tools).filter(|spec| spec.effect != EffectClass::Read) {
            let mut covered = false;
            for call in step.calls.iter().filter(|call| call.tool == spec.name) {
                match call.gap(spec) {
                    Some(gap) => announced.gaps.push((number, spec.name.clone(), gap)),
                    None if confirmed => {
                        covered = true;
                        announced.grants.push(Grant {
                            step_id: step.id.clone(),
                            call: call.spelled_for(spec),
                            used: 0,
                        });
                    }
                    None => (),
                }
            }
            let asks = spec.effect == EffectClass::Destructive || policy.approval != ApprovalMode::Never;
            if asks && !covered && !announced.asks.contains(&spec.name) {
                announced.asks.push(spec.name.clone());
            }
        }
    }
    announced
}

/// Tools that exist and that the steps declare, in the steps' order.
fn declared<'a>(plan: &'a Plan, tools: &'a [ToolSpec]) -> impl Iterator<Item = &'a ToolSpec> {
    plan.steps.iter().flat_map(|step| named(&step.tools, tools))
}

fn named<'a>(names: &'a [String], tools: &'a [ToolSpec]) -> impl Iterator<Item = &'a ToolSpec> {
    names
        .iter()
        .filter_map(|name| tools.iter().find(|spec| spec.name == *name && !specs::is_state_tool(name)))
}

/// The card of `plan`. Who may approve is for the journal to say: a turn does not know it.
pub(in crate::reducer) fn plan_card(
    state: &TurnState,
    plan: &Plan,
    review_id: Option<GateId>,
    note: Option<String>,
    card_state: CardState,
) -> PlanCard {
    let is_current = state.plan.as_ref().is_some_and(|current| current.version == plan.version);
    PlanCard {
        review_id,
        head: state.card_head(card_state),
        goal: plan.goal.clone(),
        complexity: plan.complexity,
        plan_version: plan.version,
        steps: steps(plan),
        grants: state.review.card_grants.clone(),
        still_asks: state.review.card_asks.clone(),
        approval: state.policy.approval,
        quorum: state.policy.quorum,
        note,
        request_edited: state.request_edited,
        demo: state.demo,
        words: PlanWords::Unknown,
        end: None,
        outage_until: outage_until(state),
        asked_again: None,
        cut: false,
        undone: state.calls.undone_counts(),
        left_out: state.review.left_out.clone().filter(|_| is_current).map(Box::new),
    }
}

pub(in crate::reducer) fn steps(plan: &Plan) -> Vec<StepView> {
    plan.steps.iter().map(StepView::from).collect()
}

/// What [`Effect::Progress`] shows: the gate whose card is repainted (`None` means a card of the turn's own), and
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

impl Reducer<'_> {
    /// The card that shows the plan must be painted anew.
    pub(in crate::reducer) fn repaint_plan(&mut self) {
        if progress(self.turn).is_some() && !self.has(&Effect::Progress) {
            self.effect(Effect::Progress);
        }
    }
}

/// How the turn ended, if it is over, as the card of its plan says it.
#[must_use]
pub fn plan_end(turn: &Turn) -> Option<PlanEnd> {
    let state = &turn.state;
    let over = state.status.is_final();
    over.then(|| PlanEnd::of(state.status, state.reason, !open_steps(state).is_empty()))
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
            Some(replaced) => PlanCard {
                outage_until: None,
                ..plan_card(state, &left(replaced, plan), gate.clone(), None, decided)
            },
            None => plan_card(state, plan, gate.clone(), note, decided),
        };
        return Some((gate, Outbound::PlanCard(card)));
    }
    match state.review.showing {
        // The review's own card shows this plan; nobody approved it yet.
        Showing::Review | Showing::Nothing => None,
        Showing::Informed => {
            let card = plan_card(state, plan, None, note, CardState::Informed);
            Some((None, Outbound::PlanCard(card)))
        }
        Showing::Progress => Some((
            None,
            Outbound::Progress(ProgressView {
                goal: plan.goal.clone(),
                steps: steps(plan),
                finished: plan.done || state.status.is_final(),
                outage_until: outage_until(state),
                end: None,
                undone: state.calls.undone_counts(),
            }),
        )),
    }
}

/// Until when a model's server that is away is tried, once people were told.
fn outage_until(state: &TurnState) -> Option<Millis> {
    let outage = state.outage.as_ref().filter(|outage| outage.told && !state.status.is_final());
    outage.map(|outage| outage.until)
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
