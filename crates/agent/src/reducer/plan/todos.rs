//! `write_todos`: the model's own list beside the plan. It never changes a digest or a grant.

use serde_json::{Value, json};

use crate::domain::{Event, Step, StepStatus, Todo, TodoStatus};

use crate::reducer::TurnState;
use crate::reducer::prompt::specs::todos_schema;
use crate::reducer::reply::arguments::{own_arguments, text_member};
use crate::reducer::writer::Reducer;

/// The whole list, as one call replaces it.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::reducer) struct TodosCall {
    todos: Vec<Todo>,
    note: Option<String>,
}

impl TodosCall {
    pub(in crate::reducer) fn read(arguments_text: &str) -> Result<Self, String> {
        let map = own_arguments(arguments_text, &todos_schema())?;
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
            note: text_member(&map, "note"),
        })
    }

    /// Would it complete a step of the plan?
    pub(in crate::reducer) fn completes_any(&self, steps: &[Step]) -> bool {
        self.todos.iter().any(|todo| {
            todo.status == TodoStatus::Completed && steps.iter().any(|step| step.id == todo.id && step.status != StepStatus::Completed)
        })
    }
}

/// Does the list tell how the plan's steps stand? In plan mode it is one step's own, and the driver keeps the plan; of a plan that waits for
/// its approval no step can have been carried out.
pub(in crate::reducer) fn mirrors(state: &TurnState) -> bool {
    state.run.is_none() && !state.review_pending()
}

impl Reducer<'_> {
    /// Replaces the list and mirrors the status of equal ids to the plan's steps.
    pub(in crate::reducer) fn write_todos(&mut self, position: usize, list: TodosCall) {
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
                self.repaint_plan();
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
            open.answer = Some(crate::domain::foreign::plain(&answer.to_string()));
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
