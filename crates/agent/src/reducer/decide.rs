//! What a person's decision does to the turn that waited for it.

use crate::domain::{Decision, DecisionKind, Event, GateKind, Limit, Message, Meter, Notice, ResumedReason, Role, TurnReason, TurnStatus};

use super::compose;
use super::escape::{clip, plain};
use super::finish::End;
use super::step::Step;
use super::{Approval, ApprovedCard, OpenGate, ReviewOutcome, RowVerdict};

impl Step<'_> {
    pub(super) fn decided(&mut self, decision: Decision, rows: &[RowVerdict]) {
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
            return self.finish(End::cancelled(TurnReason::Superseded));
        }
        match gate.kind {
            GateKind::PlanReview => self.plan_decided(&gate, decision),
            GateKind::ToolApproval => {
                self.resumed(ResumedReason::AllActionsResolved);
                self.settle_rows(&gate, &decision, rows);
            }
            GateKind::Question => self.question_decided(&gate, decision),
            GateKind::Budget => self.budget_decided(gate, &decision),
        }
    }

    fn plan_decided(&mut self, gate: &OpenGate, decision: Decision) {
        match decision.kind {
            // What was approved is not the plan: an earlier version made the card, which showed less than an approval covers now.
            DecisionKind::Approve if self.turn.state.plan.as_ref().is_some_and(|plan| plan.digest() != gate.digest) => {
                self.open_review(None);
            }
            DecisionKind::Approve => {
                let words = said(&decision).unwrap_or("OK").to_owned();
                let review = &mut self.turn.state.review;
                review.outcome = ReviewOutcome::Approved(Approval {
                    digest: gate.digest.clone(),
                    grants: review.card_grants.clone(),
                });
                review.approved_card = Some(ApprovedCard {
                    gate: gate.id.clone(),
                    decision,
                    replaced_plan: None,
                });
                self.feed_back(&words);
                self.resumed(ResumedReason::PlanApproved);
                self.begin_work();
                self.go_on();
            }
            DecisionKind::Revise => {
                let rounds = &mut self.turn.state.budget.rounds;
                if rounds.used >= rounds.limit {
                    return self.finish(End::failed(TurnReason::Rounds).problem(Notice::TooManyRounds {}));
                }
                rounds.used += 1;
                self.turn.state.review.outcome = ReviewOutcome::Revised;
                self.feed_back(said(&decision).unwrap_or_default());
                self.resumed(ResumedReason::PlanRevised);
                self.go_on();
            }
            DecisionKind::Cancel | DecisionKind::Reject => self.finish(End::cancelled(TurnReason::Cancelled)),
            DecisionKind::Expire | DecisionKind::Supersede => self.finish(End::cancelled(TurnReason::Expired)),
        }
    }

    /// Tells the model what people said about the plan: one user message that is exactly the block.
    fn feed_back(&mut self, words: &str) {
        if let Some(plan) = &self.turn.state.plan {
            let block = compose::plan_feedback(plan, words);
            self.append(Message::text(Role::User, block));
        }
    }

    /// Any words are the answer, as they were said.
    fn question_decided(&mut self, gate: &OpenGate, decision: Decision) {
        self.look_anew();
        match decision.kind {
            DecisionKind::Approve | DecisionKind::Revise | DecisionKind::Reject => {
                // A bare no must not read as consent.
                let bare = if decision.kind == DecisionKind::Approve { "OK" } else { "No" };
                let answer = plain(clip(said(&decision).unwrap_or(bare), compose::OUTPUT_CAP));
                let call = self
                    .turn
                    .state
                    .calls
                    .open
                    .iter_mut()
                    .find(|open| Some(&open.call.id) == gate.call_id.as_ref());
                if let Some(open) = call {
                    open.answer = Some(answer);
                }
                self.resumed(ResumedReason::Answered);
                // No reminder here: the message is the person's words and nothing else.
                self.close_batch(false);
                self.go_on();
            }
            DecisionKind::Cancel => self.finish(End::cancelled(TurnReason::Cancelled)),
            DecisionKind::Expire | DecisionKind::Supersede => self.finish(End::cancelled(TurnReason::Expired)),
        }
    }

    fn budget_decided(&mut self, gate: OpenGate, decision: &Decision) {
        match decision.kind {
            DecisionKind::Approve => {
                let state = &mut self.turn.state;
                let (budget, policy) = (&mut state.budget, &state.policy);
                budget.top_ups.used += 1;
                // What is not reached was not asked about.
                for limit in budget.reached() {
                    match limit {
                        Limit::Steps => extend(&mut budget.steps, policy.max_iterations),
                        Limit::Time => extend(&mut budget.millis, policy.timeout_ms),
                        Limit::Tokens => extend(&mut budget.tokens, policy.max_tokens),
                    }
                }
                state.answer = None;
                let words = self.template("blocks/extended.md");
                self.append(Message::text(Role::System, compose::limit(&words)));
                self.resumed(ResumedReason::BudgetExtended);
                self.go_on();
            }
            // Other words ask again.
            DecisionKind::Revise => self.open_budget(Some(gate.id)),
            DecisionKind::Cancel | DecisionKind::Reject | DecisionKind::Expire | DecisionKind::Supersede => {
                let text = self.turn.state.answer.clone().unwrap_or_default();
                let end = End::failed(TurnReason::BudgetExhausted).text(&text);
                self.finish(end.problem(Notice::BudgetExhausted {}));
            }
        }
    }

    fn resumed(&mut self, resumed_reason: ResumedReason) {
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

/// Grants `limit` once more, from where the meter stands: what ran past the old limit is not charged
/// again. No limit stays none.
fn extend(meter: &mut Meter, limit: u64) {
    if limit > 0 {
        meter.limit = meter.limit.max(meter.used).saturating_add(limit);
    }
}

/// The words of a decision, if there are any.
fn said(decision: &Decision) -> Option<&str> {
    decision.text.as_deref().filter(|text| !text.trim().is_empty())
}
