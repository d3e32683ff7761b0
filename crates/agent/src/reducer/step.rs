//! One step of a turn: which input fits which state, and the small tools that every rule uses.

use crate::domain::{Event, GateId, Message, Notice, Role, ToolCall, TurnReason, TurnStatus, digest128};

use super::compose;
use super::finish::End;
use super::prompt::words::Words;
use super::{CallOutcome, Effect, Env, Input, Next, Turn, plan_mode};
use crate::domain::foreign::{one_line, plain};

/// Characters of an event's summary, tag included.
const SUMMARY_CAP: usize = 200;

/// A turn in the middle of one step, with the effects so far. The rules are methods on it, one file a theme.
pub(in crate::reducer) struct Reducer<'a> {
    pub(super) turn: &'a mut Turn,
    pub(super) env: Env<'a>,
    out: Vec<Effect>,
}

/// Takes one input into the turn and says what must be done; [`TurnState::next`](super::TurnState::next) tells what comes after
/// that. Total: an input that does not fit the state changes nothing and has no effects.
pub fn step(turn: &mut Turn, env: &Env<'_>, input: Input) -> Vec<Effect> {
    let mut reducer = Reducer {
        turn,
        env: *env,
        out: Vec::new(),
    };
    reducer.apply(input);
    if reducer.out.contains(&Effect::Progress) && matches!(super::progress(reducer.turn), Some((None, _))) {
        reducer.turn.state.review.progress_posted = true;
    }
    reducer.out
}

impl<'a> Reducer<'a> {
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
            (Input::Crashed { incident }, _) => self.finish(End::failed(TurnReason::Crashed).incident(Some(incident))),
            (Input::Undeliverable, Next::Wait) => self.finish(End::failed(TurnReason::Undeliverable)),
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

    /// The words wait until the model can see them: never between a call and its result.
    fn steer(&mut self, text: String, next: &Next) {
        if text.trim().is_empty() {
            return;
        }
        self.turn.state.mailbox.push(text);
        if matches!(next, Next::CallModel { .. }) {
            self.empty_mailbox();
        }
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
        self.finish(End::cancelled(reason));
    }

    fn hook_failed(&mut self, incident: String, left: Vec<CallOutcome>) {
        for outcome in left {
            self.record_result(&outcome.call_id, outcome.result);
        }
        let done = self.turn.state.calls.written();
        self.finish(
            End::failed(TurnReason::Hook)
                .problem(Notice::HookFailed { done })
                .incident(Some(incident)),
        );
    }

    /// Puts a message at the end of the log that is written now.
    pub(super) fn append(&mut self, message: Message) {
        let step = plan_mode::scope(&self.turn.state).map(str::to_owned);
        self.turn.log.push(Message { step, ..message });
    }

    /// Gives the model what the requester said meanwhile. It is said to the whole turn, whichever step is carried out.
    pub(super) fn empty_mailbox(&mut self) {
        if !self.turn.state.mailbox.is_empty() {
            self.forget_answered();
        }
        for text in std::mem::take(&mut self.turn.state.mailbox) {
            self.turn.log.push(Message::text(Role::User, compose::mailbox(&text)));
        }
    }

    /// What the model said, its words and calls as foreign text. The calls that run keep the model's
    /// exact arguments (`calls.open`); the log shows them without forged blocks.
    pub(super) fn record(&mut self, text: &str, calls: &[ToolCall], raw: Option<serde_json::Value>) {
        let shown = calls.iter().map(|call| ToolCall {
            arguments: plain_arguments(&call.arguments),
            ..call.clone()
        });
        let calls = shown.collect();
        self.append(Message {
            calls,
            raw,
            ..Message::text(Role::Assistant, plain(text))
        });
        if !text.is_empty() {
            let event = Event::AssistantText {
                text: text.to_owned(),
                step_id: plan_mode::scope(&self.turn.state).map(str::to_owned),
            };
            self.emit(event, first_sentence(text));
        }
    }

    /// A fresh id. It cannot be guessed without the turn's seed, and a replay makes the same one.
    pub(super) fn mint(&mut self, prefix: &str) -> String {
        self.turn.state.minted += 1;
        let count = self.turn.state.minted.to_string();
        format!("{prefix}_{}", hex::encode(digest128(&[&self.turn.state.seed, prefix, &count])))
    }

    /// A fresh gate id.
    pub(super) fn mint_gate(&mut self) -> GateId {
        GateId::new(self.mint("rv"))
    }

    /// Our own words for a block; they take no values, foreign text is added by the composer.
    pub(super) fn template(&self, name: &str) -> String {
        self.ours().file(name, serde_json::json!({}))
    }

    /// Our own words, in the turn's language.
    pub(super) fn ours(&self) -> Words<'a> {
        Words::of(&self.turn.state, self.env.prompts)
    }

    /// One of our answers that takes no values.
    pub(super) fn our_answer(&self, key: &str) -> String {
        self.ours().answer(key, serde_json::json!({}))
    }

    pub(super) fn effect(&mut self, effect: Effect) {
        self.out.push(effect);
    }

    /// Puts `event` on the timeline; the phase tag goes before `words`.
    pub(super) fn emit(&mut self, event: Event, words: &str) {
        let summary = match event.phase() {
            Some(phase) => one_line(&format!("{} {words}", phase.tag()), SUMMARY_CAP),
            None => one_line(words, SUMMARY_CAP),
        };
        let iteration = self.turn.state.budget.steps.used;
        self.out.push(Effect::Emit { iteration, event, summary });
    }

    /// The card that shows the plan must be painted anew.
    pub(super) fn repaint_plan(&mut self) {
        if super::progress(self.turn).is_some() && !self.out.contains(&Effect::Progress) {
            self.out.push(Effect::Progress);
        }
    }
}

/// A dot inside a word, as in the name of a file, ends no sentence.
fn first_sentence(text: &str) -> &str {
    let text = text.trim_start();
    let ends = |(at, mark): &(usize, char)| match mark {
        '。' | '！' | '？' | '\n' => true,
        '.' | '!' | '?' => text[at + 1..].chars().next().is_none_or(char::is_whitespace),
        _ => false,
    };
    let end = text.char_indices().find(ends);
    end.map_or(text, |(at, mark)| &text[..at + mark.len_utf8()])
}

/// Arguments for the log: the same JSON, its strings without anything that reads as ours.
fn plain_arguments(arguments: &str) -> String {
    fn strings(value: &mut serde_json::Value) {
        match value {
            serde_json::Value::String(text) => *text = plain(text),
            serde_json::Value::Array(items) => items.iter_mut().for_each(strings),
            serde_json::Value::Object(map) => {
                let entries = std::mem::take(map).into_iter();
                map.extend(entries.map(|(key, mut item)| {
                    strings(&mut item);
                    (plain(&key), item)
                }));
            }
            serde_json::Value::Null | serde_json::Value::Bool(_) | serde_json::Value::Number(_) => {}
        }
    }
    let parsed = serde_json::from_str::<serde_json::Value>(arguments)
        .ok()
        .filter(serde_json::Value::is_object);
    let Some(mut value) = parsed else {
        // Some servers read the arguments of earlier calls as an object and fail on anything else.
        return serde_json::json!({"malformed_arguments": plain(arguments)}).to_string();
    };
    let original = value.clone();
    strings(&mut value);
    if value == original {
        arguments.to_owned()
    } else {
        value.to_string()
    }
}
