//! Rows 1 to 6 of `docs/agent.md`: what a reply with calls does.

use crate::domain::{ActionStatus, Event, ToolCall, ToolSpec};

use super::compose;
use super::escape::{clean, clip};
use super::rules::{self, Asked};
use super::step::Step;
use super::{ModelReply, OpenCall, Stage, signal, specs, state_tools, thinking};

/// Bytes of one reply's text that are kept: as much as the providers' clients let through, so that nothing is lost unsaid.
const TEXT_CAP: usize = 256 * 1024;
/// Characters of a tool's name, as providers allow them.
const NAME_CAP: usize = 64;

impl Step<'_> {
    pub(super) fn reply(&mut self, reply: ModelReply) {
        self.charge(reply.tokens, reply.millis);
        self.count_call();
        let heard = hear(&reply.text);
        self.note_progress(heard.signal.as_ref());
        // Where words are asked for, calls are not even recorded.
        match self.turn.state.run.as_ref().map(|run| &run.stage) {
            Some(Stage::Reflecting { .. }) => return self.reflected(&heard.text),
            Some(Stage::Concluding) => return self.concluded(&heard.text),
            Some(Stage::Planning | Stage::Executing { .. }) | None => {}
        }
        if reply.calls.is_empty() {
            return self.words(heard, reply.raw);
        }
        // Calls go on by themselves, whatever the signal beside them says.
        let text = heard.text;
        let calls = self.admit(reply.calls);
        self.turn.state.replies.empty = 0;
        self.record(&text, &calls, reply.raw);
        let checked = rules::check(&self.turn.state, self.env.tools, self.ours(), &calls);
        let tools = self.env.tools;
        self.turn.state.calls.open = calls.into_iter().map(|call| open_call(call, tools)).collect();
        match checked {
            Err(errors) => self.refuse(errors),
            Ok(asked) => self.dispatch(asked),
        }
    }

    fn dispatch(&mut self, asked: Vec<Asked>) {
        let state = &self.turn.state;
        if asked.iter().all(|one| state_tools::only_bookkeeping(state, one)) {
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
            Some(Asked::Plan(draft)) => self.plan(draft),
            Some(Asked::Clarify(task)) => self.clarify(task),
            Some(Asked::Question(question)) => self.question(question),
            Some(Asked::Progress(report)) => self.plan_progress(&report),
            Some(last @ (Asked::Todos(_) | Asked::Action { .. })) => {
                asked.push(last);
                self.calls(asked);
            }
            None => self.go_on(),
        }
    }

    /// Row 4, and row 6 up to the first thing that must be waited for.
    fn calls(&mut self, asked: Vec<Asked>) {
        let held = self.held_back();
        for (position, one) in asked.into_iter().enumerate() {
            match one {
                Asked::Todos(list) => self.write_todos(position, list),
                Asked::Action { effect, arguments } => self.plan_call(position, effect, &arguments, held.as_deref()),
                Asked::Plan(_) | Asked::Clarify(_) | Asked::Question(_) | Asked::Progress(_) => {}
            }
        }
        self.advance();
    }

    /// Why nothing but reads may run now.
    fn held_back(&self) -> Option<String> {
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
        self.go_on();
    }

    fn refuse_planner_overuse(&mut self) {
        let words = self.our_answer("rule.planner_overuse");
        let errors = vec![words; self.turn.state.calls.open.len()];
        self.refuse(errors);
    }

    /// Calls as they may stand in the log: ids that are unique within the turn (some servers count from
    /// zero in every reply) and names that providers take back.
    fn admit(&mut self, calls: Vec<ToolCall>) -> Vec<ToolCall> {
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
    fn plan_call(&mut self, position: usize, effect: crate::domain::EffectClass, arguments: &serde_json::Value, held: Option<&str>) {
        let asks = self.asks(position, effect);
        let repeated = self.repeats(position);
        let Some(open) = self.turn.state.calls.open.get_mut(position) else {
            return;
        };
        let (call_id, tool) = (open.call.id.clone(), open.call.name.clone());
        let held = held.filter(|_| effect != crate::domain::EffectClass::Read);
        if let Some(words) = held.or(repeated.as_deref()) {
            open.answer = Some(compose::not_run(&tool, words));
            return;
        }
        open.status = if asks { ActionStatus::Pending } else { ActionStatus::Approved };
        let words = super::gates::describe(&tool, arguments);
        self.emit(Event::ToolPlanned { call_id, tool, effect }, &words);
    }
}

/// What a reply says: its words as they may be shown, and its signal.
pub(super) fn hear(text: &str) -> signal::Heard {
    signal::hear(&clean(clip(thinking::spoken(text), TEXT_CAP)))
}

fn open_call(call: ToolCall, tools: &[ToolSpec]) -> OpenCall {
    OpenCall {
        definition: tools.iter().find(|spec| spec.name == call.name).map(ToolSpec::digest),
        call,
        action: None,
        status: ActionStatus::Approved,
        answer: None,
        exit: None,
        lost: false,
        base: None,
    }
}
