//! The limit servers: what axum itself costs, and what verifying and reading costs on top. They keep nothing.
//!
//! `limit bare|verify` on a port of its own, which it prints; also answers what a gateway asks its platforms at start.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use axum::serve::ListenerExt;
use axum::{Router, http::header};
use countersign_bench as wire;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

struct Server {
    verifies: bool,
    key: [u8; 32],
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
    StatusCode::OK
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
    let Some(event) = plain.and_then(|plain| serde_json::from_slice::<wire::LarkEnv>(&plain).ok()) else {
        return StatusCode::BAD_REQUEST;
    };
    if event.header.token != wire::LARK_TOKEN {
        return StatusCode::UNAUTHORIZED;
    }
    std::hint::black_box(&event);
    StatusCode::OK
}

/// Who the bot is, on both platforms.
const IDENTITY: &str = r#"{"ok":true,"code":0,"msg":"ok","user_id":"U0BOT0001","bot_id":"B0BOT0001","team_id":"T0BENCH01","url":"http://127.0.0.1/","user":"bot","team":"bench","tenant_access_token":"t-bench","expire":7200,"bot":{"open_id":"ou_000000000000000000000000000000ff","app_name":"bench","activate_status":2}}"#;

async fn identity() -> ([(header::HeaderName, &'static str); 1], &'static str) {
    ([(header::CONTENT_TYPE, "application/json")], IDENTITY)
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let verifies = match std::env::args().nth(1).as_deref() {
        Some("bare") => false,
        Some("verify") => true,
        other => panic!("bare or verify, not {other:?}"),
    };
    let server = Arc::new(Server {
        verifies,
        key: wire::lark_key(wire::LARK_KEY),
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
