//! What the played platforms have in common: what happened so far, and how a test makes calls wait or go wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::serve::ListenerExt;
use axum::{Json, Router};
use countersign_agent::domain::{Clock, Millis};
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::posted::{Call, Posted, Snapshot};
use super::sockets::Sockets;

#[derive(Clone, Debug)]
pub enum Fault {
    /// Answer this HTTP status, platform code (Lark) and header.
    Answer {
        status: u16,
        code: i64,
        header: Option<(String, String)>,
    },
    /// Answer 200 with `ok: false` and this `error` (Slack).
    Error(&'static str),
    /// Do the work, then break the connection: the caller does not know the outcome.
    LoseAnswer,
    Delay(Duration),
}

/// A message of a person, as the platform lists it.
#[derive(Clone, Debug)]
pub(super) struct Heard {
    pub(super) chat: String,
    pub(super) thread: Option<String>,
    pub(super) message: Value,
}

#[derive(Clone, Debug, Default)]
pub struct PlayedFile {
    pub name: String,
    pub media_type: String,
    pub bytes: Vec<u8>,
}

/// A played platform's memory, shared by its handlers, its people and the test.
#[derive(Clone, Debug)]
pub struct Stage {
    memory: Arc<Mutex<Memory>>,
    changed: Arc<Notify>,
    clock: Clock,
}

/// The memory itself. Through `Deref` the fields of the snapshot are its own.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Shared with readers, and copied only when something happens while one reads.
    seen: Arc<Snapshot>,
    pub(super) recalled: BTreeSet<String>,
    /// Chats of people's messages.
    pub(super) chats: BTreeMap<String, String>,
    /// The members of user groups and departments, by the group's id.
    pub(super) groups: BTreeMap<String, Vec<String>>,
    /// What people said, as the platform lists it, with its chat and thread.
    pub(super) heard: Vec<Heard>,
    /// What people sent, by the id of the file.
    pub(super) sent: BTreeMap<String, PlayedFile>,
    /// People to whom the bot cannot write.
    pub(super) unreachable: BTreeSet<String>,
    /// Slack: a file is known from the moment on at which it has an id.
    pub(super) knows_files_early: bool,
    faults: Vec<(String, Fault)>,
    held: BTreeSet<String>,
}

impl Deref for Memory {
    type Target = Snapshot;
    fn deref(&self) -> &Snapshot {
        &self.seen
    }
}

impl DerefMut for Memory {
    fn deref_mut(&mut self) -> &mut Snapshot {
        Arc::make_mut(&mut self.seen)
    }
}

impl Memory {
    pub(super) fn violation(&mut self, what: impl Into<String>) {
        self.violations.push(what.into());
    }

    /// A mark of one bot is there once, however often it is set.
    pub(super) fn mark(&mut self, message: String, mark: String) {
        let mark = (message, mark);
        self.taken_away.retain(|gone| *gone != mark);
        if !self.reactions.contains(&mark) {
            self.reactions.push(mark);
        }
    }

    /// Takes a mark away. Gives `false` when it is not there.
    pub(super) fn unmark(&mut self, message: &str, name: &str) -> bool {
        let there = self.marks(message).contains(&name);
        if there {
            self.taken_away.push((message.to_owned(), name.to_owned()));
        }
        there
    }

    /// The message shows something else from now on.
    pub(super) fn repaint(&mut self, id: &str, content: Value) {
        if let Some(message) = self.messages.iter_mut().find(|message| message.id == id) {
            message.content = content.clone();
            message.versions.push(content);
        }
    }

    pub(super) fn in_channel<'a>(&'a self, channel: &'a str) -> impl Iterator<Item = &'a Posted> {
        self.messages.iter().filter(move |message| message.chat == channel)
    }

    /// The message of the bot with this id.
    pub(super) fn posted(&self, id: &str) -> Option<&Posted> {
        self.messages.iter().find(|message| message.id == id)
    }
}

impl Stage {
    pub(super) fn new(clock: Clock) -> Self {
        Self {
            memory: Arc::default(),
            changed: Arc::default(),
            clock,
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock()
    }

    /// From now on these people belong to the user group or department `id`.
    pub fn set_group(&self, id: &str, members: &[&str]) {
        let members = members.iter().map(|id| (*id).to_owned()).collect();
        self.lock().groups.insert(id.to_owned(), members);
    }

    /// From now on the platform lists this message among those of `chat`, in `thread` if that is given. See [`super::Tenant::listed`].
    pub fn hear(&self, chat: &str, thread: Option<&str>, message: Value) {
        let (chat, thread) = (chat.to_owned(), thread.map(str::to_owned));
        self.lock().heard.push(Heard { chat, thread, message });
    }

    /// From now on the platform gives out this file under `id`.
    pub fn put_file(&self, id: &str, file: PlayedFile) {
        self.lock().sent.insert(id.to_owned(), file);
    }

    /// From now on the bot cannot write to `user`.
    pub fn set_unreachable(&self, user: &str) {
        self.lock().unreachable.insert(user.to_owned());
    }

    /// From now on Slack knows a file before its upload is complete.
    pub fn know_files_early(&self) {
        self.lock().knows_files_early = true;
    }

    pub(super) fn now(&self) -> Millis {
        self.clock.now()
    }

    /// Wakes everybody who waits for a change.
    pub(super) fn tell_change(&self) {
        self.changed.notify_waiters();
    }

    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.lock().seen.clone()
    }

    pub fn posted(&self) -> usize {
        self.lock().messages.len()
    }

    /// The bot's messages without the `first` ones.
    pub fn messages_from(&self, first: usize) -> Vec<Posted> {
        self.lock().messages.get(first..).unwrap_or_default().to_vec()
    }

    /// Waits until `found` finds something in the state; none after `at_most`.
    pub async fn wait_for<T>(&self, at_most: Duration, mut found: impl FnMut(&Snapshot) -> Option<T>) -> Option<T> {
        let search = async {
            loop {
                // Registered before the look, so that a change in between is not missed.
                let changed = self.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                if let Some(found) = found(&self.snapshot()) {
                    return found;
                }
                changed.await;
            }
        };
        tokio::time::timeout(at_most, search).await.ok()
    }

    /// Tells which chat a person's message is in, so that replies to it are filed there.
    pub fn learn(&self, message_id: &str, chat: &str) {
        self.lock().chats.insert(message_id.to_owned(), chat.to_owned());
    }

    /// A person's message is recalled: replies to it (Lark) and marks on it are refused from now on.
    pub fn recall(&self, message_id: &str) {
        self.lock().recalled.insert(message_id.to_owned());
    }

    /// Lets the next call of an endpoint, by its name in [`Call`], go wrong.
    pub fn fault(&self, endpoint: &str, fault: Fault) {
        self.lock().faults.push((endpoint.to_owned(), fault));
    }

    /// From now on calls of `endpoint` wait until [`Stage::release`].
    pub fn hold(&self, endpoint: &str) {
        self.lock().held.insert(endpoint.to_owned());
    }

    pub fn release(&self, endpoint: &str) {
        self.lock().held.remove(endpoint);
        self.tell_change();
    }

    /// Records a call, waits while its endpoint is held, and meets its fault. `Ok(true)`: do the work, then break the connection.
    /// The platform says status and body of a fault that is an answer.
    ///
    /// # Errors
    /// The answer to give instead of the work.
    pub(super) async fn begin_call(
        &self,
        endpoint: &str,
        body: &Value,
        platform: impl Fn(&Fault) -> (StatusCode, Value),
    ) -> Result<bool, Response> {
        let at = self.now();
        self.lock().calls.push(Call {
            endpoint: endpoint.to_owned(),
            at,
            body: body.clone(),
        });
        self.tell_change();
        loop {
            let released = self.changed.notified();
            tokio::pin!(released);
            released.as_mut().enable();
            if !self.lock().held.contains(endpoint) {
                break;
            }
            released.await;
        }
        let Some(fault) = self.take_fault(endpoint) else { return Ok(false) };
        let header = match &fault {
            Fault::Delay(span) => {
                tokio::time::sleep(*span).await;
                return Ok(false);
            }
            Fault::LoseAnswer => return Ok(true),
            Fault::Error(_) => None,
            Fault::Answer { header, .. } => header.clone(),
        };
        let (status, body) = platform(&fault);
        Err(with_header((status, Json(body)).into_response(), header))
    }

    fn take_fault(&self, endpoint: &str) -> Option<Fault> {
        let mut memory = self.lock();
        let at = memory.faults.iter().position(|(name, _)| name == endpoint)?;
        Some(memory.faults.remove(at).1)
    }
}

pub(super) const FREE_PORT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A server on loopback, until it is dropped.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) addr: SocketAddr,
    stop: CancellationToken,
    sockets: Sockets,
}

impl Server {
    /// Listens on `addr`, for calls and for sockets.
    pub(super) async fn start(addr: SocketAddr, routes: Router, sockets: Sockets) -> std::io::Result<Self> {
        let listener = TcpListener::bind(addr).await?;
        let addr = listener.local_addr()?;
        // Otherwise an event that follows another message waits 40 ms for the peer's TCP acknowledgement. Without it things go on all the same.
        let listener = listener.tap_io(|connection| drop(connection.set_nodelay(true)));
        let stop = CancellationToken::new();
        let serving = axum::serve(listener, routes.merge(sockets.routes())).with_graceful_shutdown(stop.clone().cancelled_owned());
        tokio::spawn(serving.into_future());
        Ok(Self { addr, stop, sockets })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.cancel();
        self.sockets.drop_all();
    }
}

/// The connection breaks inside the body: the caller cannot tell what became of its call.
pub(super) fn broken() -> Response {
    let broken = futures_util::stream::once(async { Err::<bytes::Bytes, _>(std::io::Error::other("lost")) });
    (StatusCode::OK, axum::body::Body::from_stream(broken)).into_response()
}

/// `answer` with a header that a fault asks for.
fn with_header(mut answer: Response, header: Option<(String, String)>) -> Response {
    if let Some((name, value)) = header
        && let (Ok(name), Ok(value)) = (name.parse::<axum::http::HeaderName>(), value.parse::<axum::http::HeaderValue>())
    {
        answer.headers_mut().insert(name, value);
    }
    answer
}
