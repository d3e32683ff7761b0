//! What the work on a lane wants to know of the world around a request.

use std::fmt;

use countersign_agent::domain::{Conversation, Gathered, InboundMessage, Millis};
use futures_util::future::BoxFuture;

/// A request whose task is about to begin.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub conversation: &'a Conversation,
    /// Its row of the inbox, which names its task's folder.
    pub inbox_id: i64,
    pub sender: &'a str,
    /// When, by the platform's clock.
    pub at: Millis,
    pub message: &'a InboundMessage,
    /// The bot's own user id; empty while it is not known.
    pub bot: &'a str,
}

/// Reads what surrounds a request, and fetches its files.
pub trait Surroundings: Send + Sync + fmt::Debug {
    /// What can be had of it within a bounded time. It never fails: what could not be had is named in what comes back.
    fn gather<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Gathered>;
}
