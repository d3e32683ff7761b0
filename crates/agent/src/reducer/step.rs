//! One step of a turn: which input fits which state.

use crate::domain::foreign::plain;
use crate::domain::{Event, Message, Notice, Role, TurnReason, TurnStatus};

use super::end::TurnEnd;
use super::writer::Reducer;
use super::{CallOutcome, Effect, Env, Input, Next, Turn};

/// Takes one input into the turn and says what must be done; [`TurnState::next`](super::TurnState::next) tells what comes after
/// that. Total: an input that does not fit the state changes nothing and has no effects.
pub fn step(turn: &mut Turn, env: &Env<'_>, input: Input) -> Vec<Effect> {
    let mut reducer = Reducer::new(turn, env);
    reducer.apply(input);
    if reducer.has(&Effect::Progress) && matches!(super::progress(reducer.turn), Some((None, _))) {
        reducer.turn.state.review.progress_posted = true;
    }
    reducer.effects()
}

impl Reducer<'_> {
    /// Inputs that do not fit the state fall through: a late answer of a model, a second decision, a
    /// result of calls that are not waited for any more.
    fn apply(&mut self, input: Input) {
        if self.turn.state.status.is_final() {
            return;
        }
        let next = self.turn.state.next.clone();
        match (input, next) {
            (Input::Start, Next::Start) => self.start(),
            (Input::Start, Next::GoOn) => self.go_on(),
            (Input::Reply(reply), Next::CallModel { last }) => {
                self.end_outage();
                if last { self.last_reply(reply) } else { self.reply(reply) }
            }
            (
                Input::ModelFailed {
                    notice,
                    error,
                    incident,
                    millis,
                },
                Next::CallModel { last },
            ) => {
                self.turn.state.outage = None;
                self.charge(0, millis);
                self.model_failed(last, notice, error, incident);
            }
            (Input::ModelAway(failed), Next::CallModel { last }) => self.model_away(last, failed),
            (Input::Tick, Next::CallModel { .. }) => self.tell_of_outage(),
            (Input::ToolResults { outcomes, millis }, Next::RunTools { calls }) => self.take_results(&calls, outcomes, millis),
            (Input::Outdated { call_id, millis }, Next::RunTools { .. }) => self.ask_again(&call_id, millis),
            (Input::Decided { decision, rows }, Next::Wait) => self.apply_decision(decision, &rows),
            (Input::Steer(text), next) => self.steer(text, &next),
            (Input::Edited, _) => self.turn.state.request_edited = true,
            (Input::Cancel { reason, left, .. }, _) => self.cancel(reason, left),
            (Input::HookFailed { incident, left }, _) => self.hook_failed(incident, left),
            (Input::Crashed { incident }, _) => self.finish(TurnEnd::failed(TurnReason::Crashed).incident(Some(incident))),
            (Input::Undeliverable, Next::Wait) => self.finish(TurnEnd::failed(TurnReason::Undeliverable)),
            (
                Input::Start
                | Input::Reply(_)
                | Input::ModelFailed { .. }
                | Input::ModelAway(_)
                | Input::Tick
                | Input::ToolResults { .. }
                | Input::Outdated { .. }
                | Input::Decided { .. }
                | Input::Undeliverable,
                _,
            ) => {}
        }
    }

    fn start(&mut self) {
        self.turn.state.status = TurnStatus::Running;
        if self.turn.state.plan.is_some() {
            self.emit(Event::TurnStarted {}, "Turn started");
            return self.review_again();
        }
        let task = plain(&self.turn.state.task);
        self.append(Message::text(Role::User, task));
        self.emit(Event::TurnStarted {}, "Turn started");
        self.tell_of_files();
        self.ask_model();
    }

    fn cancel(&mut self, reason: TurnReason, left: Vec<CallOutcome>) {
        for outcome in left {
            self.record_result(&outcome.call_id, outcome.result);
        }
        let reason = if reason == TurnReason::Superseded {
            reason
        } else {
            TurnReason::Cancelled
        };
        self.finish(TurnEnd::cancelled(reason));
    }

    fn hook_failed(&mut self, incident: String, left: Vec<CallOutcome>) {
        for outcome in left {
            self.record_result(&outcome.call_id, outcome.result);
        }
        let done = self.turn.state.calls.written();
        self.finish(
            TurnEnd::failed(TurnReason::Hook)
                .problem(Notice::HookFailed { done })
                .incident(Some(incident)),
        );
    }
}
