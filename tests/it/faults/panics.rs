//! A bug of ours: it costs a request or a step, not the process.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use countersign_agent::domain::Clock;
use countersign_agent::model::{ChatModel, ChatReply, ChatRequest, ModelError};
use countersign_gateway::app::{self, Parts, Running};
use countersign_gateway::config::{self, Loaded};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::api::{Api, eventually};
use crate::support::stores::Pairing;

/// Panics at the first `0` calls, then answers.
#[derive(Debug)]
struct Clumsy(usize, Arc<AtomicUsize>);

impl ChatModel for Clumsy {
    fn chat<'a>(&'a self, _: &'a ChatRequest) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        Box::pin(async {
            let before = self.1.fetch_add(1, Ordering::SeqCst);
            assert!(before >= self.0, "a bug, {before} times before");
            Ok(ChatReply {
                text: "好了".to_owned(),
                ..ChatReply::default()
            })
        })
    }
}

/// A gateway whose model panics at its first calls; it has been asked for one task.
struct Bugged {
    running: Running,
    api: Api,
    asked: Arc<AtomicUsize>,
    clock: Clock,
    _folder: TempDir,
}

impl Bugged {
    async fn start(panics: usize) -> Self {
        app::install_crypto();
        let folder = tempfile::tempdir().unwrap();
        let mut settings = vec![("SERVER__BIND".to_owned(), "127.0.0.1:0".to_owned())];
        settings.extend(Pairing::of_this_run().settings(folder.path()).await);
        let env = settings.into_iter().map(|(key, value)| (format!("COUNTERSIGN__{key}"), value));
        let empty = tempfile::NamedTempFile::new().unwrap();
        let Loaded { boot, live, .. } = config::load(Some(empty.path()), env).unwrap();
        let (asked, clock) = (Arc::new(AtomicUsize::new(0)), Clock::manual(Clock::system().now()));
        let mut parts = Parts {
            clock: clock.clone(),
            drain: Duration::ZERO,
            model: Some(Arc::new(Clumsy(panics, Arc::clone(&asked)))),
            ..Parts::default()
        };
        parts.timings.poll = Duration::from_millis(20);
        let running = Box::pin(app::start(boot, live, parts)).await.unwrap();
        let api = Api::new(&format!("http://{}", running.addr));
        let task = json!({ "chat_id": "c1", "user_id": "u1", "text": "试试" });
        assert_eq!(api.post("/api/v1/messages", &task).await.0, 202);
        Self {
            running,
            api,
            asked,
            clock,
            _folder: folder,
        }
    }

    /// Waits for the next panics, one after the other; long before any lease runs out the task is taken up again.
    async fn panics(&self, times: usize) {
        for panics in 1..=times {
            eventually("the panic", || async {
                self.clock.advance(Duration::from_millis(100));
                (self.asked.load(Ordering::SeqCst) >= panics).then_some(())
            })
            .await;
            assert_eq!(self.api.try_get("/healthz").await.0, 200);
            let (status, ready) = self.api.try_get("/readyz").await;
            assert_eq!(status, 200, "{ready}");
        }
    }

    /// Its task, once it has this status.
    async fn task(&self, status: &str) -> Value {
        let path = format!("/api/v1/turns?chat=c1&status={status}");
        eventually(&format!("a {status} task"), || async {
            self.clock.advance(Duration::from_millis(100));
            self.api.get(&path).await["items"].as_array().unwrap().first().cloned()
        })
        .await
    }
}

/// F-P5: a turn whose step panics costs nobody else anything: it is taken up again, and ends.
#[tokio::test(flavor = "multi_thread")]
async fn a_panic_in_a_step_is_survived() {
    let gateway = Bugged::start(2).await;
    gateway.panics(2).await;
    assert_eq!(gateway.task("completed").await["reason"], "final_answer");
    gateway.running.stop().await;
}

/// design: a panic counts like the death of a process: after the third one without progress the turn is ended, and its requester told.
#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_always_panics_is_given_up() {
    let gateway = Bugged::start(usize::MAX).await;
    gateway.panics(3).await;
    assert_eq!(gateway.task("failed").await["reason"], "crashed");
    assert_eq!(gateway.asked.load(Ordering::SeqCst), 3);
    gateway.running.stop().await;
}
