//! The socket side of both platforms as a load generator: hands out one WebSocket address, floods whoever connects with distinct events,
//! and counts acknowledgements. Closed loop: `--window` events are unacknowledged at a time, over all connections together.
use axum::Router;
use axum::extract::State;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use countersign_bench::{lark_plain, slack_body};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::sync::{Barrier, watch};

/// Where a run stands.
#[derive(Clone, Copy, PartialEq)]
enum Phase {
    Waiting,
    Flooding,
    Over,
}

struct Flood {
    kind: &'static str,
    port: u16,
    /// Messages that are sent, each once, in this order.
    events: Vec<Message>,
    next: AtomicU64,
    acknowledged: AtomicU64,
    /// Anything else than one acknowledgement of an event.
    odd: AtomicU64,
    /// Unacknowledged events of one connection.
    window: usize,
    all_there: Barrier,
    phase: watch::Receiver<Phase>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let (mut kind, mut port, mut window, mut connections, mut seconds, mut warm, mut most) = ("slack", 0, 32, 1, 3.0, 1000, 200_000);
    let mut words = std::env::args().skip(1);
    while let Some(key) = words.next() {
        let value = words.next().unwrap_or_else(|| panic!("{key} needs a value"));
        match key.as_str() {
            "--kind" => kind = if value == "lark" { "lark" } else { "slack" },
            "--port" => port = value.parse().unwrap(),
            "--window" => window = value.parse().unwrap(),
            "--connections" => connections = value.parse().unwrap(),
            "--duration" => seconds = value.parse().unwrap(),
            "--warm" => warm = value.parse().unwrap(),
            "--max-events" => most = value.parse().unwrap(),
            _ => panic!("unknown {key}"),
        }
    }
    assert!(seconds <= 120.0, "bounded runs only");
    let run = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64;
    let event = |i| if kind == "lark" { lark_event(run, i) } else { slack_event(run, i) };
    let (tell, phase) = watch::channel(Phase::Waiting);
    let flood = Arc::new(Flood {
        kind,
        port,
        events: (0..most).map(event).collect(),
        next: AtomicU64::new(0),
        acknowledged: AtomicU64::new(0),
        odd: AtomicU64::new(0),
        window: (window / connections).max(1),
        all_there: Barrier::new(connections + 1),
        phase,
    });
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    let app = Router::new().route("/socket", axum::routing::any(connected)).fallback(called).with_state(flood.clone());
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    tokio::time::timeout(Duration::from_secs(60), flood.all_there.wait()).await.expect("too few connections");
    tell.send(Phase::Flooding).unwrap();
    while flood.acknowledged.load(Relaxed) < warm {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    println!("warm");
    let (began, before) = (Instant::now(), flood.acknowledged.load(Relaxed));
    while began.elapsed().as_secs_f64() < seconds && flood.next.load(Relaxed) < most {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let (took, count) = (began.elapsed().as_secs_f64(), flood.acknowledged.load(Relaxed) - before);
    tell.send(Phase::Over).unwrap();
    let result = json!({
        "kind": kind, "connections": connections, "seconds": took, "events": count, "rps": count as f64 / took, "odd": flood.odd.load(Relaxed),
    });
    println!("{result}");
}

async fn connected(State(flood): State<Arc<Flood>>, upgrade: WebSocketUpgrade) -> Response {
    upgrade.on_upgrade(move |socket| serve(flood, socket))
}

/// One connection: the greeting, then events for acknowledgements.
async fn serve(flood: Arc<Flood>, socket: WebSocket) {
    let (mut out, incoming) = socket.split();
    // Acknowledgements that are there already are answered together.
    let mut incoming = incoming.ready_chunks(64);
    let mut phase = flood.phase.clone();
    if flood.kind == "slack" {
        let hello = json!({"type": "hello", "num_connections": 1, "connection_info": {"app_id": "A0BENCH01"},
            "debug_info": {"host": "bench", "build_number": 1, "approximate_connection_time": 18060}});
        out.send(Message::text(hello.to_string())).await.unwrap();
    }
    tokio::select! {
        _ = flood.all_there.wait() => {}
        // A client may ping first.
        _ = answer_pings(&flood, &mut out, &mut incoming) => return,
    }
    phase.wait_for(|phase| *phase == Phase::Flooding).await.unwrap();
    let mut free = flood.window;
    loop {
        for _ in 0..free {
            let i = flood.next.fetch_add(1, Relaxed) as usize;
            let over = *phase.borrow() == Phase::Over;
            if let Some(event) = flood.events.get(i).filter(|_| !over) {
                out.feed(event.clone()).await.unwrap();
            }
        }
        free = 0;
        if out.flush().await.is_err() {
            return;
        }
        let Some(chunk) = incoming.next().await else { return };
        for message in chunk {
            match message.map(|message| heard(flood.kind, &message)) {
                Ok(Heard::Acknowledgement) => free += 1,
                Ok(Heard::Ping(pong)) => out.feed(pong).await.unwrap(),
                Ok(Heard::Protocol) => {}
                Ok(Heard::Odd) => drop(flood.odd.fetch_add(1, Relaxed)),
                Err(_) => return,
            }
        }
        flood.acknowledged.fetch_add(free as u64, Relaxed);
    }
}

type Out = futures_util::stream::SplitSink<WebSocket, Message>;
type Incoming = futures_util::stream::ReadyChunks<futures_util::stream::SplitStream<WebSocket>>;

/// Answers the platform's own pings until the connection ends.
async fn answer_pings(flood: &Flood, out: &mut Out, incoming: &mut Incoming) {
    while let Some(chunk) = incoming.next().await {
        for message in chunk.into_iter().flatten() {
            if let Heard::Ping(pong) = heard(flood.kind, &message) {
                out.send(pong).await.unwrap();
            }
        }
    }
}

enum Heard {
    Acknowledgement,
    /// Lark's own ping, with its pong.
    Ping(Message),
    /// Pings and pongs of WebSocket, which the library answers.
    Protocol,
    Odd,
}

fn heard(kind: &str, message: &Message) -> Heard {
    match (kind, message) {
        (_, Message::Ping(_) | Message::Pong(_)) => Heard::Protocol,
        ("slack", Message::Text(text)) if text.contains("\"envelope_id\"") => Heard::Acknowledgement,
        ("lark", Message::Binary(frame)) => match method(frame) {
            // A pong is a control frame too.
            Some(0) => Heard::Ping(Message::binary(control("pong", b"{\"ReconnectCount\":-1,\"ReconnectInterval\":120,\"ReconnectNonce\":30,\"PingInterval\":120}"))),
            Some(1) if frame.windows(8).any(|part| part == b"\"code\":2" || part == b"\"code\": ") => Heard::Acknowledgement,
            _ => Heard::Odd,
        },
        _ => Heard::Odd,
    }
}

/// Answers the calls that clients make before they connect.
async fn called(State(flood): State<Arc<Flood>>, uri: Uri) -> Response {
    let address = format!("ws://127.0.0.1:{}/socket?service_id=1&device_id=bench", flood.port);
    let answer: Value = match uri.path() {
        path if path.ends_with("/apps.connections.open") => json!({"ok": true, "url": address}),
        path if path.ends_with("/auth.test") => json!({"ok": true, "url": "https://bench.slack.com/", "team": "bench", "user": "bot",
            "team_id": "T0BENCH01", "user_id": "U0BOT0001", "bot_id": "B0BENCH01", "is_enterprise_install": false}),
        "/callback/ws/endpoint" => json!({"code": 0, "msg": "ok", "data": {"URL": address,
            "ClientConfig": {"ReconnectCount": -1, "ReconnectInterval": 120, "ReconnectNonce": 30, "PingInterval": 120}}}),
        path if path.ends_with("/tenant_access_token/internal") => json!({"code": 0, "msg": "ok", "tenant_access_token": "t-bench", "expire": 7200}),
        path if path.ends_with("/bot/v3/info") => json!({"code": 0, "msg": "ok", "bot": {"activate_status": 2, "app_name": "bench",
            "open_id": "ou_000000000000000000000000000000ff"}}),
        _ => return (StatusCode::NOT_FOUND, axum::Json(json!({"ok": false, "error": "unknown_method"}))).into_response(),
    };
    axum::Json(answer).into_response()
}

fn slack_event(run: u64, i: u64) -> Message {
    let payload = slack_body(run, i, false);
    Message::text(format!(
        "{{\"envelope_id\":\"{run:016x}-{i:x}\",\"payload\":{payload},\"type\":\"events_api\",\"accepts_response_payload\":false,\"retry_attempt\":0,\"retry_reason\":\"\"}}"
    ))
}

// ---------- Lark's frames: protobuf `pbbp2.Frame` ----------

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn bytes(out: &mut Vec<u8>, field: u64, value: &[u8]) {
    varint(out, field << 3 | 2);
    varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

fn frame(method: u64, headers: &[(&str, &str)], payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(payload.len() + 200);
    // SeqID, LogID, service, method.
    for (field, value) in [(1, 1), (2, 1), (3, 1), (4, method)] {
        varint(&mut out, field << 3);
        varint(&mut out, value);
    }
    for (key, value) in headers {
        let mut header = Vec::new();
        bytes(&mut header, 1, key.as_bytes());
        bytes(&mut header, 2, value.as_bytes());
        bytes(&mut out, 5, &header);
    }
    bytes(&mut out, 8, payload);
    out
}

fn control(kind: &str, payload: &[u8]) -> Vec<u8> {
    frame(0, &[("type", kind)], payload)
}

fn lark_event(run: u64, i: u64) -> Message {
    let id = format!("{run:016x}{i:x}");
    let headers = [("type", "event"), ("message_id", id.as_str()), ("trace_id", id.as_str()), ("sum", "1"), ("seq", "0")];
    Message::binary(frame(1, &headers, lark_plain(run, i, false).as_bytes()))
}

/// The frame's method: 0 control, 1 data. `None`: this is no frame.
fn method(frame: &[u8]) -> Option<u64> {
    let mut rest = frame;
    while !rest.is_empty() {
        let tag = take_varint(&mut rest)?;
        match (tag >> 3, tag & 7) {
            (4, 0) => return take_varint(&mut rest),
            (_, 0) => drop(take_varint(&mut rest)?),
            (_, 2) => {
                let length = usize::try_from(take_varint(&mut rest)?).ok()?;
                rest = rest.get(length..)?;
            }
            _ => return None,
        }
    }
    None
}

fn take_varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (first, others) = rest.split_first()?;
        *rest = others;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}
