//! Row 1 of `docs/agent.md`: may this batch be applied at all? Either every call may, or none.

use serde_json::{Value, json};

use crate::domain::{Complexity, EffectClass, ToolCall, ToolSpec};

use crate::reducer::plan::PlanDraft;
use crate::reducer::plan::steps::ProgressReport;
use crate::reducer::plan::todos::TodosCall;
use crate::reducer::prompt::specs;
use crate::reducer::prompt::words::Words;
use crate::reducer::questions::{ClarifyCall, QuestionCall};
use crate::reducer::reply::arguments::check_arguments;
use crate::reducer::{TurnState, plan_mode};

/// Calls of one reply that are looked at.
const MAX_CALLS: usize = 32;

/// Calls of one reply that change something: no more than the smallest approval card shows, because an OK must not
/// cover what the card did not show.
const MAX_CHANGES: usize = 8;

/// A call that was understood.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::reducer) enum CheckedCall {
    /// `plan`.
    Plan(PlanDraft),
    /// `clarify`.
    Clarify(ClarifyCall),
    /// `request_user`.
    Question(QuestionCall),
    /// `plan_progress`.
    Progress(ProgressReport),
    /// `write_todos`.
    Todos(TodosCall),
    /// Anything that acts or reads.
    Action {
        /// What it may change.
        effect: EffectClass,
        /// Its arguments, an object.
        arguments: Value,
    },
}

impl CheckedCall {
    /// The tool that must be the only one of its batch.
    fn solo(&self) -> bool {
        match self {
            Self::Plan(_) | Self::Clarify(_) | Self::Question(_) | Self::Progress(_) => true,
            Self::Todos(_) | Self::Action { .. } => false,
        }
    }
}

/// All calls understood, or for each call what to tell the model.
pub(in crate::reducer) fn check(
    state: &TurnState,
    tools: &[ToolSpec],
    ours: Words<'_>,
    calls: &[ToolCall],
) -> Result<Vec<CheckedCall>, Vec<String>> {
    if calls.len() > MAX_CALLS {
        let words = ours.answer("rule.too_many_calls", json!({"count": calls.len(), "limit": MAX_CALLS}));
        return Err(vec![words; calls.len()]);
    }
    let asked: Vec<_> = calls
        .iter()
        .map(|call| {
            let asked = understand(state, tools, ours, call)?;
            match breach(state, ours, &asked, &call.name, calls.len()) {
                Some(words) => Err(words),
                None => Ok(asked),
            }
        })
        .collect();
    let changes = asked
        .iter()
        .filter(|one| matches!(one, Ok(CheckedCall::Action { effect, .. }) if *effect > EffectClass::Read));
    let changes = changes.count();
    if changes > MAX_CHANGES {
        let words = ours.answer("rule.too_many_changes", json!({"count": changes, "limit": MAX_CHANGES}));
        return Err(vec![words; calls.len()]);
    }
    if asked.iter().all(Result::is_ok) {
        return Ok(asked.into_iter().flatten().collect());
    }
    let beside = ours.answer("rule.beside", json!({}));
    Err(asked.into_iter().map(|one| one.err().unwrap_or_else(|| beside.clone())).collect())
}

/// What each call of a reply is told in which the output limit cut one: none of them runs.
pub(in crate::reducer) fn cut(ours: Words<'_>, calls: &[ToolCall]) -> Vec<String> {
    let whole = |call: &ToolCall| serde_json::from_str::<Value>(&call.arguments).is_ok();
    // An object may have been closed where it was cut: then it is the last.
    let last = calls.len().saturating_sub(1);
    let none = calls.iter().all(whole);
    let told = calls.iter().enumerate().map(|(at, call)| {
        let key = if !whole(call) || (none && at == last) {
            "rule.cut"
        } else {
            "rule.beside"
        };
        ours.answer(key, json!({}))
    });
    told.collect()
}

fn understand(state: &TurnState, tools: &[ToolSpec], ours: Words<'_>, call: &ToolCall) -> Result<CheckedCall, String> {
    let invalid = |problem: String| format!("invalid arguments: {problem}");
    let names = specs::names(state);
    if specs::is_state_tool(&call.name) && !names.contains(&call.name.as_str()) {
        return Err(unknown(names, tools, ours, &call.name));
    }
    match call.name.as_str() {
        "plan" => PlanDraft::read(&call.arguments).map(CheckedCall::Plan).map_err(invalid),
        "clarify" => ClarifyCall::read(&call.arguments).map(CheckedCall::Clarify).map_err(invalid),
        "request_user" => QuestionCall::read(&call.arguments).map(CheckedCall::Question).map_err(invalid),
        "plan_progress" => ProgressReport::read(&call.arguments, state.plan.as_ref(), plan_mode::executing(state))
            .map(CheckedCall::Progress)
            .map_err(invalid),
        "write_todos" => TodosCall::read(&call.arguments).map(CheckedCall::Todos).map_err(invalid),
        name => {
            let Some(spec) = tools.iter().find(|spec| spec.name == name) else {
                return Err(unknown(names, tools, ours, name));
            };
            let map = check_arguments(&call.arguments, &spec.parameters, &[]).map_err(invalid)?;
            Ok(CheckedCall::Action {
                // An action tool cannot make itself bookkeeping.
                effect: if spec.effect == EffectClass::State {
                    EffectClass::Write
                } else {
                    spec.effect
                },
                arguments: Value::Object(map),
            })
        }
    }
}

fn unknown(names: &[&str], tools: &[ToolSpec], ours: Words<'_>, name: &str) -> String {
    let names: Vec<_> = names.iter().copied().chain(tools.iter().map(|spec| spec.name.as_str())).collect();
    ours.answer("rule.unknown_tool", json!({"name": name, "names": names.join(", ")}))
}

/// The rule that a well-formed call breaks, if any.
fn breach(state: &TurnState, ours: Words<'_>, asked: &CheckedCall, name: &str, batch: usize) -> Option<String> {
    if asked.solo() && batch > 1 {
        return Some(match asked {
            // These words are part of the contract with clients, in every prompt language.
            CheckedCall::Progress(_) => String::from("plan_progress() 必须单独调用。"),
            CheckedCall::Plan(_)
            | CheckedCall::Clarify(_)
            | CheckedCall::Question(_)
            | CheckedCall::Todos(_)
            | CheckedCall::Action { .. } => ours.answer("rule.alone", json!({"name": name})),
        });
    }
    let Some(plan) = &state.plan else {
        let needs_plan = matches!(asked, CheckedCall::Clarify(_) | CheckedCall::Progress(_));
        return needs_plan.then(|| ours.answer("rule.needs_plan", json!({"name": name})));
    };
    // Nothing of it was carried out, and people would read that it was.
    if matches!(asked, CheckedCall::Progress(_)) && state.review_pending() {
        return Some(ours.answer("call.plan_not_approved", json!({})));
    }
    if let CheckedCall::Progress(report) = asked
        && let Some(words) = plan_mode::breach(state, ours, report)
    {
        return Some(words);
    }
    // In plan mode a step's brief declares it.
    let undeclared = state.run.is_none() && plan.complexity == Complexity::Complex && state.clarified_version != Some(plan.version);
    (matches!(asked, CheckedCall::Action { .. }) && undeclared).then(|| ours.answer("rule.clarify_first", json!({})))
}
