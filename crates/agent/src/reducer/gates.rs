//! Opening gates: the pause, and the card that says what is asked.
//!
//! Every gate has an `rv_` id, so that all cards use the same buttons. A plan review's marker is rendered while its gate is open and never
//! stored, so the log only grows. A card names those who may approve as the settings were when it was made; the decision reads them again.

use std::time::Duration;

use serde_json::Value;

use crate::domain::{
    ActionId, ActionStatus, ActionView, ApprovalCard, Approvers, BudgetCard, CardState, Event, GateId, GateKind, Outbound, Plan, PlanCard,
    PlanWords, Role, TurnStatus, digest128, on_one_card,
};

use super::escape::one_line;
use super::step::Step;
use super::{Effect, GateOpening, Next, OpenCall, OpenGate, TurnState, finish, progress};

/// Characters of a justification.
const LINE_CAP: usize = 300;

/// Digest of what a gate is about, when it is not a plan.
pub(super) fn digest(parts: &[&str]) -> String {
    format!("sha256:{}", hex::encode(digest128(parts)))
}

/// One line for people: what this call does, by its primary argument.
pub(super) fn justification(tool: &str, arguments: &Value) -> String {
    let word = |name: &str| arguments.get(name).and_then(Value::as_str);
    let said = match tool {
        "run_bash" => word("command").map(|command| one_line(&format!("Run: {command}"), LINE_CAP)),
        "web_fetch" => word("url").map(|url| one_line(&format!("Fetch: {url}"), LINE_CAP)),
        // How much it is stands behind a path of any length.
        "write_file" => word("path").zip(word("content")).map(|(path, content)| {
            let path = one_line(&format!("Write: {path}"), LINE_CAP);
            format!("{path} ({} bytes)", content.len())
        }),
        _ => None,
    };
    said.unwrap_or_else(|| String::from("Proposed by planning model."))
}

/// One line for the timeline and for what a stopped turn leaves behind.
pub(super) fn describe(tool: &str, arguments: &Value) -> String {
    let told = ["path", "url", "command"]
        .iter()
        .find_map(|name| arguments.get(*name).and_then(Value::as_str));
    match told {
        Some(words) => one_line(&format!("{tool} {words}"), LINE_CAP),
        None => tool.to_owned(),
    }
}

/// The card of `plan`. Who may approve is for the journal to say: a turn does not know it.
pub(super) fn plan_card(
    state: &TurnState,
    plan: &Plan,
    review_id: Option<GateId>,
    note: Option<String>,
    card_state: CardState,
) -> PlanCard {
    PlanCard {
        review_id,
        requester: state.requester.clone(),
        goal: plan.goal.clone(),
        complexity: plan.complexity,
        plan_version: plan.version,
        steps: progress::steps(plan),
        grants: state.review.card_grants.clone(),
        still_asks: state.review.card_asks.clone(),
        approval: state.policy.approval,
        approvers: Approvers::default(),
        quorum: state.policy.quorum,
        group: state.group,
        note,
        request_edited: state.request_edited,
        ttl_ms: state.policy.ttl_ms,
        demo: state.demo,
        words: PlanWords::Unknown,
        state: card_state,
        end: None,
    }
}

impl Step<'_> {
    /// How long a gate waits at most, whether or not its card was delivered.
    pub(super) fn hard_ttl(&self) -> Duration {
        Duration::from_millis(u64::try_from(self.turn.state.policy.ttl_ms).unwrap_or(0)).saturating_mul(2)
    }

    /// The model's words beside the calls that are open, or just answered.
    pub(super) fn said_with_calls(&self) -> Option<String> {
        let last = self.turn.log.iter().rev().find(|message| message.role == Role::Assistant);
        last.map(|message| message.content.clone()).filter(|text| !text.trim().is_empty())
    }

    /// Waits for people to countersign the plan, on a card that takes the place of the latest one.
    pub(super) fn open_review(&mut self, note: Option<String>) {
        let Some(plan) = &self.turn.state.plan else { return };
        let (digest, plan_version) = (plan.digest(), plan.version);
        let id = self.mint_gate();
        let Some(plan) = &self.turn.state.plan else { return };
        let card = plan_card(&self.turn.state, plan, Some(id.clone()), note, CardState::Open { votes: 0 });
        let replaces = self.turn.state.review.latest.replace(id.clone());
        let quorum = self.turn.state.policy.quorum;
        self.open(
            GateOpening {
                id,
                kind: GateKind::PlanReview,
                digest,
                plan_version,
                quorum,
                card: Outbound::PlanCard(card),
                replaces,
            },
            None,
        );
        self.paused(GateKind::PlanReview, 0);
    }

    /// Waits for a person about something that is not the plan.
    pub(super) fn pause(
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
        self.open(opening, call_id);
        self.paused(kind, 0);
    }

    fn open(&mut self, opening: GateOpening, call_id: Option<String>) {
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

    fn paused(&mut self, gate: GateKind, pending_action_count: usize) {
        let steps = self.turn.state.budget.steps;
        let event = Event::TurnPaused {
            gate,
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

    /// One gate for the calls of the batch that need a person, a row a call: as many as one card shows whole. The others are asked
    /// about when these are done. Calls whose outcome was lost are asked about too: run again, or not?
    pub(super) fn open_approval(&mut self) {
        let id = self.mint_gate();
        let waiting = |call: &&OpenCall| call.answer.is_none() && call.status != ActionStatus::Approved;
        let waiting: Vec<OpenCall> = self.turn.state.calls.open.iter().filter(waiting).cloned().collect();
        let rows: Vec<ActionView> = waiting.iter().map(|open| self.row(open)).collect();
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
            note: self.said_with_calls(),
            group: state.group,
            ttl_ms: state.policy.ttl_ms,
            state: CardState::Open { votes: 0 },
            actions: rows.clone(),
        };
        let opening = GateOpening {
            id: id.clone(),
            kind: GateKind::ToolApproval,
            digest: digest(&parts),
            plan_version: 0,
            quorum: 1,
            card: Outbound::ApprovalCard(card),
            replaces: None,
        };
        self.open(opening, None);
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
        self.paused(GateKind::ToolApproval, pending);
    }

    /// How an open call stands on a card, whole. One that has no row in `actions` yet gets an id for it.
    fn row(&mut self, open: &OpenCall) -> ActionView {
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
            output: None,
        }
    }

    /// May the task go on past its limit? `replaces`: asked again.
    pub(super) fn open_budget(&mut self, replaces: Option<GateId>) {
        let state = &self.turn.state;
        let summary = state.answer.clone().unwrap_or_default();
        let (requester, ttl_ms) = (state.requester.clone(), state.policy.ttl_ms);
        let (open_steps, steps_used) = (finish::open_steps(state), state.budget.steps.used);
        let reached = state.budget.reached();
        let digest = digest(&[&summary, &steps_used.to_string()]);
        self.pause(GateKind::Budget, digest, None, replaces, |gate_id| {
            Outbound::BudgetCard(BudgetCard {
                gate_id,
                requester,
                approvers: Approvers::default(),
                summary,
                open_steps,
                steps_used,
                reached,
                ttl_ms,
                state: CardState::Open { votes: 0 },
            })
        });
    }
}
