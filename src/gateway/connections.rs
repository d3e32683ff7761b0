//! Accepts connections, with a limit on how many are open and on how long each may keep us waiting.
//!
//! A connection *waits* while it has no whole request: nothing, a part of the headers, or a part of the body has arrived. When all
//! places are taken, the connection that has waited longest is closed for the new one. So incomplete requests only push out
//! each other, and a request that arrives whole is answered. A connection whose whole request is being answered is never closed for
//! another; when all are, the new one is.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::http::{Request, StatusCode};
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use metrics::counter;
use rustix::process::{Resource, getrlimit};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;
use tracing::warn;

use super::refusals::Refusals;
use crate::domain::Clock;

/// The headers of a request are complete so long after its first byte.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// A connection without a request is kept so long.
const IDLE_TIME: Duration = Duration::from_secs(30);
/// The two limits are looked at so often.
const TICK: Duration = Duration::from_secs(1);
/// Longer headers are answered with 431. Platforms send less than 4 KiB.
const MAX_HEAD: usize = 32 << 10;
/// After an error of `accept` the next try waits so long: without a free descriptor it would fail at once, again and again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// At most so many descriptors, and at most half of all, are kept from connections: for the database, the model, the platforms and files.
const OWN_DESCRIPTORS: u64 = 256;

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// It has no request.
    Idle,
    /// A request has begun to arrive.
    Head,
    /// The headers have arrived, the body has not ended.
    Body,
    /// A whole request is being answered, or the connection has become a WebSocket.
    Busy,
    /// It is being closed; its place is free.
    Closing,
}

impl Phase {
    fn waits(self) -> bool {
        matches!(self, Self::Idle | Self::Head | Self::Body)
    }
}

#[derive(Debug)]
struct Connection {
    state: Mutex<(Phase, Instant)>,
    close: Notify,
}

impl Connection {
    fn state(&self) -> MutexGuard<'_, (Phase, Instant)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, phase: Phase) {
        let mut state = self.state();
        if state.0 != Phase::Closing {
            *state = (phase, Instant::now());
        }
    }

    /// The body has ended. An answer may have been sent before.
    fn complete(&self) {
        let mut state = self.state();
        if state.0 == Phase::Body {
            *state = (Phase::Busy, Instant::now());
        }
    }

    /// Since when it waits, if it does.
    fn waits_since(&self) -> Option<Instant> {
        let (phase, since) = *self.state();
        phase.waits().then_some(since)
    }

    /// Closes it for another if it still waits.
    fn make_room(&self) -> bool {
        let mut state = self.state();
        let waits = state.0.waits();
        if waits {
            state.0 = Phase::Closing;
            self.close.notify_one();
        }
        waits
    }

    /// Why it has waited too long.
    fn overdue(&self) -> Option<&'static str> {
        let (phase, since) = *self.state();
        match phase {
            Phase::Head if since.elapsed() >= HEAD_TIME => Some("headers"),
            Phase::Idle if since.elapsed() >= IDLE_TIME => Some("idle"),
            Phase::Idle | Phase::Head | Phase::Body | Phase::Busy | Phase::Closing => None,
        }
    }
}

/// The connections that have a place.
#[derive(Debug)]
struct Places {
    limit: usize,
    open: Mutex<(u64, HashMap<u64, Arc<Connection>>)>,
}

impl Places {
    /// A place for a new connection; without one when every connection is being answered.
    fn take(self: &Arc<Self>, closed: impl FnOnce()) -> Option<Place> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.1.len() >= self.limit {
            let waiting = open.1.iter().filter_map(|(id, one)| one.waits_since().map(|since| (since, *id)));
            let mut waiting: Vec<_> = waiting.collect();
            waiting.sort_unstable();
            // The rest of a request may arrive between the two looks.
            let (_, oldest) = waiting
                .into_iter()
                .find(|(_, id)| open.1.get(id).is_some_and(|one| one.make_room()))?;
            open.1.remove(&oldest);
            closed();
        }
        open.0 += 1;
        let id = open.0;
        let connection = Arc::new(Connection {
            state: Mutex::new((Phase::Idle, Instant::now())),
            close: Notify::new(),
        });
        open.1.insert(id, Arc::clone(&connection));
        Some(Place {
            places: Arc::clone(self),
            id,
            connection,
        })
    }
}

/// One connection's place; it is given back with the socket, which a WebSocket takes along.
#[derive(Debug)]
struct Place {
    places: Arc<Places>,
    id: u64,
    connection: Arc<Connection>,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.places.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.1.remove(&self.id);
    }
}

/// A socket that notes when a request begins and when an answer is taken.
struct Socket {
    stream: TcpStream,
    place: Place,
}

impl AsyncRead for Socket {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before && self.place.connection.state().0 == Phase::Idle {
            self.place.connection.enter(Phase::Head);
        }
        polled
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.wrote(&polled);
        polled
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, context: &mut Context<'_>, parts: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.wrote(&polled);
        polled
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl Socket {
    /// An answer that is still being taken is no idleness.
    fn wrote(&self, polled: &Poll<io::Result<usize>>) {
        if matches!(polled, Poll::Ready(Ok(_))) && self.place.connection.state().0 == Phase::Idle {
            self.place.connection.enter(Phase::Idle);
        }
    }
}

/// A request's body, which notes its end.
struct RequestBody {
    body: Incoming,
    connection: Arc<Connection>,
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if matches!(polled, Poll::Ready(None)) || self.body.is_end_stream() {
            self.connection.complete();
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// How many connections may be open: the configured number, or fewer where the process may not open enough files.
fn limit(configured: usize) -> usize {
    let Some(descriptors) = getrlimit(Resource::Nofile).current else {
        return configured;
    };
    let room = descriptors - OWN_DESCRIPTORS.min(descriptors / 2);
    let limit = configured.min(usize::try_from(room).unwrap_or(usize::MAX));
    if limit < configured {
        warn!("server.max_connections: {limit} instead of {configured}, because this process may open {descriptors} files (ulimit -n)");
    }
    limit
}

/// What the log says about connections that were closed or refused.
struct Report {
    refusals: Refusals,
    clock: Clock,
}

impl Report {
    fn closed(&self, reason: &'static str) {
        counter!("countersign_connections_refused_total", "reason" => reason).increment(1);
        if let Some(missed) = self.refusals.count(reason, self.clock.now()) {
            let not_logged_before = (missed > 0).then_some(missed);
            warn!(reason, not_logged_before, "connection closed");
        }
    }
}

/// Serves `router` on `listener` until `stop`; then open requests are answered, and it returns when the last connection is closed.
pub async fn serve(listener: TcpListener, router: Router, max_connections: usize, clock: Clock, stop: CancellationToken) {
    let places = Arc::new(Places {
        limit: limit(max_connections),
        open: Mutex::default(),
    });
    let report = Arc::new(Report {
        refusals: Refusals::default(),
        clock,
    });
    let tasks = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => break,
        };
        match accepted {
            Ok((stream, peer)) => match places.take(|| report.closed("waited_longest")) {
                Some(place) => {
                    let socket = Socket { stream, place };
                    tasks.spawn(answer(socket, peer, router.clone(), Arc::clone(&report), stop.clone()));
                }
                None => report.closed("all_busy"),
            },
            Err(error) => {
                // A peer that has gone again before it was accepted is no fault of ours.
                if !matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset) {
                    report.closed("accept_failed");
                    tracing::debug!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
    drop(listener);
    tasks.close();
    tasks.wait().await;
}

/// Answers the requests of one connection.
async fn answer(socket: Socket, peer: SocketAddr, router: Router, report: Arc<Report>, stop: CancellationToken) {
    let connection = Arc::clone(&socket.place.connection);
    let phases = Arc::clone(&connection);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer);
        let whole = request.body().is_end_stream();
        phases.enter(if whole { Phase::Busy } else { Phase::Body });
        let connection = Arc::clone(&phases);
        let request = request.map(|body| RequestBody { body, connection });
        let (answering, phases) = (router.clone().oneshot(request), Arc::clone(&phases));
        async move {
            let answered = answering.await;
            let upgraded = answered
                .as_ref()
                .is_ok_and(|response| response.status() == StatusCode::SWITCHING_PROTOCOLS);
            if !upgraded {
                phases.enter(Phase::Idle);
            }
            answered
        }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        // Ours tells the wait for a request from the wait for the rest of its headers.
        .header_read_timeout(None)
        .max_header_size(MAX_HEAD)
        .serve_connection(TokioIo::new(socket), service)
        .with_upgrades();
    let mut serving = std::pin::pin!(serving);
    let mut tick = tokio::time::interval(TICK);
    let mut stopping = false;
    loop {
        tokio::select! {
            // Broken connections are the peer's affair.
            _ = serving.as_mut() => return,
            () = connection.close.notified() => return,
            () = stop.cancelled(), if !stopping => {
                stopping = true;
                serving.as_mut().graceful_shutdown();
            }
            _ = tick.tick() => {
                if let Some(reason) = connection.overdue() {
                    if reason == "headers" {
                        report.closed(reason);
                    }
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::routing::{get, post};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

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
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let at = listener.local_addr().unwrap();
            let stop = CancellationToken::new();
            let task = tokio::spawn(serve(listener, router, places, Clock::system(), stop.clone()));
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
}
