//! A bug of ours: it costs a request or a step, not the process.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use countersign::app::{self, Parts};
use countersign::config::{self, Loaded};
use countersign::domain::Clock;
use countersign::model::{ChatModel, ChatReply, ChatRequest, ModelError};
use futures_util::future::BoxFuture;
use serde_json::json;

use crate::support::api::{Api, eventually};
use crate::support::stores::Pairing;

/// Panics the first two times, then answers.
#[derive(Debug)]
struct Clumsy(Arc<AtomicUsize>);

impl ChatModel for Clumsy {
    fn chat<'a>(&'a self, _: &'a ChatRequest) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        Box::pin(async {
            let before = self.0.fetch_add(1, Ordering::SeqCst);
            assert!(before >= 2, "a bug, {before} times before");
            Ok(ChatReply {
                text: "好了".to_owned(),
                ..ChatReply::default()
            })
        })
    }
}

/// F-P5: a turn whose step panics costs nobody else anything: its lane is free when the lease runs out, it is taken up again, and ends.
#[tokio::test(flavor = "multi_thread")]
async fn a_panic_in_a_step_is_survived() {
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
        model: Some(Arc::new(Clumsy(Arc::clone(&asked)))),
        ..Parts::default()
    };
    parts.timings.poll = Duration::from_millis(20);
    let running = Box::pin(app::start(boot, live, parts)).await.unwrap();
    let api = Api::new(&format!("http://{}", running.addr));
    let task = json!({ "chat_id": "c1", "user_id": "u1", "text": "试试" });
    assert_eq!(api.post("/api/v1/messages", &task).await.0, 202);
    for panics in 1..=2 {
        eventually("the panic", || async { (asked.load(Ordering::SeqCst) >= panics).then_some(()) }).await;
        assert_eq!(api.try_get("/healthz").await.0, 200);
        let (status, ready) = api.try_get("/readyz").await;
        assert_eq!(status, 200, "{ready}");
        clock.advance(Duration::from_secs(31));
    }
    let turn = api.turn_in("c1", "completed").await;
    assert_eq!(turn["reason"], "final_answer");
    running.stop().await;
}
