//! The turn's own tools: what their arguments mean, and `clarify`, `request_user`, `plan_progress`.

use serde_json::{Map, Value, json};

use crate::domain::{Event, GateKind, Outbound, Plan, QuestionCard, Step as PlanStep, StepResult, StepStatus};

use super::compose;
use super::escape::{one_line, plain};
use super::finish::settled;
use super::rules::Asked;
use super::schema;
use super::specs::{clarify_schema, progress_schema, question_schema};
use super::step::Step;
use super::words::Words;
use super::{TurnState, gates, todos};

/// Arguments of a state tool; a `run_id` of the model's own making is ignored.
pub(super) fn arguments(text: &str, schema: &Value) -> Result<Map<String, Value>, String> {
    schema::arguments(text, schema, &["run_id"])
}

/// Text of member `name`; blank counts as left out.
pub(super) fn text(map: &Map<String, Value>, name: &str) -> Option<String> {
    map.get(name)
        .and_then(Value::as_str)
        .map(str::trim)
        .filter(|text| !text.is_empty())
        .map(str::to_owned)
}

/// `clarify`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Task {
    goal: String,
    question: Option<String>,
}

impl Task {
    pub(super) fn read(arguments_text: &str) -> Result<Self, String> {
        let map = arguments(arguments_text, &clarify_schema())?;
        let goal = text(&map, "task_goal_ui").ok_or("`task_goal_ui` is blank")?;
        let asks = map.get("needs_user_input").and_then(Value::as_bool).unwrap_or(false);
        let question = text(&map, "question_to_user").filter(|_| asks);
        if asks && question.is_none() {
            return Err(String::from("`question_to_user` is required with needs_user_input"));
        }
        Ok(Self { goal, question })
    }
}

/// `request_user`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Question {
    message: String,
    title: Option<String>,
    reason: Option<String>,
}

impl Question {
    pub(super) fn read(arguments_text: &str) -> Result<Self, String> {
        let map = arguments(arguments_text, &question_schema())?;
        Ok(Self {
            message: text(&map, "message").ok_or("`message` is blank")?,
            title: text(&map, "title"),
            reason: text(&map, "reason"),
        })
    }
}

/// `plan_progress`, with the steps found in the plan (by position).
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PlanReport {
    /// The step that ended.
    pub(super) step: Option<usize>,
    /// How it ended.
    pub(super) status: StepStatus,
    pub(super) summary: Option<String>,
    next: Option<usize>,
    /// The whole plan is done.
    pub(super) all: bool,
}

impl PlanReport {
    /// `present`: the step that is carried out, by its position (plan mode).
    pub(super) fn read(arguments_text: &str, plan: Option<&Plan>, present: Option<usize>) -> Result<Self, String> {
        let map = arguments(arguments_text, &progress_schema())?;
        let steps = plan.map_or(&[][..], |plan| &plan.steps);
        // By its id or its words. Who carries out one step is told its number and no ids, so there the number comes first.
        let find = |wanted: &str| {
            let numbered = present.filter(|at| wanted == (at + 1).to_string());
            let known = numbered.or_else(|| steps.iter().position(|step| step.id == wanted));
            known.or_else(|| steps.iter().position(|step| step.content == wanted))
        };
        let step_id = text(&map, "step_id");
        let step = step_id.as_deref().and_then(find);
        if let (Some(id), None, Some(_)) = (&step_id, step, plan) {
            let known: Vec<_> = steps.iter().map(|step| step.id.as_str()).collect();
            if let Some(at) = present {
                return Err(format!("there is no step `{}`; you carry out step {}", one_line(id, 80), at + 1));
            }
            return Err(format!("there is no step `{}`; steps: {}", one_line(id, 80), known.join(", ")));
        }
        let status = match map.get("step_status").and_then(Value::as_str) {
            Some("failed") => StepStatus::Failed,
            Some("skipped") => StepStatus::Skipped,
            Some(_) | None => StepStatus::Completed,
        };
        Ok(Self {
            step,
            status,
            summary: text(&map, "step_summary"),
            next: text(&map, "next_step").as_deref().and_then(find),
            all: map.contains_key("plan_status"),
        })
    }
}

/// Does the call only keep books? One that completes a step or the plan is progress.
pub(super) fn only_bookkeeping(state: &TurnState, asked: &Asked) -> bool {
    let steps = state.plan.as_ref().map_or(&[][..], |plan| &plan.steps);
    match asked {
        Asked::Todos(list) => !(todos::mirrors(state) && list.completes_any(steps)),
        Asked::Progress(report) => {
            // A report in plan mode is about the step that is carried out, named or not.
            let ended = report.step.and_then(|at| steps.get(at));
            let completes = ended.is_some_and(|step| step.status != report.status) || state.run.is_some();
            let finishes = report.all && state.plan.as_ref().is_some_and(|plan| !plan.done);
            !(completes || finishes)
        }
        Asked::Plan(_) | Asked::Clarify(_) | Asked::Question(_) | Asked::Action { .. } => false,
    }
}

impl Step<'_> {
    pub(super) fn clarify(&mut self, task: Task) {
        let state = &mut self.turn.state;
        state.clarified_version = state.plan.as_ref().map(|plan| plan.version);
        match task.question {
            Some(question) => self.ask(None, question, None),
            None => {
                let goal = plain(&one_line(&task.goal, 200));
                self.answer_only(self.ours().answer("plan.task", json!({"goal": goal})));
            }
        }
    }

    pub(super) fn question(&mut self, question: Question) {
        self.ask(question.title, question.message, question.reason);
    }

    /// Row 5: the call stays open until a person answers it.
    fn ask(&mut self, title: Option<String>, question: String, reason: Option<String>) {
        let Some(open) = self.turn.state.calls.open.first() else { return };
        let call_id = open.call.id.clone();
        let digest = gates::digest(&[&call_id, &question]);
        let state = &self.turn.state;
        let (requester, group, ttl_ms) = (state.requester.clone(), state.group, state.policy.ttl_ms);
        self.pause(GateKind::Question, digest, Some(call_id), None, |gate_id| {
            Outbound::QuestionCard(QuestionCard {
                gate_id,
                requester,
                title,
                question,
                reason,
                group,
                ttl_ms,
                state: crate::domain::CardState::Open { votes: 0 },
            })
        });
    }

    pub(super) fn plan_progress(&mut self, report: &PlanReport) {
        if self.executing().is_some() {
            return self.step_reported(report);
        }
        let Some(before) = self.turn.state.plan.clone() else {
            return self.answer_only(String::new());
        };
        if let Some(at) = report.step {
            self.set_step(at, report.status, report.summary.as_deref());
        }
        if report.all {
            self.complete_plan();
        } else {
            self.begin_step(report.next);
        }
        self.note_done();
        if self.turn.state.plan.as_ref() != Some(&before) {
            self.paint();
        }
        let words = self
            .turn
            .state
            .plan
            .as_ref()
            .map(|plan| acknowledgement(plan, report, self.ours()))
            .unwrap_or_default();
        self.answer_only(words);
    }

    /// The model's word that everything is done counts for every step that is not known to have failed.
    fn complete_plan(&mut self) {
        let steps = self.turn.state.plan.as_ref().map_or(0, |plan| plan.steps.len());
        for at in 0..steps {
            let status = self
                .turn
                .state
                .plan
                .as_ref()
                .and_then(|plan| plan.steps.get(at))
                .map(|step| step.status);
            if matches!(status, Some(StepStatus::Pending | StepStatus::InProgress)) {
                self.set_step(at, StepStatus::Completed, None);
            }
        }
        if let Some(plan) = &mut self.turn.state.plan {
            plan.done = true;
            plan.revision += 1;
            let event = Event::PlanProgress {
                step_id: None,
                status: StepStatus::Completed,
            };
            self.emit(event, "Plan completed");
        }
    }

    /// Changes one step's status, if it is another one; `words`: what came of it, or what went wrong.
    pub(super) fn set_step(&mut self, at: usize, status: StepStatus, words: Option<&str>) {
        let now = self.env.now;
        let Some(plan) = &mut self.turn.state.plan else { return };
        let Some(step) = plan.steps.get_mut(at) else { return };
        match words {
            Some(words) if status == StepStatus::Failed => step.error = Some(words.to_owned()),
            Some(words) => step.result = Some(StepResult::said(words, now)),
            None => {}
        }
        if step.status == status {
            return;
        }
        step.status = status;
        plan.revision += 1;
        let words = format!("{} {}: {}", step.id, compose::status_word(status), step.content);
        let step_id = Some(step.id.clone());
        self.emit(Event::PlanProgress { step_id, status }, &words);
    }

    /// Marks the step that is worked on now: `wanted`, else the first that waits, unless one is under way.
    pub(super) fn begin_step(&mut self, wanted: Option<usize>) {
        let Some(plan) = &self.turn.state.plan else { return };
        let waits = |step: &PlanStep| step.status == StepStatus::Pending;
        let under_way = plan.steps.iter().any(|step| step.status == StepStatus::InProgress);
        let next = match wanted {
            Some(at) => plan.steps.get(at).filter(|step| waits(step)).map(|_| at),
            None if under_way => None,
            None => plan.steps.iter().position(waits),
        };
        if let Some(at) = next {
            self.set_step(at, StepStatus::InProgress, None);
        }
    }

    /// A plan is done when every step is completed or skipped by tool.
    pub(super) fn note_done(&mut self) {
        if let Some(plan) = &mut self.turn.state.plan
            && !plan.done
            && plan.steps.iter().all(|step| settled(step.status))
        {
            plan.done = true;
            plan.revision += 1;
        }
    }

    /// Answers the only call of the batch and goes on.
    pub(super) fn answer_only(&mut self, words: String) {
        if let Some(open) = self.turn.state.calls.open.first_mut() {
            open.answer = Some(words);
        }
        self.close_batch(true);
        self.go_on();
    }
}

/// Where the model stands, in one or two sentences.
fn acknowledgement(plan: &Plan, report: &PlanReport, ours: Words<'_>) -> String {
    let next = [StepStatus::InProgress, StepStatus::Pending]
        .into_iter()
        .find_map(|status| plan.steps.iter().find(|step| step.status == status));
    let then = match next {
        _ if plan.done => ours.answer("progress.completed", json!({})),
        Some(step) => ours.answer("progress.next", json!({"id": step.id, "content": one_line(&step.content, 200)})),
        None => ours.answer("progress.nothing_left", json!({})),
    };
    let Some(step) = report.step.and_then(|at| plan.steps.get(at)) else {
        return plain(&then);
    };
    let done = plan.steps.iter().filter(|step| settled(step.status)).count();
    let status = compose::status_word(step.status);
    let values = json!({"id": step.id, "status": status, "done": done, "count": plan.steps.len(), "then": then});
    plain(&ours.answer("progress.recorded", values))
}
