//! A real server on loopback that plays a model: scripted or computed answers, and a check of every request.
//!
//! It speaks chat completions and Anthropic's messages, and streams (in odd pieces) when it is asked to.
//! Conversations are told apart by a word in their first user message, so that parallel turns share one
//! server. A request that breaks the protocol, or that no script expects, is a violation; tests end with
//! [`FakeModel::assert_clean`].

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use axum::routing::post;
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::anthropic_request;
use super::model_protocol::violations;
pub(crate) use super::model_script::{Gate, Script, Step, Then, call, say};
use super::model_strict::{self, GATHERED, Strict, Tears};
use super::model_wire::{Wire, chopped};

/// Sizes of a stream's pieces, in turn.
const PIECES: [usize; 6] = [5, 1, 17, 3, 64, 400];

/// A request as it came in.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
    /// The body as chat completions have it, whatever the protocol.
    pub(crate) chat: Value,
}

type Answer = Box<dyn Fn(&Value) -> Value + Send + Sync>;

#[derive(Default)]
struct Inner {
    /// By a word in the first user message; the empty word matches every conversation.
    scripts: HashMap<String, Script>,
    function: Option<Answer>,
    seen: Vec<Seen>,
    violations: Vec<String>,
    ids: u64,
    /// It is away from this request on (counted from 0), and gives this.
    away: Option<(usize, Step)>,
    /// Answers in one piece although a stream was asked for.
    plain: bool,
    /// Keeps no requests.
    forgets: bool,
    /// What it refuses, and with what words it did.
    strict: Strict,
    refused: Vec<String>,
    tears: Tears,
    /// So many answers end with this word; each is given again.
    odd_ends: Option<(&'static str, usize)>,
    /// What must come back with a call, by its id.
    issued: HashMap<String, Value>,
}

struct Shared {
    inner: Mutex<Inner>,
    count: watch::Sender<usize>,
    /// Silent streams that the client closed.
    closed: watch::Sender<usize>,
}

/// Tells that the server let go of a silent stream, because the connection is gone.
struct Held(Arc<Shared>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.closed.send_modify(|count| *count += 1);
    }
}

/// The server; it ends with the value.
pub(crate) struct FakeModel {
    address: std::net::SocketAddr,
    shared: Arc<Shared>,
    server: JoinHandle<io::Result<()>>,
}

impl fmt::Debug for FakeModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FakeModel").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Drop for FakeModel {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl FakeModel {
    /// A server on a free port without any answers yet.
    pub(crate) async fn start() -> Self {
        let shared = Arc::new(Shared {
            inner: Mutex::default(),
            count: watch::Sender::new(0),
            closed: watch::Sender::new(0),
        });
        let router = Router::new()
            .route("/v1/chat/completions", post(chat_completions))
            .route("/v1/messages", post(messages))
            .layer(DefaultBodyLimit::disable())
            .with_state(Arc::clone(&shared));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, shared, server }
    }

    /// A server whose every answer is computed from the request: `function` gives an assistant message.
    pub(crate) async fn with_fn(function: impl Fn(&Value) -> Value + Send + Sync + 'static) -> Self {
        let fake = Self::start().await;
        fake.inner(|inner| inner.function = Some(Box::new(function)));
        fake
    }

    /// What goes into `model.base_url`.
    pub(crate) fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Answers in one piece from now on, although streams are asked for.
    pub(crate) fn never_streams(&self) {
        self.inner(|inner| inner.plain = true);
    }

    /// Refuses all this from now on.
    pub(crate) fn strict(&self, strict: Strict) {
        self.inner(|inner| inner.strict = strict);
    }

    /// The words of all refusals.
    pub(crate) fn refused(&self) -> Vec<String> {
        self.inner(|inner| inner.refused.clone())
    }

    /// Tears the streams of chat completions so from now on.
    pub(crate) fn tears(&self, tears: Tears) {
        self.inner(|inner| inner.tears = tears);
    }

    /// The next `times` answers end with `word`; whoever asks again gets the same answer.
    pub(crate) fn ends_oddly(&self, word: &'static str, times: usize) {
        self.inner(|inner| inner.odd_ends = Some((word, times)));
    }

    /// From request number `from` on (counted from 0) it is away: each gets this, whatever is scripted, until [`FakeModel::comes_back`].
    pub(crate) fn goes_away(&self, from: usize, with: Step) {
        self.inner(|inner| inner.away = Some((from, with)));
    }

    /// It answers again.
    pub(crate) fn comes_back(&self) {
        self.inner(|inner| inner.away = None);
    }

    /// Keeps no requests from now on: a long run has many.
    pub(crate) fn forgets(&self) {
        self.inner(|inner| inner.forgets = true);
    }

    /// The answers for conversations whose first user message holds `word` (empty: for all others).
    pub(crate) fn script(&self, word: &str, script: Script) {
        self.inner(|inner| inner.scripts.insert(word.to_owned(), script));
    }

    /// Every request so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.inner(|inner| inner.seen.clone())
    }

    /// Requests of the conversation that `word` names.
    pub(crate) fn seen_of(&self, word: &str) -> Vec<Value> {
        let mut bodies: Vec<_> = self.seen().into_iter().map(|seen| seen.chat).collect();
        bodies.retain(|body| first_user(body).contains(word));
        bodies
    }

    /// What was wrong with the requests.
    pub(crate) fn violations(&self) -> Vec<String> {
        self.inner(|inner| inner.violations.clone())
    }

    /// Waits until `count` requests came in.
    ///
    /// # Panics
    /// When they do not come within ten seconds.
    pub(crate) async fn wait_for(&self, count: usize) {
        let mut watch = self.shared.count.subscribe();
        let enough = tokio::time::timeout(Duration::from_secs(10), watch.wait_for(|seen| *seen >= count)).await;
        assert!(enough.is_ok(), "only {} of {count} requests", self.seen().len());
    }

    /// Waits until the client has closed `count` silent streams.
    ///
    /// # Panics
    /// When it does not within ten seconds.
    pub(crate) async fn wait_for_closed(&self, count: usize) {
        let mut watch = self.shared.closed.subscribe();
        let enough = tokio::time::timeout(Duration::from_secs(10), watch.wait_for(|closed| *closed >= count)).await;
        assert!(enough.is_ok(), "the client keeps its connection");
    }

    /// Asserts that every request kept the protocol and every scripted answer was asked for.
    pub(crate) fn assert_clean(&self) {
        assert_eq!(self.violations(), Vec::<String>::new());
        let left: Vec<_> = self.inner(|inner| {
            let scripts = inner.scripts.iter().filter(|(_, script)| !script.0.is_empty());
            scripts.map(|(word, script)| (word.clone(), script.0.clone())).collect()
        });
        assert!(left.is_empty(), "never asked for: {left:?}");
    }

    fn inner<T>(&self, with: impl FnOnce(&mut Inner) -> T) -> T {
        with(&mut self.shared.inner.lock().unwrap())
    }
}

async fn chat_completions(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> Response {
    answer(shared, Wire::OpenAi, headers, &body).await
}

async fn messages(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> Response {
    answer(shared, Wire::Anthropic, headers, &body).await
}

async fn answer(shared: Arc<Shared>, wire: Wire, headers: HeaderMap, body: &[u8]) -> Response {
    let (mut step, asked) = {
        let mut inner = shared.inner.lock().unwrap();
        let Ok(body) = serde_json::from_slice::<Value>(body) else {
            inner.violations.push("a body that is no JSON".to_owned());
            return status(500, &[], &json!({}));
        };
        if let Some(words) = inner.strict.refuses(wire, &body) {
            inner.refused.push(words.clone());
            return status(400, &[], &json!({"error": {"type": "invalid_request_error", "message": words}}));
        }
        let chat = match wire {
            Wire::OpenAi => model_strict::parted(&body, inner.strict.alternates),
            Wire::Anthropic => anthropic_request::as_chat(&body),
        };
        let step = inner.next(&chat);
        let wrong = inner.objections(wire, &headers, &body, &chat);
        inner.violations.extend(wrong);
        if !inner.forgets {
            inner.seen.push(Seen {
                headers,
                body: body.clone(),
                chat,
            });
        }
        (step, body)
    };
    shared.count.send_modify(|count| *count += 1);
    loop {
        step = match step {
            Step::Gated(gate, then) => {
                gate.pass().await;
                *then
            }
            Step::Message(message, finish) => {
                let mut inner = shared.inner.lock().unwrap();
                let (message, finish) = inner.complete(wire, message, finish);
                if inner.plain || asked["stream"] != true {
                    return respond("application/json", wire.whole(&message, finish));
                }
                let counted = asked["stream_options"]["include_usage"] == true;
                let tears = inner.tears;
                let events = wire.events(&message, finish, counted);
                return streamed(&if tears == Tears::Well {
                    events
                } else {
                    model_strict::torn(events, tears)
                });
            }
            Step::Half(message, then) => {
                let (message, finish) = shared.inner.lock().unwrap().complete(wire, message, None);
                let mut events = wire.events(&message, finish, true);
                events.truncate(events.len() / 2);
                if then == Then::End {
                    return streamed(&events);
                }
                return never_ending(&shared, &events);
            }
            Step::Open(events) => return never_ending(&shared, &events),
            Step::Events(events) => return streamed(&events),
            Step::Status(code, headers, body) => return status(code, &headers, &body),
            Step::Verbatim(kind, body) => return respond(kind, body),
            Step::CutOff => {
                let pieces = [Ok(Bytes::from_static(b"{\"choices\":[{\"mess")), Err(io::Error::other("scripted"))];
                let body = Body::from_stream(stream::iter(pieces));
                return Response::builder()
                    .header(header::CONTENT_TYPE, "application/json")
                    .body(body)
                    .unwrap();
            }
        }
    }
}

/// These events, then silence until the client goes away.
fn never_ending(shared: &Arc<Shared>, events: &[String]) -> Response {
    let held = Held(Arc::clone(shared));
    let pieces = chopped(events, &PIECES).into_iter().map(Ok::<_, io::Error>);
    let body = stream::iter(pieces).chain(stream::pending()).map(move |piece| {
        let _ = &held;
        piece
    });
    event_stream(Body::from_stream(body))
}

impl Inner {
    fn next(&mut self, body: &Value) -> Step {
        if let Some((from, step)) = &self.away
            && self.seen.len() >= *from
        {
            return step.clone();
        }
        let first = first_user(body);
        let word = self
            .scripts
            .keys()
            .filter(|word| first.contains(word.as_str()))
            .max_by_key(|word| word.len());
        let word = word.cloned();
        if let Some(odd) = self.odd_end(word.as_deref(), body) {
            return odd;
        }
        if let Some(word) = word
            && let Some(step) = self.scripts.get_mut(&word).and_then(|script| script.0.pop_front())
        {
            return step;
        }
        if let Some(function) = &self.function {
            return Step::Message(function(body), None);
        }
        self.violations.push(format!("nothing scripted for `{first}`"));
        Step::Status(500, Vec::new(), json!({}))
    }

    /// The next answer with an odd end, if one is due. The answer stays where it is.
    fn odd_end(&mut self, word: Option<&str>, body: &Value) -> Option<Step> {
        let (end, left) = self.odd_ends.as_mut().filter(|(_, left)| *left > 0)?;
        let scripted = word.and_then(|word| self.scripts.get(word)?.0.front().cloned());
        let message = match (scripted, &self.function) {
            (Some(Step::Message(message, _)), _) => message,
            (None, Some(function)) => function(body),
            _ => return None,
        };
        *left -= 1;
        Some(Step::Message(message, Some(*end)))
    }

    /// The message with ids for its calls that no other call has, and its finish reason.
    fn complete(&mut self, wire: Wire, mut message: Value, finish: Option<&'static str>) -> (Value, &'static str) {
        let foreign = wire.foreign(&message);
        let mut called = false;
        for call in message["tool_calls"].as_array_mut().into_iter().flatten() {
            called = true;
            if call.get("id").is_none() {
                self.ids += 1;
                call["id"] = json!(format!("call_fake_{}", self.ids));
            }
            self.issued
                .insert(call["id"].as_str().unwrap_or_default().to_owned(), foreign.clone());
        }
        (message, finish.unwrap_or(if called { "tool_calls" } else { "stop" }))
    }

    /// What is wrong with a request: in the common rules, in the protocol's own, in what must come back verbatim.
    fn objections(&self, wire: Wire, headers: &HeaderMap, body: &Value, chat: &Value) -> Vec<String> {
        let mut wrong = violations(chat);
        let back: Vec<(String, Value)> = match wire {
            Wire::OpenAi => {
                wrong.extend(model_strict::violations(body));
                let messages = body["messages"].as_array().into_iter().flatten();
                let calls = messages.flat_map(|message| {
                    let calls = message["tool_calls"].as_array().into_iter().flatten();
                    calls.map(|call| (call["id"].as_str().unwrap_or_default().to_owned(), wire.foreign(message)))
                });
                calls.collect()
            }
            Wire::Anthropic => {
                wrong.extend(anthropic_request::violations(body));
                if headers.get("anthropic-version").is_none_or(|version| version != "2023-06-01") || headers.contains_key("authorization") {
                    wrong.push("wrong headers".to_owned());
                }
                anthropic_request::foreign_of(body)
            }
        };
        for (id, came) in back {
            if self.issued.get(&id).is_some_and(|issued| *issued != came) {
                wrong.push(format!("call {id}: came with {}, went back with {came}", self.issued[&id]));
            }
        }
        wrong
    }
}

/// The person's first words: what was gathered for them stands before.
fn first_user(body: &Value) -> String {
    let messages = body["messages"].as_array().into_iter().flatten();
    let text = messages
        .filter(|message| message["role"] == "user")
        .filter_map(|message| message["content"].as_str())
        .find(|text| !GATHERED.iter().any(|tag| text.starts_with(&format!("<{tag}>"))));
    text.unwrap_or_default().to_owned()
}

fn respond(kind: &str, body: Vec<u8>) -> Response {
    Response::builder()
        .header(header::CONTENT_TYPE, kind)
        .body(Body::from(body))
        .unwrap()
}

fn streamed(events: &[String]) -> Response {
    let pieces = chopped(events, &PIECES).into_iter().map(Ok::<_, io::Error>);
    event_stream(Body::from_stream(stream::iter(pieces)))
}

fn event_stream(body: Body) -> Response {
    let kind = "text/event-stream; charset=utf-8";
    Response::builder().header(header::CONTENT_TYPE, kind).body(body).unwrap()
}

fn status(code: u16, headers: &[(&'static str, String)], body: &Value) -> Response {
    let mut response = respond("application/json", body.to_string().into_bytes());
    *response.status_mut() = StatusCode::from_u16(code).unwrap();
    for (name, value) in headers {
        response.headers_mut().insert(*name, value.parse().unwrap());
    }
    response
}

/// The names of the tools that `body` offers.
pub(crate) fn offered(body: &Value) -> HashSet<&str> {
    let tools = body["tools"].as_array().into_iter().flatten();
    tools.filter_map(|tool| tool["function"]["name"].as_str()).collect()
}
