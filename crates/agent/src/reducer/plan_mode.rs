//! Plan mode: the same rules over the same turn, with a driver that says which log is written and what is asked next.
//!
//! plan → for each step: carry it out in a log of its own → look at the plan again → … → conclusion. Where the turn stands in that is
//! one value in its state ([`PlanRun`]), changed by [`Reducer::follow_plan`] and by what the model says; calls, gates, limits and the
//! journal are those of every turn.

mod blocks;
mod reflection;
mod reflection_reply;
mod stage;

use std::collections::HashSet;

use serde_json::json;

use crate::domain::{ActionStatus, EffectClass, Message, Notice, Plan, Reflection, Role, StepResult, StepStatus, TurnReason};

use super::calls::call_digest;
use super::end::TurnEnd;
use super::plan::steps::{ProgressReport, plan_standing};
use super::prompt::specs;
use super::prompt::words::Words;
use super::writer::Reducer;
use super::{OpenCall, TurnState};
use crate::domain::foreign::{cut, plain};

pub(super) use blocks::limit;
pub use stage::{PlanRun, Stage};

/// Model calls that one step may take; then it has failed.
pub(super) const STEP_LIMIT: u64 = 16;
/// Bytes of a step's output that the plan keeps; all of it stands in the step's log.
const OUTPUT_CAP: usize = 8 * 1024;
/// Calls that a step's result names, the last ones.
const CALLS: usize = 20;
/// Bytes of one call's arguments, and of what it gave, in a step's result.
const CALL_CAP: usize = 500;

/// What the model is in a stage: a file of `prompts/plan_mode` under a heading of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StageRole {
    pub(super) file: &'static str,
    pub(super) heading: &'static str,
    /// It has tools.
    pub(super) acts: bool,
    /// People read its words.
    pub(super) answers: bool,
}

/// `None` means the turn works in one log.
pub(super) fn part(state: &TurnState) -> Option<StageRole> {
    let part = |file, heading, acts, answers| StageRole {
        file,
        heading,
        acts,
        answers,
    };
    let run = state.run.as_ref()?;
    Some(match run.stage {
        _ if state.in_last_call() => part("conclusion", "CONCLUSION INSTRUCTIONS", false, true),
        Stage::Planning => part("planner", "PLANNER INSTRUCTIONS", true, true),
        Stage::Executing { .. } => part("executor", "EXECUTOR INSTRUCTIONS", true, false),
        Stage::Reflecting { .. } => part("reflector", "REFLECTOR INSTRUCTIONS", false, false),
        Stage::Concluding => part("conclusion", "CONCLUSION INSTRUCTIONS", false, true),
    })
}

/// Does `message` stand in the log of `scope`? What the requester said meanwhile is said to every step.
pub(super) fn belongs(message: &Message, scope: Option<&str>) -> bool {
    let mail = scope.is_some() && message.step.is_none() && message.role == Role::User && message.content.starts_with("<mailbox>\n");
    mail || message.step.as_deref() == scope
}

/// The step that is carried out, by its position.
pub(super) fn executing(state: &TurnState) -> Option<usize> {
    let Some(Stage::Executing { step }) = state.run.as_ref().map(|run| &run.stage) else {
        return None;
    };
    state.plan.as_ref()?.steps.iter().position(|known| known.id == *step)
}

/// Why a report is not taken from the model that carries out a step.
pub(super) fn breach(state: &TurnState, words: Words<'_>, report: &ProgressReport) -> Option<String> {
    let present = executing(state)?;
    if report.all {
        return Some(words.answer("rule.plan_status", json!({})));
    }
    report
        .step
        .filter(|at| *at != present)
        .map(|_| words.answer("rule.other_step", json!({"step": present + 1})))
}

impl Reducer<'_> {
    /// The position of the step that is carried out.
    pub(super) fn executing(&self) -> Option<usize> {
        executing(&self.turn.state)
    }

    /// Ids of steps that have a log, in whatever version of the plan they were begun.
    pub(super) fn logs(&self) -> HashSet<String> {
        self.turn.log.iter().filter_map(|message| message.step.clone()).collect()
    }

    /// A call of the model was made for the step that is carried out.
    pub(super) fn count_call(&mut self) {
        if let Some(run) = self
            .turn
            .state
            .run
            .as_mut()
            .filter(|run| matches!(run.stage, Stage::Executing { .. }))
        {
            run.used += 1;
        }
    }

    /// Before the model is asked: a plan that is in force is begun, a step past its limit has failed.
    pub(super) fn follow_plan(&mut self) {
        let Some(run) = &self.turn.state.run else { return };
        match run.stage {
            Stage::Planning if self.turn.state.plan.is_some() && !self.turn.state.review_pending() => self.next_step(),
            Stage::Executing { .. } if run.used >= STEP_LIMIT => {
                let words = self.ours().answer("step.limit", json!({"limit": STEP_LIMIT}));
                self.end_step(StepStatus::Failed, &words);
            }
            Stage::Planning | Stage::Executing { .. } | Stage::Reflecting { .. } | Stage::Concluding => {}
        }
    }

    /// Begins the first step that waits; without one the turn comes to its conclusion.
    fn next_step(&mut self) {
        let plan = self.turn.state.plan.as_ref().filter(|plan| !plan.done);
        let next = plan.and_then(|plan| plan.steps.iter().position(|step| step.status == StepStatus::Pending));
        let Some(at) = next else { return self.conclude() };
        self.set_step(at, StepStatus::InProgress, None);
        let words = self.template("blocks/step.md");
        let state = &mut self.turn.state;
        let (Some(plan), Some(run)) = (&state.plan, &mut state.run) else {
            return;
        };
        let Some(step) = plan.steps.get(at) else { return };
        *run = PlanRun {
            stage: Stage::Executing { step: step.id.clone() },
            ..PlanRun::default()
        };
        state.replies.empty = 0;
        let brief = blocks::brief(&words, &state.task, plan, at);
        self.append(Message::text(Role::User, brief));
        self.repaint_plan();
    }

    /// Words instead of calls end the step: they are what came of it.
    pub(super) fn step_said(&mut self, text: &str) {
        if text.is_empty() {
            self.end_step(StepStatus::Failed, &self.our_answer("step.silent"));
        } else {
            self.end_step(StepStatus::Completed, text);
        }
        self.ask_model();
    }

    /// `plan_progress` from within the step.
    pub(super) fn step_reported(&mut self, report: &ProgressReport) {
        let recorded = self.our_answer("step.recorded");
        if let Some(open) = self.turn.state.calls.open.first_mut() {
            open.answer = Some(recorded);
        }
        self.close_batch(false);
        let silent = if report.status == StepStatus::Completed {
            "step.done"
        } else {
            "step.no_reason"
        };
        let words = report.summary.clone().unwrap_or_else(|| self.our_answer(silent));
        self.end_step(report.status, &words);
        self.ask_model();
    }

    /// The step is over; the plan is looked at again, or goes on.
    fn end_step(&mut self, status: StepStatus, words: &str) {
        let Some(at) = self.executing() else { return };
        let result = self.step_result(words);
        self.set_step(at, status, None);
        if let Some(step) = self.turn.state.plan.as_mut().and_then(|plan| plan.steps.get_mut(at)) {
            if status == StepStatus::Failed {
                step.error = Some(cut(words, OUTPUT_CAP));
                step.result = (!result.tool_calls.is_empty()).then(|| StepResult {
                    output: String::new(),
                    ..result
                });
            } else {
                step.error = None;
                step.result = Some(result);
            }
        }
        self.note_done();
        self.repaint_plan();
        let reflects = match self.turn.state.policy.reflection {
            Reflection::PerStep => true,
            Reflection::OnFailure => status == StepStatus::Failed,
            Reflection::Off => false,
        };
        if reflects { self.reflect(at) } else { self.next_step() }
    }

    /// What the present step did since its last brief, bounded.
    fn step_result(&self, words: &str) -> StepResult {
        let scope = self.turn.state.scope();
        let log: Vec<&Message> = self.turn.log.iter().filter(|message| message.step.as_deref() == scope).collect();
        let begin = log.iter().rposition(|message| message.role == Role::User).unwrap_or(0);
        let calls = log.iter().skip(begin).flat_map(|message| &message.calls);
        let mut calls: Vec<_> = calls.filter(|call| !specs::is_state_tool(&call.name)).cloned().collect();
        calls.drain(..calls.len().saturating_sub(CALLS));
        let given = |id: &str| log.iter().find(|message| message.call_id.as_deref() == Some(id));
        let data = calls.iter().filter_map(|call| {
            let text = cut(&given(&call.id)?.content, CALL_CAP);
            Some((call.id.clone(), text.into()))
        });
        let data = data.collect();
        for call in &mut calls {
            call.arguments = cut(&call.arguments, CALL_CAP);
        }
        StepResult {
            output: cut(words, OUTPUT_CAP),
            tool_calls: calls,
            data,
            executed_at: Some(self.env.now),
        }
    }

    /// Why an open call of a step is not run: the same was answered before, or stands before it, and nothing has changed since.
    pub(super) fn repeated(&self, position: usize) -> Option<String> {
        let state = &self.turn.state;
        let run = state.run.as_ref().filter(|run| matches!(run.stage, Stage::Executing { .. }))?;
        let like = digest_of(state.calls.open.get(position)?);
        let beside = || state.calls.open[..position].iter().any(|other| digest_of(other) == like);
        (run.answered.contains(&like) || beside()).then(|| self.our_answer("call.repeated"))
    }

    /// Remembers which calls of the step were answered, by id. Whatever may have changed something makes every earlier look an old one,
    /// and those beside it, too: they are made first.
    pub(super) fn remember_answered(&mut self, calls: &[String]) {
        let (looks, changes): (Vec<&String>, Vec<&String>) = calls.iter().partition(|id| self.effect_of(id) == EffectClass::Read);
        let state = &mut self.turn.state;
        let Some(run) = state.run.as_mut().filter(|run| matches!(run.stage, Stage::Executing { .. })) else {
            return;
        };
        if !changes.is_empty() {
            run.answered.clear();
        }
        let last = if changes.is_empty() { looks } else { changes };
        let answered = |call: &&OpenCall| call.status == ActionStatus::Executed && last.contains(&&call.call.id);
        run.answered.extend(state.calls.open.iter().filter(answered).map(digest_of));
    }

    /// A person said something: what was looked at before may be different now.
    pub(super) fn forget_answered(&mut self) {
        if let Some(run) = &mut self.turn.state.run {
            run.answered.clear();
        }
    }

    /// The last thing asked of the model: what came of the whole.
    fn conclude(&mut self) {
        let words = self.template("blocks/conclude.md");
        let state = &mut self.turn.state;
        state.run = Some(PlanRun {
            stage: Stage::Concluding,
            ..PlanRun::default()
        });
        state.replies.empty = 0;
        let block = state.plan.as_ref().map(|plan| blocks::conclusion(&words, plan)).unwrap_or_default();
        self.append(Message::text(Role::System, block));
        self.repaint_plan();
    }

    /// The conclusion is the answer.
    pub(super) fn concluded(&mut self, text: &str) {
        if text.is_empty() {
            self.turn.state.replies.empty += 1;
            if self.turn.state.replies.empty < 2 {
                return self.ask_model();
            }
        } else {
            self.record(text, &[], None);
        }
        // A model that has nothing to say about it leaves the plan to speak for itself.
        let standing = plan_standing(&self.turn.state);
        let text = if text.is_empty() { &standing } else { text };
        let problem = text.is_empty().then_some(Notice::NothingToSay {});
        self.finish(TurnEnd::completed(TurnReason::FinalAnswer, text).problem(problem));
    }

    /// Replaces the stage, and says so in the turn's own log.
    fn enter_stage(&mut self, stage: Stage, block: String) {
        self.turn.state.run = Some(PlanRun {
            stage,
            ..PlanRun::default()
        });
        self.append(Message::text(Role::System, block));
    }

    /// What the model said of the plan, for its own log.
    fn append_reply(&mut self, text: &str) {
        if !text.is_empty() {
            self.append(Message::text(Role::Assistant, plain(text)));
        }
    }
}

/// Read as JSON: blanks and the order of members make no other call.
fn digest_of(open: &OpenCall) -> String {
    let arguments = serde_json::from_str(&open.call.arguments).unwrap_or_default();
    call_digest(&open.call.name, &arguments)
}

/// The position of a step by its id.
fn position(plan: &Plan, id: &str) -> Option<usize> {
    plan.steps.iter().position(|step| step.id == id)
}
