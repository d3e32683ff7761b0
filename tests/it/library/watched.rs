//! Somebody who watches a task through the builder, and may object.

use std::sync::{Arc, Mutex};

use countersign_agent::domain::{EffectClass, Plan, Step, StepStatus, TurnReason, TurnStatus};
use countersign_agent::engine::{HookError, Notebook, Observer, Verdict};
use countersign_agent::model::BoxFuture;
use countersign_agent::reducer::{PlanEnding, Turn};

use super::played::{Note, Played, agent, ends, three_notes, waits};

/// Writes down what it is told, and objects to one line.
#[derive(Debug, Default)]
struct Watch {
    lines: Mutex<Vec<String>>,
    objects_to: Option<&'static str>,
    /// Through which the requester speaks at the moment of the objection.
    book: Mutex<Option<Notebook>>,
}

impl Watch {
    fn note(&self, line: String) -> BoxFuture<'_, Result<(), HookError>> {
        let objects = self.objects_to == Some(line.as_str());
        if let Some(book) = self.book.lock().unwrap().as_ref().filter(|_| objects) {
            book.say("ann", "wait, one more thing").unwrap();
        }
        self.lines.lock().unwrap().push(line);
        Box::pin(std::future::ready(if objects { Err("not this one".into()) } else { Ok(()) }))
    }
}

impl Observer for Watch {
    fn plan_created<'a>(&'a self, _: &'a Turn, plan: &'a Plan) -> BoxFuture<'a, Result<(), HookError>> {
        self.note(format!("plan of {}", plan.steps.len()))
    }

    fn step_started<'a>(&'a self, _: &'a Turn, step: &'a Step) -> BoxFuture<'a, Result<(), HookError>> {
        self.note(format!("{} begins", step.content))
    }

    fn step_completed<'a>(&'a self, _: &'a Turn, step: &'a Step) -> BoxFuture<'a, Result<(), HookError>> {
        self.note(format!("{} is over: {}", step.content, step.status == StepStatus::Completed))
    }

    fn plan_completed<'a>(&'a self, _: &'a Turn, ending: &'a PlanEnding) -> BoxFuture<'a, Result<(), HookError>> {
        self.note(format!("the end: {}", ending.status.as_str()))
    }
}

/// S2-7: an observer of the builder is told of a task from its plan to its end.
#[tokio::test]
async fn a_task_is_watched() {
    let (model, note) = (Played::new(three_notes), Note::new(EffectClass::Write));
    let watch = Arc::new(Watch::default());
    let builder = agent(&model, &note).plan_mode().observer(Arc::<Watch>::clone(&watch));
    let mut task = builder.build().unwrap().task("three notes");
    let gate = waits(&mut task).await;
    task.notebook().decide(&gate.id, "ann", Verdict::Approve).unwrap();
    ends(&mut task).await;
    let lines = watch.lines.lock().unwrap().clone();
    let steps = ["first", "second", "third"].map(|step| [format!("{step} begins"), format!("{step} is over: true")]);
    let mut told = vec![String::from("plan of 3")];
    told.extend(steps.into_iter().flatten());
    told.push(String::from("the end: completed"));
    assert_eq!(lines, told);
}

/// S2-7: an objection ends the task as failed, for the hook, even if the requester speaks at that moment; what ran stays told.
#[tokio::test]
async fn an_objection_ends_the_task() {
    let (model, note) = (Played::new(three_notes), Note::new(EffectClass::Write));
    let watch = Arc::new(Watch {
        objects_to: Some("first is over: true"),
        ..Watch::default()
    });
    let builder = agent(&model, &note).plan_mode().observer(Arc::<Watch>::clone(&watch));
    let mut task = builder.build().unwrap().task("three notes");
    *watch.book.lock().unwrap() = Some(task.notebook());
    let gate = waits(&mut task).await;
    task.notebook().decide(&gate.id, "ann", Verdict::Approve).unwrap();
    let ending = ends(&mut task).await;
    assert_eq!((ending.status, ending.reason), (TurnStatus::Failed, TurnReason::Hook));
    assert_eq!(note.kept(), ["1"], "what ran before has run, and nothing runs after");
}
