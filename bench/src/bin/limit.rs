//! The baselines: what axum itself costs, what verifying and reading costs on top, and what it costs to commit each event to a SQLite file
//! before it is answered. The first two keep nothing.
//!
//! `limit bare|verify` or `limit commit FILE` on a port of its own, which it prints; also answers what a gateway asks its platforms at start.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use axum::serve::ListenerExt;
use axum::{Router, http::header};
use countersign_bench as wire;
use tokio::sync::{mpsc, oneshot};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

struct Server {
    verifies: bool,
    key: [u8; 32],
    /// To the thread that commits, if events are kept.
    keep: Option<mpsc::Sender<Kept>>,
}

/// An event's id, its text, and whom to tell that it is on the disk.
type Kept = (String, Vec<u8>, oneshot::Sender<bool>);

impl Server {
    async fn answer(&self, id: &str, text: &[u8]) -> StatusCode {
        let Some(keep) = &self.keep else { return StatusCode::OK };
        let (told, stored) = oneshot::channel();
        if keep.send((id.to_owned(), text.to_vec(), told)).await.is_err() || !stored.await.unwrap_or(false) {
            return StatusCode::SERVICE_UNAVAILABLE;
        }
        StatusCode::OK
    }
}

/// The least that a durable gateway can do on one file: one thread appends, and whatever waits shares a commit.
fn commit(mut waiting: mpsc::Receiver<Kept>, file: &str) {
    let mut database = rusqlite::Connection::open(file).unwrap();
    database
        .execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 4000;
             CREATE TABLE inbox (id INTEGER PRIMARY KEY, event TEXT NOT NULL, received_at INTEGER NOT NULL, payload BLOB NOT NULL)",
        )
        .unwrap();
    let mut batch = Vec::with_capacity(64);
    while waiting.blocking_recv_many(&mut batch, 64) > 0 {
        let transaction = database.transaction().unwrap();
        for (id, text, _) in &batch {
            transaction
                .prepare_cached("INSERT INTO inbox (event, received_at, payload) VALUES (?1, 0, ?2)")
                .unwrap()
                .execute((id, text))
                .unwrap();
        }
        let stored = transaction.commit().is_ok();
        for (_, _, told) in batch.drain(..) {
            let _ = told.send(stored);
        }
    }
}

type Shared = State<Arc<Server>>;

fn header<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("")
}

async fn slack(State(server): Shared, headers: HeaderMap, body: Bytes) -> StatusCode {
    if !server.verifies {
        return StatusCode::OK;
    }
    let at = header(&headers, "x-slack-request-timestamp");
    if !wire::slack_verify(wire::SLACK_SECRET.as_bytes(), at, header(&headers, "x-slack-signature"), &body) {
        return StatusCode::UNAUTHORIZED;
    }
    let Ok(event) = serde_json::from_slice::<wire::SlackEnv<'_>>(&body) else {
        return StatusCode::BAD_REQUEST;
    };
    std::hint::black_box(&event);
    server.answer(event.event_id, &body).await
}

async fn lark(State(server): Shared, headers: HeaderMap, body: Bytes) -> StatusCode {
    if !server.verifies {
        return StatusCode::OK;
    }
    let (at, nonce) = (
        header(&headers, "x-lark-request-timestamp"),
        header(&headers, "x-lark-request-nonce"),
    );
    if !wire::lark_verify(wire::LARK_KEY, at, nonce, header(&headers, "x-lark-signature"), &body) {
        return StatusCode::UNAUTHORIZED;
    }
    let plain = serde_json::from_slice::<wire::LarkOuter<'_>>(&body)
        .ok()
        .and_then(|outer| wire::lark_decrypt(&server.key, outer.encrypt));
    let Some(plain) = plain else { return StatusCode::BAD_REQUEST };
    let Ok(event) = serde_json::from_slice::<wire::LarkEnv>(&plain) else {
        return StatusCode::BAD_REQUEST;
    };
    if event.header.token != wire::LARK_TOKEN {
        return StatusCode::UNAUTHORIZED;
    }
    std::hint::black_box(&event);
    server.answer(&event.header.event_id, &plain).await
}

/// Who the bot is, on both platforms.
const IDENTITY: &str = r#"{"ok":true,"code":0,"msg":"ok","user_id":"U0BOT0001","bot_id":"B0BOT0001","team_id":"T0BENCH01","url":"http://127.0.0.1/","user":"bot","team":"bench","tenant_access_token":"t-bench","expire":7200,"bot":{"open_id":"ou_000000000000000000000000000000ff","app_name":"bench","activate_status":2}}"#;

async fn identity() -> ([(header::HeaderName, &'static str); 1], &'static str) {
    ([(header::CONTENT_TYPE, "application/json")], IDENTITY)
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let (verifies, file) = match arguments.next().as_deref() {
        Some("bare") => (false, None),
        Some("verify") => (true, None),
        Some("commit") => (true, Some(arguments.next().expect("commit FILE"))),
        other => panic!("bare, verify or commit, not {other:?}"),
    };
    let keep = file.map(|file| {
        let (keep, waiting) = mpsc::channel(1024);
        std::thread::spawn(move || commit(waiting, &file));
        keep
    });
    let server = Arc::new(Server {
        verifies,
        key: wire::lark_key(wire::LARK_KEY),
        keep,
    });
    let app = Router::new()
        .route("/webhooks/slack/events", post(slack))
        .route("/webhooks/lark/events", post(lark))
        .fallback(get(identity).post(identity))
        .with_state(server);
    let port = std::env::var("PORT").unwrap_or_else(|_| "0".into());
    let listener = tokio::net::TcpListener::bind(format!("127.0.0.1:{port}")).await.unwrap();
    println!("ready: http://{}/", listener.local_addr().unwrap());
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, app).await.unwrap();
}
