//! One connection to a server: the handshake, the list of its tools, calls, and the end.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, warn};

use super::child::Child;
use super::wire::{MAX_LIST, Marked, RpcAnswer, RpcRefusal, RpcRequest, RpcTrouble, STATELESS, Wire, us};
use crate::tools::{McpReach, McpServer};

/// The versions that begin with a handshake. The last one is offered; the server may name an earlier one.
const WITH_HANDSHAKE: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", OFFERED];
const OFFERED: &str = "2025-11-25";
/// For an address to say whether it knows [`STATELESS`]: earlier servers may leave a request of it without an answer.
const PROBE: Duration = Duration::from_secs(3);
/// For telling a server that we leave.
const GOODBYE: Duration = Duration::from_secs(2);
/// For what a child had said before it ended.
const LAST_ANSWER: Duration = Duration::from_millis(300);
/// Pages of one list of tools.
const MAX_PAGES: usize = 64;

/// A connection that stood its handshake.
#[derive(Debug)]
pub(super) struct Link {
    peer: Peer,
    child: Option<Child>,
}

/// The way to a server, for calls. It may lead nowhere any more.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    wire: Wire,
    /// A call found the connection unusable: the link should be made anew.
    broken: CancellationToken,
    /// It did because the server does not know our session.
    forgotten: CancellationToken,
    /// Calls that wait for their answers.
    calls: TaskTracker,
}

/// What became of a call.
#[derive(Debug)]
pub(super) enum CallResult {
    /// It was carried out: the result, as JSON of the protocol.
    Answered(Value),
    /// It was carried out; why its result cannot be read.
    Unreadable(String),
    /// The server takes no such call, in its words.
    Refused(String),
    /// It did not take this one: the status, and its words.
    NotTaken(String),
    /// The server never got it. It may be sent over another connection.
    NotSent(String),
    /// It was sent, and no answer will come.
    Unknown(String),
}

/// One call.
#[derive(Debug)]
pub(super) struct RpcCall<'a> {
    pub(super) tool: &'a str,
    pub(super) arguments: &'a Map<String, Value>,
    /// Arguments that go into headers, too.
    pub(super) marked: &'a [Marked],
}

impl Link {
    /// Starts or reaches the server and shakes hands. `changed` rings whenever the server says that its tools changed.
    ///
    /// # Errors
    /// Why there is no connection, without secrets.
    pub(super) async fn open(server: &McpServer, folder: Option<&Path>, changed: Arc<Notify>) -> Result<Self, String> {
        let (wire, child) = match &server.reach {
            McpReach::Command { command, env } => {
                let (child, output, input) = Child::start(command, env, folder)?;
                (Wire::pipe(output, input, changed), Some(child))
            }
            McpReach::Url { url, headers } => (Wire::http(url, headers, changed)?, None),
        };
        let shaken = match &child {
            Some(child) => tokio::select! {
                shaken = shake(&wire) => shaken,
                () = child.ended() => Err(RpcTrouble::Broken(String::new()).into()),
            },
            None => shake(&wire).await,
        };
        let wire = match (shaken, child.as_ref()) {
            (Ok(wire), _) => wire,
            (Err(NoHandshake::Trouble(RpcTrouble::Broken(_) | RpcTrouble::NotSent(_))), Some(child)) => {
                return Err(format!("it ended before the handshake{}", child.last_words().await));
            }
            (Err(why), _) => return Err(why.told()),
        };
        wire.listen();
        Ok(Self {
            peer: Peer {
                wire,
                broken: CancellationToken::new(),
                forgotten: CancellationToken::new(),
                calls: TaskTracker::new(),
            },
            child,
        })
    }

    /// The way to the server.
    pub(super) fn peer(&self) -> Peer {
        self.peer.clone()
    }

    /// All tools, as JSON of the protocol. Asked anew each time: neither an earlier answer nor the server's leave to keep one counts. A page
    /// that brings nothing new ends the list.
    ///
    /// # Errors
    /// Why there is no list, without the server's words.
    pub(super) async fn list(&self) -> Result<Vec<Value>, String> {
        let (mut tools, mut room) = (Vec::new(), MAX_LIST);
        let (mut names, mut cursors) = (BTreeSet::new(), BTreeSet::new());
        let mut params = json!({});
        for _ in 0..MAX_PAGES {
            let mut answer = match self.peer.wire.ask("tools/list", params.take()).await {
                Ok(RpcAnswer::Result(answer)) => answer,
                Ok(RpcAnswer::Error(error)) => {
                    debug!(code = error.code, "no list of tools from an MCP server");
                    return Err(String::from("it refuses to list its tools"));
                }
                Ok(RpcAnswer::Unreadable(why) | RpcAnswer::Unclear(why)) => return Err(format!("its list of tools cannot be read: {why}")),
                Err(trouble) => return Err(self.peer.given_up(trouble)),
            };
            let Some(Value::Array(page)) = answer.get_mut("tools").map(Value::take) else {
                return Err(String::from("its list of tools cannot be read"));
            };
            let bytes: usize = page.iter().map(|tool| tool.to_string().len()).sum();
            match room.checked_sub(bytes) {
                Some(left) => room = left,
                None => return Err(format!("its list of tools has more than {} MiB", MAX_LIST >> 20)),
            }
            let before = names.len();
            names.extend(page.iter().filter_map(|tool| tool["name"].as_str().map(str::to_owned)));
            let next = answer["nextCursor"].as_str();
            // Before anything came there is nothing that a page could repeat.
            if next.is_some() && before > 0 && names.len() == before {
                warn!("a page of an MCP server's tools brings nothing new; its list ends there");
                return Ok(tools);
            }
            tools.extend(page);
            let Some(cursor) = next else { return Ok(tools) };
            if !cursors.insert(cursor.to_owned()) {
                warn!("an MCP server gives a page of its tools twice; its list ends there");
                return Ok(tools);
            }
            params = json!({ "cursor": cursor });
        }
        warn!(MAX_PAGES, "an MCP server's list of tools has more pages; it ends there");
        Ok(tools)
    }

    /// Did the server forget our session?
    pub(super) fn is_forgotten(&self) -> bool {
        self.peer.forgotten.is_cancelled()
    }

    /// Comes back once the connection has ended or was found unusable; why it did.
    pub(super) async fn closed(&self) -> String {
        tokio::select! {
            () = self.peer.wire.waiting.over.cancelled() => (),
            () = self.peer.broken.cancelled() => (),
            () = self.child_ended() => {
                // What it said last is read first.
                let _ = timeout(LAST_ANSWER, self.peer.wire.waiting.over.cancelled()).await;
            }
        }
        match &self.child {
            _ if self.is_forgotten() => String::from("it has forgotten our session"),
            Some(child) => format!("the connection ended{}", child.last_words().await),
            None => String::from("the connection ended"),
        }
    }

    async fn child_ended(&self) {
        match &self.child {
            Some(child) => child.ended().await,
            None => std::future::pending().await,
        }
    }

    /// Leaves once the calls that are under way have their answers, or at `stop`. The caller of each call bounds its time.
    pub(super) async fn drain(self, stop: CancellationToken) {
        self.peer.calls.close();
        tokio::select! {
            () = self.peer.calls.wait() => (),
            () = self.peer.wire.waiting.over.cancelled() => (),
            () = stop.cancelled() => (),
        }
        self.end().await;
    }

    /// Is the server reached over HTTP? There each call has a request of its own, so one that finds the session lost says nothing of the others.
    pub(super) fn is_http(&self) -> bool {
        self.child.is_none()
    }

    /// Leaves, and ends what was started for it.
    pub(super) async fn end(self) {
        let _ = timeout(GOODBYE, self.peer.wire.leave()).await;
        self.peer.wire.waiting.end();
        if let Some(child) = self.child {
            child.end().await;
        }
    }
}

impl Peer {
    /// Is there still a connection, as far as we know?
    pub(super) fn is_good(&self) -> bool {
        !self.broken.is_cancelled() && !self.wire.waiting.over.is_cancelled()
    }

    /// Does the server get arguments in headers?
    pub(super) fn wants_headers(&self) -> bool {
        self.wire.is_http() && self.wire.is_stateless()
    }

    /// Why the connection is of no use any more.
    fn given_up(&self, trouble: RpcTrouble) -> String {
        if trouble == RpcTrouble::NoSession {
            self.forgotten.cancel();
        }
        self.broken.cancel();
        NoHandshake::Trouble(trouble).told()
    }

    /// Sends one call and waits for its answer, until `enough`: then the server is told to cancel it.
    pub(super) async fn call(&self, call: RpcCall<'_>, enough: &CancellationToken) -> CallResult {
        let _under_way = self.calls.token();
        let ticket = self.wire.ticket();
        let number = ticket.number;
        let request = RpcRequest {
            method: "tools/call",
            params: json!({"name": call.tool, "arguments": call.arguments}),
            marked: call.marked,
            enough: Some(enough),
        };
        let answer = tokio::select! {
            // First: a request that waits to be sent again ends by itself, and says that it was not taken.
            biased;
            answer = self.wire.request(ticket, request) => answer,
            () = enough.cancelled() => {
                let told = json!({"requestId": number, "reason": "stopped, or its time was up"});
                let _ = timeout(GOODBYE, self.wire.tell("notifications/cancelled", told)).await;
                return CallResult::Unknown(String::from("it was told to stop before it answered"));
            }
        };
        match answer {
            Ok(RpcAnswer::Result(result)) => CallResult::Answered(result),
            Ok(RpcAnswer::Unreadable(why)) => CallResult::Unreadable(why),
            Ok(RpcAnswer::Unclear(why)) => CallResult::Unknown(why),
            Ok(RpcAnswer::Error(error)) => CallResult::Refused(error.told()),
            Err(trouble) => self.without_answer(trouble),
        }
    }

    fn without_answer(&self, trouble: RpcTrouble) -> CallResult {
        debug!(?trouble, "a call to an MCP server was not answered");
        match trouble {
            RpcTrouble::NotSent(_) | RpcTrouble::NoSession => CallResult::NotSent(self.given_up(trouble)),
            RpcTrouble::Broken(why) => {
                self.broken.cancel();
                CallResult::Unknown(why)
            }
            RpcTrouble::Open(why) => CallResult::Unknown(why),
            RpcTrouble::Status(401, _) => {
                self.broken.cancel();
                CallResult::NotTaken(NoHandshake::Trouble(trouble).told())
            }
            RpcTrouble::Status(status, error) => CallResult::NotTaken(match error.words.trim() {
                "" => format!("HTTP {status}"),
                words => format!("HTTP {status}: {words}"),
            }),
        }
    }
}

/// Why there is no connection.
#[derive(Debug)]
enum NoHandshake {
    Trouble(RpcTrouble),
    Refused(RpcRefusal),
    Odd,
}

impl From<RpcTrouble> for NoHandshake {
    fn from(trouble: RpcTrouble) -> Self {
        match trouble {
            // Its error says more than its status.
            RpcTrouble::Status(_, error) if !error.supported.is_empty() => Self::Refused(error),
            trouble => Self::Trouble(trouble),
        }
    }
}

impl NoHandshake {
    /// For the admin. Of the server's words nothing but a code, a status and versions.
    fn told(&self) -> String {
        match self {
            Self::Trouble(RpcTrouble::NotSent(why) | RpcTrouble::Broken(why) | RpcTrouble::Open(why)) => why.clone(),
            Self::Trouble(RpcTrouble::NoSession) => String::from("it has forgotten our session"),
            Self::Trouble(RpcTrouble::Status(status @ (401 | 403), _)) => format!("it refuses our credentials (HTTP {status})"),
            Self::Trouble(RpcTrouble::Status(status, _)) => format!("its address does not answer as an MCP server does (HTTP {status})"),
            Self::Refused(error) if error.knows_no_handshake() => {
                format!("it speaks only MCP {}, which this version does not", error.supported.join(", "))
            }
            Self::Refused(error) => match error.code {
                Some(code) => format!("it refuses the handshake (code {code})"),
                None => String::from("it refuses the handshake"),
            },
            Self::Odd => String::from("it does not answer the handshake as an MCP server does"),
        }
    }
}

/// Agrees on a version. An address is asked first whether it knows the newest one, as the protocol wants it. A child is asked last: there
/// are some that end on a request which they do not know.
async fn shake(wire: &Wire) -> Result<Wire, NoHandshake> {
    if !wire.is_http() {
        return match initialize(wire).await {
            Ok(wire) => Ok(wire),
            Err(first @ (NoHandshake::Refused(_) | NoHandshake::Odd)) => discover(wire).await.map_err(|second| match &first {
                // It says more.
                NoHandshake::Refused(error) if error.knows_no_handshake() => first,
                _ => second,
            }),
            Err(why) => Err(why),
        };
    }
    let probe = timeout(PROBE, discover(wire)).await;
    match probe {
        Ok(Ok(wire)) => return Ok(wire),
        Ok(Err(why @ NoHandshake::Trouble(RpcTrouble::NotSent(_) | RpcTrouble::Status(401, _)))) => return Err(why),
        // It refuses the version, and names none that has a handshake: it is asked once more.
        Ok(Err(NoHandshake::Refused(error))) if error.knows_no_handshake() => return discover(wire).await,
        _ => {}
    }
    match (initialize(wire).await, probe) {
        (Ok(wire), _) => Ok(wire),
        // It was slow and knows no handshake: it gets the time that the others have.
        (Err(NoHandshake::Refused(_) | NoHandshake::Trouble(RpcTrouble::Status(..))), Err(_)) => discover(wire).await,
        (Err(why), _) => Err(why),
    }
}

impl RpcRefusal {
    /// The newest version with a handshake that it names.
    fn newest(&self) -> Option<&'static str> {
        let named = |version: &&str| self.supported.iter().any(|one| one == version);
        WITH_HANDSHAKE.into_iter().rev().find(named)
    }

    /// Does it name versions, and none with a handshake that we know?
    fn knows_no_handshake(&self) -> bool {
        !self.supported.is_empty() && self.newest().is_none()
    }
}

/// The handshake of the versions before [`STATELESS`].
async fn initialize(wire: &Wire) -> Result<Wire, NoHandshake> {
    let refused = match offer(wire, OFFERED).await {
        Err(NoHandshake::Refused(error)) => error,
        other => return other,
    };
    // Some name what they speak instead of choosing it.
    match refused.newest().filter(|version| *version != OFFERED) {
        Some(version) => offer(wire, version).await,
        None => Err(NoHandshake::Refused(refused)),
    }
}

async fn offer(wire: &Wire, version: &str) -> Result<Wire, NoHandshake> {
    let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": us()});
    let answer = match wire.ask("initialize", params).await? {
        RpcAnswer::Result(answer) => answer,
        RpcAnswer::Error(error) => return Err(NoHandshake::Refused(error)),
        RpcAnswer::Unreadable(_) | RpcAnswer::Unclear(_) => return Err(NoHandshake::Odd),
    };
    let Some(version) = answer["protocolVersion"].as_str() else {
        return Err(NoHandshake::Odd);
    };
    wire.speak(version);
    wire.tell("notifications/initialized", Value::Null).await?;
    Ok(wire.clone())
}

/// Without a handshake: what the server says of itself.
async fn discover(wire: &Wire) -> Result<Wire, NoHandshake> {
    let wire = wire.stateless();
    let answer = match wire.ask("server/discover", json!({})).await? {
        RpcAnswer::Result(answer) => answer,
        RpcAnswer::Error(error) => return Err(NoHandshake::Refused(error)),
        RpcAnswer::Unreadable(_) | RpcAnswer::Unclear(_) => return Err(NoHandshake::Odd),
    };
    let versions = answer["supportedVersions"].as_array().into_iter().flatten();
    let spoken = versions.into_iter().any(|version| version == STATELESS);
    spoken.then_some(wire).ok_or(NoHandshake::Odd)
}
