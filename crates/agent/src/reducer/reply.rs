//! What a reply of the model does: the rows of `docs/agent.md`. Rows 1 to 6 are about replies with calls, rows 7 to 11 about others.

pub(super) mod arguments;
mod markup;
mod rules;
mod signal;
mod thinking;

use serde_json::Value;

use crate::domain::{ActionStatus, Complexity, EffectClass, Event, Message, Notice, Role, ToolCall, ToolSpec, TurnReason};

use super::end::TurnEnd;
use super::plan::todos;
use super::prompt::specs;
use super::writer::Reducer;
use super::{ModelReply, OpenCall, ReviewOutcome, Stage, TurnState, calls, compose};
use crate::domain::foreign::{clean, clip, one_line};
use rules::CheckedCall;
use signal::ReplyText;

/// Bytes of one reply's text that are kept: as much as the providers' clients let through, so that nothing is lost unsaid.
const TEXT_CAP: usize = 256 * 1024;
/// Characters of a tool's name, as providers allow them.
const NAME_CAP: usize = 64;
/// So often in a row the model is told that its call came as text.
const MAX_AS_TEXT: u32 = 2;
/// What an admin is told about that.
const AS_TEXT: &str = "the model writes its tool calls as text: its server does not parse tool calls";

impl Reducer<'_> {
    pub(super) fn reply(&mut self, reply: ModelReply) {
        self.charge(reply.tokens, reply.millis);
        self.count_call();
        let said = read_text(&reply.text);
        self.note_progress(said.signal.as_ref());
        // Where words are asked for, calls are not even recorded.
        match self.turn.state.run.as_ref().map(|run| &run.stage) {
            Some(Stage::Reflecting { .. }) => return self.reflected(&said.text),
            Some(Stage::Concluding) if has_call_markup(&said.text) => return self.call_as_text(&said.text, None),
            Some(Stage::Concluding) => return self.concluded(&said.text),
            Some(Stage::Planning | Stage::Executing { .. }) | None => {}
        }
        if reply.calls.is_empty() && has_call_markup(&said.text) {
            return self.call_as_text(&said.text, reply.raw);
        }
        if reply.calls.is_empty() {
            return self.reply_in_words(said, reply.raw);
        }
        // Calls go on by themselves, whatever the signal beside them says.
        let text = said.text;
        let calls = self.normalize(reply.calls);
        (self.turn.state.replies.empty, self.turn.state.replies.as_text) = (0, 0);
        self.record(&text, &calls, reply.raw);
        let checked = if reply.cut_call {
            Err(rules::cut(self.ours(), &calls))
        } else {
            rules::check(&self.turn.state, self.env.tools, self.ours(), &calls)
        };
        let tools = self.env.tools;
        let behind = reply.behind_links.into_iter().chain(std::iter::repeat(None));
        self.turn.state.calls.open = calls
            .into_iter()
            .zip(behind)
            .map(|(call, behind)| open_call(call, behind, tools))
            .collect();
        match checked {
            Err(errors) => self.refuse(errors),
            Ok(asked) => self.dispatch(asked),
        }
    }

    fn dispatch(&mut self, asked: Vec<CheckedCall>) {
        let state = &self.turn.state;
        if asked.iter().all(|one| only_bookkeeping(state, one)) {
            if state.budget.planner_only.spent() {
                return self.refuse_planner_overuse();
            }
            self.turn.state.budget.planner_only.used += 1;
        } else {
            self.turn.state.budget.planner_only.used = 0;
        }
        // A call that must be alone is alone: the rules saw to it.
        let mut asked = asked;
        match asked.pop() {
            Some(CheckedCall::Plan(draft)) => self.accept_plan(draft),
            Some(CheckedCall::Clarify(task)) => self.clarify(task),
            Some(CheckedCall::Question(question)) => self.question(question),
            Some(CheckedCall::Progress(report)) => self.plan_progress(&report),
            Some(last @ (CheckedCall::Todos(_) | CheckedCall::Action { .. })) => {
                asked.push(last);
                self.start_calls(asked);
            }
            None => self.ask_model(),
        }
    }

    /// Row 4, and row 6 up to the first thing that must be waited for.
    fn start_calls(&mut self, asked: Vec<CheckedCall>) {
        let held = self.block_reason();
        for (position, one) in asked.into_iter().enumerate() {
            match one {
                CheckedCall::Todos(list) => self.write_todos(position, list),
                CheckedCall::Action { effect, arguments } => self.prepare_call(position, effect, &arguments, held.as_deref()),
                CheckedCall::Plan(_) | CheckedCall::Clarify(_) | CheckedCall::Question(_) | CheckedCall::Progress(_) => {}
            }
        }
        self.advance();
    }

    /// Why nothing but reads may run now.
    fn block_reason(&self) -> Option<String> {
        let planning = matches!(&self.turn.state.run, Some(run) if run.stage == Stage::Planning);
        if self.turn.state.review_pending() {
            Some(self.our_answer("call.plan_not_approved"))
        } else if planning {
            Some(self.our_answer("call.not_planned"))
        } else {
            None
        }
    }

    /// Rows 1 and 2: every call of the batch gets its error, nothing is applied.
    pub(super) fn refuse(&mut self, errors: Vec<String>) {
        for (call, error) in self.turn.state.calls.open.iter_mut().zip(errors) {
            call.answer = Some(if specs::is_state_tool(&call.call.name) {
                compose::state_error(&error)
            } else {
                compose::not_run(&call.call.name, &error)
            });
        }
        self.close_batch(true);
        self.ask_model();
    }

    fn refuse_planner_overuse(&mut self) {
        let words = self.our_answer("rule.planner_overuse");
        let errors = vec![words; self.turn.state.calls.open.len()];
        self.refuse(errors);
    }

    /// Calls as they may stand in the log: ids that are unique within the turn (some servers count from
    /// zero in every reply) and names that providers take back.
    fn normalize(&mut self, calls: Vec<ToolCall>) -> Vec<ToolCall> {
        let mut taken: std::collections::HashSet<String> = self
            .turn
            .log
            .iter()
            .flat_map(|message| &message.calls)
            .map(|call| call.id.clone())
            .collect();
        let mut admitted = Vec::with_capacity(calls.len());
        for call in calls {
            let mut id = call.id;
            if id.is_empty() || id.len() > 128 || id.chars().any(char::is_control) || taken.contains(&id) {
                id = self.mint("call");
            }
            taken.insert(id.clone());
            let letters = call.name.chars().take(NAME_CAP);
            let name: String = letters
                .map(|c| if c.is_ascii_alphanumeric() || "_-".contains(c) { c } else { '_' })
                .collect();
            let name = if name.is_empty() { String::from("unnamed") } else { name };
            // A call without arguments comes as an empty string from some servers.
            let arguments = if call.arguments.trim().is_empty() {
                String::from("{}")
            } else {
                call.arguments
            };
            admitted.push(ToolCall { id, name, arguments });
        }
        admitted
    }

    /// Announces what the model wants and notes what will come of it.
    fn prepare_call(&mut self, position: usize, effect: EffectClass, arguments: &Value, held: Option<&str>) {
        let repeated = self.repeated(position);
        let Some(open) = self.turn.state.calls.open.get_mut(position) else {
            return;
        };
        let (call_id, tool) = (open.call.id.clone(), open.call.name.clone());
        let held = held.filter(|_| effect != EffectClass::Read);
        if let Some(words) = held.or(repeated.as_deref()) {
            open.answer = Some(compose::not_run(&tool, words));
            return;
        }
        self.judge(position, effect);
        let words = calls::describe(&tool, arguments);
        self.emit(Event::ToolPlanned { call_id, tool, effect }, &words);
    }

    /// A text with the markup of a call is no answer: nothing of it runs, and the model is told so. One that goes on like that has a server that does
    /// not read its calls.
    fn call_as_text(&mut self, text: &str, raw: Option<Value>) {
        self.record(text, &[], raw);
        self.turn.state.replies.empty = 0;
        self.turn.state.replies.as_text += 1;
        if self.turn.state.replies.as_text > MAX_AS_TEXT {
            self.turn.state.error = Some(AS_TEXT.to_owned());
            return self.finish(TurnEnd::failed(TurnReason::ModelError).problem(Notice::CallsAsText {}));
        }
        let words = self.template("blocks/call_as_text.md");
        self.append(Message::text(Role::System, compose::turn_continuation(&words)));
        self.ask_model();
    }

    /// Rows 7 to 11. The text is in the log once, whatever comes of it.
    pub(super) fn reply_in_words(&mut self, said: ReplyText, raw: Option<Value>) {
        let wants_to_continue = self.wants_to_continue(&said);
        let ReplyText { text, signal } = said;
        let text = text.as_str();
        // A bare signal is no silence, unless people wait for words about their plan.
        if text.is_empty() && (!wants_to_continue || self.turn.state.review_pending()) {
            // An empty message is not recorded: providers refuse it.
            self.turn.state.replies.empty += 1;
            if self.turn.state.replies.empty < 2 {
                return self.ask_model();
            }
        } else if !text.is_empty() {
            self.record(text, &[], raw);
        }
        (self.turn.state.replies.empty, self.turn.state.replies.as_text) = (0, 0);
        self.turn.state.budget.planner_only.used = 0;
        if self.turn.state.review.outcome == ReviewOutcome::Revised && self.turn.state.review_pending() {
            let note = Some(text.to_owned()).filter(|text| !text.is_empty());
            return self.open_review(note);
        }
        if self.may_nudge() {
            return self.nudge(text.chars().count());
        }
        let state = &self.turn.state;
        if wants_to_continue && !has_open_plan(state) && state.replies.continued < state.policy.continuation.max_iterations {
            return self.obey_continue_signal(&signal.unwrap_or_default());
        }
        if self.executing().is_some() {
            return self.step_said(text);
        }
        let problem = text.is_empty().then_some(Notice::NothingToSay {});
        self.finish(TurnEnd::completed(TurnReason::FinalAnswer, text).problem(problem));
    }

    /// A complex plan is open and there are nudges left.
    fn may_nudge(&self) -> bool {
        let state = &self.turn.state;
        has_open_plan(state) && state.budget.nudges.used < state.budget.nudges.limit
    }

    /// The reply wants to go on: it says so, or, where the policy lets words count, it sounds like it.
    fn wants_to_continue(&self, said: &ReplyText) -> bool {
        let rules = &self.turn.state.policy.continuation;
        match &said.signal {
            Some(signal) => signal.goes_on,
            None => rules.patterns && !rules.require_explicit_signal && signal::words_go_on(&said.text),
        }
    }

    /// Keeps what the model says about how far it is.
    pub(super) fn note_progress(&mut self, signal: Option<&ReplySignal>) {
        if let Some(reported) = signal.and_then(|signal| signal.progress) {
            self.turn.state.replies.reported = Some(reported);
        }
    }

    /// Row 10: tells the model to go on, in its own words; what it announced is quoted and not done for it.
    fn obey_continue_signal(&mut self, signal: &ReplySignal) {
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
        self.repaint_plan();
        self.ask_model();
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
        self.repaint_plan();
        self.ask_model();
    }
}

pub use markup::has_call_markup;
pub(super) use signal::ReplySignal;
pub use signal::Reported;

/// What a reply says: its words as they may be shown, and its signal.
pub(super) fn read_text(text: &str) -> ReplyText {
    signal::split_signal(&clean(clip(thinking::strip_reasoning(text), TEXT_CAP)))
}

fn open_call(call: ToolCall, behind_links: Option<Value>, tools: &[ToolSpec]) -> OpenCall {
    OpenCall {
        definition: tools.iter().find(|spec| spec.name == call.name).map(ToolSpec::digest),
        call,
        action: None,
        status: ActionStatus::Approved,
        answer: None,
        exit: None,
        lost: false,
        base: None,
        behind_links,
        standing: None,
        grant: None,
        denied: false,
        edited: None,
    }
}

/// A complex plan is not done, and the model must see to it. In plan mode the driver does.
fn has_open_plan(state: &TurnState) -> bool {
    let plan = state.plan.as_ref().filter(|_| state.run.is_none());
    plan.is_some_and(|plan| plan.complexity == Complexity::Complex && !plan.done)
}

/// Does the call only keep books? One that completes a step or the plan is progress.
fn only_bookkeeping(state: &TurnState, asked: &CheckedCall) -> bool {
    let steps = state.plan.as_ref().map_or(&[][..], |plan| &plan.steps);
    match asked {
        CheckedCall::Todos(list) => !(todos::mirrors(state) && list.completes_any(steps)),
        CheckedCall::Progress(report) => {
            // A report in plan mode is about the step that is carried out, named or not.
            let ended = report.step.and_then(|at| steps.get(at));
            let completes = ended.is_some_and(|step| step.status != report.status) || state.run.is_some();
            let finishes = report.all && state.plan.as_ref().is_some_and(|plan| !plan.done);
            !(completes || finishes)
        }
        CheckedCall::Plan(_) | CheckedCall::Clarify(_) | CheckedCall::Question(_) | CheckedCall::Action { .. } => false,
    }
}
