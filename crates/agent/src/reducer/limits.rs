//! The limits of a turn: what is charged, the flagged last call, and the question whether the turn may go on.
//!
//! Limits are looked at before a model call and before tools run, never on a reply: an answer that arrives on the last step is an answer.

use crate::domain::{
    BudgetCard, CardHead, CardState, Decision, DecisionKind, GateId, GateKind, Limit, Message, Meter, Notice, Outbound, ResumedReason,
    Role, TurnReason,
};

use super::end::TurnEnd;
use super::plan::steps::{open_steps, plan_standing};
use super::writer::Reducer;
use super::{ModelReply, Next, OpenGate, compose, gates, plan_mode, reply};

impl Reducer<'_> {
    /// One model call was made.
    pub(super) fn charge(&mut self, tokens: u64, millis: u64) {
        let budget = &mut self.turn.state.budget;
        budget.steps.used = budget.steps.used.saturating_add(1);
        budget.tokens.used = budget.tokens.used.saturating_add(tokens);
        budget.millis.used = budget.millis.used.saturating_add(millis);
    }

    /// Asks the model next, if the limits allow it.
    pub(super) fn ask_model(&mut self) {
        if self.limit_reached() {
            return self.begin_last_call();
        }
        // Approved by a program whose digest knew less of a plan: people are asked for what they have not seen.
        if self.turn.state.review.outcome.approval().is_some() && self.turn.state.review_pending() {
            return self.open_review(None);
        }
        self.empty_mailbox();
        self.follow_plan();
        self.turn.state.next = Next::CallModel { last: false };
    }

    /// Steps, working time or tokens are spent.
    pub(super) fn limit_reached(&self) -> bool {
        !self.turn.state.budget.reached().is_empty()
    }

    /// The flagged last call: no tools, its text is always taken.
    pub(super) fn begin_last_call(&mut self) {
        self.empty_mailbox();
        self.turn.state.next = Next::CallModel { last: true };
        // Calls that the limit kept from running may be made again once there is more.
        if let Some(run) = &mut self.turn.state.run {
            run.answered.clear();
        }
        let words = self.template("blocks/last_call.md");
        let block = match (&self.turn.state.run, &self.turn.state.plan) {
            // What came of the steps stands in logs that this call does not see.
            (Some(_), Some(plan)) => plan_mode::limit(&words, plan),
            _ => compose::limit(&words),
        };
        self.append(Message::text(Role::System, block));
    }

    /// The answer to the flagged last call; calls in it are not even recorded.
    pub(super) fn last_reply(&mut self, reply: ModelReply) {
        self.charge(reply.tokens, reply.millis);
        let text = reply::read_text(&reply.text).text;
        // Nobody may take a call for the answer.
        let text = if reply::has_call_markup(&text) { String::new() } else { text };
        if !text.is_empty() {
            let raw = reply.raw.filter(|_| reply.calls.is_empty());
            self.record(&text, &[], raw);
        }
        self.last_words(text, None);
    }

    pub(super) fn model_failed(&mut self, last: bool, notice: Notice, error: String, incident: String) {
        if last {
            self.last_words(String::new(), Some(incident));
        } else if notice == (Notice::ModelTimeout {}) && self.turn.state.budget.millis.spent() {
            // It was cut off because the turn's own time was up: a limit like any other, and no fault of the model.
            self.begin_last_call();
        } else {
            if notice == (Notice::ModelTimeout {}) {
                self.no_answer_in_time();
            }
            self.turn.state.error = Some(error);
            self.finish(TurnEnd::failed(TurnReason::ModelError).problem(notice).incident(Some(incident)));
        }
    }

    /// The turn is at its limit and this is all there is to say.
    pub(super) fn last_words(&mut self, text: String, incident: Option<String>) {
        let state = &mut self.turn.state;
        let text = if text.is_empty() { plan_standing(state) } else { text };
        let open = state.plan.as_ref().is_some_and(|plan| !plan.done);
        let end = if !open {
            Some(TurnEnd::completed(TurnReason::BudgetExhausted, &text))
        } else if state.budget.top_ups.used >= state.budget.top_ups.limit {
            Some(TurnEnd::failed(TurnReason::BudgetExhausted).text(&text))
        } else {
            None
        };
        if let Some(end) = end {
            return self.finish(end.problem(Notice::BudgetExhausted {}).incident(incident));
        }
        state.answer = Some(text);
        self.open_budget(None);
    }

    /// May the task go on past its limit? `replaces`: asked again.
    pub(super) fn open_budget(&mut self, replaces: Option<GateId>) {
        let state = &self.turn.state;
        let summary = state.answer.clone().unwrap_or_default();
        let head = CardHead {
            group: None,
            ..state.card_head(CardState::Open { votes: 0 })
        };
        let (open_steps, steps_used) = (open_steps(state), state.budget.steps.used);
        let reached = state.budget.reached();
        let digest = gates::digest(&[&summary, &steps_used.to_string()]);
        self.open_gate(GateKind::Budget, digest, None, replaces, |gate_id| {
            Outbound::BudgetCard(BudgetCard {
                gate_id,
                head,
                summary,
                open_steps,
                steps_used,
                reached,
            })
        });
    }

    pub(super) fn budget_decided(&mut self, gate: OpenGate, decision: &Decision) {
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
                self.resume(ResumedReason::BudgetExtended);
                self.ask_model();
            }
            // Other words ask again.
            DecisionKind::Revise => self.open_budget(Some(gate.id)),
            DecisionKind::Cancel | DecisionKind::Reject | DecisionKind::Expire | DecisionKind::Supersede => {
                let text = self.turn.state.answer.clone().unwrap_or_default();
                let end = TurnEnd::failed(TurnReason::BudgetExhausted).text(&text);
                self.finish(end.problem(Notice::BudgetExhausted {}));
            }
        }
    }
}

/// Grants `limit` once more, from where the meter stands: what ran past the old limit is not charged
/// again. No limit stays none.
fn extend(meter: &mut Meter, limit: u64) {
    if limit > 0 {
        meter.limit = meter.limit.max(meter.used).saturating_add(limit);
    }
}
