//! One connection: what goes over it, and how it ends.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Context;
use axum::extract::ws::{Message, WebSocket};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::{Admission, Answer, Carried, Heard, Letter, PATIENCE, SILENCE, SocketFault, Sockets, slack};

/// So many messages may wait for a peer that reads slowly.
const QUEUE: usize = 256;
/// How long the peer may take to answer a close frame.
const CLOSE_TIME: Duration = Duration::from_secs(5);

/// A connection of a gateway, for a test that does something with this very one. Two are equal when they are the same.
#[derive(Clone, Debug)]
pub struct Link(Arc<Ends>);

#[derive(Debug)]
struct Ends {
    orders: mpsc::Sender<Order>,
    /// What was sent and not acknowledged yet, by the event's key.
    waiting: Mutex<BTreeMap<String, Waiting>>,
    /// Pongs of the WebSocket protocol that came.
    pongs: AtomicUsize,
    /// Events that were not acknowledged yet when the last pong came.
    waited_at_pong: AtomicUsize,
    /// The connection is gone, or is to go at once.
    over: CancellationToken,
}

#[derive(Debug)]
struct Waiting {
    sent: Message,
    tell: oneshot::Sender<Result<Answer, String>>,
}

#[derive(Debug)]
enum Order {
    Write(Message),
    WriteAndBreak(Message),
    Close,
    Freeze,
}

impl PartialEq for Link {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Link {
    /// Sends text or bytes as they are. Nothing is sent when the connection is gone or 256 messages wait already.
    pub fn send(&self, raw: impl Into<Message>) {
        self.order(Order::Write(raw.into()));
    }

    /// Slack: tells the gateway to replace the connection, for this reason. It stays open until somebody closes it.
    pub fn disconnect(&self, reason: &str) {
        self.send(slack::disconnect(reason));
    }

    /// Closes the connection by a close frame. No event goes over it any more.
    pub fn close(&self) {
        self.order(Order::Close);
    }

    /// Breaks the connection, without a close frame.
    pub fn cut(&self) {
        self.0.over.cancel();
    }

    /// From now on nothing is read and nothing is written, not even a pong, and the connection stays open.
    pub fn freeze(&self) {
        self.order(Order::Freeze);
    }

    /// How many pings of the WebSocket protocol the gateway has answered. [`Link::send`] sends one.
    pub fn pongs(&self) -> usize {
        self.0.pongs.load(Ordering::Relaxed)
    }

    /// How many events were not acknowledged yet when the gateway answered the last ping.
    pub fn waited_at_pong(&self) -> usize {
        self.0.waited_at_pong.load(Ordering::Relaxed)
    }

    /// Can events go over it? One that was cut is known for a moment longer.
    pub(super) fn lives(&self) -> bool {
        !self.0.over.is_cancelled()
    }

    fn order(&self, order: Order) {
        // A connection that is gone takes no orders.
        let _ = self.0.orders.try_send(order);
    }

    fn waiting(&self) -> MutexGuard<'_, BTreeMap<String, Waiting>> {
        self.0.waiting.lock()
    }

    /// Sends an event and waits for the acknowledgement; with `breaks` the connection ends in between. An acknowledgement that comes
    /// later is read and counts for nothing.
    pub(super) async fn carry(&self, mut letter: Letter, breaks: bool) -> anyhow::Result<Carried> {
        let last = letter.messages.pop().context("an event of no message")?;
        let (tell, told) = oneshot::channel();
        let sent = last.clone();
        self.waiting().insert(letter.key, Waiting { sent, tell });
        let work = async {
            let last = if breaks { Order::WriteAndBreak(last) } else { Order::Write(last) };
            for order in letter.messages.into_iter().map(Order::Write).chain([last]) {
                // When the connection is gone, `over` says so.
                let _ = self.0.orders.send(order).await;
            }
            told.await
        };
        tokio::select! {
            biased;
            told = tokio::time::timeout(SILENCE, work) => match told {
                Ok(answer) => {
                    let answer = answer.context("the acknowledgement was dropped unread")?;
                    Ok(Carried::Acknowledged(answer.map_err(anyhow::Error::msg)?))
                }
                Err(_) => Ok(Carried::Unacknowledged),
            },
            () = self.0.over.cancelled() => Ok(Carried::ConnectionLost),
        }
    }
}

/// The connection's own end: it alone reads and writes the socket.
pub(super) struct Line {
    admission: Admission,
    sockets: Sockets,
    socket: WebSocket,
    link: Link,
    orders: mpsc::Receiver<Order>,
    fault: Option<SocketFault>,
}

struct Over;

impl Line {
    /// A connection that ends with `all` at the latest.
    pub(super) fn new(
        admission: Admission,
        sockets: Sockets,
        socket: WebSocket,
        fault: Option<SocketFault>,
        all: &CancellationToken,
    ) -> Self {
        let (sender, orders) = mpsc::channel(QUEUE);
        let link = Link(Arc::new(Ends {
            orders: sender,
            waiting: Mutex::default(),
            waited_at_pong: AtomicUsize::default(),
            pongs: AtomicUsize::default(),
            over: all.child_token(),
        }));
        Self {
            admission,
            sockets,
            socket,
            link,
            orders,
            fault,
        }
    }

    pub(super) async fn live(mut self) {
        let (sockets, link) = (self.sockets.clone(), self.link.clone());
        tokio::select! {
            () = link.0.over.cancelled() => {}
            _ = self.serve() => {}
        }
        link.0.over.cancel();
        // The next connection has room before the gateway, or a test, can see the end of this one.
        let Self { admission, .. } = self;
        drop(admission);
        sockets.leave(&link);
    }

    async fn serve(&mut self) -> Result<std::convert::Infallible, Over> {
        match self.fault {
            Some(SocketFault::HalfOpen) => std::future::pending().await,
            Some(SocketFault::BreakAfterUpgrade) => return Err(Over),
            _ => {}
        }
        if self.sockets.0.wire.speaks_first() {
            self.greet().await?;
        }
        loop {
            tokio::select! {
                Some(order) = self.orders.recv() => self.obey(order).await?,
                message = self.socket.recv() => match message {
                    Some(Ok(message)) => self.hear(message).await?,
                    Some(Err(_)) | None => return Err(Over),
                },
            }
        }
    }

    async fn obey(&mut self, order: Order) -> Result<(), Over> {
        match order {
            Order::Write(message) => self.write(message).await,
            Order::WriteAndBreak(message) => {
                self.write(message).await?;
                Err(Over)
            }
            Order::Close => {
                self.sockets.leave(&self.link);
                self.write(Message::Close(None)).await?;
                let closed = async { while let Some(Ok(_)) = self.socket.recv().await {} };
                let _ = tokio::time::timeout(CLOSE_TIME, closed).await;
                Err(Over)
            }
            Order::Freeze => std::future::pending().await,
        }
    }

    async fn greet(&mut self) -> Result<(), Over> {
        if matches!(self.fault, Some(SocketFault::NoGreeting)) {
            return Ok(());
        }
        if let Admission::TooMany(message) = &self.admission {
            let message = message.clone();
            return self.write(message).await;
        }
        let told = self.sockets.take_fault(|fault| matches!(fault, SocketFault::Greeting(_)));
        let told = told.and_then(|fault| match fault {
            SocketFault::Greeting(words) => Some(words),
            _ => None,
        });
        let greeting = self.sockets.0.wire.greet(self.sockets.open() + 1, told);
        self.write(greeting).await?;
        if matches!(self.fault, Some(SocketFault::BreakAfterGreeting)) {
            return Err(Over);
        }
        self.sockets.enter(&self.link);
        Ok(())
    }

    async fn hear(&mut self, message: Message) -> Result<(), Over> {
        if matches!(message, Message::Pong(_)) {
            self.link.0.waited_at_pong.store(self.link.waiting().len(), Ordering::Relaxed);
            self.link.0.pongs.fetch_add(1, Ordering::Relaxed);
        }
        // The WebSocket library answers these three.
        if matches!(message, Message::Ping(_) | Message::Pong(_) | Message::Close(_)) {
            return Ok(());
        }
        match self.sockets.0.wire.read(&message) {
            Ok(Heard::Ping) => return self.greet().await,
            Ok(Heard::Ack(key)) => self.acknowledged(&key, &message),
            Err(problem) => self.sockets.violation(problem),
        }
        Ok(())
    }

    fn acknowledged(&self, key: &str, ack: &Message) {
        let Some(Waiting { sent, tell }) = self.link.waiting().remove(key) else {
            return self
                .sockets
                .violation(format!("an acknowledgement of {key:?}, which this connection did not bring"));
        };
        let answer = self.sockets.0.wire.answer(&sent, ack);
        if let Err(problem) = &answer {
            self.sockets.violation(problem.clone());
        }
        // The sender may have given up waiting.
        let _ = tell.send(answer);
    }

    async fn write(&mut self, message: Message) -> Result<(), Over> {
        match tokio::time::timeout(PATIENCE, self.socket.send(message)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(Over),
        }
    }
}
