//! The sockets of the played platforms: gateways open them, events go out over them, and acknowledgements come back.
//!
//! One hub serves both platforms. A [`Wire`] holds their differences.

mod frame;
mod lark;
mod link;
mod slack;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use axum::Router;
use axum::extract::ws::{Message, WebSocketUpgrade};
use axum::extract::{Query, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::people::Event;
use crate::stage::Stage;
use lark::LarkWire;
use link::Line;
use slack::SlackWire;

pub(crate) use lark::{SERVICE, client_config};
pub use link::Link;

/// The longest wait for a connection, and for a peer that does not read.
const PATIENCE: Duration = Duration::from_secs(60);
/// An event that is not acknowledged for so long counts as not stored. A gateway that does not store an event says so on Lark, and
/// nothing on Slack.
const SILENCE: Duration = Duration::from_secs(10);
/// An event is sent so many times, when each connection goes away before its acknowledgement.
const ATTEMPTS: u32 = 10;

/// How something goes wrong, once: the next connection, the next greeting, or the next event.
#[derive(Clone, Debug)]
pub enum SocketFault {
    Refuse {
        status: u16,
        /// Headers of the answer, such as `Handshake-Status`.
        headers: Vec<(String, String)>,
    },
    /// The connection is accepted and never answers anything, not even pings of the WebSocket protocol.
    HalfOpen,
    /// The connection is never greeted: no hello (Slack), no pong (Lark). No event is sent over it.
    NoGreeting,
    /// The connection breaks right after the upgrade, without a close frame.
    BreakAfterUpgrade,
    /// The connection breaks right after its hello (Slack) or its first pong (Lark), without a close frame.
    BreakAfterGreeting,
    /// The next greeting of any connection says this: the whole hello (Slack), or the payload of the pong (Lark).
    Greeting(String),
    /// The connection that gets the next event breaks before the acknowledgement, without a close frame.
    BreakAfterEvent,
    /// The next event goes out in pieces (Lark).
    Pieces(Pieces),
}

#[derive(Clone, Debug)]
pub struct Pieces {
    /// So many parts the payload is cut into, of the same length but for the last.
    pub parts: usize,
    /// `sum` of every frame; the number of parts, if nothing is to be wrong.
    pub sum: usize,
    /// Which parts are sent, from 0, in this order: left out, repeated, in any order.
    pub order: Vec<usize>,
}

/// Status and body, as HTTP would have them.
type Answer = (u16, Value);

/// The message format of one platform. It reads and writes messages, and does no I/O.
trait Wire: Debug + Send + Sync {
    /// Where connections are opened.
    fn path(&self) -> &'static str;

    /// How many connections an app may have.
    fn most(&self) -> usize;

    /// How one more is refused.
    fn too_many(&self) -> TooMany;

    /// Is a connection greeted at once, or only when it pings?
    fn speaks_first(&self) -> bool;

    /// The greeting of a connection that is one of `connections`; with `told`, in these words. Events go over it from then on.
    fn greet(&self, connections: usize, told: Option<String>) -> Message;

    /// Event number `number`, which has been sent `attempt` times. The error says why it cannot be sent.
    fn letter(&self, number: u64, path: &str, payload: &Value, attempt: u32, pieces: Option<&Pieces>) -> Result<Letter, String>;

    /// What a gateway's message is. The error says what is wrong with it.
    fn read(&self, message: &Message) -> Result<Heard, String>;

    /// Reads the acknowledgement `ack` of `sent`. The error names the fault of the acknowledgement.
    fn answer(&self, sent: &Message, ack: &Message) -> Result<Answer, String>;
}

/// How a platform refuses a connection of an app that has as many as it may have.
enum TooMany {
    /// It accepts the connection, and says this in the place of a greeting.
    Said(Message),
    /// It refuses the upgrade, with these headers.
    Refused(Vec<(String, String)>),
}

/// Whether a connection counts, from its upgrade to its end.
enum Admission {
    Counted(Sockets),
    /// The app has as many as it may have; the message says so.
    TooMany(Message),
}

impl Drop for Admission {
    fn drop(&mut self) {
        if let Self::Counted(sockets) = self {
            sockets.books().counted -= 1;
        }
    }
}

/// An event as messages. The acknowledgement answers the last of them.
struct Letter {
    /// Names the event in its acknowledgement.
    key: String,
    messages: Vec<Message>,
}

/// The result of sending an event over one connection.
enum Carried {
    /// The gateway acknowledged the event with this answer.
    Acknowledged(Answer),
    /// The connection stayed, and the gateway did not acknowledge the event in time.
    Unacknowledged,
    /// The connection ended before the gateway acknowledged the event.
    ConnectionLost,
}

/// The kinds of messages that a gateway sends.
enum Heard {
    /// It wants to be greeted.
    Ping,
    /// It has the event of this key.
    Ack(String),
}

/// The sockets that gateways have opened to a played platform.
#[derive(Clone, Debug)]
pub struct Sockets(Arc<Hub>);

#[derive(Debug)]
struct Hub {
    stage: Stage,
    wire: Box<dyn Wire>,
    /// Greeted connections, oldest first.
    links: watch::Sender<Vec<Link>>,
    books: Mutex<Books>,
}

#[derive(Debug, Default)]
struct Books {
    /// The last number that was given out.
    number: u64,
    /// Given out and not used yet.
    tickets: BTreeSet<String>,
    /// Whose turn it is.
    turn: usize,
    opened: usize,
    /// Connections that live, greeted or not.
    counted: usize,
    /// How many there may be, if a test says so.
    most: Option<usize>,
    redelivered: usize,
    unacknowledged: usize,
    faults: Vec<SocketFault>,
    /// Ends every connection of now.
    all: CancellationToken,
}

impl Sockets {
    pub(super) fn slack(stage: Stage) -> Self {
        Self::over(Box::new(SlackWire), stage)
    }

    pub(super) fn lark(stage: Stage) -> Self {
        Self::over(Box::new(LarkWire(stage.clone())), stage)
    }

    fn over(wire: Box<dyn Wire>, stage: Stage) -> Self {
        Self(Arc::new(Hub {
            stage,
            wire,
            links: watch::Sender::default(),
            books: Mutex::default(),
        }))
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.0.books.lock()
    }

    /// Sends an event over one of the greeted connections, each in its turn, and waits for the acknowledgement. A connection that
    /// goes away before it has acknowledged gets the event sent again over another. A twin is not sent: [`crate::Tenant::post`]
    /// sends both.
    ///
    /// Gives status and body as HTTP would: on Slack 200 and the acknowledgement's payload or null; on Lark its `code` and what its
    /// `data` holds, or `{}`. An event that is not acknowledged within ten seconds has status 503 and body null: whoever plays the
    /// platform sends it again.
    ///
    /// # Errors
    /// When no gateway has a connection for a minute, and when the acknowledgement is wrong.
    pub async fn push(&self, event: &Event) -> anyhow::Result<(u16, Value)> {
        self.carry(event.path, &event.body).await
    }

    /// Sends `payload`, an event of `path` (`events`, `interactions`, `commands`, `cards`). See [`Sockets::push`].
    pub(super) async fn carry(&self, path: &str, payload: &Value) -> anyhow::Result<Answer> {
        for attempt in 0..ATTEMPTS {
            let link = self.next_link().await?;
            let fault = self.take_fault(|fault| matches!(fault, SocketFault::BreakAfterEvent | SocketFault::Pieces(_)));
            let (breaks, pieces) = match &fault {
                Some(SocketFault::Pieces(pieces)) => (false, Some(pieces)),
                other => (other.is_some(), None),
            };
            let letter = self.0.wire.letter(self.number(), path, payload, attempt, pieces);
            match link.carry(letter.map_err(anyhow::Error::msg)?, breaks).await? {
                Carried::Acknowledged(answer) => return Ok(answer),
                Carried::Unacknowledged => {
                    self.books().unacknowledged += 1;
                    return Ok((503, Value::Null));
                }
                Carried::ConnectionLost => self.books().redelivered += 1,
            }
        }
        anyhow::bail!("{ATTEMPTS} connections went away before they acknowledged the event")
    }

    async fn next_link(&self) -> anyhow::Result<Link> {
        let mut links = self.0.links.subscribe();
        let some = tokio::time::timeout(PATIENCE, links.wait_for(|links| links.iter().any(Link::lives))).await;
        let links: Vec<Link> = some
            .context("no gateway has a connection")??
            .iter()
            .filter(|link| link.lives())
            .cloned()
            .collect();
        let mut books = self.books();
        books.turn += 1;
        let link = links.get(books.turn % links.len()).cloned();
        link.context("no connection")
    }

    /// The greeted connections, oldest first.
    pub fn links(&self) -> Vec<Link> {
        self.0.links.borrow().clone()
    }

    /// How many greeted connections there are.
    pub fn open(&self) -> usize {
        self.0.links.borrow().len()
    }

    /// How many connections were ever greeted and stayed.
    pub fn opened(&self) -> usize {
        self.books().opened
    }

    /// From now on the app may have so many connections. The platform refuses any further one, and ends none that is open.
    pub fn allow(&self, most: usize) {
        self.books().most = Some(most);
    }

    /// Counts one more connection, unless there are as many as there may be.
    fn admit(&self) -> Result<Admission, TooMany> {
        let mut books = self.books();
        if books.counted >= books.most.unwrap_or_else(|| self.0.wire.most()) {
            return Err(self.0.wire.too_many());
        }
        books.counted += 1;
        Ok(Admission::Counted(self.clone()))
    }

    /// How often an event was sent again because its connection went away.
    pub fn redelivered(&self) -> usize {
        self.books().redelivered
    }

    /// How many times an event was sent and not acknowledged within ten seconds, over a connection that stayed.
    pub fn unacknowledged(&self) -> usize {
        self.books().unacknowledged
    }

    /// Lets the next connection, greeting or event go wrong. Faults of the request for an address go to the stage, whose name for it is
    /// `socket`.
    pub fn fault(&self, fault: SocketFault) {
        self.books().faults.push(fault);
    }

    /// Breaks every connection, greeted or not, without a close frame.
    pub fn drop_all(&self) {
        std::mem::take(&mut self.books().all).cancel();
    }

    /// The first fault that is wanted now.
    fn take_fault(&self, wanted: impl Fn(&SocketFault) -> bool) -> Option<SocketFault> {
        let mut books = self.books();
        let at = books.faults.iter().position(wanted)?;
        Some(books.faults.remove(at))
    }

    fn number(&self) -> u64 {
        let mut books = self.books();
        books.number += 1;
        books.number
    }

    fn violation(&self, what: String) {
        self.0.stage.lock().violation(what);
        self.0.stage.tell_change();
    }

    /// The address of one connection, on the host that was asked for it. A request by another name than that of this
    /// machine came through a TLS front, so the address is `wss://` then.
    pub(super) fn address(&self, asked: &HeaderMap) -> String {
        let host = asked.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        let ticket = format!("ticket-{}", self.number());
        self.books().tickets.insert(ticket.clone());
        let scheme = if host.starts_with("127.") { "ws" } else { "wss" };
        format!("{scheme}://{host}{}?ticket={ticket}", self.0.wire.path())
    }

    /// Where connections are opened.
    pub(super) fn routes(&self) -> Router {
        Router::new().route(self.0.wire.path(), get(upgrade)).with_state(self.clone())
    }

    /// Events go over `link` from now on.
    fn enter(&self, link: &Link) {
        let entered = self.0.links.send_if_modified(|links| {
            let new = !links.contains(link);
            links.extend(new.then(|| link.clone()));
            new
        });
        self.books().opened += usize::from(entered);
    }

    fn leave(&self, link: &Link) {
        self.0.links.send_modify(|links| links.retain(|known| known != link));
    }
}

/// Opens a connection. The ticket of the address is good once.
async fn upgrade(State(sockets): State<Sockets>, Query(query): Query<BTreeMap<String, String>>, asked: WebSocketUpgrade) -> Response {
    let ticket = query.get("ticket").cloned().unwrap_or_default();
    if !sockets.books().tickets.remove(&ticket) {
        sockets.violation(format!("a connection with the ticket {ticket:?}, which is not good any more"));
        return StatusCode::FORBIDDEN.into_response();
    }
    let fault = sockets.take_fault(|fault| {
        use SocketFault::{BreakAfterGreeting, BreakAfterUpgrade, HalfOpen, NoGreeting, Refuse};
        matches!(
            fault,
            Refuse { .. } | HalfOpen | NoGreeting | BreakAfterUpgrade | BreakAfterGreeting
        )
    });
    if let Some(SocketFault::Refuse { status, headers }) = &fault {
        return refusal(*status, headers);
    }
    let admission = match sockets.admit() {
        Ok(admission) => admission,
        Err(TooMany::Said(message)) => Admission::TooMany(message),
        Err(TooMany::Refused(headers)) => return refusal(403, &headers),
    };
    let all = sockets.books().all.clone();
    asked.on_upgrade(move |socket| Line::new(admission, sockets, socket, fault, &all).live())
}

fn refusal(status: u16, headers: &[(String, String)]) -> Response {
    let mut refusal = StatusCode::from_u16(status).unwrap_or(StatusCode::FORBIDDEN).into_response();
    for (name, value) in headers {
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), value.parse::<HeaderValue>()) {
            refusal.headers_mut().insert(name, value);
        }
    }
    refusal
}
