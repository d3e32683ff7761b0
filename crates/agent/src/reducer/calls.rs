//! Row 6 of `docs/agent.md`: the calls of one reply, from running what may run to answering all of them in order.
//!
//! A lost call is settled before anything else: while it is unknown whether a call ran, no later call runs and no limit is wound up. An
//! approved call that never ran and will not run any more is `expired`: it was neither refused nor did it fail.

mod approval;
mod open;
mod rules;
mod standing;
mod undone;
mod verdict;
mod words;

use serde_json::Value;

use crate::domain::{ActionStatus, Attachment, DeclaredCall, EffectClass, Event, Message, Notice, ToolResult, ToolSpec, TurnReason};

use super::end::TurnEnd;
use super::writer::Reducer;
use super::{CallOutcome, Effect, Next, WriteRecord, compose, gates};

pub use open::OpenCall;
pub use verdict::may_be_sent;
pub use words::redraft;
pub(super) use words::{describe, justification};

impl Reducer<'_> {
    /// Does the next thing that the open batch needs: run what may run, ask for the rest, answer.
    pub(super) fn advance(&mut self) {
        if self.limit_reached() {
            self.answer_unrun();
        }
        self.answer_denied();
        let waits = || self.turn.state.calls.open.iter().filter(|call| call.answer.is_none());
        if waits().next().is_none() {
            return self.finish_batch();
        }
        // Whether that call runs (again) is decided before anything behind it runs: nothing may overtake it.
        let again = waits().any(OpenCall::asks_again);
        let ready = waits().filter(|call| !again && call.status == ActionStatus::Approved);
        let ready: Vec<String> = ready.map(|call| call.call.id.clone()).collect();
        if ready.is_empty() {
            return self.open_approval();
        }
        let before = std::mem::replace(&mut self.turn.state.next, Next::RunTools { calls: ready.clone() });
        let resumed = |call_id: &String| matches!(&before, Next::RunTools { calls } if calls.contains(call_id));
        for call_id in &ready {
            // Also a call that ran on already: whatever let it run may have ended, and something else lets it run now.
            self.propose_granted(call_id);
            if resumed(call_id) {
                continue;
            }
            let words = format!("started {}", self.tool_of(call_id));
            self.emit(Event::ToolStarted { call_id: call_id.clone() }, &words);
        }
    }

    /// At a limit nothing more is begun: what did not run is answered so. A call of unknown outcome is asked about even then, for
    /// the model must not be told that it did not run.
    fn answer_unrun(&mut self) {
        let (not_run, lost_at_limit) = (self.our_answer("call.at_limit"), self.our_answer("call.lost_at_limit"));
        for call in &mut self.turn.state.calls.open {
            if call.answer.is_none() && call.status != ActionStatus::Unknown {
                let words = if call.lost { &lost_at_limit } else { &not_run };
                call.answer = Some(compose::not_run(&call.call.name, words));
            }
        }
        self.expire_approved();
    }

    /// Marks allowed calls that will not run any more, so that they do not look like calls that wait.
    pub(super) fn expire_approved(&mut self) {
        let mut lapsed = Vec::new();
        for call in &mut self.turn.state.calls.open {
            // What ran has another status by now.
            let (ActionStatus::Approved, Some(action)) = (call.status, &call.action) else {
                continue;
            };
            call.status = if call.lost { ActionStatus::Unknown } else { ActionStatus::Expired };
            lapsed.push((action.clone(), call.status));
        }
        self.give_back_grants();
        for (action, status) in lapsed {
            self.effect(Effect::ActionMoved {
                action: action.clone(),
                status,
            });
            self.action_moved(action, status);
        }
    }

    /// What came of the calls that ran. One without an outcome did not run yet and still has to. One whose
    /// outcome has no result may or may not have run; for anything but a read that is a person's question.
    pub(super) fn take_results(&mut self, calls: &[String], outcomes: Vec<CallOutcome>, millis: u64) {
        self.turn.state.budget.millis.used = self.turn.state.budget.millis.used.saturating_add(millis);
        let mut outcomes = outcomes;
        for call_id in calls {
            if let Some(at) = outcomes.iter().position(|outcome| outcome.call_id == *call_id) {
                let result = outcomes.swap_remove(at).result;
                self.record_result(call_id, result);
            }
        }
        self.remember_answered(calls);
        self.advance();
    }

    /// A call whose ground has changed since a person approved it asks again. One that a rule forbids by now is denied. One whose standing
    /// grant holds no more is looked at as if it had just come.
    pub(super) fn ask_again(&mut self, call_id: &str, millis: u64) {
        self.turn.state.budget.millis.used = self.turn.state.budget.millis.used.saturating_add(millis);
        if self.drop_lapsed(call_id) {
            return self.advance();
        }
        let env = self.env;
        let approved = |open: &&mut OpenCall| {
            open.call.id == call_id && open.answer.is_none() && open.status == ActionStatus::Approved && open.action.is_some()
        };
        if let Some(open) = self.turn.state.calls.open.iter_mut().find(approved) {
            // One that may have run is still asked about as such; not where a rule forbids it, whatever a person says.
            open.status = if open.lost && may_be_sent(&env, open) {
                ActionStatus::Unknown
            } else {
                ActionStatus::Pending
            };
        }
        self.advance();
    }

    /// Takes the result of a call; `None` when its outcome is unknown.
    pub(super) fn record_result(&mut self, call_id: &str, result: Option<ToolResult>) {
        let effect = self.effect_of(call_id);
        let ours = self.ours();
        let unanswered = |open: &&mut OpenCall| open.call.id == call_id && open.answer.is_none();
        let Some(open) = self.turn.state.calls.open.iter_mut().find(unanswered) else {
            return;
        };
        let tool = open.call.name.clone();
        let arguments: Value = serde_json::from_str(&open.call.arguments).unwrap_or_default();
        let under_a_grant = open.grant.is_some() || open.standing.is_some();
        let write = WriteRecord {
            summary: describe(&tool, &arguments),
            call_digest: call_digest(&tool, &arguments),
            unknown: false,
            granted: under_a_grant.then(|| made(self.env.tools, &tool, &arguments)).flatten(),
            standing: open.standing.is_some(),
        };
        let Some(result) = result else {
            if effect == EffectClass::Read {
                open.status = ActionStatus::Failed;
                open.answer = Some(compose::not_run(&tool, &ours.answer("call.no_answer", Value::Null)));
            } else {
                open.status = ActionStatus::Unknown;
                // Lost a second time it is still one call.
                if !std::mem::replace(&mut open.lost, true) {
                    self.turn.state.calls.writes.push(WriteRecord { unknown: true, ..write });
                }
            }
            return;
        };
        open.status = if result.ok { ActionStatus::Executed } else { ActionStatus::Failed };
        open.answer = Some(compose::tool_result(&tool, &result));
        open.exit = result.exit;
        let (status, action) = (open.status, open.action.clone());
        let was_lost = std::mem::take(&mut open.lost);
        let writes = &mut self.turn.state.calls.writes;
        // One of them: another call just like it may have run as well.
        let lost = |known: &WriteRecord| was_lost && known.unknown && known.call_digest == write.call_digest;
        if let Some(at) = writes.iter().position(lost) {
            writes.remove(at);
        }
        if effect != EffectClass::Read && result.ok {
            writes.push(write);
        }
        let finished = Event::ToolFinished {
            call_id: call_id.to_owned(),
            ok: result.ok,
            seconds: result.seconds,
        };
        self.emit(finished, &format!("{tool}: {}", result.text));
        if let Some(Attachment { name, bytes, kind }) = result.attachment {
            let summary = name.clone();
            self.emit(Event::Attachment { name, bytes, kind }, &summary);
        }
        if let Some(action) = action {
            self.action_moved(action, status);
        }
    }

    /// Every call has its answer.
    fn finish_batch(&mut self) {
        let exit = self.turn.state.calls.open.iter_mut().find_map(|call| call.exit.take());
        // At a limit there is no next step to be reminded of.
        self.close_batch(!self.limit_reached());
        match exit {
            // Words of the requester that the model has not seen outrank a tool's wish to end.
            Some(text) if self.turn.state.mailbox.is_empty() => {
                let problem = text.trim().is_empty().then_some(Notice::Done {});
                self.finish(TurnEnd::completed(TurnReason::FinalAnswer, &text).problem(problem));
            }
            Some(_) | None => self.ask_model(),
        }
    }

    /// Answers the only call of the batch and goes on.
    pub(super) fn answer_only(&mut self, words: String) {
        if let Some(open) = self.turn.state.calls.open.first_mut() {
            open.answer = Some(words);
        }
        self.close_batch(true);
        self.ask_model();
    }

    /// Puts the answers into the log, in call order, one for each call. `remind`: the last one may carry
    /// the reminder.
    pub(super) fn close_batch(&mut self, remind: bool) {
        let calls = std::mem::take(&mut self.turn.state.calls.open);
        for call in calls {
            self.note_undone(&call);
            let name = call.call.name;
            let mut answer = call
                .answer
                .unwrap_or_else(|| compose::not_run(&name, &self.our_answer("call.not_run")));
            if call.edited.is_some() {
                answer = compose::of_edited(&name, &self.our_answer("call.edited"), &call.call.arguments, &answer);
            }
            self.append(Message::tool(&call.call.id, answer));
        }
        if remind {
            self.append_reminder();
        }
    }

    /// Effect class of an open call. A call that was proposed stays one even if its tool changed or is
    /// gone meanwhile.
    pub(super) fn effect_of(&self, call_id: &str) -> EffectClass {
        let state = &self.turn.state;
        let proposed = state.calls.open.iter().any(|open| open.call.id == call_id && open.action.is_some());
        let tool = self.tool_of(call_id);
        let spec = self.env.tools.iter().find(|spec| spec.name == tool);
        match spec.map(|spec| spec.effect) {
            Some(EffectClass::Destructive) => EffectClass::Destructive,
            Some(EffectClass::Read) if !proposed => EffectClass::Read,
            Some(EffectClass::Read | EffectClass::Write | EffectClass::State) | None => EffectClass::Write,
        }
    }

    fn tool_of(&self, call_id: &str) -> String {
        let open = self.turn.state.calls.open.iter().find(|open| open.call.id == call_id);
        open.map(|open| open.call.name.clone()).unwrap_or_default()
    }
}

/// A call that ran, as people are told of it.
fn made(tools: &[ToolSpec], tool: &str, arguments: &Value) -> Option<DeclaredCall> {
    let spec = tools.iter().find(|spec| spec.name == tool)?;
    Some(DeclaredCall::made(spec, arguments.as_object()?))
}

/// What two calls have in common that do the same: digest of the tool and its arguments, in whatever order they were written.
pub(super) fn call_digest(tool: &str, arguments: &Value) -> String {
    gates::digest(&[tool, &arguments.to_string()])
}
