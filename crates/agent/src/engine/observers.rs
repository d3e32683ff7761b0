//! Observers: parts of an embedding program that watch plans being made and carried out, and may object.

use std::error::Error;
use std::fmt;
use std::future::ready;
use std::sync::Arc;

use tracing::warn;

use crate::domain::{Ids, Plan, Step, TurnStatus};
use crate::model::BoxFuture;
use crate::reducer::{self, Effect, Env, Input, Observed, PlanEnding, PlanMessage, StepChange, Turn};

/// Why an observer objects; it is written to the log only.
pub type HookError = Box<dyn Error + Send + Sync>;

/// Watches turns: each method is told of one thing that happens, in order, and by default does nothing.
///
/// Observers are asked before a step of the turn is journaled, one after the other, and the turn waits for them. An
/// observer knows a step first, and may be told of it again: the step is taken anew after a crash, after a loss of the lease, and when
/// words of the requester come in at its end. The future is dropped when the process has to let go of the turn.
///
/// An error is an objection: the step is not taken, and the turn ends with [`TurnStatus::Failed`] and
/// [`TurnReason::Hook`](crate::domain::TurnReason::Hook) instead. Nothing more runs; a write call that has run by then is named to people. That
/// end is told like any other, so that [`Observer::plan_completed`] may come a second time. Where a turn fails or is cancelled it is
/// too late to object: an error is logged, and the next thing is told.
///
/// `turn` is the turn as it will be after the step: its id, its plan with copies of all steps, its whole log. Several turns are
/// worked on at a time, and each tells its observers by itself.
pub trait Observer: Send + Sync + fmt::Debug {
    /// The turn has its first plan; none of its steps has begun.
    ///
    /// # Errors
    /// An objection.
    fn plan_created<'a>(&'a self, turn: &'a Turn, plan: &'a Plan) -> BoxFuture<'a, Result<(), HookError>> {
        nothing_said(turn, plan)
    }

    /// A turn with a plan is over, however it ended.
    ///
    /// # Errors
    /// An objection; it counts where the turn would have been completed.
    fn plan_completed<'a>(&'a self, turn: &'a Turn, ending: &'a PlanEnding) -> BoxFuture<'a, Result<(), HookError>> {
        nothing_said(turn, ending)
    }

    /// A step is under way.
    ///
    /// # Errors
    /// An objection.
    fn step_started<'a>(&'a self, turn: &'a Turn, step: &'a Step) -> BoxFuture<'a, Result<(), HookError>> {
        nothing_said(turn, step)
    }

    /// A step has ended: completed, failed or skipped.
    ///
    /// # Errors
    /// An objection.
    fn step_completed<'a>(&'a self, turn: &'a Turn, step: &'a Step) -> BoxFuture<'a, Result<(), HookError>> {
        nothing_said(turn, step)
    }

    /// The plan has other steps than before, or tells them in another way. There is at least one change.
    ///
    /// # Errors
    /// An objection.
    fn steps_updated<'a>(&'a self, turn: &'a Turn, changes: &'a [StepChange]) -> BoxFuture<'a, Result<(), HookError>> {
        nothing_said(turn, changes)
    }

    /// Something was said, with or without a plan.
    ///
    /// # Errors
    /// An objection.
    fn message<'a>(&'a self, turn: &'a Turn, message: &'a PlanMessage) -> BoxFuture<'a, Result<(), HookError>> {
        nothing_said(turn, message)
    }
}

fn nothing_said<'a, T: ?Sized>(_: &Turn, _: &T) -> BoxFuture<'a, Result<(), HookError>> {
    Box::pin(ready(Ok(())))
}

/// All who watch, in the order in which they are asked.
#[derive(Clone, Debug, Default)]
pub struct Observers(Vec<Arc<dyn Observer>>);

impl Observers {
    /// These, asked in this order.
    #[must_use]
    pub fn new(observers: Vec<Arc<dyn Observer>>) -> Self {
        Self(observers)
    }

    /// [`reducer::step`], before those who watch: on an objection the turn takes the step that ends it instead.
    pub async fn step(&self, turn: &mut Turn, env: &Env<'_>, input: Input, ids: &Ids) -> Vec<Effect> {
        if self.0.is_empty() {
            return reducer::step(turn, env, input);
        }
        let (before, logged) = (turn.state.clone(), turn.log.len());
        // What has run has run, whatever becomes of the step that reads of it.
        let left = match &input {
            Input::ToolResults { outcomes, .. } => outcomes.clone(),
            _ => Vec::new(),
        };
        let effects = reducer::step(turn, env, input);
        let observed = reducer::observe(&before, logged, turn);
        if matches!(turn.state.status, TurnStatus::Failed | TurnStatus::Cancelled) {
            self.tell_the_end(turn, &observed).await;
            return effects;
        }
        let Err(error) = self.tell(turn, &observed).await else {
            return effects;
        };
        let incident = ids.token()[..8].to_owned();
        warn!(turn.id = turn.state.turn_id, incident, %error, "an observer objects; the turn ends");
        turn.state = before.clone();
        turn.log.truncate(logged);
        let effects = reducer::step(turn, env, Input::HookFailed { incident, left });
        self.tell_the_end(turn, &reducer::observe(&before, logged, turn)).await;
        effects
    }

    async fn tell(&self, turn: &Turn, observed: &[Observed]) -> Result<(), HookError> {
        for one in observed {
            for observer in &self.0 {
                notify(&**observer, turn, one).await?;
            }
        }
        Ok(())
    }

    /// An end that no observer can object to.
    async fn tell_the_end(&self, turn: &Turn, observed: &[Observed]) {
        for one in observed {
            for observer in &self.0 {
                if let Err(error) = notify(&**observer, turn, one).await {
                    warn!(turn.id = turn.state.turn_id, %error, "an observer objects to the end of a turn; it stays as it is");
                }
            }
        }
    }
}

fn notify<'a>(observer: &'a dyn Observer, turn: &'a Turn, one: &'a Observed) -> BoxFuture<'a, Result<(), HookError>> {
    match one {
        Observed::PlanCreated(plan) => observer.plan_created(turn, plan),
        Observed::StepsUpdated(changes) => observer.steps_updated(turn, changes),
        Observed::StepStarted(step) => observer.step_started(turn, step),
        Observed::StepCompleted(step) => observer.step_completed(turn, step),
        Observed::Message(message) => observer.message(turn, message),
        Observed::PlanCompleted(ending) => observer.plan_completed(turn, ending),
    }
}
