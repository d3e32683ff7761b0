//! Specs of the turn's own tools, as every model sees them.

mod words;

use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::domain::{DeclaredCall, EffectClass, PromptLanguage, Scope, ToolSpec};

use crate::reducer::{Stage, TurnState};

/// Names of the state tools, in the order they are offered.
pub(in crate::reducer) const NAMES: [&str; 5] = ["plan", "clarify", "request_user", "plan_progress", "write_todos"];

/// Those that can be called now. In plan mode each stage has its own.
pub(in crate::reducer) fn names(state: &TurnState) -> &'static [&'static str] {
    match state.run.as_ref().map(|run| &run.stage) {
        None => &NAMES,
        Some(Stage::Planning) => &["plan", "request_user"],
        Some(Stage::Executing { .. }) => &["request_user", "plan_progress", "write_todos"],
        Some(Stage::Reflecting { .. } | Stage::Concluding) => &[],
    }
}

/// One of the turn's own tools?
pub(in crate::reducer) fn is_state_tool(name: &str) -> bool {
    NAMES.contains(&name)
}

/// The specs in the order of [`NAMES`], each language's built once: every turn that waits for a model holds them.
pub(in crate::reducer) fn specs(language: PromptLanguage) -> &'static [ToolSpec] {
    static ENGLISH: LazyLock<Vec<ToolSpec>> = LazyLock::new(|| described(PromptLanguage::En));
    static CHINESE: LazyLock<Vec<ToolSpec>> = LazyLock::new(|| described(PromptLanguage::Zh));
    match language {
        PromptLanguage::En => &ENGLISH,
        PromptLanguage::Zh => &CHINESE,
    }
}

/// The agent's own tools, which change nothing but its state (`plan`, `clarify`, …), as English prompts describe them. No other tool may
/// have such a name.
#[must_use]
pub fn own_tools() -> &'static [ToolSpec] {
    specs(PromptLanguage::En)
}

fn described(language: PromptLanguage) -> Vec<ToolSpec> {
    let described = |(name, mut parameters): (&str, Value)| {
        words::describe(&mut parameters, name, language);
        ToolSpec {
            name: name.to_owned(),
            description: words::of(name, language).to_owned(),
            parameters: parameters.into(),
            effect: EffectClass::State,
            scope: Scope::Every,
        }
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

fn object(required: &[&str], properties: Value) -> Value {
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

pub(in crate::reducer) fn plan_schema() -> Value {
    let call = json!({"type": "object", "required": ["tool", "arguments"], "properties": {
        "tool": {"type": "string"},
        "arguments": {"type": "object"},
        "times": {"type": "integer", "minimum": 1, "maximum": DeclaredCall::MAX_TIMES}}});
    let step = json!({"type": "object", "required": ["id", "content"], "properties": {
        "id": {"type": "string"},
        "content": {"type": "string"},
        "intent": {"type": "string"},
        "tools": {"type": "array", "items": {"type": "string"}},
        "calls": {"type": "array", "items": call}}});
    object(
        &["overall_goal_ui", "complexity"],
        json!({
            "overall_goal_ui": {"type": "string", "minLength": 1, "maxLength": 2000},
            "complexity": {"type": "string", "enum": ["simple", "complex"]},
            "internal_plan": {"anyOf": [
                {"type": "array", "items": step}, {"type": "string"}, {"type": "object"}]},
            "session_title": {"type": "string", "maxLength": 200}
        }),
    )
}

pub(in crate::reducer) fn clarify_schema() -> Value {
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

pub(in crate::reducer) fn question_schema() -> Value {
    object(
        &["message"],
        json!({
            "message": {"type": "string", "minLength": 1, "maxLength": 4000},
            "title": {"type": "string", "maxLength": 200},
            "reason": {"type": "string", "maxLength": 1000}
        }),
    )
}

pub(in crate::reducer) fn progress_schema() -> Value {
    object(
        &[],
        json!({
            "step_id": {"type": "string"},
            "step_status": {"type": "string", "enum": ["completed", "failed", "skipped"]},
            "step_summary": {"type": "string", "maxLength": 4000},
            "next_step": {"type": "string"},
            "plan_status": {"type": "string", "enum": ["completed"]}
        }),
    )
}

pub(in crate::reducer) fn todos_schema() -> Value {
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
