//! Requests of ours that wait for their answers, and what keeps them from getting one.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;

use super::message::{RpcAnswer, RpcMessage, RpcRefusal, read};

/// Bytes of one message of a server.
pub(super) const MAX_MESSAGE: usize = 16 << 20;

/// Why a request has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RpcTrouble {
    /// The server never got it; the connection is of no use any more.
    NotSent(String),
    /// The server does not know our session and has not looked at the request. A new session is needed.
    NoSession,
    /// The server did not take the request: an HTTP status, and what it says.
    Status(u16, RpcRefusal),
    /// It may have been carried out. The connection stays.
    Open(String),
    /// It may have been carried out. The connection is of no use any more.
    Broken(String),
}

/// Both sides of a connection.
#[derive(Debug)]
pub(crate) struct RpcConnection {
    requests: Mutex<Requests>,
    /// Rings when the server says that its tools changed.
    changed: Arc<Notify>,
    /// The connection has ended, from whichever side.
    pub(crate) over: CancellationToken,
    /// We leave.
    pub(crate) leave: CancellationToken,
}

#[derive(Debug, Default)]
struct Requests {
    last: u64,
    ended: bool,
    by_number: HashMap<u64, oneshot::Sender<RpcAnswer>>,
}

/// One request that waits; forgotten when this is dropped.
#[derive(Debug)]
pub(crate) struct Ticket {
    pub(crate) number: u64,
    pub(super) answer: oneshot::Receiver<RpcAnswer>,
    waiting: Arc<RpcConnection>,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.waiting.requests().by_number.remove(&self.number);
    }
}

impl RpcConnection {
    pub(super) fn new(changed: Arc<Notify>) -> Arc<Self> {
        Arc::new(Self {
            requests: Mutex::default(),
            changed,
            over: CancellationToken::new(),
            leave: CancellationToken::new(),
        })
    }

    fn requests(&self) -> MutexGuard<'_, Requests> {
        self.requests.lock()
    }

    /// The next request.
    pub(super) fn ticket(self: &Arc<Self>) -> Ticket {
        let (sender, answer) = oneshot::channel();
        let mut requests = self.requests();
        requests.last += 1;
        let number = requests.last;
        if !requests.ended {
            requests.by_number.insert(number, sender);
        }
        Ticket {
            number,
            answer,
            waiting: Arc::clone(self),
        }
    }

    /// Does this request wait?
    pub(super) fn waits(&self, number: u64) -> bool {
        self.requests().by_number.contains_key(&number)
    }

    /// Hands the answers in a text to the requests that wait for them, and gives the server's own requests. `only`: the request that an
    /// answer without a number belongs to.
    pub(super) fn take(&self, text: &[u8], only: Option<u64>) -> Vec<(serde_json::Value, bool)> {
        let mut asked = Vec::new();
        for message in read(text, |number| self.waits(number)) {
            match message {
                RpcMessage::Answer(number, answer) => {
                    let waiting = number.or(only).and_then(|number| self.requests().by_number.remove(&number));
                    if let Some(waiting) = waiting {
                        let _ = waiting.send(answer);
                    }
                }
                RpcMessage::Request(id, alive) => asked.push((id, alive)),
                RpcMessage::Notice(method) if method == "notifications/tools/list_changed" => self.changed.notify_one(),
                RpcMessage::Notice(_) => {}
            }
        }
        asked
    }

    /// Answers a request that cannot be read otherwise.
    pub(super) fn unreadable(&self, number: u64, why: &str) {
        if let Some(waiting) = self.requests().by_number.remove(&number) {
            let _ = waiting.send(RpcAnswer::Unreadable(why.to_owned()));
        }
    }

    /// No answer will come any more.
    pub(crate) fn end(&self) {
        let mut requests = self.requests();
        requests.ended = true;
        requests.by_number.clear();
        drop(requests);
        self.over.cancel();
    }
}
