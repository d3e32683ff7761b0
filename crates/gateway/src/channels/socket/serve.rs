//! One connection from its upgrade to its end: frames in, acknowledgements and pings out.
//!
//! One task does all of it. Events wait for the ledger side by side, so that pings are answered meanwhile. When too many wait, nothing more is
//! read: the platform notices by TCP, and nothing is dropped.

use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use countersign_agent::domain::Clock;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use futures_util::{FutureExt as _, SinkExt as _};
use reqwest::Upgraded;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_util::sync::CancellationToken;

use super::{Frame, SocketAnswer, SocketProtocol, SocketRead, SocketReceived, TOO_MANY};
use crate::channels::EventRefusal;

/// Events of a connection that wait for the ledger at a time.
const IN_FLIGHT: usize = 256;
/// Time for the greeting, after the upgrade.
const GREETING: Duration = Duration::from_secs(10);
/// Time for writing a frame. A peer that takes none has gone.
const WRITE: Duration = Duration::from_secs(2);
/// How long a connection goes on that the platform wants to end, unless it ends it.
const CLOSE_AFTER: Duration = Duration::from_secs(30);
/// How long the peer may take to say goodbye, too.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectionEnd {
    Stopped,
    /// The platform ended it in the planned way; the next one is open or may be opened at once.
    Recycled,
    /// The platform allows the app no more connections.
    TooMany,
    /// The platform will take no connection before an admin has changed something; this says what.
    SwitchedOff(String),
    /// It broke; this says how.
    Lost(&'static str),
}

impl ConnectionEnd {
    /// A word for metrics.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Stopped => "stopped",
            Self::Recycled => "recycled",
            Self::TooMany => "too_many",
            Self::SwitchedOff(_) => "switched_off",
            Self::Lost(_) => "lost",
        }
    }

    /// In words, for people.
    pub fn why(&self) -> &str {
        match self {
            Self::Stopped => "it was closed",
            Self::Recycled => "the platform replaces it",
            Self::TooMany => TOO_MANY,
            Self::SwitchedOff(why) => why,
            Self::Lost(how) => how,
        }
    }
}

/// A connection that was just opened.
pub struct Socket<S = Upgraded> {
    stream: WebSocketStream<S>,
    protocol: Box<dyn SocketProtocol>,
    /// A name of it for the log, without secrets.
    pub name: String,
}

impl<S> fmt::Debug for Socket<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Socket").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What the keeper of a connection learns while it lives; each is told once.
#[derive(Debug)]
pub struct Signals {
    /// Events may come.
    pub greeted: oneshot::Sender<()>,
    /// The next connection should be opened; the text is the platform's reason.
    pub recycle: oneshot::Sender<String>,
    /// Ends the connection. What is stored soon is still acknowledged.
    pub stop: CancellationToken,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Socket<S> {
    /// A connection that speaks `protocol` over `stream`.
    pub(in crate::channels) fn new(stream: WebSocketStream<S>, protocol: Box<dyn SocketProtocol>, name: String) -> Self {
        Self { stream, protocol, name }
    }

    /// Serves the connection until it ends. `handle` stores or decides an event; it is called in the order of the events. An event is
    /// acknowledged when its `handle` is done, never before.
    pub async fn serve<F>(
        self,
        clock: &Clock,
        signals: Signals,
        handle: impl Fn(Result<SocketReceived, EventRefusal>) -> F,
    ) -> ConnectionEnd
    where
        F: Future<Output = SocketAnswer> + Send,
    {
        let stop = signals.stop.clone();
        let mut greeted = Some(signals.greeted);
        let now = Instant::now();
        let liveness = self.protocol.liveness();
        let mut line = OpenConnection {
            silent_from: None,
            next_ping: now + liveness.every,
            ends_at: None,
            recycle: Some(signals.recycle),
            stream: self.stream,
            protocol: self.protocol,
        };
        if !line.protocol.waits_for_greeting() {
            line.greeted(&mut greeted);
            // The platform learns at once that somebody reads.
            if let Err(ending) = line.ping().await {
                return ending;
            }
        }
        let greeting_by = now + GREETING;
        let mut in_flight = FuturesUnordered::new();
        loop {
            let ungreeted = greeted.is_some();
            tokio::select! {
                biased;
                () = stop.cancelled() => {
                    line.answer_the_rest(&mut in_flight).await;
                    return line.close().await;
                }
                Some(answer) = in_flight.next(), if !in_flight.is_empty() => {
                    let mut answers = vec![answer];
                    // Those that are ready go out with one write.
                    while let Some(Some(answer)) = in_flight.next().now_or_never() {
                        answers.push(answer);
                    }
                    if let Err(ending) = line.send(answers.into_iter().flatten()).await {
                        return ending;
                    }
                }
                frame = line.stream.next(), if in_flight.len() < IN_FLIGHT => {
                    match line.take(frame, clock) {
                        Ok(SocketRead::Nothing) => {}
                        Ok(SocketRead::Greeted) => line.greeted(&mut greeted),
                        Ok(SocketRead::Event(event)) => {
                            let handling = AssertUnwindSafe(handle(event.received)).catch_unwind();
                            let answer = event.answer;
                            in_flight.push(async move {
                                match handling.await {
                                    Ok(done) => answer(&done),
                                    // A bug: the platform sends the event again, and the connection goes on.
                                    Err(_) => answer(&SocketAnswer::NotTaken),
                                }
                            });
                        }
                        Ok(SocketRead::Reply(frame)) => {
                            if let Err(ending) = line.send([frame]).await {
                                return ending;
                            }
                        }
                        Ok(SocketRead::Recycle(reason)) => line.recycled(reason),
                        Ok(SocketRead::End(ending)) | Err(ending) => {
                            line.answer_the_rest(&mut in_flight).await;
                            return ending;
                        }
                    }
                }
                () = tokio::time::sleep_until(line.next_ping) => {
                    if let Err(ending) = line.ping().await {
                        return ending;
                    }
                }
                // While nothing is read, the peer's silence is our own.
                () = at(line.silent_from.map(|since| since + liveness.within)), if in_flight.len() < IN_FLIGHT => return ConnectionEnd::Lost("the peer is silent"),
                () = at(line.ends_at) => {
                    line.answer_the_rest(&mut in_flight).await;
                    line.close().await;
                    return ConnectionEnd::Recycled;
                }
                () = tokio::time::sleep_until(greeting_by), if ungreeted => return ConnectionEnd::Lost("the platform did not greet"),
            }
        }
    }
}

/// The moment `when`, or never.
async fn at(when: Option<Instant>) {
    match when {
        Some(when) => tokio::time::sleep_until(when).await,
        None => std::future::pending().await,
    }
}

struct OpenConnection<S> {
    stream: WebSocketStream<S>,
    protocol: Box<dyn SocketProtocol>,
    /// When the oldest ping was sent after which no frame came.
    silent_from: Option<Instant>,
    next_ping: Instant,
    /// When it is ended, once the platform wants that.
    ends_at: Option<Instant>,
    recycle: Option<oneshot::Sender<String>>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> OpenConnection<S> {
    fn greeted(&mut self, greeted: &mut Option<oneshot::Sender<()>>) {
        if let Some(greeted) = greeted.take() {
            // Nobody may care any more.
            let _ = greeted.send(());
        }
    }

    fn recycled(&mut self, reason: String) {
        self.ends_at.get_or_insert_with(|| Instant::now() + CLOSE_AFTER);
        if let Some(recycle) = self.recycle.take() {
            let _ = recycle.send(reason);
        }
    }

    /// Any frame is a sign of life.
    fn take(&mut self, frame: Option<Result<Message, Error>>, clock: &Clock) -> Result<SocketRead, ConnectionEnd> {
        let over = |how| {
            if self.ends_at.is_some() {
                ConnectionEnd::Recycled
            } else {
                ConnectionEnd::Lost(how)
            }
        };
        let message = match frame {
            Some(Ok(message)) => message,
            Some(Err(Error::Capacity(_))) => return Err(over("a message is too long")),
            Some(Err(_)) => return Err(over("the connection broke")),
            None => return Err(over("the peer closed the connection")),
        };
        self.silent_from = None;
        let frame = match message {
            Message::Text(text) => Frame::Text(text.as_str().to_owned()),
            Message::Binary(bytes) => Frame::Binary(bytes.into()),
            // The library answers pings by itself.
            Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => return Ok(SocketRead::Nothing),
            // Its end of the TCP connection may stay open for long.
            Message::Close(_) => return Err(over("the peer closed the connection")),
        };
        Ok(self.protocol.read(frame, clock.now()))
    }

    async fn ping(&mut self) -> Result<(), ConnectionEnd> {
        let now = Instant::now();
        self.next_ping = now + self.protocol.liveness().every;
        self.silent_from.get_or_insert(now);
        let ping = self.protocol.ping();
        self.send([ping]).await
    }

    async fn send(&mut self, frames: impl IntoIterator<Item = Frame>) -> Result<(), ConnectionEnd> {
        let write = async {
            for frame in frames {
                let message = match frame {
                    Frame::Text(text) => Message::Text(text.into()),
                    Frame::Binary(bytes) => Message::Binary(bytes.into()),
                    Frame::Ping => Message::Ping(Default::default()),
                };
                self.stream.feed(message).await?;
            }
            self.stream.flush().await
        };
        match timeout(WRITE, write).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(ConnectionEnd::Lost("the connection broke")),
            Err(_) => Err(ConnectionEnd::Lost("the peer takes nothing")),
        }
    }

    /// The last acknowledgements, as far as they are ready soon and the peer still takes them.
    async fn answer_the_rest<F: Future<Output = Option<Frame>>>(&mut self, in_flight: &mut FuturesUnordered<F>) {
        let rest = async {
            while let Some(answer) = in_flight.next().await {
                if self.send(answer).await.is_err() {
                    return;
                }
            }
        };
        // What is not acknowledged comes again, and is found to be there.
        let _ = timeout(WRITE, rest).await;
        // The answer to the peer's goodbye, which the library has made.
        let _ = timeout(WRITE, self.stream.flush()).await;
    }

    /// Says goodbye. The platform often does not.
    async fn close(&mut self) -> ConnectionEnd {
        let normal = CloseFrame {
            code: CloseCode::Normal,
            reason: Default::default(),
        };
        let goodbye = async {
            if self.stream.close(Some(normal)).await.is_ok() {
                while let Some(Ok(_)) = self.stream.next().await {}
            }
        };
        let _ = timeout(CLOSE_TIMEOUT, goodbye).await;
        ConnectionEnd::Stopped
    }
}
