//! The built-in demo model: shows the whole handshake without an account, a key or a network.
//!
//! It is a pure function of the messages and the tools on offer: the same log gives the same reply, so a
//! demo can be replayed and a turn resumed after a crash. It understands little and says so: it plans a
//! summary of the workspace, waits for the plan to be approved, takes changes, answers questions about the
//! plan, does the work with the file tools and tells what it did and what not.

mod act;
mod brief;
mod draft;
mod log;
mod summary;
mod words;

use serde_json::{Value, json};

use self::draft::Draft;
use self::log::{Feedback, Log, Said};
use self::words::Tongue;
use countersign_agent::domain::ToolCall;
use countersign_agent::model::{BoxFuture, ChatModel, ChatReply, ChatRequest, ModelError};

/// The demo model. Everything it says is labelled.
#[derive(Clone, Copy, Debug, Default)]
pub struct Demo;

impl ChatModel for Demo {
    fn chat<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        Box::pin(std::future::ready(Ok(answer(request))))
    }

    fn is_demo(&self) -> bool {
        true
    }
}

/// What the demo wants to do next.
#[derive(Debug)]
enum Move {
    Say(String),
    Call(Vec<(&'static str, Value)>),
}

fn answer(request: &ChatRequest) -> ChatReply {
    let log = Log::read(&request.messages);
    let tongue = Tongue::of(&log.task);
    let offers = |name: &str| request.tools.iter().any(|tool| tool.name == name);
    match decide(&log, tongue, &offers, request) {
        Move::Say(text) => ChatReply {
            text: tongue.labelled(&text),
            ..ChatReply::default()
        },
        Move::Call(calls) => ChatReply {
            calls: calls
                .into_iter()
                .enumerate()
                .map(|(at, (name, arguments))| ToolCall {
                    id: format!("call_{}", log.calls_so_far + at + 1),
                    name: name.to_owned(),
                    arguments: arguments.to_string(),
                })
                .collect(),
            ..ChatReply::default()
        },
    }
}

fn decide(log: &Log<'_>, tongue: Tongue, offers: &dyn Fn(&str) -> bool, request: &ChatRequest) -> Move {
    if let Some(next) = brief::next(request, log, tongue, offers) {
        return next;
    }
    let draft = || Draft::new(&log.task, log.edits(), tongue, offers);
    let planned = log.said.iter().rposition(|said| matches!(said, Said::Call { name: "plan", .. }));
    let Some(planned) = planned else {
        return if request.tools.is_empty() {
            Move::Say(tongue.nothing_done())
        } else if words::is_chat(&log.task) || !offers("plan") {
            Move::Say(tongue.introduction())
        } else {
            Move::Call(vec![("plan", draft().arguments())])
        };
    };
    let after = &log.said[planned + 1..];
    if request.tools.is_empty() {
        // Nothing is on offer any more: what the plan declared tells what it was about.
        let declared = |name: &str| matches!(&log.said[planned], Said::Call { arguments, .. } if draft::declares(arguments, name));
        let draft = Draft::new(&log.task, log.edits(), tongue, &declared);
        return Move::Say(act::report(after, &draft, tongue, true));
    }
    let feedback = after.iter().rposition(|said| matches!(said, Said::Feedback(_)));
    let said_since = |at: usize| after[at..].iter().any(|said| matches!(said, Said::Text));
    match feedback.map(|at| (at, &after[at])) {
        Some((_, Said::Feedback(Feedback::Revise(_)))) if offers("plan") => Move::Call(vec![("plan", draft().arguments())]),
        // The review opens again after the answer; whatever else calls us then finds the question answered.
        Some((at, Said::Feedback(Feedback::Question(question)))) if !said_since(at) => Move::Say(draft().explain(question)),
        _ => act::next(after, &draft(), tongue, offers, request.parallel_tool_calls),
    }
}

/// `plan_progress` for a finished step; a step that failed is told about but never reported as done.
fn progress(step: Option<&str>, summary: &str, next: Option<&str>) -> (&'static str, Value) {
    let mut arguments = json!({"step_summary": summary});
    if let Some(step) = step {
        arguments["step_id"] = json!(step);
    }
    if let Some(next) = next {
        arguments["next_step"] = json!(next);
    }
    ("plan_progress", arguments)
}
