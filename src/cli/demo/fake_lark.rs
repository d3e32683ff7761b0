//! A Lark server on loopback that checks what it gets: token, bot info, create, reply, patch, reactions.
//!
//! The demo plays its chat through it and the tests assert on it. It refuses what the real platform refuses
//! and remembers every violation.

mod handlers;
mod messages;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::routing::{get, patch, post};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::domain::Clock;

use messages::State;
pub use messages::{Call, Fault, Posted, Snapshot};

/// The bot's open id in this tenant.
pub const BOT: &str = "ou_bot";

/// A running fake.
#[derive(Debug)]
pub struct FakeLark {
    /// Where it listens.
    pub addr: SocketAddr,
    shared: Shared,
    stop: CancellationToken,
}

/// What the handlers share.
#[derive(Clone, Debug)]
struct Shared {
    state: Arc<Mutex<State>>,
    changed: Arc<Notify>,
    clock: Clock,
    app_id: Arc<str>,
    app_secret: Arc<str>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FakeLark {
    /// Listens on a free port of loopback and knows one app.
    ///
    /// # Errors
    /// When no port can be had.
    pub async fn start(app_id: &str, app_secret: &str, clock: Clock) -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let addr = listener.local_addr()?;
        let shared = Shared {
            state: Arc::default(),
            changed: Arc::default(),
            clock,
            app_id: Arc::from(app_id),
            app_secret: Arc::from(app_secret),
        };
        let stop = CancellationToken::new();
        let serving = axum::serve(listener, routes(shared.clone())).with_graceful_shutdown(stop.clone().cancelled_owned());
        tokio::spawn(serving.into_future());
        Ok(Self { addr, shared, stop })
    }

    /// `channels.lark.base_url` for it.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// Everything that happened so far.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.shared.lock().snapshot()
    }

    /// Waits until `found` finds something in the state; none after `patience`.
    pub async fn wait_for<T>(&self, patience: Duration, mut found: impl FnMut(&Snapshot) -> Option<T>) -> Option<T> {
        let search = async {
            loop {
                // Registered before the look, so that a change in between is not missed.
                let changed = self.shared.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                if let Some(found) = found(&self.snapshot()) {
                    return found;
                }
                changed.await;
            }
        };
        tokio::time::timeout(patience, search).await.ok()
    }

    /// Tells which chat a person's message is in, so that replies to it are filed there.
    pub fn learn(&self, message_id: &str, chat: &str) {
        self.shared.lock().chats.insert(message_id.to_owned(), chat.to_owned());
    }

    /// A person's message is recalled: replies to it are refused from now on.
    pub fn recall(&self, message_id: &str) {
        self.shared.lock().recalled.insert(message_id.to_owned());
    }

    /// Lets the next calls of an endpoint (`token`, `bot`, `create`, `reply`, `patch`, `react`) go wrong.
    pub fn fault(&self, endpoint: &str, fault: Fault) {
        self.shared.lock().faults.push((endpoint.to_owned(), fault));
    }

    /// The tokens that are good now.
    #[must_use]
    pub fn tokens(&self) -> Vec<String> {
        self.shared.lock().tokens.iter().cloned().collect()
    }

    /// Makes every token handed out so far invalid, as the platform does now and then.
    pub fn expire_tokens(&self) {
        self.shared.lock().tokens.clear();
    }

    /// From now on calls of `endpoint` wait until [`FakeLark::release`].
    pub fn hold(&self, endpoint: &str) {
        self.shared.lock().held.insert(endpoint.to_owned());
    }

    /// Lets held calls go on.
    pub fn release(&self, endpoint: &str) {
        self.shared.lock().held.remove(endpoint);
        self.shared.changed.notify_waiters();
    }
}

impl Drop for FakeLark {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn routes(shared: Shared) -> Router {
    Router::new()
        .route("/open-apis/auth/v3/tenant_access_token/internal", post(handlers::token))
        .route("/open-apis/bot/v3/info", get(handlers::bot))
        .route("/open-apis/im/v1/messages", post(handlers::create))
        .route("/open-apis/im/v1/messages/{id}/reply", post(handlers::reply))
        .route("/open-apis/im/v1/messages/{id}", patch(handlers::patch))
        .route("/open-apis/im/v1/messages/{id}/reactions", post(handlers::react))
        .with_state(shared)
}
