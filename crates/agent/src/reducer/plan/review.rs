//! The review of a plan (rows 3 and 8 of `docs/agent.md`): opens it, and applies its decision.

use crate::domain::{CardState, Decision, DecisionKind, GateKind, Message, Notice, Outbound, ResumedReason, Role, TurnReason};
use crate::reducer::end::TurnEnd;
use crate::reducer::writer::Reducer;
use crate::reducer::{Approval, ApprovedCard, GateOpening, OpenGate, ReviewOutcome, compose, gates};

use super::card::plan_card;

impl Reducer<'_> {
    /// Waits for people to countersign the plan, on a card that takes the place of the latest one.
    pub(in crate::reducer) fn open_review(&mut self, note: Option<String>) {
        let Some(plan) = &self.turn.state.plan else { return };
        let (digest, plan_version) = (plan.digest(), plan.version);
        let id = self.mint_gate();
        let Some(plan) = &self.turn.state.plan else { return };
        let card = plan_card(&self.turn.state, plan, Some(id.clone()), note, CardState::Open { votes: 0 });
        let replaces = self.turn.state.review.latest.replace(id.clone());
        let quorum = self.turn.state.policy.quorum;
        self.wait_at(
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
        self.emit_paused(GateKind::PlanReview, 0);
    }

    pub(in crate::reducer) fn plan_decided(&mut self, gate: &OpenGate, decision: Decision) {
        match decision.kind {
            // What was approved is not the plan: an earlier version made the card, which showed less than an approval covers now.
            DecisionKind::Approve if !self.is_about(gate) => self.open_review(None),
            DecisionKind::Approve => {
                let words = gates::words_of(&decision).unwrap_or("OK").to_owned();
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
                self.resume(ResumedReason::PlanApproved);
                self.begin_work();
                self.ask_model();
            }
            DecisionKind::Revise => {
                if self.is_about(gate) && self.review_without(&decision) {
                    return;
                }
                let rounds = &mut self.turn.state.budget.rounds;
                if rounds.used >= rounds.limit {
                    return self.finish(TurnEnd::failed(TurnReason::Rounds).problem(Notice::TooManyRounds {}));
                }
                rounds.used += 1;
                self.turn.state.review.outcome = ReviewOutcome::Revised;
                self.feed_back(gates::words_of(&decision).unwrap_or_default());
                self.resume(ResumedReason::PlanRevised);
                self.ask_model();
            }
            DecisionKind::Cancel | DecisionKind::Reject => self.finish(TurnEnd::cancelled(TurnReason::Cancelled)),
            DecisionKind::Expire | DecisionKind::Supersede => self.finish(TurnEnd::unreviewed()),
        }
    }

    /// Is the plan the one that `gate` asked about?
    fn is_about(&self, gate: &OpenGate) -> bool {
        self.turn.state.plan.as_ref().is_none_or(|plan| plan.digest() == gate.digest)
    }

    /// Tells the model what people said about the plan: one user message that is exactly the block.
    fn feed_back(&mut self, words: &str) {
        if let Some(plan) = &self.turn.state.plan {
            let block = compose::plan_feedback(plan, words);
            self.append(Message::text(Role::User, block));
        }
    }
}
