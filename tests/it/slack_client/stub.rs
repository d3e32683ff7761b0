//! A Web API as small as the client's tests need: it takes every call, keeps it, and answers as told.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use countersign_playground::check_message as check_slack;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// The token that every call must bring.
pub(super) const TOKEN: &str = "xoxb-1-2-s3cr3t";

/// One call as it came.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) method: String,
    pub(super) content_type: String,
    /// JSON as it is, a form as an object of strings.
    pub(super) body: Value,
}

/// What goes wrong with the next call of a method.
#[derive(Clone, Debug)]
pub(super) enum Fault {
    /// This answer, and nothing happens.
    Answer(u16, Value, Option<&'static str>),
    /// It happens, but the connection breaks in the middle of the answer.
    LoseAnswer,
}

#[derive(Debug, Default)]
struct World {
    calls: Vec<Call>,
    messages: Vec<Value>,
    faults: HashMap<String, VecDeque<Fault>>,
    violations: Vec<String>,
}

/// A running stub; it ends with it.
pub(super) struct Stub {
    pub(super) base_url: String,
    world: Arc<Mutex<World>>,
    server: JoinHandle<()>,
}

impl Drop for Stub {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Stub {
    pub(super) async fn start() -> Self {
        let world = Arc::new(Mutex::new(World::default()));
        let routes = Router::new().route("/api/{method}", post(answer)).with_state(Arc::clone(&world));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_url = format!("http://{}/api", listener.local_addr().unwrap());
        let server = tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        Self { base_url, world, server }
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }

    /// Lets the next call of `method` go wrong; several wait in line.
    pub(super) fn fault(&self, method: &str, fault: Fault) {
        self.world().faults.entry(method.to_owned()).or_default().push_back(fault);
    }

    /// The calls of one method, in order. None of all calls may have broken a rule of the platform.
    pub(super) fn calls(&self, method: &str) -> Vec<Call> {
        let world = self.world();
        assert_eq!(world.violations, Vec::<String>::new());
        world.calls.iter().filter(|call| call.method == method).cloned().collect()
    }

    /// What stands in all chats.
    pub(super) fn messages(&self) -> Vec<Value> {
        self.world().messages.clone()
    }
}

async fn answer(State(world): State<Arc<Mutex<World>>>, Path(method): Path<String>, headers: HeaderMap, body: Bytes) -> Response {
    let mut world = world.lock().unwrap();
    let header = |name: &str| {
        headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
            .to_owned()
    };
    let content_type = header("content-type");
    let body: Value = if content_type.starts_with("application/json") {
        serde_json::from_slice(&body).unwrap()
    } else {
        form_urlencoded::parse(&body)
            .map(|(key, value)| (key.into_owned(), json!(value)))
            .collect::<serde_json::Map<_, _>>()
            .into()
    };
    if header("authorization") != format!("Bearer {TOKEN}") {
        return axum::Json(json!({"ok": false, "error": "invalid_auth"})).into_response();
    }
    let checked = match method.as_str() {
        "chat.postMessage" | "chat.update" | "chat.postEphemeral" => check_slack(&body),
        "views.open" => check_slack(&body["view"]),
        _ => Vec::new(),
    };
    world.violations.extend(checked);
    world.calls.push(Call {
        method: method.clone(),
        content_type,
        body: body.clone(),
    });
    let fault = world.faults.get_mut(&method).and_then(VecDeque::pop_front);
    if let Some(Fault::Answer(status, body, retry_after)) = fault {
        let status = StatusCode::from_u16(status).unwrap();
        let head = retry_after.map(|seconds| [("retry-after", seconds)]);
        return (status, head.unwrap_or([("x-slack-req-id", "1")]), axum::Json(body)).into_response();
    }
    let said = act(&mut world, &method, &body);
    if matches!(fault, Some(Fault::LoseAnswer)) {
        let broken = futures_util::stream::iter([Ok(Bytes::from_static(b"{")), Err(std::io::Error::other("cut"))]);
        return Body::from_stream(broken).into_response();
    }
    axum::Json(said).into_response()
}

fn act(world: &mut World, method: &str, body: &Value) -> Value {
    match method {
        "chat.postMessage" => {
            let ts = format!("17800000{:02}.000300", world.messages.len() + 1);
            let mut message = body.clone();
            message["ts"] = json!(ts);
            world.messages.push(message);
            json!({"ok": true, "channel": body["channel"], "ts": ts})
        }
        "conversations.replies" | "conversations.history" => {
            let found: Vec<&Value> = world
                .messages
                .iter()
                .filter(|message| message["channel"] == body["channel"])
                .collect();
            json!({"ok": true, "messages": found, "has_more": false})
        }
        "auth.test" => json!({"ok": true, "user_id": "U0BOT0001", "bot_id": "B0BOT0001", "team_id": "T0CSIGN01"}),
        _ => json!({"ok": true}),
    }
}
