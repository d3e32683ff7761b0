//! Rows 7 to 11 of the table: what a reply without calls does; and the limits.

use serde_json::Value;

use crate::domain::{Complexity, Event, Message, Notice, Role, TurnReason, TurnStatus};

use super::compose;
use super::escape::{clean, clip};
use super::reply::TEXT_CAP;
use super::step::Step;
use super::{ModelReply, Next, finish};

impl Step<'_> {
    /// Rows 7, 8, 9 and 11. The text is in the log once, whatever comes of it.
    pub(super) fn words(&mut self, text: &str, raw: Option<Value>) {
        if text.is_empty() {
            // An empty message is not recorded: providers refuse it.
            self.turn.state.empty_replies += 1;
            if self.turn.state.empty_replies < 2 {
                return self.go_on();
            }
        } else {
            self.record(text, &[], raw);
        }
        self.turn.state.empty_replies = 0;
        self.turn.state.budget.planner_only.used = 0;
        if self.turn.state.revised && self.review_pending() {
            let note = Some(text.to_owned()).filter(|text| !text.is_empty());
            let replaces = self.turn.state.last_review.clone();
            return self.open_review(note, replaces);
        }
        if self.must_go_on() {
            return self.nudge(text.chars().count());
        }
        let problem = text.is_empty().then_some(Notice::NothingToSay {});
        self.finish(TurnStatus::Completed, TurnReason::FinalAnswer, text, problem, None);
    }

    /// A complex plan is open and there are nudges left.
    fn must_go_on(&self) -> bool {
        let state = &self.turn.state;
        let open = state
            .plan
            .as_ref()
            .is_some_and(|plan| plan.complexity == Complexity::Complex && !plan.done);
        open && state.budget.nudges.used < state.budget.nudges.limit
    }

    fn nudge(&mut self, text_chars: usize) {
        let words = self.template("blocks/nudge.md");
        let state = &mut self.turn.state;
        state.budget.nudges.used += 1;
        let (attempt, iteration) = (state.budget.nudges.used, state.budget.steps.used);
        if let Some(plan) = &state.plan {
            let block = compose::continuation(&words, plan);
            self.turn.log.push(Message::text(Role::System, block));
        }
        let event = Event::PlanContinuation {
            iteration,
            attempt,
            text_chars,
        };
        self.emit(event, &format!("Plan is not done, nudge {attempt}"));
        // The model's words show on the card.
        self.paint();
        self.go_on();
    }

    /// Asks the model next, if the limits allow it.
    pub(super) fn go_on(&mut self) {
        if self.limit_reached() {
            return self.begin_last_call();
        }
        self.empty_mailbox();
        self.turn.state.next = Next::CallModel { last: false };
    }

    /// Steps, working time or tokens are spent.
    pub(super) fn limit_reached(&self) -> bool {
        let budget = &self.turn.state.budget;
        budget.steps.spent() || budget.millis.spent() || budget.tokens.spent()
    }

    /// The flagged last call: no tools, its text is always taken.
    pub(super) fn begin_last_call(&mut self) {
        self.empty_mailbox();
        let words = self.template("blocks/last_call.md");
        self.turn.log.push(Message::text(Role::System, compose::limit(&words)));
        self.turn.state.last_call = true;
        self.turn.state.next = Next::CallModel { last: true };
    }

    /// The answer to the flagged last call; calls in it are not even recorded.
    pub(super) fn last_reply(&mut self, reply: ModelReply) {
        self.charge(reply.tokens, reply.millis);
        let text = clean(clip(&reply.text, TEXT_CAP)).trim().to_owned();
        if !text.is_empty() {
            let raw = reply.raw.filter(|_| reply.calls.is_empty());
            self.record(&text, &[], raw);
        }
        self.last_words(text, None);
    }

    /// The turn is at its limit and this is all there is to say.
    pub(super) fn last_words(&mut self, text: String, incident: Option<String>) {
        let state = &mut self.turn.state;
        state.last_call = false;
        let text = if text.is_empty() { finish::standing(state) } else { text };
        let open = state.plan.as_ref().is_some_and(|plan| !plan.done);
        let problem = Some(Notice::BudgetExhausted {});
        if !open {
            return self.finish(TurnStatus::Completed, TurnReason::BudgetExhausted, &text, problem, incident);
        }
        if state.budget.top_ups.used >= state.budget.top_ups.limit {
            return self.finish(TurnStatus::Failed, TurnReason::BudgetExhausted, &text, problem, incident);
        }
        state.answer = Some(text);
        self.open_budget(None);
    }
}
