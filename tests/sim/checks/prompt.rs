//! What every request to the model must keep: one system prompt, paired calls, no forged block; nothing of an earlier request is
//! missing, each call has what really came of it, and no limit was reached when it was made.

use std::collections::HashMap;
use std::time::Duration;

use countersign_agent::domain::{Message, Mode, Role};
use countersign_agent::model::ChatRequest;
use countersign_agent::reducer::{Next, TurnState};
use serde_json::{Value, json};

use super::{Held, Runs, holder, plan, spent};
use crate::life::Life;
use crate::stage::ActorId;

/// Time of the flagged last call.
const LAST_CALL: Duration = Duration::from_secs(30);

/// An actor has just asked the model.
pub async fn asked(life: &mut Life<'_>, actor: ActorId, request: &ChatRequest) -> Result<(), String> {
    protocol(request)?;
    told(&life.runs, &request.messages)?;
    life.asking.remove(&actor);
    // Who lost the lane may still ask: nothing comes of it.
    let Some(held) = holder(life, actor).await? else {
        return Ok(());
    };
    spent::look(life, &held)?;
    life.asking.insert(actor, held.turn.clone());
    let kept = match held.state.policy.mode {
        Mode::React => in_one_log(life, &held, request),
        Mode::Plan => plan::asked(life, &held, request).await,
    };
    kept.map_err(|wrong| format!("{}: {wrong}", held.turn))
}

fn in_one_log(life: &mut Life<'_>, held: &Held, request: &ChatRequest) -> Result<(), String> {
    let log = log_of(request, &held.state)?;
    life.books.entry(held.turn.clone()).or_default().goes_on("", log)?;
    within_limits(request, &held.state, request.tools.is_empty())?;
    keeps_books(log, held.state.policy.max_planner_only)
}

/// As the fake servers of the behaviour tests check it.
fn protocol(request: &ChatRequest) -> Result<(), String> {
    let messages = request.messages.iter().map(|message| {
        let role = match message.role {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        };
        let calls: Vec<Value> = message.calls.iter().map(|call| json!({"id": call.id})).collect();
        json!({"role": role, "content": message.content, "tool_calls": calls, "tool_call_id": message.call_id})
    });
    let wrong = crate::model_protocol::violations(&json!({"messages": messages.collect::<Vec<_>>()}));
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(format!("a request to the model: {wrong:?}"))
    }
}

/// What the model is told of a call is what came of it: the output of a run of this very call; and of one that was sent it never
/// hears that it was not run.
pub(super) fn told(runs: &Runs, messages: &[Message]) -> Result<(), String> {
    let calls: HashMap<&str, u64> = messages
        .iter()
        .flat_map(|message| &message.calls)
        .filter_map(|call| {
            let arguments: Value = serde_json::from_str(&call.arguments).ok()?;
            Some((call.id.as_str(), arguments["n"].as_u64()?))
        })
        .collect();
    for message in messages.iter().filter(|message| message.role == Role::Tool) {
        let Some(number) = message.call_id.as_deref().and_then(|id| calls.get(id)) else {
            continue;
        };
        let content = &message.content;
        for (mark, call) in &runs.outputs {
            if content.contains(mark.as_str()) && call != number {
                return Err(format!("call {number} is answered with the output of call {call}: {content}"));
            }
        }
        let Some(times) = runs.by_call.get(number) else { continue };
        // An empty output leaves no trace.
        let its_own = times
            .iter()
            .filter_map(|run| run.gave.as_ref())
            .any(|gave| gave.is_empty() || content.contains(gave.as_str()));
        if content.contains("not run") && !content.contains("unknown") || !its_own && !content.contains("unknown") {
            return Err(format!(
                "call {number} was sent {} times, and the model is told: {content}",
                times.len()
            ));
        }
    }
    Ok(())
}

/// The request without system prompt and earlier turns.
fn log_of<'a>(request: &'a ChatRequest, state: &TurnState) -> Result<&'a [Message], String> {
    let begins = |message: &Message| message.role == Role::User && message.content == state.task;
    let at = request.messages.iter().rposition(begins);
    at.map(|at| &request.messages[at..])
        .ok_or_else(|| format!("a request without the task {:?}", state.task))
}

/// The same message; old outputs may be folded.
pub(super) fn is_same(old: &Message, new: &Message) -> bool {
    let folded = old.role == Role::Tool && (old.content.contains("[folded:") || new.content.contains("[folded:"));
    old.role == new.role && old.call_id == new.call_id && old.calls == new.calls && (old.content == new.content || folded)
}

/// No call is begun past a limit; past one there is the one flagged call without tools (`last`), and each has no more time than is left.
pub(super) fn within_limits(request: &ChatRequest, state: &TurnState, last: bool) -> Result<(), String> {
    if state.next != (Next::CallModel { last }) {
        return Err(format!(
            "the model was asked with {} tools, and due was {:?}",
            request.tools.len(),
            state.next
        ));
    }
    if !state.mailbox.is_empty() {
        return Err(format!("the model was asked without the words {:?}", state.mailbox));
    }
    let millis = state.budget.millis;
    let left = Duration::from_millis(millis.limit.saturating_sub(millis.used));
    let most = if last { LAST_CALL } else { left };
    if request.deadline > most || !last && spent::is_at_a_limit(&state.budget) {
        return Err(format!(
            "the model was asked past a limit, with {:?}: {:?}",
            request.deadline, state.budget
        ));
    }
    Ok(())
}

/// Replies in a row that certainly did nothing but keep books, and were taken.
pub(super) fn keeps_books(log: &[Message], most: u64) -> Result<(), String> {
    let answers: HashMap<&str, &str> = log
        .iter()
        .filter_map(|message| Some((message.call_id.as_deref()?, message.content.as_str())))
        .collect();
    let mut in_a_row = 0;
    for message in log.iter().filter(|message| message.role == Role::Assistant) {
        let taken = |id: &str| answers.get(id).is_some_and(|answer| !answer.starts_with("error:"));
        let only_books = |name: &str, arguments: &str| {
            let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
            match name {
                "plan_progress" => arguments.get("step_id").is_none() && arguments.get("plan_status").is_none(),
                "write_todos" => !arguments.to_string().contains("completed"),
                _ => false,
            }
        };
        let Some(first) = message.calls.first() else {
            in_a_row = 0;
            continue;
        };
        if !taken(&first.id) {
            continue;
        }
        let all = message.calls.iter().all(|call| only_books(&call.name, &call.arguments));
        in_a_row = if all { in_a_row + 1 } else { 0 };
        if in_a_row > most {
            return Err(format!("{in_a_row} replies in a row only kept books"));
        }
    }
    Ok(())
}
