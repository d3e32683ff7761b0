//! Which calls ask a person, the card that asks, and what its decision does to their rows.

use serde_json::{Value, json};

use crate::domain::{
    Action, ActionId, ActionStatus, ActionView, ApprovalCard, ApprovalMode, Approvers, CardState, Decision, DecisionKind, EffectClass,
    Event, GateId, GateKind, Outbound, TurnId, Via, on_one_card,
};
use crate::reducer::step::Reducer;
use crate::reducer::{Effect, GateOpening, OpenGate, RowVerdict, compose, gates};

use super::justification;
use super::{OpenCall, call_digest};

impl Reducer<'_> {
    /// Must a person be asked before this open call runs?
    pub(in crate::reducer) fn asks(&self, position: usize, effect: EffectClass) -> bool {
        let state = &self.turn.state;
        let Some(open) = state.calls.open.get(position) else { return true };
        // It may have run already, and that is for a person to weigh.
        let arguments = serde_json::from_str(&open.call.arguments).unwrap_or_default();
        let lost_before = || state.calls.lost(&call_digest(&open.call.name, &arguments));
        match (effect, state.policy.approval) {
            (EffectClass::Read, _) => false,
            (EffectClass::Write, ApprovalMode::Never) => lost_before(),
            (EffectClass::Write, ApprovalMode::Write) => !self.granted(&open.call.name) || lost_before(),
            (EffectClass::Write, ApprovalMode::Always) | (EffectClass::Destructive | EffectClass::State, _) => true,
        }
    }

    /// Does the approved plan, as it stands, allow `tool`? In plan mode only to the step that declares it.
    pub(in crate::reducer) fn granted(&self, tool: &str) -> bool {
        let state = &self.turn.state;
        let step = self.executing().and_then(|at| state.plan.as_ref()?.steps.get(at));
        if step.is_some_and(|step| !step.tools.iter().any(|name| name == tool)) {
            return false;
        }
        state
            .approval()
            .is_some_and(|approval| approval.grants.iter().any(|name| name == tool))
    }

    /// One gate for the calls of the batch that need a person, a row a call: as many as one card shows whole. The others are asked
    /// about when these are done. Calls whose outcome was lost are asked about too: run again, or not?
    pub(in crate::reducer) fn open_approval(&mut self) {
        let id = self.mint_gate();
        let waiting = |call: &&OpenCall| call.answer.is_none() && call.status != ActionStatus::Approved;
        let waiting: Vec<OpenCall> = self.turn.state.calls.open.iter().filter(waiting).cloned().collect();
        let rows: Vec<ActionView> = waiting.iter().map(|open| self.approval_row(open)).collect();
        let asked = rows.len();
        let rows = on_one_card(rows);
        let parts = waiting.iter().take(rows.len()).flat_map(|open| {
            let definition = open.definition.as_deref().unwrap_or_default();
            [open.call.name.as_str(), open.call.arguments.as_str(), definition]
        });
        let parts: Vec<&str> = std::iter::once(id.as_str()).chain(parts).collect();
        let state = &self.turn.state;
        let card = ApprovalCard {
            gate_id: id.clone(),
            requester: state.requester.clone(),
            approvers: Approvers::default(),
            later: asked - rows.len(),
            note: self.words_beside_calls(),
            group: state.group,
            ttl_ms: state.policy.ttl_ms,
            state: CardState::Open { votes: 0 },
            actions: rows.clone(),
        };
        let opening = GateOpening {
            id: id.clone(),
            kind: GateKind::ToolApproval,
            digest: gates::digest(&parts),
            plan_version: 0,
            quorum: 1,
            card: Outbound::ApprovalCard(card),
            replaces: None,
        };
        self.wait_at(opening, None);
        let pending = rows.len();
        if let Some(gate) = &mut self.turn.state.gate {
            gate.rows = rows.iter().map(|row| row.id.to_string()).collect();
        }
        for (open, row) in waiting.iter().zip(rows) {
            if row.status == ActionStatus::Unknown {
                self.effect(Effect::ActionMoved {
                    action: row.id.to_string(),
                    status: row.status,
                    gate: Some(id.clone()),
                });
                self.action_moved(row.id.to_string(), row.status);
            } else {
                self.propose(&open.call.id, row.id.as_str(), ActionStatus::Pending, Some(id.clone()), None);
            }
        }
        self.emit_paused(GateKind::ToolApproval, pending);
    }

    /// How an open call stands on a card, whole. One that has no row in `actions` yet gets an id for it.
    fn approval_row(&mut self, open: &OpenCall) -> ActionView {
        let arguments: Value = serde_json::from_str(&open.call.arguments).unwrap_or_default();
        let id = open.action.clone().unwrap_or_else(|| self.mint("act"));
        ActionView {
            id: ActionId::new(id),
            tool: open.call.name.clone(),
            effect: self.effect_of(&open.call.id),
            justification: justification(&open.call.name, &arguments),
            arguments: serde_json::to_string_pretty(&arguments).unwrap_or_default(),
            hidden: 0,
            preview: None,
            status: open.status,
            outdated: open.status == ActionStatus::Pending && open.action.is_some(),
            edited: open.edited.is_some(),
            output: None,
        }
    }

    /// Records a call as an action, with a row of its own.
    pub(in crate::reducer) fn propose(
        &mut self,
        call_id: &str,
        id: &str,
        status: ActionStatus,
        gate_id: Option<GateId>,
        decision: Option<Decision>,
    ) {
        let effect = self.effect_of(call_id);
        let calls = &mut self.turn.state.calls.open;
        let Some((position, open)) = calls.iter_mut().enumerate().find(|(_, open)| open.call.id == call_id) else {
            return;
        };
        open.action = Some(id.to_owned());
        let arguments = serde_json::from_str(&open.call.arguments).unwrap_or_else(|_| json!({}));
        let action = Action {
            id: ActionId::new(id),
            turn_id: TurnId::new(self.turn.state.turn_id.clone()),
            call_id: call_id.to_owned(),
            tool: open.call.name.clone(),
            effect,
            justification: justification(&open.call.name, &arguments),
            arguments,
            edited: open.edited.clone(),
            preview: None,
            status,
            position: u32::try_from(position).unwrap_or(u32::MAX),
            created_at: self.env.now,
            expires_at: gate_id.is_some().then(|| self.env.now.plus(self.hard_ttl())),
            gate_id,
            decision,
            result: None,
        };
        let event = Event::ActionProposed {
            action_id: action.id.clone(),
        };
        let words = format!("{} {}", action.tool, action.justification);
        self.effect(Effect::Propose(Box::new(action)));
        self.emit(event, &words);
    }

    /// The row of a call that runs without asking; reads have none.
    pub(in crate::reducer) fn propose_granted(&mut self, call_id: &str) {
        let effect = self.effect_of(call_id);
        let has_row = self
            .turn
            .state
            .calls
            .open
            .iter()
            .any(|open| open.call.id == call_id && open.action.is_some());
        if effect == EffectClass::Read || has_row {
            return;
        }
        let state = &self.turn.state;
        let card = state.review.approved_card.as_ref();
        let approved = card.map(|card| &card.decision).filter(|_| self.granted(&self.tool_of(call_id)));
        let decision = Decision {
            kind: DecisionKind::Approve,
            by: approved.and_then(|decision| decision.by.clone()),
            via: if approved.is_some() { Via::Grant } else { Via::System },
            through_api: approved.is_some_and(|decision| decision.through_api),
            text: None,
            at: self.env.now,
            event_id: approved.and_then(|decision| decision.event_id.clone()),
            approvers: approved.map(|decision| decision.approvers.clone()).unwrap_or_default(),
        };
        let id = self.mint("act");
        self.propose(call_id, &id, ActionStatus::Approved, None, Some(decision));
    }

    /// Tells the timeline where an action stands.
    pub(in crate::reducer) fn action_moved(&mut self, action: String, status: ActionStatus) {
        let words = format!("Action {}", status.as_str());
        let action_id = ActionId::new(action);
        self.emit(Event::ActionStatus { action_id, status }, &words);
    }

    /// Settles the rows of a decided `tool_approval` gate, then goes on with the batch.
    pub(in crate::reducer) fn settle_rows(&mut self, gate: &OpenGate, decision: &Decision, rows: &[RowVerdict]) {
        let fallback = decision.kind.of_open_rows();
        let mut moved = Vec::new();
        let ours = self.ours();
        for call in &mut self.turn.state.calls.open {
            let waits = call.answer.is_none() && matches!(call.status, ActionStatus::Pending | ActionStatus::Unknown);
            let (true, Some(action)) = (waits, call.action.clone()) else {
                continue;
            };
            if !(gate.rows.is_empty() || gate.rows.contains(&action)) {
                continue;
            }
            let verdict = rows.iter().find(|row| row.action == action);
            let name = &call.call.name;
            let status = verdict.map_or(fallback, |row| row.status);
            let reason = verdict.map_or(decision.text.as_deref(), |row| row.reason.as_deref());
            let lost = call.lost || call.status == ActionStatus::Unknown;
            call.status = match status {
                ActionStatus::Approved => {
                    // An edit that was taken before stands, with the preview of this question.
                    let edited = verdict.and_then(|row| row.edited.clone());
                    if let Some((arguments, edit)) = edited.filter(|(_, edit)| call.edited.as_ref() != Some(edit)) {
                        call.call.arguments = arguments.to_string();
                        // The preview that the card showed is of the model's call.
                        call.base.clone_from(&edit.base);
                        call.edited = Some(edit);
                    }
                    ActionStatus::Approved
                }
                ActionStatus::Expired => {
                    let key = if lost { "call.lost" } else { "call.expired" };
                    call.answer = Some(compose::not_run(name, &ours.answer(key, Value::Null)));
                    ActionStatus::Expired
                }
                ActionStatus::Pending
                | ActionStatus::Rejected
                | ActionStatus::Running
                | ActionStatus::Executed
                | ActionStatus::Failed
                | ActionStatus::Unknown => {
                    let key = if lost { "call.lost_refused" } else { "call.rejected" };
                    call.answer = Some(compose::refused(name, &ours.answer(key, Value::Null), reason));
                    ActionStatus::Rejected
                }
            };
            moved.push((action, call.status));
        }
        for (action, status) in moved {
            self.action_moved(action, status);
        }
        self.advance();
    }
}
