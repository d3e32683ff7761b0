//! `GET /events`: events as they happen, over a WebSocket.
//!
//! A reader is a cursor over the ledger and nothing else: what it was not told yet is looked up, a page at a time, and the next page
//! when this one is sent. So a slow reader holds up only itself, and a cut loses nothing. What it says is heard all the while: a long
//! history keeps no ping waiting for its answer.

mod cursor;
mod places;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::http::HeaderMap;
use axum::response::Response;
use countersign_agent::domain::TurnId;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use metrics::counter;
use serde_json::json;
use tokio::sync::{SemaphorePermit, watch};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at, sleep, timeout};
use tracing::{debug, warn};

pub(in crate::gateway) use self::places::Sockets;

use self::cursor::{EventCursor, SocketParams, cursor};
use super::views;
use crate::gateway::error::ApiError;
use crate::gateway::origin::foreign_origin;
use crate::gateway::request::Params;
use crate::gateway::state::Gateway;
use crate::store::{Read, StoreError};

/// The subprotocol under which a browser sends its token.
pub(super) const PROTOCOL: &[u8] = b"bearer";
/// Not more often than this does one reader look.
const PACE: Duration = Duration::from_millis(100);
/// Events of one look.
const PAGE: i64 = 100;
/// Bytes of the longest message that is read: readers have nothing to say.
const HEARD: usize = 4096;
/// How long a reader has to answer that it is closed.
const FAREWELL: Duration = Duration::from_secs(1);

/// `GET /events?turn=&chat=&after=`; everything that is wrong is said before the upgrade.
pub(in crate::gateway) async fn connect(
    State(gateway): State<Gateway>,
    headers: HeaderMap,
    Params(params): Params<SocketParams>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    // The request is a GET, but what it opens could be read by the page that sent it: WebSockets know no same-origin rule.
    if foreign_origin(&headers) {
        return Err(ApiError::forbidden("a page of another site may not do this"));
    }
    let upgrade = upgrade.map_err(|_| ApiError::bad_request("this path is a WebSocket: ask for an upgrade to one, version 13"))?;
    if gateway.is_draining() {
        return Err(ApiError::unavailable());
    }
    let places = Arc::clone(&gateway.sockets().places);
    let place = places.try_acquire_owned().map_err(|_| ApiError::unavailable())?;
    let cursor = cursor(&gateway, params).await?;
    let upgrade = upgrade.protocols([str::from_utf8(PROTOCOL).unwrap_or_default()]);
    Ok(upgrade
        .max_message_size(HEARD)
        .max_frame_size(HEARD)
        .on_upgrade(async move |socket| {
            EventReader::new(gateway, socket).read(cursor).await;
            drop(place);
        }))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StreamEnd {
    Gone,
    Slow,
    Stopping,
    Failed,
}

impl StreamEnd {
    fn name(self) -> &'static str {
        match self {
            Self::Gone => "gone",
            Self::Slow => "slow",
            Self::Stopping => "stopping",
            Self::Failed => "failed",
        }
    }

    /// What the reader is told, if it is there.
    fn farewell(self) -> Option<(u16, &'static str)> {
        match self {
            Self::Gone => None,
            Self::Slow => Some((close_code::AGAIN, "too slow: come back with after=")),
            Self::Stopping => Some((close_code::AWAY, "stopping: come back with after=")),
            Self::Failed => Some((close_code::ERROR, "the ledger does not answer: come back with after=")),
        }
    }
}

impl From<StoreError> for StreamEnd {
    fn from(error: StoreError) -> Self {
        warn!(%error, "events could not be read; a reader is sent away");
        Self::Failed
    }
}

struct EventReader {
    gateway: Gateway,
    outgoing: SplitSink<WebSocket, Message>,
    incoming: Incoming,
    commits: watch::Receiver<u64>,
    ping: Interval,
}

/// What comes from a reader. It has nothing to say; but its pings are answered only by listening, and that it answers ours tells that
/// it is there.
struct Incoming {
    socket: SplitStream<WebSocket>,
    /// Something came since the last ping.
    is_alive: bool,
}

impl Incoming {
    /// Until the reader is gone.
    async fn listen(&mut self) -> StreamEnd {
        while let Some(Ok(_)) = self.socket.next().await {
            self.is_alive = true;
        }
        StreamEnd::Gone
    }

    /// Carries `work` on and listens meanwhile.
    async fn beside<F: Future>(&mut self, work: F) -> Result<F::Output, StreamEnd> {
        tokio::select! {
            end = self.listen() => Err(end),
            outcome = work => Ok(outcome),
        }
    }
}

impl EventReader {
    fn new(gateway: Gateway, socket: WebSocket) -> Self {
        let every = gateway.timings.socket_ping;
        let mut ping = interval_at(Instant::now() + every, every);
        ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (outgoing, socket) = socket.split();
        Self {
            commits: gateway.ledger.commits(),
            gateway,
            outgoing,
            incoming: Incoming { socket, is_alive: true },
            ping,
        }
    }

    /// Until it leaves, or has to.
    async fn read(mut self, cursor: EventCursor) {
        let end = match Box::pin(self.tell_all(cursor)).await {
            Ok(never) => match never {},
            Err(end) => end,
        };
        debug!(end = end.name(), "a reader of events has ended");
        counter!("countersign_event_sockets_total", "end" => end.name()).increment(1);
        let Some((code, reason)) = end.farewell() else { return };
        let close = CloseFrame {
            code,
            reason: reason.into(),
        };
        // What a slow reader has not read yet stands before it.
        let limit = self.gateway.timings.socket_timeout;
        let told = timeout(limit, self.outgoing.send(Message::Close(Some(close)))).await;
        if matches!(told, Ok(Ok(()))) {
            // A connection that is cut at once may lose what is still on its way.
            let _ = timeout(FAREWELL, self.incoming.listen()).await;
        }
    }

    async fn tell_all(&mut self, mut cursor: EventCursor) -> Result<std::convert::Infallible, StreamEnd> {
        self.send(Message::text(json!({ "type": "hello", "version": 1 }).to_string()))
            .await?;
        loop {
            self.commits.borrow_and_update();
            match &mut cursor {
                EventCursor::Turn(turn, seq) => *seq = self.tell(turn, *seq, i64::MAX).await?,
                EventCursor::All(tail) => {
                    let mut more = true;
                    while more {
                        let untold;
                        let looking = async { Ok::<_, StreamEnd>(tail.next_spans(&mut look(&self.gateway).await?.0).await?) };
                        (untold, more) = self.incoming.beside(looking).await??;
                        for span in untold {
                            self.tell(&span.turn_id, span.first - 1, span.last).await?;
                        }
                    }
                }
            }
            self.wait().await?;
        }
    }

    /// Tells what a turn has behind `seq` and up to `last`; gives how far it was told.
    async fn tell(&mut self, turn: &TurnId, mut seq: i64, last: i64) -> Result<i64, StreamEnd> {
        while seq < last {
            // Nothing of the ledger is held while a page is sent.
            let looking = async { Ok::<_, StreamEnd>(look(&self.gateway).await?.0.events(turn, seq, PAGE.min(last - seq)).await?) };
            let page = self.incoming.beside(looking).await??;
            if page.is_empty() {
                break;
            }
            for event in &page {
                self.send(Message::text(views::event(event).to_string())).await?;
                seq = event.seq;
            }
        }
        Ok(seq)
    }

    /// Until something was written, or it is time to look anyway: for what other processes write.
    async fn wait(&mut self) -> Result<(), StreamEnd> {
        let Self {
            gateway,
            outgoing,
            incoming,
            commits,
            ping,
        } = self;
        let mut told = pin!(async {
            sleep(PACE).await;
            // An error means that the ledger is gone, and with it this process soon.
            let _ = timeout(gateway.timings.poll, commits.changed()).await;
        });
        loop {
            tokio::select! {
                // In this order: who has answered in time was in time, although we come to it late.
                biased;
                () = gateway.draining() => return Err(StreamEnd::Stopping),
                end = incoming.listen() => return Err(end),
                _ = ping.tick() => {
                    if !std::mem::take(&mut incoming.is_alive) {
                        return Err(StreamEnd::Slow);
                    }
                    send(gateway, outgoing, incoming, Message::Ping(bytes::Bytes::new())).await?;
                }
                () = &mut told => return Ok(()),
            }
        }
    }

    async fn send(&mut self, message: Message) -> Result<(), StreamEnd> {
        send(&self.gateway, &mut self.outgoing, &mut self.incoming, message).await
    }
}

/// A look at the ledger, when it is this reader's turn.
async fn look(gateway: &Gateway) -> Result<(Read, SemaphorePermit<'_>), StreamEnd> {
    if gateway.is_draining() {
        return Err(StreamEnd::Stopping);
    }
    let permit = gateway.sockets().looks.acquire().await.map_err(|_| StreamEnd::Stopping)?;
    Ok((gateway.ledger.read().await?, permit))
}

/// Comes back when the connection has taken all of it, so that no queue forms here.
async fn send(
    gateway: &Gateway,
    outgoing: &mut SplitSink<WebSocket, Message>,
    incoming: &mut Incoming,
    message: Message,
) -> Result<(), StreamEnd> {
    let sending = timeout(gateway.timings.socket_timeout, outgoing.send(message));
    match incoming.beside(sending).await? {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) => Err(StreamEnd::Gone),
        Err(_) => Err(StreamEnd::Slow),
    }
}
