//! A played MCP server: over the standard input and output of a real child process, and over real HTTP on loopback.
//!
//! Both keep what they are and what they heard in a folder: `tools.json` is what they offer, `heard.jsonl` every message that came,
//! `notes` what calls of `note` wrote. What a tool does is known by its name, and in which ways the server is rude by other files there.

use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, File};
use std::io::{BufRead, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use countersign_agent::domain::EffectClass;
use countersign_agent::tools::{McpReach, McpServer};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::{Notify, broadcast};
use tokio::task::JoinHandle;

/// Names the folder in the environment of the child.
pub const FOLDER: &str = "PLAYED_MCP";
/// The test that is the child; see `tests/it/mcp.rs`.
const CHILD: &str = "mcp::the_played_server";
/// Beside a configured variable; must be nowhere but in the child's environment and in the headers.
pub const SECRET: &str = "mcp-canary-0123456789abcdef";

/// A tool's definition.
pub fn tool(name: &str) -> Value {
    json!({
        "name": name,
        "description": format!("does {name}"),
        "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
    })
}

/// The folder of a played server.
pub struct Played {
    pub folder: TempDir,
}

impl Played {
    pub fn new(tools: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("heard.jsonl"), "").unwrap();
        let played = Self { folder };
        played.offer(&tools.iter().map(|name| tool(name)).collect::<Vec<_>>());
        played
    }

    /// Calls of this tool are answered with these bytes, in which `$ID` stands for the request's id: rudeness of any shape.
    pub fn answer_with(&self, tool: &str, answer: impl AsRef<[u8]>) {
        fs::write(self.folder.path().join(format!("answer-{tool}")), answer).unwrap();
    }

    /// Switches a rudeness on: `stateless` (with the one version that it speaks, without a handshake), `picky` (and refuses the first request by it), `old` (with the one version that its handshake takes), `cursor` (with "empty", "same" or "endless": pages without end), `dies`
    /// (at its start, with these last words).
    pub fn rude(&self, how: &str, words: &str) {
        fs::write(self.folder.path().join(how), words).unwrap();
    }

    /// From the next list on it offers these.
    pub fn offer(&self, tools: &[Value]) {
        // In one stroke: the child may read at any moment.
        let next = self.folder.path().join("next.json");
        fs::write(&next, json!(tools).to_string()).unwrap();
        fs::rename(next, self.folder.path().join("tools.json")).unwrap();
    }

    /// Messages of this method that it heard.
    pub fn heard(&self, method: &str) -> Vec<Value> {
        let lines = fs::read_to_string(self.folder.path().join("heard.jsonl")).unwrap();
        // The last line may still be written.
        let messages = lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        messages.filter(|message| message["method"] == method).collect()
    }

    /// How often this tool was called.
    pub fn calls(&self, tool: &str) -> usize {
        self.heard("tools/call")
            .iter()
            .filter(|call| call["params"]["name"] == tool)
            .count()
    }

    /// A file of its folder.
    pub fn file(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.folder.path().join(name)).ok()
    }

    /// The configuration of a child that plays this.
    pub fn by_command(&self, effects: &[(&str, EffectClass)]) -> McpServer {
        let binary = std::env::current_exe().unwrap();
        let command = [binary.to_str().unwrap(), CHILD, "--exact", "--ignored", "--nocapture"];
        let env = BTreeMap::from([
            (FOLDER.to_owned(), self.folder.path().to_str().unwrap().to_owned().into()),
            ("TOKEN".to_owned(), SECRET.into()),
        ]);
        McpServer {
            name: "srv".to_owned(),
            reach: McpReach::Command {
                command: command.map(str::to_owned).to_vec(),
                env,
            },
            effects: effects.iter().map(|(name, class)| ((*name).to_owned(), *class)).collect(),
            scope: [].into(),
        }
    }

    /// The server as a setting, with effects as JSON.
    pub fn setting(&self, effects: &Value) -> String {
        let McpReach::Command { command, .. } = self.by_command(&[]).reach else {
            panic!("it is a command")
        };
        let env = json!({FOLDER: self.folder.path().to_str().unwrap(), "TOKEN": SECRET});
        json!([{"name": "srv", "command": command, "env": env, "effects": effects}]).to_string()
    }
}

/// What the server does with a message.
enum Move {
    Answer(Value),
    /// Answers, and tells that its tools changed.
    Announce(Value),
    /// Asks without end, as it seems, and reads nothing meanwhile; then answers.
    Pester(Value),
    /// Asks so often, each time when the last answer was taken; then answers.
    Greet(Value),
    /// Answers with these bytes.
    Raw(Vec<u8>),
    /// Answers over HTTP once [`PlayedHttp::release`] was called, and at once over a pipe.
    Hold(Value),
    Nothing,
    Die,
}

/// The bytes that this tool is answered with, see [`Played::answer_with`].
fn raw(folder: &Path, message: &Value) -> Option<Move> {
    let tool = message["params"]["name"].as_str()?;
    let answer = fs::read(folder.join(format!("answer-{tool}"))).ok()?;
    let Some(at) = answer.windows(3).position(|part| part == b"$ID") else {
        return Some(Move::Raw(answer));
    };
    let id = message["id"].to_string();
    Some(Move::Raw([&answer[..at], id.as_bytes(), &answer[at + 3..]].concat()))
}

/// One page of the list, as rude as the file `cursor` says.
fn page(folder: &Path, message: &Value) -> Value {
    let tools: Vec<Value> = serde_json::from_slice(&fs::read(folder.join("tools.json")).unwrap()).unwrap();
    let cursor = message["params"]["cursor"].as_str();
    let number = cursor.and_then(|cursor| cursor.parse::<usize>().ok()).unwrap_or_default();
    match fs::read_to_string(folder.join("cursor")).unwrap_or_default().as_str() {
        // The whole list, and once more what is no page.
        "empty" => json!({"tools": if cursor.is_none() { tools } else { Vec::new() }, "nextCursor": ""}),
        "same" => json!({"tools": tools, "nextCursor": "again"}),
        "endless" => json!({"tools": [tool(&format!("page{number}"))], "nextCursor": (number + 1).to_string()}),
        // Two pages, so that the second is asked for.
        _ if cursor.is_none() => json!({"tools": tools[..tools.len() / 2], "nextCursor": "2"}),
        _ => json!({"tools": tools[tools.len() / 2..]}),
    }
}

const OTHER_VERSION: i64 = -32022;

/// What a server that speaks one version without a handshake says to a request that does not.
fn stateless(folder: &Path, message: &Value) -> Option<Value> {
    let spoken = fs::read_to_string(folder.join("stateless")).ok()?;
    let version = &message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
    let refused = !message["id"].is_null() && (*version != spoken || fs::remove_file(folder.join("picky")).is_ok());
    let error = json!({"code": OTHER_VERSION, "message": "Unsupported protocol version", "data": {"supported": [spoken]}});
    refused.then(|| json!({"jsonrpc": "2.0", "id": message["id"], "error": error}))
}

/// The part that both transports share.
fn play(folder: &Path, message: &Value) -> Move {
    let mut heard = File::options().append(true).open(folder.join("heard.jsonl")).unwrap();
    heard.write_all(format!("{message}\n").as_bytes()).unwrap();
    let answer = |result: Value| json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    let said = |text: &str| answer(json!({"content": [{"type": "text", "text": text}]}));
    let text = message["params"]["arguments"]["text"].as_str().unwrap_or_default();
    let note = || {
        let mut notes = File::options().create(true).append(true).open(folder.join("notes")).unwrap();
        notes.write_all(format!("{text}\n").as_bytes()).unwrap();
    };
    if let Some(refusal) = stateless(folder, message) {
        return Move::Answer(refusal);
    }
    if let Some(rude) = raw(folder, message) {
        return rude;
    }
    let old = fs::read_to_string(folder.join("old")).ok();
    match message["method"].as_str().unwrap_or_default() {
        "initialize" if old.as_ref().is_some_and(|old| message["params"]["protocolVersion"] != **old) => {
            let error = json!({"code": -32602, "message": "Unsupported protocol version", "data": {"supported": [old]}});
            Move::Answer(json!({"jsonrpc": "2.0", "id": message["id"], "error": error}))
        }
        "server/discover" if folder.join("stateless").exists() => Move::Answer(answer(
            json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private"}),
        )),
        "initialize" => Move::Answer(answer(json!({
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {"listChanged": true}},
            "serverInfo": {"name": "played", "version": "1"},
        }))),
        "tools/list" => Move::Answer(answer(page(folder, message))),
        "tools/call" => match message["params"]["name"].as_str().unwrap_or_default() {
            "echo" => Move::Answer(said(&format!("echo {text}"))),
            "note" => {
                note();
                Move::Answer(said("noted"))
            }
            "announce" => Move::Announce(said("announced")),
            "greet" => Move::Greet(said("greeted")),
            "pester" => Move::Pester(said("pestered")),
            "fail" => Move::Answer(answer(json!({"content": [{"type": "text", "text": "it failed"}], "isError": true}))),
            "refuse" => Move::Answer(json!({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32602, "message": "no such thing"}})),
            "mixed" => Move::Answer(answer(
                json!({"content": [{"type": "image", "mimeType": "image/png", "data": "AAAA"}], "structuredContent": {"sum": 3}}),
            )),
            "huge" => Move::Answer(said(&"一行文字\n".repeat(20_000))),
            "hang" => Move::Nothing,
            "held" => Move::Hold(said("held")),
            // Once: whoever asks again is answered.
            "die" if folder.join("notes").exists() => {
                note();
                Move::Answer(said("survived"))
            }
            "die" => {
                note();
                Move::Die
            }
            other => {
                Move::Answer(json!({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": format!("no {other}")}}))
            }
        },
        _ => Move::Nothing,
    }
}

/// Their answers are far more than a pipe holds.
const PINGS: usize = 20_000;
const CHANGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;

/// More than may be unanswered at a time.
const GREETINGS: usize = 200;

fn ping(id: usize) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "ping"})
}

/// The child: speaks until its input ends. Beside messages there is noise on its output, as from a careless server.
pub fn speak() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        panic!("started by hand: this is the child of other tests");
    };
    let folder = Path::new(&folder);
    let names: Vec<String> = std::env::vars().map(|(name, _)| name).collect();
    fs::write(folder.join("env"), names.join("\n")).unwrap();
    // A helper of the server's own that would outlive it.
    #[expect(clippy::zombie_processes, reason = "what becomes of it is what is tested")]
    let helper = std::process::Command::new("/bin/sleep").arg("600").spawn().unwrap();
    fs::write(folder.join("pids"), format!("{}\n{}\n", std::process::id(), helper.id())).unwrap();
    if let Ok(words) = fs::read_to_string(folder.join("dies")) {
        eprintln!("{words}");
        std::process::exit(1);
    }
    let mut out = std::io::stdout();
    out.write_all(b"\nserver ready\n").unwrap();
    eprintln!("its own log");
    let mut lines = std::io::stdin().lock().lines();
    while let Some(line) = lines.next() {
        let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let said = match play(folder, &message) {
            Move::Raw(answer) => {
                out.write_all(&[&answer[..], b"\n"].concat()).unwrap();
                out.flush().unwrap();
                continue;
            }
            Move::Answer(answer) | Move::Hold(answer) => format!("{answer}\n"),
            Move::Announce(answer) => format!("{answer}\n{CHANGED}\n"),
            Move::Pester(answer) => {
                let pings = (0..PINGS).map(|id| format!("{}\n", ping(id)));
                format!("{}{answer}\n", pings.collect::<String>())
            }
            Move::Greet(answer) => {
                for id in 0..GREETINGS {
                    out.write_all(format!("{}\n", ping(id)).as_bytes()).unwrap();
                    out.flush().unwrap();
                    let answer: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
                    assert_eq!(answer["id"], id);
                }
                format!("{answer}\n")
            }
            Move::Nothing => continue,
            Move::Die => std::process::exit(1),
        };
        out.write_all(said.as_bytes()).unwrap();
        out.flush().unwrap();
    }
}

/// The played MCP server over streamable HTTP.
pub struct PlayedHttp {
    pub url: String,
    state: Arc<Http>,
    serving: JoinHandle<()>,
}

struct Http {
    folder: std::path::PathBuf,
    /// The session that is good.
    session: AtomicU64,
    news: broadcast::Sender<()>,
    released: Notify,
    /// How a session that is not good is answered.
    lost: Mutex<(u16, String)>,
    /// How the next calls are answered, instead of being carried out.
    refusals: Mutex<VecDeque<(u16, String)>>,
    /// Seconds after which it has time again, it says.
    pause: AtomicU64,
    /// Values of `x-token` that came, by method.
    tokens: Mutex<Vec<String>>,
}

impl PlayedHttp {
    pub async fn start(played: &Played) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let state = Arc::new(Http {
            folder: played.folder.path().to_owned(),
            session: AtomicU64::new(1),
            news: broadcast::channel(16).0,
            released: Notify::new(),
            lost: Mutex::new((404, String::new())),
            refusals: Mutex::default(),
            pause: AtomicU64::default(),
            tokens: Mutex::default(),
        });
        let router = Router::new().route("/mcp", any(http)).with_state(Arc::clone(&state));
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, state, serving }
    }

    pub fn server(&self, effects: &[(&str, EffectClass)]) -> McpServer {
        McpServer {
            name: "srv".to_owned(),
            reach: McpReach::Url {
                url: self.url.clone(),
                headers: BTreeMap::from([("X-Token".to_owned(), SECRET.into())]),
            },
            effects: effects.iter().map(|(name, class)| ((*name).to_owned(), *class)).collect(),
            scope: [].into(),
        }
    }

    /// Forgets its session, as a server that was restarted.
    pub fn forget(&self) {
        self.state.session.fetch_add(1, Ordering::SeqCst);
    }

    /// Forgets its session, and says so with this status and body.
    pub fn forget_with(&self, status: u16, body: &str) {
        *self.state.lost.lock().unwrap() = (status, body.to_owned());
        self.forget();
    }

    /// Lets one call of `held` be answered.
    pub fn release(&self) {
        self.state.released.notify_one();
    }

    /// Refuses the next call with this status and body; it does not carry it out.
    pub fn refuse(&self, status: u16, body: &str) {
        self.state.refusals.lock().unwrap().push_back((status, body.to_owned()));
    }

    /// From now on its refusals say that it has time again after so many seconds.
    pub fn busy_for(&self, seconds: u64) {
        self.state.pause.store(seconds, Ordering::SeqCst);
    }

    /// The server as a setting.
    pub fn setting(&self) -> String {
        json!([{"name": "srv", "url": self.url}]).to_string()
    }

    /// What `x-token` was in each request.
    pub fn tokens(&self) -> Vec<String> {
        self.state.tokens.lock().unwrap().clone()
    }
}

impl Drop for PlayedHttp {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// JSON with a status, and the end of the connection. A server that has no time says for how long.
fn told(status: u16, body: String, pause: &AtomicU64) -> Response {
    let pause = pause.load(Ordering::SeqCst).to_string();
    let headers = [
        ("content-type", "application/json"),
        ("retry-after", pause.as_str()),
        ("connection", "close"),
    ];
    (StatusCode::from_u16(status).unwrap(), headers, body).into_response()
}

async fn http(State(state): State<Arc<Http>>, method: axum::http::Method, headers: HeaderMap, body: Bytes) -> Response {
    let header = |name: &str| headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    state.tokens.lock().unwrap().push(header("x-token").unwrap_or_default());
    let session = state.session.load(Ordering::SeqCst).to_string();
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let begins = message["method"] == "initialize";
    let stateless = state.folder.join("stateless").exists();
    if stateless {
        let meant = message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"]
            .as_str()
            .map(str::to_owned);
        let same = header("mcp-method").as_deref() == message["method"].as_str() && header("mcp-protocol-version") == meant;
        if !same && !begins {
            return StatusCode::BAD_REQUEST.into_response();
        }
    } else if !begins && header("mcp-session-id").as_ref() != Some(&session) {
        let (status, body) = state.lost.lock().unwrap().clone();
        return told(status, body.replace("$ID", &message["id"].to_string()), &state.pause);
    }
    if message["method"] == "tools/call"
        && let Some((status, body)) = state.refusals.lock().unwrap().pop_front()
    {
        return told(status, body.replace("$ID", &message["id"].to_string()), &state.pause);
    }
    match method.as_str() {
        "GET" => {
            let news = stream::unfold(state.news.subscribe(), |mut news| async {
                news.recv().await.ok()?;
                Some((Ok::<_, std::io::Error>(format!("data: {CHANGED}\n\n")), news))
            });
            ([("content-type", "text/event-stream")], Body::from_stream(news)).into_response()
        }
        "POST" => match play(&state.folder, &message) {
            Move::Raw(answer) => ([("content-type", "application/json")], answer).into_response(),
            Move::Answer(answer) if answer["error"]["code"] == OTHER_VERSION => {
                (StatusCode::BAD_REQUEST, axum::Json(answer)).into_response()
            }
            Move::Answer(answer) if begins => ([("mcp-session-id", session)], axum::Json(answer)).into_response(),
            // One kind of answer as a stream.
            Move::Answer(answer) if message["params"]["name"] == "echo" => {
                let events = stream::iter([Ok::<_, std::io::Error>(format!("data: {answer}\n\n"))]).boxed();
                ([("content-type", "text/event-stream")], Body::from_stream(events)).into_response()
            }
            Move::Answer(answer) | Move::Pester(answer) | Move::Greet(answer) => axum::Json(answer).into_response(),
            Move::Announce(answer) => {
                let _ = state.news.send(());
                axum::Json(answer).into_response()
            }
            Move::Hold(answer) => {
                state.released.notified().await;
                axum::Json(answer).into_response()
            }
            Move::Nothing if message["id"].is_null() => StatusCode::ACCEPTED.into_response(),
            Move::Nothing => std::future::pending().await,
            Move::Die => {
                let broken = stream::iter([Ok(String::from(": ")), Err(std::io::Error::other("gone"))]);
                ([("content-type", "text/event-stream")], Body::from_stream(broken)).into_response()
            }
        },
        _ => StatusCode::OK.into_response(),
    }
}
