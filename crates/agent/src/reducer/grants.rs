//! What an approval allows, and which calls ask a person.

use crate::domain::{ApprovalMode, Complexity, EffectClass, Plan, Policy, ToolSpec};

use super::Showing;
use super::batch::likeness;
use super::step::Step;

/// What people see of `plan`. Row 3 of `docs/agent.md` reviews complex plans and those that declare a tool which is not
/// read-only. A name that is no tool of ours cannot be run, so it is only shown.
pub(super) fn showing(policy: &Policy, plan: &Plan, tools: &[ToolSpec]) -> Showing {
    let complex = plan.complexity == Complexity::Complex;
    let changes = declared(plan, tools).any(|spec| spec.effect != EffectClass::Read);
    match (policy.review_enabled, policy.require_confirmation) {
        (true, true) if complex || changes => Showing::Review,
        (true, false) if complex || changes => Showing::Informed,
        (false, _) if complex => Showing::Progress,
        _ => Showing::Nothing,
    }
}

/// Declared tools that run after the OK without another question, and those that will still ask.
pub(super) fn announced(policy: &Policy, plan: &Plan, tools: &[ToolSpec]) -> (Vec<String>, Vec<String>) {
    let confirmed = policy.review_enabled && policy.require_confirmation;
    let changing = declared(plan, tools).filter(|spec| spec.effect != EffectClass::Read);
    let (mut grants, mut asks) = (Vec::new(), Vec::new());
    for spec in changing {
        let runs = spec.effect == EffectClass::Write
            && match policy.approval {
                ApprovalMode::Always => false,
                ApprovalMode::Write => confirmed,
                ApprovalMode::Never => true,
            };
        let names = if runs { &mut grants } else { &mut asks };
        if !names.contains(&spec.name) {
            names.push(spec.name.clone());
        }
    }
    (grants, asks)
}

/// Tools that exist and that the steps declare, in the steps' order.
fn declared<'a>(plan: &'a Plan, tools: &'a [ToolSpec]) -> impl Iterator<Item = &'a ToolSpec> {
    let names = plan.steps.iter().flat_map(|step| &step.tools);
    names.filter_map(|name| tools.iter().find(|spec| spec.name == *name && !super::specs::is_state_tool(name)))
}

impl Step<'_> {
    /// Must a person be asked before this open call runs?
    pub(super) fn asks(&self, position: usize, effect: EffectClass) -> bool {
        let state = &self.turn.state;
        let Some(open) = state.calls.open.get(position) else { return true };
        // It may have run already, and that is for a person to weigh.
        let arguments = serde_json::from_str(&open.call.arguments).unwrap_or_default();
        let lost_before = || state.calls.lost(&likeness(&open.call.name, &arguments));
        match (effect, state.policy.approval) {
            (EffectClass::Read, _) => false,
            (EffectClass::Write, ApprovalMode::Never) => lost_before(),
            (EffectClass::Write, ApprovalMode::Write) => !self.granted(&open.call.name) || lost_before(),
            (EffectClass::Write, ApprovalMode::Always) | (EffectClass::Destructive | EffectClass::State, _) => true,
        }
    }

    /// Does the approved plan, as it stands, allow `tool`? In plan mode only to the step that declares it.
    pub(super) fn granted(&self, tool: &str) -> bool {
        let state = &self.turn.state;
        let step = self.executing().and_then(|at| state.plan.as_ref()?.steps.get(at));
        if step.is_some_and(|step| !step.tools.iter().any(|name| name == tool)) {
            return false;
        }
        state
            .approval()
            .is_some_and(|approval| approval.grants.iter().any(|name| name == tool))
    }
}
