//! What an observer of a turn is told of one step of the reducer, found by comparing the turn before and after it.
//!
//! The reducer's rules tell observers nothing, so no path can forget to. Observers are asked before the step is journaled: an objection
//! undoes the step and ends the turn (`Input::HookFailed`). After a crash an event may be told again. Only a successful end can be objected to.

use crate::domain::{ChangeKind, Message, Plan, Role, Step, StepStatus, TurnReason, TurnStatus};

use super::{Stage, Turn, TurnState};

/// Something that happened to a turn, as those see it who watch a plan being made and carried out.
#[derive(Clone, Debug, PartialEq)]
pub enum Observed {
    /// The turn has its first plan, of which no step has begun. A later `plan()` changes it: [`Observed::StepsUpdated`].
    PlanCreated(Plan),
    /// Steps are told in another way, came in, went out or stand elsewhere. Taken in order, the changes make the new list of the old one.
    StepsUpdated(Vec<StepChange>),
    /// The step is under way.
    StepStarted(Step),
    /// The step has ended: completed, failed or skipped. One that is skipped may never have begun; one that failed may be tried again.
    StepCompleted(Step),
    /// Something was said.
    Message(PlanMessage),
    /// The turn that had a plan is over, however it ended.
    PlanCompleted(PlanEnding),
}

/// One change of a plan's list of steps.
#[derive(Clone, Debug, PartialEq)]
pub struct StepChange {
    /// What happened to it.
    pub kind: ChangeKind,
    /// Its place (from 0) once this change is made; of a removed step: the place from which it is taken.
    pub at: usize,
    /// The step before; none when it is added.
    pub old: Option<Step>,
    /// The step after; none when it is removed.
    pub new: Option<Step>,
    /// In words: what is to be done, and what was to be done before if that was something else.
    pub description: String,
}

/// What a message is to those who watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageKind {
    /// Words of the model by which it answers.
    Response,
    /// What the model is told by us: briefs, reminders, limits, and what people say.
    System,
    /// A call that the model makes: `NAME ARGUMENTS`.
    Action,
    /// Words of the model on its way: beside its calls, or about the plan.
    Thought,
}

/// Something that was said in a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanMessage {
    /// Who says it, and what for.
    pub kind: MessageKind,
    /// Plan mode: the step to whose log it belongs. `None` means the turn's own.
    pub step_id: Option<String>,
    /// The words as they stand in the log.
    pub content: String,
}

/// How a turn with a plan ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanEnding {
    /// Completed, failed or cancelled.
    pub status: TurnStatus,
    /// Why.
    pub reason: Option<TurnReason>,
    /// The final words, if there are any.
    pub result: Option<String>,
}

/// What those who watch are told of one step: `before` is the turn's state as it was when its log had `logged` messages, `after` the
/// turn as it is now. Told in order, it makes the one of the other: who keeps the plan as created and changes it as told has its steps.
#[must_use]
pub fn observe(before: &TurnState, logged: usize, after: &Turn) -> Vec<Observed> {
    let fresh = after.log.get(logged..).unwrap_or_default();
    let moves = moves(before.plan.as_ref(), after.state.plan.as_ref());
    let begun = |message: &Message| {
        let started = |one: &Observed| matches!(one, Observed::StepStarted(step) if message.step.as_deref() == Some(step.id.as_str()));
        moves.iter().any(started)
    };
    // What the plan has become is told before we tell the model what comes next.
    let follows = |message: &Message| message.role == Role::System || begun(message);
    let (first, then) = fresh.split_at(fresh.iter().position(follows).unwrap_or(fresh.len()));
    let about_the_plan = matches!(before.run.as_ref().map(|run| &run.stage), Some(Stage::Reflecting { .. }));
    let said = |messages: &[Message]| -> Vec<Observed> { messages.iter().flat_map(|message| said(message, about_the_plan)).collect() };
    let mut observed = said(first);
    let then = said(then);
    observed.extend(moves);
    observed.extend(then);
    if after.state.status.is_final() && !before.status.is_final() && after.state.plan.is_some() {
        observed.push(Observed::PlanCompleted(PlanEnding {
            status: after.state.status,
            reason: after.state.reason,
            result: after.state.answer.clone(),
        }));
    }
    observed
}

/// What a tool gave is no message: it stands in the log, and in the step's result.
fn said(message: &Message, about_the_plan: bool) -> Vec<Observed> {
    let one = |kind, content: &str| {
        Observed::Message(PlanMessage {
            kind,
            step_id: message.step.clone(),
            content: content.to_owned(),
        })
    };
    match message.role {
        Role::System | Role::User => vec![one(MessageKind::System, &message.content)],
        Role::Tool => Vec::new(),
        Role::Assistant => {
            let kind = if about_the_plan || !message.calls.is_empty() {
                MessageKind::Thought
            } else {
                MessageKind::Response
            };
            let words = (!message.content.is_empty()).then(|| one(kind, &message.content));
            let calls = message.calls.iter();
            let calls = calls.map(|call| one(MessageKind::Action, &format!("{} {}", call.name, call.arguments)));
            words.into_iter().chain(calls).collect()
        }
    }
}

/// What became of the plan and of its steps.
fn moves(before: Option<&Plan>, after: Option<&Plan>) -> Vec<Observed> {
    let Some(plan) = after.filter(|_| before != after) else {
        return Vec::new();
    };
    let old = before.map_or(&[][..], |plan| &plan.steps);
    let courses: Vec<Course<'_>> = plan.steps.iter().map(|step| Course::of(old, step)).collect();
    let known: Vec<Step> = courses.iter().map(|course| course.known.clone()).collect();
    let mut told = Vec::new();
    if before.is_none() {
        told.push(Observed::PlanCreated(Plan {
            steps: known,
            done: false,
            ..plan.clone()
        }));
    } else {
        let changes = changes(old, &known);
        if !changes.is_empty() {
            told.push(Observed::StepsUpdated(changes));
        }
    }
    // What is under way ends before anything else begins.
    let (under_way, others): (Vec<_>, Vec<_>) = courses.into_iter().partition(|course| course.ends && !course.begins);
    told.extend(under_way.into_iter().chain(others).flat_map(Course::told));
    told
}

/// What one step of the reducer did to a step of the plan.
struct Course<'a> {
    /// The step as it is before it begins or ends: what is different from what it was is an update.
    known: Step,
    begins: bool,
    ends: bool,
    now: &'a Step,
}

impl<'a> Course<'a> {
    fn of(old: &[Step], now: &'a Step) -> Self {
        let old = old.iter().find(|step| step.id == now.id);
        let was = old.map_or(StepStatus::Pending, |step| step.status);
        let ended = matches!(now.status, StepStatus::Completed | StepStatus::Failed | StepStatus::Skipped);
        let ends = ended && was != now.status;
        // What is left out is not begun, and what had ended before is only told to have ended otherwise.
        let begins = match now.status {
            StepStatus::InProgress => was != StepStatus::InProgress,
            StepStatus::Completed | StepStatus::Failed => matches!(was, StepStatus::Pending | StepStatus::Skipped),
            StepStatus::Pending | StepStatus::Skipped => false,
        };
        let known = if ends {
            Step {
                status: was,
                result: old.and_then(|step| step.result.clone()),
                error: old.and_then(|step| step.error.clone()),
                ..now.clone()
            }
        } else if begins {
            Step {
                status: StepStatus::Pending,
                ..now.clone()
            }
        } else {
            now.clone()
        };
        Self { known, begins, ends, now }
    }

    fn told(self) -> Vec<Observed> {
        let mut told = Vec::new();
        if self.begins {
            told.push(Observed::StepStarted(Step {
                status: StepStatus::InProgress,
                ..self.known
            }));
        }
        if self.ends {
            told.push(Observed::StepCompleted(self.now.clone()));
        }
        told
    }
}

/// The changes that make `new` of `old`, in the order in which they are made.
fn changes(old: &[Step], new: &[Step]) -> Vec<StepChange> {
    let mut list: Vec<&Step> = old.iter().collect();
    let mut changes = Vec::new();
    for (at, step) in old.iter().enumerate().rev() {
        if !new.iter().any(|kept| kept.id == step.id) {
            list.remove(at);
            changes.push(StepChange {
                kind: ChangeKind::Removed,
                at,
                old: Some(step.clone()),
                new: None,
                description: step.content.clone(),
            });
        }
    }
    for (at, step) in new.iter().enumerate() {
        let from = list.iter().position(|known| known.id == step.id);
        let known = from.map(|from| list.remove(from));
        list.insert(at.min(list.len()), step);
        if known == Some(step) && from == Some(at) {
            continue;
        }
        changes.push(StepChange {
            kind: if known.is_some() { ChangeKind::Updated } else { ChangeKind::Added },
            at,
            old: known.cloned(),
            new: Some(step.clone()),
            description: match known {
                Some(known) if known.content != step.content => format!("{} → {}", known.content, step.content),
                Some(_) | None => step.content.clone(),
            },
        });
    }
    changes
}
