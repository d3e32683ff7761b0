//! `write_todos`: the model's own list beside the plan. It never changes a digest or a grant.

use serde_json::{Value, json};

use crate::domain::{Event, Step as PlanStep, StepStatus, Todo, TodoStatus};

use super::TurnState;
use super::specs::todos_schema;
use super::state_tools::{arguments, text};
use super::step::Step;

/// The whole list, as one call replaces it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct NewTodos {
    todos: Vec<Todo>,
    note: Option<String>,
}

impl NewTodos {
    pub(super) fn read(arguments_text: &str) -> Result<Self, String> {
        let map = arguments(arguments_text, &todos_schema())?;
        let list = map.get("todos").cloned().unwrap_or(Value::Null);
        let todos: Vec<Todo> = serde_json::from_value(list).map_err(|error| format!("`todos`: {error}"))?;
        if let Some(twice) = todos
            .iter()
            .enumerate()
            .find(|(at, todo)| todos.iter().take(*at).any(|other| other.id == todo.id))
        {
            return Err(format!("`todos` has the id `{}` twice", twice.1.id));
        }
        Ok(Self {
            todos,
            note: text(&map, "note"),
        })
    }

    /// Would it complete a step of the plan?
    pub(super) fn completes_any(&self, steps: &[PlanStep]) -> bool {
        self.todos.iter().any(|todo| {
            todo.status == TodoStatus::Completed && steps.iter().any(|step| step.id == todo.id && step.status != StepStatus::Completed)
        })
    }
}

/// Does the list tell how the plan's steps stand? In plan mode it is one step's own, and the driver keeps the plan; of a plan that waits for
/// its approval no step can have been carried out.
pub(super) fn mirrors(state: &TurnState) -> bool {
    state.run.is_none() && !state.review_pending()
}

impl Step<'_> {
    /// Replaces the list and mirrors the status of equal ids to the plan's steps.
    pub(super) fn write_todos(&mut self, position: usize, list: NewTodos) {
        let mirrors = mirrors(&self.turn.state);
        for todo in &list.todos {
            let status = match todo.status {
                TodoStatus::Pending => StepStatus::Pending,
                TodoStatus::InProgress => StepStatus::InProgress,
                TodoStatus::Completed => StepStatus::Completed,
            };
            let plan = self.turn.state.plan.as_ref().filter(|_| mirrors);
            let step = plan.and_then(|plan| plan.steps.iter().position(|step| step.id == todo.id && step.status != status));
            if let Some(at) = step {
                self.set_step(at, status, None);
                self.note_done();
                self.paint();
            }
        }
        let state = &mut self.turn.state;
        state.todos.revision += 1;
        state.todos.items = list.todos;
        let (revision, todo_count) = (state.todos.revision, state.todos.items.len());
        let in_progress = state
            .todos
            .items
            .iter()
            .find(|todo| todo.status == TodoStatus::InProgress)
            .map(|todo| todo.id.clone());
        let answer = json!({"ok": true, "revision": revision, "todoCount": todo_count, "inProgress": in_progress});
        if let Some(open) = state.calls.open.get_mut(position) {
            open.answer = Some(super::escape::plain(&answer.to_string()));
        }
        let words = list.note.unwrap_or_else(|| format!("{todo_count} todos"));
        self.emit(
            Event::TodosUpdated {
                revision,
                todo_count,
                in_progress,
            },
            &words,
        );
    }
}
