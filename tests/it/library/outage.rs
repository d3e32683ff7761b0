//! A model whose server is away: the task waits for it by itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use countersign_agent::domain::{TurnReason, TurnStatus};
use countersign_agent::engine::{Agent, Outcome};
use countersign_agent::model::{BoxFuture, ChatModel, ChatReply, ChatRequest, ModelError};
use tokio::sync::Notify;

use super::played::says;

/// Its server is away for the first requests.
#[derive(Clone, Debug, Default)]
struct Away {
    requests: usize,
    asked: Arc<AtomicUsize>,
    failed: Arc<Notify>,
}

impl ChatModel for Away {
    fn chat<'a>(&'a self, _: &'a ChatRequest) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        Box::pin(async {
            if self.asked.fetch_add(1, Ordering::SeqCst) >= self.requests {
                return Ok(says("done"));
            }
            self.failed.notify_one();
            Err(ModelError::Away {
                why: String::from("no connection"),
                wait: Some(Duration::from_secs(if self.requests == 1 { 0 } else { 600 })),
            })
        })
    }
}

/// interface §10 M: in a program, too, a task waits for the server and goes on, as long as it is told to; a stop ends the wait.
#[tokio::test]
async fn a_task_waits_for_a_server_that_is_away() {
    let once = Away {
        requests: 1,
        ..Away::default()
    };
    let mut task = Agent::builder(once.clone()).build().unwrap().task("hello");
    let Outcome::Ended(ending) = task.execute().await.unwrap() else {
        panic!("it waits for a person")
    };
    assert_eq!((ending.status, ending.answer.as_deref()), (TurnStatus::Completed, Some("done")));
    assert_eq!(once.asked.load(Ordering::SeqCst), 2);
    let ever = Away {
        requests: usize::MAX,
        ..Away::default()
    };
    let agent = Agent::builder(ever.clone()).patience(Duration::from_secs(3600)).build().unwrap();
    let mut task = agent.task("hello");
    let notebook = task.notebook();
    let executed = tokio::spawn(async move { task.execute().await });
    ever.failed.notified().await;
    notebook.stop("u1").unwrap();
    let Outcome::Ended(ending) = executed.await.unwrap().unwrap() else {
        panic!("it waits for a person")
    };
    assert_eq!((ending.status, ending.reason), (TurnStatus::Cancelled, TurnReason::Cancelled));
}
