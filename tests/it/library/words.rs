//! Words and stops that reach a task while it runs; tools and names that no model could be offered.

use std::sync::{Arc, OnceLock};

use countersign_agent::domain::{EffectClass, Scope, ToolSpec, TurnStatus};
use countersign_agent::engine::{Agent, BuildError, Notebook, Timings};
use countersign_agent::model::BoxFuture;
use countersign_agent::tools::{CallHandle, Tool, ToolError, ToolOutput};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::time::Duration;

use super::played::{Note, Played, agent, calls, ends, said, says};
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

/// `look`, a read during which the requester says more.
#[derive(Debug)]
struct Interrupted(Arc<OnceLock<Notebook>>);

impl Tool for Interrupted {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: String::from("look"),
            description: String::from("looks something up"),
            parameters: json!({"type": "object"}).into(),
            effect: EffectClass::Read,
            scope: Scope::Every,
        }
    }

    fn run<'a>(&'a self, _: &'a Value, _: &'a CallHandle) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        self.0.get().unwrap().say("ann", "and in Greek").unwrap();
        Box::pin(std::future::ready(Ok(ToolOutput::default())))
    }
}

/// design: steering, people come first: words that came during a call of a tool are in the next request, and no request is made without them.
#[tokio::test]
async fn words_during_a_call_are_in_the_next_request() {
    let book = Arc::new(OnceLock::new());
    let model = Played::new(|request| match said(request) {
        0 => calls(request, "look", &json!({})),
        _ => says("In Greek."),
    });
    let agent = Agent::builder(model.clone()).tool(Interrupted(Arc::clone(&book))).build().unwrap();
    let mut task = agent.task("write it");
    assert!(book.set(task.notebook()).is_ok());
    assert_eq!(ends(&mut task).await.answer.as_deref(), Some("In Greek."));
    let asked = model.asked.lock().unwrap();
    let heard = |at: usize| asked[at].messages.iter().any(|message| message.content.contains("and in Greek"));
    assert_eq!((asked.len(), heard(1)), (2, true));
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
