//! Words and stops that reach a task while it runs; tools and names that no model could be offered.

use std::sync::Arc;

use countersign_agent::domain::{EffectClass, Scope, ToolSpec, TurnStatus};
use countersign_agent::engine::{Agent, BuildError, Timings};
use countersign_agent::model::BoxFuture;
use countersign_agent::tools::{CallHandle, Tool, ToolError, ToolOutput};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::time::Duration;

use super::played::{Note, Played, agent, ends, says};
use crate::support::api::eventually;

fn held() -> Played {
    Played {
        may: Arc::new(Semaphore::new(0)),
        ..Played::new(|request| {
            let heard = request.messages.iter().any(|message| message.content.contains("and in Greek"));
            says(if heard { "In Greek." } else { "In Latin." })
        })
    }
}

/// design: steering, words that come while the model thinks are worth a new call: the answer knows them.
#[tokio::test]
async fn words_reach_a_task_that_runs() {
    let (model, note) = (held(), Note::new(EffectClass::Read));
    let mut task = agent(&model, &note).build().unwrap().task("write it");
    let book = task.notebook();
    let running = tokio::spawn(async move { ends(&mut task).await });
    eventually("the model is asked", || async {
        (!model.asked.lock().unwrap().is_empty()).then_some(())
    })
    .await;
    book.say("ann", "and in Greek").unwrap();
    eventually("it is asked anew", || async {
        (model.asked.lock().unwrap().len() > 1).then_some(())
    })
    .await;
    model.may.add_permits(10);
    assert_eq!(running.await.unwrap().answer.as_deref(), Some("In Greek."));
}

/// design: stop, it reaches a task that waits for the model.
#[tokio::test]
async fn a_stop_reaches_a_task_that_runs() {
    let (model, note) = (held(), Note::new(EffectClass::Read));
    let mut task = agent(&model, &note).build().unwrap().task("write it");
    let book = task.notebook();
    let running = tokio::spawn(async move { ends(&mut task).await });
    eventually("the model is asked", || async {
        (!model.asked.lock().unwrap().is_empty()).then_some(())
    })
    .await;
    book.stop("ann").unwrap();
    assert_eq!(running.await.unwrap().status, TurnStatus::Cancelled);
}

#[derive(Debug)]
struct Odd(ToolSpec);

impl Tool for Odd {
    fn spec(&self) -> ToolSpec {
        self.0.clone()
    }

    fn run<'a>(&'a self, _: &'a Value, _: &'a CallHandle) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(std::future::ready(Ok(ToolOutput::default())))
    }
}

/// S2-14: a tool that no model could be offered, or that would take the place of another, is refused when the agent is built.
#[test]
fn tools_that_cannot_be_offered() {
    let spec = |name: &str| ToolSpec {
        name: name.to_owned(),
        description: String::new(),
        parameters: json!({"type": "object"}).into(),
        effect: EffectClass::Read,
        scope: Scope::Every,
    };
    let build = |spec: ToolSpec| {
        let builder = Agent::builder(Played::new(|_| says("")));
        builder
            .timings(Timings {
                stop_grace: Duration::ZERO,
                ..Timings::default()
            })
            .tool(Odd(spec))
            .build()
    };
    assert!(build(spec("look-up_2")).is_ok());
    for name in ["", "look up", "plan.it", &"x".repeat(65)] {
        assert!(matches!(build(spec(name)), Err(BuildError::Name(_))), "{name}");
    }
    assert!(matches!(build(spec("plan")), Err(BuildError::Taken(_))));
    let twice = Agent::builder(Played::new(|_| says("")))
        .tool(Odd(spec("look")))
        .tool(Odd(spec("look")));
    assert!(matches!(twice.build(), Err(BuildError::Taken(_))));
    let state = ToolSpec {
        effect: EffectClass::State,
        scope: Scope::Every,
        ..spec("look")
    };
    assert!(matches!(build(state), Err(BuildError::Effect(_))));
    let listed = ToolSpec {
        parameters: json!(["text"]).into(),
        ..spec("look")
    };
    assert!(matches!(build(listed), Err(BuildError::Parameters(_))));
}
