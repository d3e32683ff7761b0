//! Which calls ask a person, the card that asks, and what its decision does to their rows.

use serde_json::{Value, json};

use crate::domain::handshake::Actor;
use crate::domain::{
    Action, ActionId, ActionStatus, ActionView, ApprovalCard, CardState, Cover, CoverageKind, Decision, DecisionKind, EffectClass, Event,
    Gate, GateId, GateKind, Outbound, Ruling, TurnId, Via, covering, on_one_card,
};
use crate::reducer::writer::Reducer;
use crate::reducer::{Effect, GateOpening, OpenGate, ReviewOutcome, RowVerdict, compose, gates};

use super::justification;
use super::rules::judged;
use super::verdict::{Facts, Verdict, verdict};
use super::{OpenCall, call_digest};

impl Reducer<'_> {
    /// Settles whether the open call runs or asks. One that runs under a grant takes one use of it: the use is journaled with the intent,
    /// so a crash never makes it one more.
    pub(in crate::reducer) fn judge(&mut self, position: usize, effect: EffectClass) {
        let Some(open) = self.turn.state.calls.open.get(position) else {
            return;
        };
        let verdict = verdict(self.facts(open, effect));
        let Some(open) = self.turn.state.calls.open.get_mut(position) else {
            return;
        };
        (open.grant, open.standing) = (None, None);
        let Verdict::Runs(cover) = verdict else {
            // What is denied is answered before anybody is asked.
            open.status = ActionStatus::Pending;
            return;
        };
        open.status = ActionStatus::Approved;
        match cover {
            Some(Cover {
                kind: CoverageKind::Plan,
                grant,
                ..
            }) => open.grant = grant,
            Some(Cover {
                kind: CoverageKind::Standing,
                id,
                ..
            }) => open.standing = Some(id),
            Some(Cover {
                kind: CoverageKind::Rule, ..
            })
            | None => {}
        }
        if let (Some(grant), ReviewOutcome::Approved(approval)) = (open.grant, &mut self.turn.state.review.outcome)
            && let Some(grant) = approval.grants.get_mut(grant)
        {
            grant.used += 1;
        }
    }

    fn facts(&self, open: &OpenCall, effect: EffectClass) -> Facts {
        let state = &self.turn.state;
        let arguments: Value = serde_json::from_str(&open.call.arguments).unwrap_or_default();
        // Only a write needs a cover.
        let writes = effect == EffectClass::Write;
        let grant = writes.then(|| self.covering_grant(&open.call.name, &arguments)).flatten();
        Facts {
            effect,
            approval: state.policy.approval,
            ruling: judged(&self.env, open).map(|judgement| (judgement.then, judgement.rule.id())),
            lost: state.calls.lost(&call_digest(&open.call.name, &arguments)),
            plan: grant.map(|grant| self.plan_cover(grant)),
            standing: writes.then(|| self.standing_cover(open, &arguments)).flatten(),
        }
    }

    /// This grant of the approved plan.
    fn plan_cover(&self, grant: usize) -> Cover {
        let card = self.turn.state.review.approved_card.as_ref();
        Cover {
            kind: CoverageKind::Plan,
            id: card.map(|card| card.gate.to_string()).unwrap_or_default(),
            grant: Some(grant),
        }
    }

    /// What the open call runs by.
    fn cover_of(&self, open: &OpenCall) -> Option<Cover> {
        if let Some(id) = &open.standing {
            return Some(Cover::standing(id.clone()));
        }
        if let Some(grant) = open.grant {
            return Some(self.plan_cover(grant));
        }
        let allowing = judged(&self.env, open).filter(|judgement| judgement.then == Ruling::Allow);
        allowing.map(|judgement| Cover::rule(judgement.rule.id()))
    }

    /// The decision that stands in the place of a person's: that of the plan's review, of the one who made the standing grant, or of the rule.
    pub(super) fn decision_by(&self, kind: DecisionKind, cover: Option<&Cover>) -> Decision {
        let ours = Actor::system(self.env.now).decision(kind, None);
        let Some(cover) = cover else { return ours };
        match cover.kind {
            CoverageKind::Rule => Decision {
                via: Via::Rule,
                event_id: Some(cover.id.clone()),
                ..ours
            },
            CoverageKind::Standing => {
                let grants = self.env.standing.map(|standing| standing.grants.as_slice()).unwrap_or_default();
                Decision {
                    via: Via::Grant,
                    by: grants.iter().find(|grant| grant.id == cover.id).map(|grant| grant.by.clone()),
                    event_id: Some(cover.id.clone()),
                    ..ours
                }
            }
            CoverageKind::Plan => match &self.turn.state.review.approved_card {
                Some(card) => Decision {
                    via: Via::Grant,
                    by: card.decision.by.clone(),
                    through_api: card.decision.through_api,
                    event_id: card.decision.event_id.clone(),
                    approvers: card.decision.approvers.clone(),
                    ..ours
                },
                None => ours,
            },
        }
    }

    /// The grant of the approved plan, as it stands, that covers a call. In plan mode only grants of the step that is carried out do.
    fn covering_grant(&self, tool: &str, arguments: &Value) -> Option<usize> {
        let state = &self.turn.state;
        let spec = self.env.tools.iter().find(|spec| spec.name == tool)?;
        let step = match &state.run {
            None => None,
            Some(_) => Some(state.plan.as_ref()?.steps.get(self.executing()?)?.id.as_str()),
        };
        covering(&state.approval()?.grants, spec, arguments.as_object()?, step)
    }

    /// Calls that were allowed and never sent give back the use of their grants.
    pub(in crate::reducer) fn give_back_grants(&mut self) {
        let state = &mut self.turn.state;
        let unsent = |call: &&mut OpenCall| !call.lost && matches!(call.status, ActionStatus::Approved | ActionStatus::Expired);
        let unused = state.calls.open.iter_mut().filter(unsent);
        let grants: Vec<usize> = unused.filter_map(|call| call.grant.take()).collect();
        for grant in grants {
            self.give_back(grant);
        }
    }

    /// Gives back a use of this grant.
    pub(super) fn give_back(&mut self, grant: usize) {
        if let ReviewOutcome::Approved(approval) = &mut self.turn.state.review.outcome
            && let Some(grant) = approval.grants.get_mut(grant)
        {
            grant.used = grant.used.saturating_sub(1);
        }
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
            head: state.card_head(CardState::Open { votes: 0 }),
            later: asked - rows.len(),
            note: self.words_beside_calls(),
            actions: rows.clone(),
            cut: false,
        };
        let opening = GateOpening {
            id: id.clone(),
            kind: GateKind::ToolApproval,
            digest: gates::digest(&parts),
            plan_version: 0,
            quorum: self.turn.state.policy.approval_quorum,
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
                self.effect(Effect::ActionReopened {
                    action: row.id.to_string(),
                    gate: id.clone(),
                    demand: self.demand(&open.call.id),
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
        let demand = self.demand(&open.call.id);
        ActionView {
            id: ActionId::new(id),
            tool: open.call.name.clone(),
            effect: self.effect_of(&open.call.id),
            justification: justification(&open.call.name, &arguments),
            arguments: serde_json::to_string_pretty(&arguments).unwrap_or_default(),
            hidden: 0,
            preview: None,
            quorum: demand.quorum.unwrap_or(1),
            approvers: demand.approvers,
            votes: 0,
            always: self.standing_offer(open, &arguments).map(Box::new),
            standing: None,
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
        decided: Option<(Decision, Option<Cover>)>,
    ) {
        let (decision, covered_by) = decided.unzip();
        let effect = self.effect_of(call_id);
        let demand = self.demand(call_id);
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
            quorum: demand.quorum.unwrap_or(1),
            approvers: demand.approvers,
            status,
            position: u32::try_from(position).unwrap_or(u32::MAX),
            created_at: self.env.now,
            expires_at: gate_id
                .is_some()
                .then(|| self.env.now.plus(Gate::longest_wait(self.turn.state.policy.ttl_ms))),
            gate_id,
            decision,
            covered_by: covered_by.flatten(),
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
        let open = self.turn.state.calls.open.iter().find(|open| open.call.id == call_id);
        // A plan of an earlier version has no card that could be named.
        let named = |cover: &Cover| !cover.id.is_empty();
        let cover = open.and_then(|open| self.cover_of(open)).filter(named);
        let decision = self.decision_by(DecisionKind::Approve, cover.as_ref());
        let id = self.mint("act");
        self.propose(call_id, &id, ActionStatus::Approved, None, Some((decision, cover)));
    }

    /// Tells the timeline where an action stands.
    pub(in crate::reducer) fn action_moved(&mut self, action: String, status: ActionStatus) {
        let words = format!("Action {}", status.as_str());
        let action_id = ActionId::new(action);
        self.emit(Event::ActionStatus { action_id, status }, &words);
    }

    /// Settles the rows of a decided `tool_approval` gate, then goes on with the batch.
    pub(in crate::reducer) fn settle_calls(&mut self, gate: &OpenGate, decision: &Decision, rows: &[RowVerdict]) {
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
                        // These were not looked at behind links, so the call follows none.
                        call.behind_links = None;
                        // The preview that the card showed is of the model's call.
                        call.base.clone_from(&edit.base);
                        call.edited = Some(edit);
                    }
                    // A person approved this very call.
                    call.standing = None;
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
