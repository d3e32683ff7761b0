//! A Lark tenant on loopback: it takes our calls over real HTTP, checks each by the platform's rules, and remembers
//! what a person would see. For `countersign demo` and for the tests.

mod routes;
mod world;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::domain::{Clock, Millis};
use world::World;

/// The endpoints that we play.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LarkRoute {
    /// `POST auth/v3/tenant_access_token/internal`.
    Token,
    /// `GET bot/v3/info`.
    BotInfo,
    /// `POST im/v1/messages`.
    Create,
    /// `POST im/v1/messages/:id/reply`.
    Reply,
    /// `PATCH im/v1/messages/:id`.
    Patch,
    /// `POST im/v1/messages/:id/reactions`.
    React,
    /// `DELETE im/v1/messages/:id/reactions/:reaction`.
    Unreact,
}

/// What a call gets instead of its answer.
#[derive(Clone, Debug)]
pub enum Fault {
    /// This HTTP status and `code`; the call has no effect.
    Refuse {
        /// HTTP status.
        status: u16,
        /// `code` of the body.
        code: i64,
        /// `x-ogw-ratelimit-reset`, seconds.
        reset: Option<u64>,
    },
    /// The call takes effect and its answer comes late.
    Delay(Duration),
    /// The call takes effect and its answer is lost: the connection is answered with HTTP 502 and no Lark body.
    LoseAnswer,
}

/// One call as it came.
#[derive(Clone, Debug)]
pub struct LarkCall {
    /// Which endpoint.
    pub route: LarkRoute,
    /// Message id in the path, if any.
    pub target: Option<String>,
    /// Body; null without one. The app secret is not in it.
    pub body: Value,
    /// HTTP status and `code` that it got.
    pub outcome: (u16, i64),
}

/// A message as it stands in a chat.
#[derive(Clone, Debug)]
pub struct LarkMessage {
    /// `om_…`.
    pub id: String,
    /// `oc_…`; of a reply, the chat of the message it answers, as far as known.
    pub chat: String,
    /// The message it answers.
    pub reply_to: Option<String>,
    /// It was to stay in a thread.
    pub in_thread: bool,
    /// `text` or `interactive`.
    pub msg_type: String,
    /// Its content, parsed: the card, or `{"text": …}`.
    pub content: Value,
    /// What it showed before, oldest first, one entry a patch.
    pub earlier: Vec<Value>,
    /// When, by our clock.
    pub at: Millis,
}

impl LarkMessage {
    /// Is it a card?
    #[must_use]
    pub fn is_card(&self) -> bool {
        self.msg_type == "interactive"
    }

    /// The text of a text message, else the card's JSON as text: for looking for words.
    #[must_use]
    pub fn words(&self) -> String {
        self.content["text"]
            .as_str()
            .map_or_else(|| self.content.to_string(), str::to_owned)
    }
}

/// What happened so far.
#[derive(Clone, Debug, Default)]
pub struct LarkState {
    /// Our messages in the order in which they came.
    pub messages: Vec<LarkMessage>,
    /// Reactions that stand: message, emoji.
    pub reactions: Vec<(String, String)>,
    /// Every call.
    pub calls: Vec<LarkCall>,
    /// Rules of the platform that a call broke. Must be empty at the end of every test.
    pub violations: Vec<String>,
}

impl LarkState {
    /// The message `id`.
    #[must_use]
    pub fn message(&self, id: &str) -> Option<&LarkMessage> {
        self.messages.iter().find(|message| message.id == id)
    }

    /// How many calls went to `route`.
    #[must_use]
    pub fn count(&self, route: LarkRoute) -> usize {
        self.calls.iter().filter(|call| call.route == route).count()
    }
}

/// The server. It stops when this is dropped.
#[derive(Debug)]
pub struct FakeLark {
    address: SocketAddr,
    shared: Arc<Shared>,
    server: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    world: Mutex<World>,
    changed: watch::Sender<u64>,
    clock: Clock,
}

impl Shared {
    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn touch(&self) {
        self.changed.send_modify(|count| *count += 1);
    }
}

impl FakeLark {
    /// Plays the tenant of app `app_id` with `app_secret` on `bind` (port 0: any).
    ///
    /// # Errors
    /// The address cannot be bound.
    pub async fn start(bind: SocketAddr, app_id: &str, app_secret: &str) -> std::io::Result<Self> {
        let listener = TcpListener::bind(bind).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            world: Mutex::new(World::new(app_id, app_secret)),
            changed: watch::Sender::new(0),
            clock: Clock::system(),
        });
        let router = routes::router(Arc::clone(&shared));
        let server = tokio::spawn(async move {
            // Ends with the task; an error of the listener shows as calls that fail.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self { address, shared, server })
    }

    /// For `channels.lark.base_url`.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The bot's own open id.
    #[must_use]
    pub fn bot_id(&self) -> String {
        world::BOT.to_owned()
    }

    /// What happened so far.
    #[must_use]
    pub fn state(&self) -> LarkState {
        self.shared.world().state.clone()
    }

    /// Makes a message of a person known, so that replies to it find their chat.
    pub fn said(&self, message_id: &str, chat: &str) {
        self.shared.world().people.insert(message_id.to_owned(), chat.to_owned());
    }

    /// Recalls a message, ours or a person's: answers and updates to it get 230011 from now on.
    pub fn recall(&self, message_id: &str) {
        self.shared.world().recalled.insert(message_id.to_owned());
    }

    /// The next `count` calls to `route` get `fault`.
    pub fn fail(&self, route: LarkRoute, count: usize, fault: &Fault) {
        let mut world = self.shared.world();
        world
            .faults
            .entry(route)
            .or_default()
            .extend(std::iter::repeat_n(fault.clone(), count));
    }

    /// Every token handed out so far stops working, though nobody was told.
    pub fn expire_tokens(&self) {
        self.shared.world().tokens.clear();
    }

    /// `expire` of the tokens handed out from now on, seconds.
    pub fn set_token_life(&self, seconds: u64) {
        self.shared.world().token_life = seconds;
    }

    /// Waits until `met` holds, looking again at every change.
    ///
    /// # Errors
    /// The state as it is when `timeout` has passed.
    pub async fn wait_for(&self, timeout: Duration, mut met: impl FnMut(&LarkState) -> bool) -> Result<LarkState, Box<LarkState>> {
        let mut changes = self.shared.changed.subscribe();
        let found = tokio::time::timeout(timeout, async {
            loop {
                changes.mark_unchanged();
                let state = self.state();
                if met(&state) {
                    return Some(state);
                }
                changes.changed().await.ok()?;
            }
        })
        .await;
        found.ok().flatten().ok_or_else(|| Box::new(self.state()))
    }
}

impl Drop for FakeLark {
    fn drop(&mut self) {
        self.server.abort();
    }
}
