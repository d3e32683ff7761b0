//! Rows 7 to 11 of `docs/agent.md`: what a reply without calls does; and the limits.

use serde_json::Value;

use crate::domain::{Complexity, Event, Message, Notice, Role, TurnReason};

use super::compose;
use super::escape::one_line;
use super::finish::{self, End};
use super::signal::{self, Heard, Signal};
use super::step::Step;
use super::{ModelReply, Next, Reported, ReviewOutcome, TurnState, plan_mode, reply};

impl Step<'_> {
    /// Rows 7 to 11. The text is in the log once, whatever comes of it.
    pub(super) fn words(&mut self, heard: Heard, raw: Option<Value>) {
        let asks_on = self.asks_on(&heard);
        let Heard { text, signal } = heard;
        let text = text.as_str();
        // A bare signal is no silence, unless people wait for words about their plan.
        if text.is_empty() && (!asks_on || self.turn.state.review_pending()) {
            // An empty message is not recorded: providers refuse it.
            self.turn.state.replies.empty += 1;
            if self.turn.state.replies.empty < 2 {
                return self.go_on();
            }
        } else if !text.is_empty() {
            self.record(text, &[], raw);
        }
        self.turn.state.replies.empty = 0;
        self.turn.state.budget.planner_only.used = 0;
        if self.turn.state.review.outcome == ReviewOutcome::Revised && self.turn.state.review_pending() {
            let note = Some(text.to_owned()).filter(|text| !text.is_empty());
            return self.open_review(note);
        }
        if self.must_go_on() {
            return self.nudge(text.chars().count());
        }
        let state = &self.turn.state;
        if asks_on && !is_open(state) && state.replies.continued < state.policy.continuation.max_iterations {
            return self.go_on_as_asked(&signal.unwrap_or_default());
        }
        if self.executing().is_some() {
            return self.step_said(text);
        }
        let problem = text.is_empty().then_some(Notice::NothingToSay {});
        self.finish(End::completed(TurnReason::FinalAnswer, text).problem(problem));
    }

    /// A complex plan is open and there are nudges left.
    fn must_go_on(&self) -> bool {
        let state = &self.turn.state;
        is_open(state) && state.budget.nudges.used < state.budget.nudges.limit
    }

    /// The reply wants to go on: it says so, or, where the policy lets words count, it sounds like it.
    fn asks_on(&self, heard: &Heard) -> bool {
        let rules = &self.turn.state.policy.continuation;
        match &heard.signal {
            Some(signal) => signal.goes_on,
            None => rules.patterns && !rules.require_explicit_signal && signal::words_go_on(&heard.text),
        }
    }

    /// Keeps what the model says about how far it is.
    pub(super) fn note_progress(&mut self, signal: Option<&Signal>) {
        if let Some(reported) = signal.and_then(|signal| signal.progress) {
            self.turn.state.replies.reported = Some(reported);
        }
    }

    /// Row 10: tells the model to go on, in its own words; what it announced is quoted and not done for it.
    fn go_on_as_asked(&mut self, signal: &Signal) {
        let words = self.template("blocks/go_on.md");
        let state = &mut self.turn.state;
        state.replies.continued += 1;
        let reported = state.replies.reported.unwrap_or(Reported {
            current_step: Some(state.replies.continued),
            ..Reported::default()
        });
        let tool = signal.next_action.as_ref().map(|(tool, _)| one_line(tool, 64));
        let event = Event::ContinuationProgress {
            iteration: state.replies.continued,
            max_iterations: state.policy.continuation.max_iterations,
            current_step: reported.current_step,
            total_steps: reported.total_steps,
            percentage: reported.percentage,
            current_tools: tool.into_iter().collect(),
        };
        self.append(Message::text(Role::System, compose::go_on(&words, signal)));
        let words = signal.reason.as_deref().unwrap_or("The model goes on");
        self.emit(event, words);
        self.paint();
        self.go_on();
    }

    fn nudge(&mut self, text_chars: usize) {
        let words = self.template("blocks/nudge.md");
        let state = &mut self.turn.state;
        state.budget.nudges.used += 1;
        let (attempt, iteration) = (state.budget.nudges.used, state.budget.steps.used);
        if let Some(plan) = &state.plan {
            let block = compose::continuation(&words, plan);
            self.append(Message::text(Role::System, block));
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
            run.made.clear();
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
        let text = reply::hear(&reply.text).text;
        if !text.is_empty() {
            let raw = reply.raw.filter(|_| reply.calls.is_empty());
            self.record(&text, &[], raw);
        }
        self.last_words(text, None);
    }

    /// The turn is at its limit and this is all there is to say.
    pub(super) fn last_words(&mut self, text: String, incident: Option<String>) {
        let state = &mut self.turn.state;
        let text = if text.is_empty() { finish::standing(state) } else { text };
        let open = state.plan.as_ref().is_some_and(|plan| !plan.done);
        let end = if !open {
            Some(End::completed(TurnReason::BudgetExhausted, &text))
        } else if state.budget.top_ups.used >= state.budget.top_ups.limit {
            Some(End::failed(TurnReason::BudgetExhausted).text(&text))
        } else {
            None
        };
        if let Some(end) = end {
            return self.finish(end.problem(Notice::BudgetExhausted {}).incident(incident));
        }
        state.answer = Some(text);
        self.open_budget(None);
    }
}

/// A complex plan is not done, and the model must see to it. In plan mode the driver does.
fn is_open(state: &TurnState) -> bool {
    let plan = state.plan.as_ref().filter(|_| state.run.is_none());
    plan.is_some_and(|plan| plan.complexity == Complexity::Complex && !plan.done)
}
