//! A Lark server on loopback that checks what it gets: token, bot info, create, reply, patch, reactions, sockets.
//!
//! The demo plays its chat through it and the tests assert on it. It refuses what the real platform refuses
//! and remembers every violation.

mod files;
mod handlers;
mod reading;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{delete, get, patch, post};
use countersign_agent::domain::Clock;
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;

use super::check_card;
use super::sockets::Sockets;
use super::stage::{FREE_PORT, Server, Stage};

/// The bot's open id in this tenant.
pub const BOT: &str = "ou_bot";

#[derive(Debug)]
pub struct FakeLark {
    server: Server,
    shared: Shared,
}

#[derive(Clone, Debug)]
struct Shared {
    stage: Stage,
    sockets: Sockets,
    keys: Arc<Mutex<Keys>>,
    app_id: Arc<str>,
    app_secret: Arc<str>,
}

#[derive(Debug, Default)]
struct Keys {
    tokens: BTreeSet<String>,
    issued: u64,
    /// Message ids by the `uuid` that they were made with.
    by_uuid: BTreeMap<String, String>,
    uploads: BTreeMap<String, files::Upload>,
}

impl Shared {
    fn keys(&self) -> MutexGuard<'_, Keys> {
        self.keys.lock()
    }
}

/// Tests read from the stage what happened, and ask it to let calls go wrong.
impl Deref for FakeLark {
    type Target = Stage;

    fn deref(&self) -> &Stage {
        &self.shared.stage
    }
}

impl FakeLark {
    /// Listens on a free port of loopback and knows one app.
    pub async fn start(app_id: &str, app_secret: &str, clock: Clock) -> std::io::Result<Self> {
        let stage = Stage::new(clock);
        let shared = Shared {
            sockets: Sockets::lark(stage.clone()),
            stage,
            keys: Arc::default(),
            app_id: Arc::from(app_id),
            app_secret: Arc::from(app_secret),
        };
        let server = Server::start(FREE_PORT, routes(shared.clone()), shared.sockets.clone()).await?;
        Ok(Self { server, shared })
    }

    /// `channels.lark.base_url` for it.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.server.addr)
    }

    pub fn sockets(&self) -> Sockets {
        self.shared.sockets.clone()
    }

    pub fn tokens(&self) -> Vec<String> {
        self.shared.keys().tokens.iter().cloned().collect()
    }

    /// The client shows the card of `answer`, which answered a press on the card `message`.
    pub fn show_answer(&self, message: &str, answer: &Value) {
        let card = &answer["card"]["data"];
        if answer["card"]["type"] != "raw" {
            return;
        }
        let mut state = self.shared.stage.lock();
        if let Err(why) = check_card(card) {
            state.violation(why);
            return;
        }
        state.repaint(message, card.clone());
        drop(state);
        self.shared.stage.tell_change();
    }

    /// Makes every token handed out so far invalid, as the platform does now and then.
    pub fn expire_tokens(&self) {
        self.shared.keys().tokens.clear();
    }
}

fn routes(shared: Shared) -> Router {
    Router::new()
        .route("/open-apis/auth/v3/tenant_access_token/internal", post(handlers::token))
        .route("/open-apis/bot/v3/info", get(handlers::bot))
        .route("/open-apis/im/v1/messages", post(handlers::create).get(reading::list))
        .route("/open-apis/im/v1/messages/{id}/reply", post(handlers::reply))
        .route("/open-apis/im/v1/messages/{id}", patch(handlers::patch).get(reading::message))
        .route("/open-apis/im/v1/messages/{id}/resources/{key}", get(reading::resource))
        .route("/open-apis/im/v1/messages/{id}/reactions", post(handlers::react))
        .route("/open-apis/im/v1/messages/{id}/reactions/{mark}", delete(handlers::unreact))
        .route("/open-apis/im/v1/files", post(files::file).layer(DefaultBodyLimit::disable()))
        .route("/open-apis/im/v1/images", post(files::image).layer(DefaultBodyLimit::disable()))
        .route("/callback/ws/endpoint", post(handlers::endpoint))
        .route("/open-apis/contact/v3/users/find_by_department", get(handlers::members))
        .with_state(shared)
}
