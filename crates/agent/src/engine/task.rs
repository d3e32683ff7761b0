//! One task of an [`Agent`](super::Agent): executed until it waits for a person or ends, stored and restored as a value.

use std::fmt;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::JournalError;
use super::drive::{Engine, RunEnd};
use super::journal::Journal as _;
use super::notebook::{Notebook, NotebookPage, OpenGate, RestoreError, TaskError};
use crate::domain::{Clock, Message, Plan, SignalKind, Step, TurnReason, TurnStatus};
use crate::reducer::{Next, open_steps};

/// Where [`Task::execute`] left the task.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It waits for a person at this gate. Decide it (see [`Notebook::decide`]) and execute the task again.
    Waits(Box<OpenGate>),
    /// It is over.
    Ended(Ending),
}

/// How a task ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// Completed, failed or cancelled.
    pub status: TurnStatus,
    /// Why.
    pub reason: TurnReason,
    /// Its last words; none when there are none (stopped, failed).
    pub answer: Option<String>,
    /// Steps of the plan that are not done, as people read them.
    pub open_steps: Vec<String>,
    /// What failed, in the words of the model's server or ours: set with [`TurnReason::ModelError`], without keys.
    pub error: Option<String>,
}

impl Ending {
    /// The last words of a task that was completed.
    ///
    /// # Errors
    /// [`TaskFailed`] when it failed or was stopped: it has no answer then.
    pub fn into_answer(self) -> Result<String, TaskFailed> {
        match self.status {
            TurnStatus::Completed => Ok(self.answer.unwrap_or_default()),
            TurnStatus::Queued | TurnStatus::Running | TurnStatus::Paused | TurnStatus::Failed | TurnStatus::Cancelled => {
                Err(TaskFailed(Box::new(self)))
            }
        }
    }
}

/// A task ended without an answer: how, and what failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskFailed(Box<Ending>);

impl TaskFailed {
    /// How it ended.
    #[must_use]
    pub fn ending(&self) -> &Ending {
        &self.0
    }
}

impl fmt::Display for TaskFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the task ended as {}: {}", self.0.status.as_str(), self.0.reason.as_str())?;
        match &self.0.error {
            Some(error) => write!(f, " ({error})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for TaskFailed {}

/// One task: what was asked, how far it is, and the agent that carries it out.
///
/// There is one owner, who executes it; others speak to it through a clone of its [`Task::notebook`].
pub struct Task {
    notebook: Notebook,
    /// What carries it out. `None` means it was only read.
    engine: Option<Engine>,
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task").field("notebook", &self.notebook).finish_non_exhaustive()
    }
}

impl Task {
    pub(super) fn new(notebook: Notebook, engine: Option<Engine>) -> Self {
        Self { notebook, engine }
    }

    /// Reads what [`Task::serialize`] gave, to be looked at. It has no agent, so it cannot be executed before [`Agent::attach`](super::Agent::attach).
    ///
    /// # Errors
    /// [`RestoreError::VersionMismatch`] when a newer version wrote it; [`RestoreError::Damaged`].
    pub fn deserialize(stored: &str) -> Result<Self, RestoreError> {
        let page = NotebookPage::decode(stored)?;
        Ok(Self::new(Notebook::new(page, Clock::system()), None))
    }

    /// The task as JSON, with a format version: everything but the agent. Holds what was said and what tools gave, and no key.
    #[must_use]
    pub fn serialize(&self) -> String {
        self.notebook.serialize()
    }

    /// Has `keep` store the task's JSON at every change, before the change counts: what was kept last is where a task goes on
    /// that [`Agent::restore`](super::Agent::restore)s it. An error of `keep` stops the task at that point; only what came
    /// of a write call is offered to it again and again, for that has happened and must not be forgotten. `keep` must not use the notebook.
    #[must_use]
    pub fn kept_by(self, keep: impl Fn(&str) -> std::io::Result<()> + Send + Sync + 'static) -> Self {
        self.notebook.set_keeper(Arc::new(keep));
        self
    }

    /// Messages of earlier tasks that the model should know, oldest first; they stand between the system prompt and this task.
    /// Without effect once the task has begun.
    #[must_use]
    pub fn with_history(self, history: Vec<Message>) -> Self {
        self.notebook.prepare(|page| {
            if page.state.next == Next::Start {
                page.history = history;
            }
        });
        self
    }

    /// Whose task it is, for cards and the model; `user` unless told. Without effect once the task has begun.
    #[must_use]
    pub fn asked_by(self, requester: &str) -> Self {
        self.notebook.prepare(|page| {
            if page.state.next == Next::Start {
                requester.clone_into(&mut page.state.requester);
            }
        });
        self
    }

    /// Carries the task out until it waits for a person or ends. Dropping the future is like a crash: the task goes on where it was
    /// last written, and a write call that was under way is asked about.
    ///
    /// # Errors
    /// [`TaskError`].
    pub async fn execute(&mut self) -> Result<Outcome, TaskError> {
        let mut turn = self.notebook.turn();
        if turn.state.status.is_final() {
            return Err(TaskError::AlreadyExecuted(turn.state.status));
        }
        let engine = self.engine.as_ref().ok_or(TaskError::NotInitialized)?;
        loop {
            let left = engine.drive_settled(&self.notebook, &mut turn, &CancellationToken::new()).await?;
            match (left, self.notebook.gate()) {
                // Somebody was faster than we could say that it waits.
                (RunEnd::Parked(_), _) if self.notebook.has_news() => {}
                (RunEnd::Parked(_), Some(gate)) => return Ok(Outcome::Waits(Box::new(gate))),
                (RunEnd::Parked(at), None) if turn.state.outage.is_some() => {
                    // Words are read at once; otherwise the model's server is asked again when its time has come.
                    tokio::select! {
                        () = tokio::time::sleep(at.since(engine.clock.now())) => (),
                        () = self.notebook.heard(&[SignalKind::Cancel, SignalKind::Supersede, SignalKind::Steer]) => (),
                    }
                }
                (RunEnd::Parked(_), None) => return Err(JournalError::Corrupt(String::from("it waits at no gate")).into()),
                (RunEnd::Finished, _) => {
                    return Ok(Outcome::Ended(Ending {
                        status: turn.state.status,
                        reason: turn.state.reason.unwrap_or(TurnReason::FinalAnswer),
                        open_steps: open_steps(&turn.state),
                        error: turn.state.error,
                        answer: turn.state.answer,
                    }));
                }
            }
        }
    }

    /// Its journal: what was said and done so far, and the way to speak to the task while it waits or runs.
    #[must_use]
    pub fn notebook(&self) -> Notebook {
        self.notebook.clone()
    }

    /// The plan, once there is one: a copy.
    #[must_use]
    pub fn plan(&self) -> Option<Plan> {
        self.notebook.turn().state.plan
    }

    /// The plan's steps, in order: copies. How far the task is, is for you to count.
    #[must_use]
    pub fn steps(&self) -> Vec<Step> {
        self.plan().map(|plan| plan.steps).unwrap_or_default()
    }
}
