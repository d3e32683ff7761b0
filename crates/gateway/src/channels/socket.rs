//! Events over a WebSocket that the gateway opens to a platform: what the platforms do alike.
//!
//! A [`SocketPlatform`] opens connections. Its [`SocketProtocol`] reads the frames of one of them; it does no I/O. [`Socket::serve`] keeps a
//! connection alive, hands its events over and acknowledges them.

mod dial;
mod serve;

use std::fmt;
use std::time::Duration;

use countersign_agent::domain::{ChannelKind, Millis};
use serde_json::Value;

use super::{BoxFuture, DeliveryError, EventRefusal, LarkReceived, SlackReceived};

pub(super) use dial::DialError;
pub use dial::{Dialer, is_this_machine};
pub use serve::{ConnectionEnd, Signals, Socket};

/// Longest message of a platform, joined from its frames, in bytes.
pub(super) const MAX_MESSAGE: usize = 4 * 1024 * 1024;

/// A platform whose events come over connections that we open.
pub trait SocketPlatform: Send + Sync + fmt::Debug {
    fn kind(&self) -> ChannelKind;

    /// Asks for an address and connects to it.
    ///
    /// # Errors
    /// `Forbidden` where only a change of the settings, here or at the platform, can help; anything else is worth another try.
    fn open(&self) -> BoxFuture<'_, Result<Socket, NotOpened>>;
}

/// What `/readyz` and the log say of [`NotOpened::TooMany`] and of [`ConnectionEnd::TooMany`].
pub(in crate::channels) const TOO_MANY: &str = "the platform allows the app no more connections";

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum NotOpened {
    /// The app has as many connections as the platform allows, over all processes. The text is the platform's.
    #[error("{words}: {0}", words = TOO_MANY)]
    TooMany(String),
    #[error(transparent)]
    Failed(#[from] DeliveryError),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::channels) enum Frame {
    Text(String),
    Binary(Vec<u8>),
    Ping,
}

/// One platform's language on one connection: frames in, frames out, and no I/O.
pub(in crate::channels) trait SocketProtocol: Send + fmt::Debug {
    /// Does the platform say when the connection is ready? Otherwise it is from the start.
    fn waits_for_greeting(&self) -> bool;

    /// How often we ask whether the peer is there, and how long any frame of it may take after that.
    fn liveness(&self) -> Liveness;

    /// The question whether the peer is there.
    fn ping(&self) -> Frame;

    /// What `frame` means. `now` is this machine's time.
    fn read(&mut self, frame: Frame, now: Millis) -> SocketRead;
}

/// How a dead peer is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::channels) struct Liveness {
    /// Between two pings.
    pub every: Duration,
    /// After a ping some frame must come within this time.
    pub within: Duration,
}

#[expect(clippy::large_enum_variant, reason = "one lives per frame, and nearly every one is an event")]
pub(in crate::channels) enum SocketRead {
    Nothing,
    /// Events may come from now on.
    Greeted,
    /// An event, to be stored or decided, and then answered.
    Event(SocketEvent),
    /// This frame is sent back at once; nothing has to be stored for it.
    Reply(Frame),
    /// The platform will end the connection soon: the next one should be opened now.
    Recycle(String),
    End(ConnectionEnd),
}

impl SocketRead {
    /// A frame that says nothing that we know; nobody waits for an answer to it. It is told like an event that is refused.
    pub(in crate::channels) fn skipped(reason: &'static str) -> Self {
        Self::Event(SocketEvent {
            received: Err(EventRefusal::Bad(reason)),
            answer: Box::new(|_| None),
        })
    }

    #[cfg(test)]
    pub(in crate::channels) fn was_skipped(self) -> bool {
        match self {
            Self::Event(event) => event.received.is_err() && (event.answer)(&SocketAnswer::Taken(None)).is_none(),
            _ => false,
        }
    }
}

pub(in crate::channels) struct SocketEvent {
    pub received: Result<SocketReceived, EventRefusal>,
    pub answer: Acknowledge,
}

/// Makes the frame that acknowledges an event. `None` means that none is sent.
pub(in crate::channels) type Acknowledge = Box<dyn FnOnce(&SocketAnswer) -> Option<Frame> + Send>;

/// What a platform's reader found in an event.
pub enum SocketReceived {
    Lark(LarkReceived),
    Slack(SlackReceived),
}

#[derive(Clone, Debug, PartialEq)]
pub enum SocketAnswer {
    /// The event is stored or decided, or will never be; this is the body of the answer, if it has one.
    Taken(Option<Value>),
    /// The event could not be stored: the platform shall send it again.
    NotTaken,
}

#[cfg(test)]
mod tests;
