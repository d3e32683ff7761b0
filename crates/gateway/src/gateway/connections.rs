//! Accepts connections, with a limit on how many are open and on how long each may keep us waiting.
//!
//! A connection *waits* while it has no whole request: nothing, a part of the headers, or a part of the body has arrived. When all
//! places are taken, the connection that has waited longest is closed for the new one. So incomplete requests only push out
//! each other, and a request that arrives whole is answered. A connection whose whole request is being answered is never closed for
//! another; when all are, the new one is.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body;
use axum::http::{Request, StatusCode};
use axum::response::Response;
use countersign_agent::domain::Clock;
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use metrics::counter;
use parking_lot::{Mutex, MutexGuard};
use rustix::process::{Resource, getrlimit};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf, Take};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::warn;

use super::refusals::Refusals;

/// The headers of a request are complete so long after its first byte.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// A connection without a request is kept so long.
const IDLE_TIME: Duration = Duration::from_secs(30);
/// The two limits are looked at so often.
const TICK: Duration = Duration::from_secs(1);
/// Longer headers are answered with 431. Platforms send less than 4 KiB. A connection buffers no more than this of what comes, either.
const MAX_HEAD: usize = 32 << 10;
/// Bytes that are read at a time. Below the 8 KiB with which hyper begins: a buffer that is never filled by one read stays as it is.
const MAX_READ: u64 = (8 << 10) - 1;
/// After an error of `accept` the next try waits so long: without a free descriptor it would fail at once, again and again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// At most so many descriptors, and at most half of all, are kept from connections: for the database, the model, the platforms and files.
const OWN_DESCRIPTORS: u64 = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectionPhase {
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

impl ConnectionPhase {
    fn waits(self) -> bool {
        matches!(self, Self::Idle | Self::Head | Self::Body)
    }
}

#[derive(Debug)]
struct HttpConnection {
    state: Mutex<State>,
    close: Notify,
}

#[derive(Debug)]
struct State {
    phase: ConnectionPhase,
    since: Instant,
    /// How many requests have begun: the rest of an earlier one's body may be read later.
    requests: u64,
}

impl HttpConnection {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn enter(&self, phase: ConnectionPhase) {
        let mut state = self.state();
        if state.phase != ConnectionPhase::Closing {
            (state.phase, state.since) = (phase, Instant::now());
        }
    }

    /// The headers of a request have arrived; `whole`: it has no body. Gives its number.
    fn begin(&self, whole: bool) -> u64 {
        self.enter(if whole { ConnectionPhase::Busy } else { ConnectionPhase::Body });
        let mut state = self.state();
        state.requests += 1;
        state.requests
    }

    /// The body of the request with this number has ended. Its answer may have been sent before.
    fn complete(&self, request: u64) {
        let mut state = self.state();
        if state.phase == ConnectionPhase::Body && state.requests == request {
            (state.phase, state.since) = (ConnectionPhase::Busy, Instant::now());
        }
    }

    /// Since when it waits, if it does.
    fn waits_since(&self) -> Option<Instant> {
        let state = self.state();
        state.phase.waits().then_some(state.since)
    }

    /// Closes it for another if it still waits.
    fn make_room(&self) -> bool {
        let mut state = self.state();
        let waits = state.phase.waits();
        if waits {
            state.phase = ConnectionPhase::Closing;
            self.close.notify_one();
        }
        waits
    }

    /// Why it has waited too long.
    fn overdue(&self) -> Option<&'static str> {
        let State { phase, since, .. } = *self.state();
        match phase {
            ConnectionPhase::Head if since.elapsed() >= HEAD_TIME => Some("headers"),
            ConnectionPhase::Idle if since.elapsed() >= IDLE_TIME => Some("idle"),
            ConnectionPhase::Idle | ConnectionPhase::Head | ConnectionPhase::Body | ConnectionPhase::Busy | ConnectionPhase::Closing => {
                None
            }
        }
    }
}

#[derive(Debug)]
struct Places {
    limit: usize,
    open: Mutex<(u64, HashMap<u64, Arc<HttpConnection>>)>,
}

impl Places {
    /// A place for a new connection; without one when every connection is being answered.
    fn take(self: &Arc<Self>, closed: impl FnOnce()) -> Option<ConnectionPermit> {
        let mut open = self.open.lock();
        if open.1.len() >= self.limit {
            loop {
                let waiting = open.1.iter().filter_map(|(id, one)| one.waits_since().map(|since| (since, *id)));
                let (_, oldest) = waiting.min()?;
                // The rest of a request may arrive between the two looks: then it waits no more, and another one is the oldest.
                if open.1.get(&oldest).is_some_and(|one| one.make_room()) {
                    open.1.remove(&oldest);
                    break;
                }
            }
            closed();
        }
        open.0 += 1;
        let id = open.0;
        let connection = Arc::new(HttpConnection {
            state: Mutex::new(State {
                phase: ConnectionPhase::Idle,
                since: Instant::now(),
                requests: 0,
            }),
            close: Notify::new(),
        });
        open.1.insert(id, Arc::clone(&connection));
        Some(ConnectionPermit {
            places: Arc::clone(self),
            id,
            connection,
        })
    }
}

/// One connection's place; it is given back with the socket, which a WebSocket takes along.
#[derive(Debug)]
struct ConnectionPermit {
    places: Arc<Places>,
    id: u64,
    connection: Arc<HttpConnection>,
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut open = self.places.open.lock();
        open.1.remove(&self.id);
    }
}

/// A socket that notes when a request begins and when an answer is taken.
struct WatchedStream {
    stream: Take<TcpStream>,
    place: ConnectionPermit,
}

impl AsyncRead for WatchedStream {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.stream.set_limit(MAX_READ);
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before && self.place.connection.state().phase == ConnectionPhase::Idle {
            self.place.connection.enter(ConnectionPhase::Head);
        }
        polled
    }
}

impl AsyncWrite for WatchedStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(self.stream.get_mut()).poll_write(context, bytes);
        self.wrote(&polled);
        polled
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, context: &mut Context<'_>, parts: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(self.stream.get_mut()).poll_write_vectored(context, parts);
        self.wrote(&polled);
        polled
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.get_ref().is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.stream.get_mut()).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.stream.get_mut()).poll_shutdown(context)
    }
}

impl WatchedStream {
    /// An answer that is still being taken is no idleness.
    fn wrote(&self, polled: &Poll<io::Result<usize>>) {
        if matches!(polled, Poll::Ready(Ok(_))) && self.place.connection.state().phase == ConnectionPhase::Idle {
            self.place.connection.enter(ConnectionPhase::Idle);
        }
    }
}

/// A request's body, which notes its end.
struct WatchedBody {
    body: Incoming,
    connection: Arc<HttpConnection>,
    request: u64,
}

impl Body for WatchedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if matches!(polled, Poll::Ready(None)) || self.body.is_end_stream() {
            self.connection.complete(self.request);
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
struct ConnectionLog {
    refusals: Refusals,
    clock: Clock,
}

impl ConnectionLog {
    fn closed(&self, reason: &'static str) {
        counter!("countersign_connections_refused_total", "reason" => reason).increment(1);
        if let Some(missed) = self.refusals.count(reason, self.clock.now()) {
            let not_logged_before = (missed > 0).then_some(missed);
            warn!(reason, not_logged_before, "connection closed");
        }
    }
}

/// Answers with `answer` on `listener` until `stop`; then open requests are answered, and it returns when the last connection is closed.
/// How many connections it takes is settled at the call, not when the future is first polled.
pub fn serve<A, F>(
    listener: TcpListener,
    answer: A,
    max_connections: usize,
    clock: Clock,
    stop: CancellationToken,
) -> impl Future<Output = ()> + Send
where
    A: Fn(Request<body::Body>, SocketAddr) -> F + Clone + Send + 'static,
    F: Future<Output = Response> + Send + 'static,
{
    let places = Arc::new(Places {
        limit: limit(max_connections),
        open: Mutex::default(),
    });
    serve_at(places, listener, answer, clock, stop)
}

async fn serve_at<A, F>(places: Arc<Places>, listener: TcpListener, answer: A, clock: Clock, stop: CancellationToken)
where
    A: Fn(Request<body::Body>, SocketAddr) -> F + Clone + Send + 'static,
    F: Future<Output = Response> + Send + 'static,
{
    let report = Arc::new(ConnectionLog {
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
                    let stream = stream.take(MAX_READ);
                    let socket = WatchedStream { stream, place };
                    tasks.spawn(attend(socket, peer, answer.clone(), Arc::clone(&report), stop.clone()));
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

async fn attend<A, F>(socket: WatchedStream, peer: SocketAddr, answer: A, report: Arc<ConnectionLog>, stop: CancellationToken)
where
    A: Fn(Request<body::Body>, SocketAddr) -> F + Clone + Send + 'static,
    F: Future<Output = Response> + Send + 'static,
{
    let connection = Arc::clone(&socket.place.connection);
    let phases = Arc::clone(&connection);
    let service = service_fn(move |request: Request<Incoming>| {
        let number = phases.begin(request.body().is_end_stream());
        let connection = Arc::clone(&phases);
        let request = request.map(|body| {
            body::Body::new(WatchedBody {
                body,
                connection,
                request: number,
            })
        });
        let (answering, phases) = (answer(request, peer), Arc::clone(&phases));
        async move {
            let answered = answering.await;
            let upgraded = answered.status() == StatusCode::SWITCHING_PROTOCOLS;
            phases.enter(if upgraded { ConnectionPhase::Busy } else { ConnectionPhase::Idle });
            Ok::<_, Infallible>(answered)
        }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        // Ours tells the wait for a request from the wait for the rest of its headers.
        .header_read_timeout(None)
        .max_header_size(MAX_HEAD)
        .max_buf_size(MAX_HEAD)
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
mod tests;
