//! Specs of the turn's own tools, as every model sees them.

use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::domain::{EffectClass, ToolSpec};

use super::{Stage, TurnState};

/// Names of the state tools, in the order they are offered.
pub(super) const NAMES: [&str; 5] = ["plan", "clarify", "request_user", "plan_progress", "write_todos"];

/// Those that can be called now. In plan mode each stage has its own.
pub(super) fn names(state: &TurnState) -> &'static [&'static str] {
    match state.run.as_ref().map(|run| &run.stage) {
        None => &NAMES,
        Some(Stage::Planning) => &["plan", "request_user"],
        Some(Stage::Executing { .. }) => &["request_user", "plan_progress", "write_todos"],
        Some(Stage::Reflecting { .. } | Stage::Concluding) => &[],
    }
}

/// One of the turn's own tools?
pub(super) fn is_state_tool(name: &str) -> bool {
    NAMES.contains(&name)
}

/// The specs in the order of [`NAMES`].
pub(super) fn specs() -> &'static [ToolSpec] {
    static SPECS: LazyLock<Vec<ToolSpec>> = LazyLock::new(described);
    &SPECS
}

fn described() -> Vec<ToolSpec> {
    let described = |(name, parameters): (&str, Value)| ToolSpec {
        name: name.to_owned(),
        description: description(name).to_owned(),
        parameters: parameters.into(),
        effect: EffectClass::State,
    };
    NAMES
        .into_iter()
        .zip([
            plan_schema(),
            clarify_schema(),
            question_schema(),
            progress_schema(),
            todos_schema(),
        ])
        .map(described)
        .collect()
}

fn description(name: &str) -> &'static str {
    match name {
        "plan" => {
            "State the goal and the steps before acting. People may be asked to countersign the plan, so write steps they can judge and name \
             in `tools` every tool a step will use: an approved plan allows exactly the write tools that its steps declare. \
             When complexity=\"complex\", after completing each major step, call plan_progress() to record progress. When all steps are done, \
             call plan_progress(plan_status=\"completed\") to finalize. Must be the only call of its reply."
        }
        "clarify" => {
            "Declare the task you work on now. Under a complex plan, once before the first action. With needs_user_input=true it asks the user \
             question_to_user and waits for the answer. Needs a plan. Must be the only call of its reply."
        }
        "request_user" => {
            "Ask the user something that you cannot find out yourself and wait for the answer. Must be the only call of its reply."
        }
        "plan_progress" => {
            "Record progress on the plan: step_id for a step just completed (or, with step_status, failed or skipped), step_summary for what came \
             of it or why, next_step for the step that comes next, plan_status=\"completed\" once everything is done. Must be the only call of its reply."
        }
        _ => {
            "Keep a short working list of your own; each call replaces the whole list. Use it for two or more meaningful actions, first of \
             all before the first expensive one. Items are short and say what is done; keep the statuses current, do not rewrite an \
             unchanged list. It may come together with action calls."
        }
    }
}

fn object(required: &[&str], properties: Value) -> Value {
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

pub(super) fn plan_schema() -> Value {
    let step = json!({"type": "object", "required": ["id", "content"], "properties": {
        "id": {"type": "string", "description": "Short and unique, e.g. \"1\""},
        "content": {"type": "string", "description": "What is done, in the user's language"},
        "intent": {"type": "string", "description": "Why, if it is not obvious"},
        "tools": {"type": "array", "items": {"type": "string"}, "description": "Names of the tools this step uses"}}});
    object(
        &["overall_goal_ui", "complexity"],
        json!({
            "overall_goal_ui": {"type": "string", "minLength": 1, "maxLength": 2000, "description": "The goal as the user reads it; one line if simple"},
            "complexity": {"type": "string", "enum": ["simple", "complex"], "description": "complex: several steps"},
            "internal_plan": {"description": "The steps in order", "anyOf": [
                {"type": "array", "items": step}, {"type": "string"}, {"type": "object"}]},
            "session_title": {"type": "string", "maxLength": 200, "description": "One line"}
        }),
    )
}

pub(super) fn clarify_schema() -> Value {
    object(
        &["task_goal_ui"],
        json!({
            "task_goal_ui": {"type": "string", "minLength": 1, "maxLength": 2000},
            "task_id": {"type": "string", "maxLength": 80},
            "success_criteria": {"type": "array", "items": {"type": "string"}, "maxItems": 20},
            "needs_user_input": {"type": "boolean"},
            "question_to_user": {"type": "string", "maxLength": 4000}
        }),
    )
}

pub(super) fn question_schema() -> Value {
    object(
        &["message"],
        json!({
            "message": {"type": "string", "minLength": 1, "maxLength": 4000},
            "title": {"type": "string", "maxLength": 200},
            "reason": {"type": "string", "maxLength": 1000}
        }),
    )
}

pub(super) fn progress_schema() -> Value {
    object(
        &[],
        json!({
            "step_id": {"type": "string", "description": "The step just completed"},
            "step_status": {"type": "string", "enum": ["completed", "failed", "skipped"], "description": "How it ended; completed if left out"},
            "step_summary": {"type": "string", "maxLength": 4000, "description": "What came of it, or why it failed or was skipped"},
            "next_step": {"type": "string", "description": "The step that comes next"},
            "plan_status": {"type": "string", "enum": ["completed"], "description": "Everything is done"}
        }),
    )
}

pub(super) fn todos_schema() -> Value {
    let item = object(
        &["id", "content", "status"],
        json!({
            "id": {"type": "string", "minLength": 1, "maxLength": 40},
            "content": {"type": "string", "minLength": 1, "maxLength": 140},
            "status": {"type": "string", "enum": ["pending", "in_progress", "completed"]}
        }),
    );
    object(
        &["todos"],
        json!({
            "todos": {"type": "array", "minItems": 1, "maxItems": 8, "items": item},
            "focus": {"type": "string", "maxLength": 40},
            "note": {"type": "string", "maxLength": 200}
        }),
    )
}
