//! Gates: the turn pauses at one, and goes on with its decision.
//!
//! Every gate has an `rv_` id, so that all cards use the same buttons. A plan review's marker is rendered while its gate is open and never
//! stored, so the log only grows. A card names those who may approve as the settings were when it was made; the decision reads them again.

use crate::domain::{Decision, DecisionKind, Event, GateId, GateKind, Outbound, ResumedReason, Role, TurnReason, TurnStatus, digest128};

use super::end::TurnEnd;
use super::writer::Reducer;
use super::{Effect, GateOpening, Next, OpenGate, RowVerdict};

/// Digest of what a gate is about, when it is not a plan.
pub(super) fn digest(parts: &[&str]) -> String {
    format!("sha256:{}", hex::encode(digest128(parts)))
}

impl Reducer<'_> {
    /// The model's words beside the calls that are open, or just answered.
    pub(super) fn words_beside_calls(&self) -> Option<String> {
        let last = self.turn.log.iter().rev().find(|message| message.role == Role::Assistant);
        last.map(|message| message.content.clone()).filter(|text| !text.trim().is_empty())
    }

    /// Waits for a person about something that is not the plan.
    pub(super) fn open_gate(
        &mut self,
        kind: GateKind,
        digest: String,
        call_id: Option<String>,
        replaces: Option<GateId>,
        card: impl FnOnce(GateId) -> Outbound,
    ) {
        let id = self.mint_gate();
        let opening = GateOpening {
            id: id.clone(),
            kind,
            digest,
            plan_version: 0,
            quorum: 1,
            card: card(id),
            replaces,
        };
        self.wait_at(opening, call_id);
        self.emit_paused(kind, 0);
    }

    pub(super) fn wait_at(&mut self, opening: GateOpening, call_id: Option<String>) {
        let state = &mut self.turn.state;
        state.gate = Some(OpenGate {
            id: opening.id.clone(),
            kind: opening.kind,
            digest: opening.digest.clone(),
            call_id,
            rows: Vec::new(),
        });
        state.pauses += 1;
        state.status = TurnStatus::Paused;
        state.next = Next::Wait;
        self.effect(Effect::OpenGate(Box::new(opening)));
    }

    pub(super) fn emit_paused(&mut self, gate: GateKind, pending_action_count: usize) {
        let steps = self.turn.state.budget.steps;
        let event = Event::TurnPaused {
            gate,
            gate_id: self.turn.state.gate.as_ref().map(|gate| gate.id.clone()),
            pending_action_count,
            steps_used: steps.used,
            steps_remaining: steps.limit.saturating_sub(steps.used),
        };
        // The words that clients show while it waits.
        let words = match gate {
            GateKind::PlanReview | GateKind::ToolApproval | GateKind::Budget => "Waiting for approval",
            GateKind::Question => "Waiting for an answer",
        };
        self.emit(event, &format!("{words}: {}", gate.as_str()));
    }

    pub(super) fn apply_decision(&mut self, decision: Decision, rows: &[RowVerdict]) {
        let Some(gate) = self.turn.state.gate.take() else { return };
        let event = Event::Decision {
            gate_id: gate.id.clone(),
            kind: decision.kind,
            by: decision.by.clone(),
            approvers: decision.approvers.iter().map(|one| one.by.clone()).collect(),
            through_api: decision
                .makers()
                .into_iter()
                .filter(|one| one.through_api)
                .map(|one| one.by)
                .collect(),
        };
        self.emit(event, &format!("{}: {}", gate.kind.as_str(), decision.kind.as_str()));
        if decision.kind == DecisionKind::Supersede {
            return self.finish(TurnEnd::cancelled(TurnReason::Superseded));
        }
        match gate.kind {
            GateKind::PlanReview => self.plan_decided(&gate, decision),
            GateKind::ToolApproval => {
                self.resume(ResumedReason::AllActionsResolved);
                self.settle_calls(&gate, &decision, rows);
            }
            GateKind::Question => self.question_decided(&gate, decision),
            GateKind::Budget => self.budget_decided(gate, &decision),
        }
    }

    pub(super) fn resume(&mut self, resumed_reason: ResumedReason) {
        self.turn.state.status = TurnStatus::Running;
        let steps = self.turn.state.budget.steps;
        let steps_remaining = steps.limit.saturating_sub(steps.used);
        let event = Event::TurnResumed {
            resumed_reason,
            steps_remaining,
        };
        self.emit(event, "Continuing…");
    }
}

/// The words of a decision, if there are any.
pub(super) fn words_of(decision: &Decision) -> Option<&str> {
    decision.text.as_deref().filter(|text| !text.trim().is_empty())
}
