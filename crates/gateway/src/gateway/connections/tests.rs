//! Tests of the connection limit and of its time limits.

use axum::Router;
use axum::routing::{get, post};
use futures_util::FutureExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tower::ServiceExt;

use super::*;

struct Server {
    at: SocketAddr,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

impl Server {
    async fn start(places: usize) -> Self {
        let slow = || async {
            tokio::time::sleep(Duration::from_secs(120)).await;
            "late"
        };
        let read = |body: Bytes| async move { format!("read {}", body.len()) };
        let router = Router::new()
            .route("/", get(|| async { "here" }))
            .route("/read", post(read))
            .route("/slow", get(slow).post(move |_: Bytes| slow()));
        let answer = move |request, _| router.clone().oneshot(request).map(|answered| answered.unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let task = tokio::spawn(serve(listener, answer, places, Clock::system(), stop.clone()));
        Self { at, stop, task }
    }

    async fn send(&self, bytes: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.at).await.unwrap();
        stream.write_all(bytes.as_bytes()).await.unwrap();
        stream
    }

    async fn end(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }
}

/// Everything until the peer closes.
async fn heard(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    // A reset is an end, too.
    let _ = stream.read_to_end(&mut bytes).await;
    String::from_utf8_lossy(&bytes).into_owned()
}

const NO_BODY: &str = "POST /read HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n\r\n";
const HALF: &str = "GET / HTTP/1.1\r\nhost: x\r\nx-a: ";
const LAST: &str = "GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";

/// interface: headers have ten seconds and a connection without a request thirty; a request in progress has no limit here.
#[tokio::test(start_paused = true)]
async fn what_waits_too_long_is_closed() {
    let server = Server::start(16).await;
    for (bytes, least, most) in [
        (HALF, 10, 12),
        ("", 30, 32),
        ("GET / HTTP/1.1\r\nhost: x\r\n\r\n", 30, 32),
        ("GET /slow HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", 120, 122),
    ] {
        let begun = Instant::now();
        let mut stream = server.send(bytes).await;
        let text = heard(&mut stream).await;
        let took = begun.elapsed().as_secs();
        assert!((least..=most).contains(&took), "{bytes:?} was closed after {took} s: {text}");
        assert_eq!(text.contains("200 OK"), bytes.ends_with("\r\n\r\n"), "{bytes:?}: {text}");
    }
    server.end().await;
}

/// interface: with every place taken the connection that has waited longest makes room, so a request is answered all the same.
#[tokio::test]
async fn half_requests_keep_nobody_out() {
    let server = Server::start(16).await;
    for half in [HALF, NO_BODY] {
        let mut waiting = Vec::new();
        for _ in 0..40 {
            waiting.push(server.send(half).await);
            let answer = heard(&mut server.send(LAST).await).await;
            assert!(answer.contains("200 OK"), "{half:?}: {answer}");
        }
        assert_eq!(heard(&mut waiting[0]).await, "", "the first of them was closed");
    }
    server.end().await;
}

/// interface: the rest of an earlier request's body, which may be read after its answer, makes no whole request of the next one.
#[test]
fn a_late_body_completes_no_other_request() {
    let connection = HttpConnection {
        state: Mutex::new(State {
            phase: ConnectionPhase::Idle,
            since: Instant::now(),
            requests: 0,
        }),
        close: Notify::new(),
    };
    let first = connection.begin(false);
    connection.enter(ConnectionPhase::Idle);
    let second = connection.begin(false);
    connection.complete(first);
    assert_eq!(connection.state().phase, ConnectionPhase::Body);
    connection.complete(second);
    assert_eq!(connection.state().phase, ConnectionPhase::Busy);
}

/// interface: a connection whose request is in progress is closed for nobody; when all are, the new one is refused.
#[tokio::test(start_paused = true)]
async fn a_request_in_progress_is_not_closed() {
    let server = Server::start(16).await;
    let mut busy = Vec::new();
    for _ in 0..16 {
        busy.push(
            server
                .send("POST /slow HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 2\r\n\r\nhi")
                .await,
        );
    }
    // Beside sixteen that are taken up there is no place; before that, the newest waits a moment for its request.
    while !heard(&mut server.send(LAST).await).await.is_empty() {}
    for stream in &mut busy {
        assert!(heard(stream).await.contains("late"));
    }
    server.end().await;
}

/// interface: HTTP/1.1 only, and headers of at most 32 KiB.
#[tokio::test]
async fn other_protocols_and_endless_headers_are_refused() {
    let server = Server::start(16).await;
    let preface = heard(&mut server.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await).await;
    assert!(!preface.contains("200 OK") && !preface.contains('\0'), "{preface:?}");
    let endless = format!("{HALF}{}", "a".repeat(64 << 10));
    let answer = heard(&mut server.send(&endless).await).await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
    server.end().await;
}
