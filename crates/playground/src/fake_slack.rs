//! A Slack Web API on loopback that checks what it gets: messages, updates, notes, forms, marks, reading back, and sockets.
//!
//! The demo plays its chat through it and the tests assert on it. It refuses what the real platform refuses
//! and remembers every violation.

mod chat;
mod files;
mod handlers;
mod home;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::DefaultBodyLimit;
use axum::routing::{get, post};
use countersign_agent::domain::{Clock, Ids, Millis};
use parking_lot::{Mutex, MutexGuard};

use super::sockets::Sockets;
use super::stage::{FREE_PORT, Server, Stage};

/// The bot's user id in this workspace.
pub const SLACK_BOT: &str = "U0BOT";
pub(super) const BOT_ID: &str = "B0BOT";
pub(super) const APP_ID: &str = "A0APP";
pub const TEAM: &str = "T0TEAM";
/// The state of a form that nobody updated: sent with a fault and mended, it is the same.
pub(super) const FORM_HASH: &str = "1.a";
/// How long after a click its trigger opens a form.
const TRIGGER_LIFE: Duration = Duration::from_secs(3);

#[derive(Debug)]
pub struct FakeSlack {
    server: Server,
    shared: Shared,
}

#[derive(Clone, Debug)]
struct Shared {
    stage: Stage,
    sockets: Sockets,
    workspace: Workspace,
    token: Arc<str>,
    app_token: Arc<Mutex<Option<String>>>,
    uploads: Arc<Mutex<BTreeMap<String, Upload>>>,
}

/// A file that has an id, and that a chat may show.
#[derive(Clone, Debug)]
struct Upload {
    name: String,
    length: usize,
    bytes: Option<Bytes>,
    complete: bool,
}

impl Shared {
    fn uploads(&self) -> MutexGuard<'_, BTreeMap<String, Upload>> {
        self.uploads.lock()
    }

    fn app_token(&self) -> MutexGuard<'_, Option<String>> {
        self.app_token.lock()
    }
}

/// What the workspace hands out: time stamps, which are its message ids, and triggers. Shared by the bot's side and the
/// people's.
#[derive(Clone, Debug)]
pub struct Workspace {
    books: Arc<Mutex<Books>>,
    clock: Clock,
    ids: Ids,
}

#[derive(Debug, Default)]
struct Books {
    /// The last time stamp, in microseconds.
    last: i64,
    /// Channel and thread root of every message, by its time stamp.
    places: BTreeMap<String, (String, String)>,
    /// When a trigger was made. `None` once it was used.
    triggers: BTreeMap<String, Option<Millis>>,
}

impl Workspace {
    pub(super) fn new(clock: Clock, ids: Ids) -> Self {
        Self {
            books: Arc::default(),
            clock,
            ids,
        }
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock()
    }

    /// The time stamp of a new message in `channel`, below `thread` if given; later than all before it, or, with `at`, of
    /// that very millisecond.
    pub(super) fn stamp(&self, channel: &str, thread: Option<&str>, at: Option<Millis>) -> String {
        let mut books = self.books();
        let mut micros = at.unwrap_or_else(|| self.clock.now()).0 * 1000;
        if at.is_none() {
            micros = micros.max(books.last + 1);
            books.last = micros;
        }
        let spelled = |micros: i64| format!("{:010}.{:06}", micros / 1_000_000, micros % 1_000_000);
        while books.places.contains_key(&spelled(micros)) {
            micros += 1;
        }
        let ts = spelled(micros);
        let root = thread.unwrap_or(&ts).to_owned();
        books.places.insert(ts.clone(), (channel.to_owned(), root));
        ts
    }

    /// The root of the thread that a message stands in: itself when it starts one. `None` means there is no such message.
    pub fn root_of(&self, ts: &str) -> Option<String> {
        self.books().places.get(ts).map(|(_, root)| root.clone())
    }

    /// Is there a message `ts` in `channel`?
    fn knows(&self, channel: &str, ts: &str) -> bool {
        self.books().places.get(ts).is_some_and(|(known, _)| known == channel)
    }

    pub(super) fn trigger(&self) -> String {
        let token = self.ids.token();
        let id = format!("1234567890.987654321.{token}");
        self.books().triggers.insert(id.clone(), Some(self.clock.now()));
        id
    }

    /// Uses a trigger up; the platform's error name when it opens nothing.
    fn spend(&self, trigger: &str) -> Result<(), &'static str> {
        match self.books().triggers.get_mut(trigger).map(Option::take) {
            None => Err("invalid_trigger_id"),
            Some(None) => Err("exchanged_trigger_id"),
            Some(Some(made)) if self.clock.now().since(made) > TRIGGER_LIFE => Err("expired_trigger_id"),
            Some(Some(_)) => Ok(()),
        }
    }
}

/// Tests read from the stage what happened, and ask it to let calls go wrong.
impl Deref for FakeSlack {
    type Target = Stage;

    fn deref(&self) -> &Stage {
        &self.shared.stage
    }
}

impl FakeSlack {
    /// Listens on a free port of loopback and knows one bot.
    pub async fn start(bot_token: &str, clock: Clock, ids: Ids) -> std::io::Result<Self> {
        Self::start_at(FREE_PORT, bot_token, clock, ids).await
    }

    /// Starts it on `addr`.
    pub async fn start_at(addr: SocketAddr, bot_token: &str, clock: Clock, ids: Ids) -> std::io::Result<Self> {
        let stage = Stage::new(clock.clone());
        let shared = Shared {
            sockets: Sockets::slack(stage.clone()),
            stage,
            workspace: Workspace::new(clock, ids),
            token: Arc::from(bot_token),
            app_token: Arc::default(),
            uploads: Arc::default(),
        };
        let routes = Router::new()
            .route("/api/{method}", post(handlers::method))
            .route("/files/{id}", get(chat::file))
            .route("/upload/v1/{id}", post(files::bytes).layer(DefaultBodyLimit::disable()))
            .fallback(handlers::unknown)
            .with_state(shared.clone());
        let server = Server::start(addr, routes, shared.sockets.clone()).await?;
        Ok(Self { server, shared })
    }

    /// `channels.slack.base_url` for it.
    pub fn base_url(&self) -> String {
        format!("http://{}/api", self.server.addr)
    }

    /// Where it gives out the file `id`.
    pub fn file_url(&self, id: &str) -> String {
        format!("http://{}/files/{id}", self.server.addr)
    }

    /// From now on this app-level token, and no other, opens sockets. Before, none does.
    pub fn set_app_token(&self, token: &str) {
        *self.shared.app_token() = Some(token.to_owned());
    }

    pub fn sockets(&self) -> Sockets {
        self.shared.sockets.clone()
    }

    /// Time stamps and triggers, for the people of this workspace.
    pub fn workspace(&self) -> Workspace {
        self.shared.workspace.clone()
    }
}
