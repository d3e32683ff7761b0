//! One connection to a server. Only this and what is below it knows `rmcp`: everybody else sees JSON of the protocol.

mod bounded;

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelledNotificationParam, ClientCapabilities, ClientConfig, ClientRequest, Implementation,
    ListToolsRequest, PaginatedRequestParams,
};
use rmcp::service::{
    ClientInitializeError, NotificationContext, PeerRequestOptions, RoleClient, RunningServiceCancellationToken, ServiceError,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::{StreamableHttpClientTransportConfig, StreamableHttpError};
use rmcp::{ClientHandler, ServiceExt};
use secrecy::ExposeSecret;
use serde_json::{Map, Value};
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use self::bounded::Bounded;
use super::child::{Child, MAX_MESSAGE};
use crate::domain::visible;
use crate::tools::{McpReach, McpServer};

/// For a TCP connection and its TLS.
const CONNECT: Duration = Duration::from_secs(10);
/// For telling a server that we leave.
const GOODBYE: Duration = Duration::from_secs(2);
/// For what a child had said before it ended.
const LAST_WORDS: Duration = Duration::from_millis(300);
/// Before a broken stream is asked for again; doubled each time.
const RESUME: Duration = Duration::from_millis(250);
const RESUMPTIONS: usize = 4;
/// Pages of one list of tools.
const MAX_PAGES: usize = 64;
/// Bytes of all of them together: no more than a single page may have.
const MAX_LIST: usize = MAX_MESSAGE;
/// Characters of a server's own words in an error.
const MAX_WORDS: usize = 1000;

/// A connection that stood its handshake.
#[derive(Debug)]
pub(super) struct Link {
    peer: Peer,
    /// The connection has ended, from whichever side.
    over: CancellationToken,
    leave: Leave,
    child: Option<Child>,
}

/// The way to a server, for calls. It may lead nowhere any more.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    peer: rmcp::Peer<RoleClient>,
    /// A call found the connection unusable: the link should be made anew.
    broken: CancellationToken,
}

/// What became of a call.
#[derive(Debug)]
pub(super) enum CallResult {
    /// The result, as JSON of the protocol.
    Answered(Value),
    /// The server takes no such call, in its words.
    Refused(String),
    /// The server never got it.
    NotSent(String),
    /// It was sent, and no answer will come.
    Unknown(String),
}

/// What the server tells unasked.
#[derive(Debug)]
struct NoticeHandler {
    changed: Arc<Notify>,
}

impl ClientHandler for NoticeHandler {
    // Neither sampling nor elicitation nor roots: a server gets from us what its tools are called with, and nothing else.
    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(
            ClientCapabilities::default(),
            Implementation::new("countersign", env!("CARGO_PKG_VERSION")),
        )
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }
}

impl Link {
    /// Starts or reaches the server and shakes hands. `changed` rings whenever the server says that its tools changed.
    ///
    /// # Errors
    /// Why there is no connection, without secrets and without the server's words.
    pub(super) async fn open(server: &McpServer, folder: Option<&Path>, changed: Arc<Notify>) -> Result<Self, String> {
        let handler = NoticeHandler { changed };
        let (service, child) = match &server.reach {
            McpReach::Command { command, env } => {
                let (child, output, input) = Child::start(command, env, folder)?;
                let service = tokio::select! {
                    service = handler.serve(Bounded::new(AsyncRwTransport::new_client(output, input))) => service,
                    () = child.ended() => return Err(String::from("it ended before the handshake")),
                };
                (service, Some(child))
            }
            McpReach::Url { url, headers } => {
                let mut secret = HashMap::new();
                for (name, value) in headers {
                    let unfit = || format!("the header {name} cannot be sent");
                    let mut value = HeaderValue::from_str(value.expose_secret()).map_err(|_| unfit())?;
                    value.set_sensitive(true);
                    secret.insert(HeaderName::from_bytes(name.as_bytes()).map_err(|_| unfit())?, value);
                }
                let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str())
                    .custom_headers(secret)
                    .max_sse_event_size(MAX_MESSAGE)
                    .max_json_response_size(MAX_MESSAGE)
                    // A new session is a new connection of ours: its tools are compared anew, and no call is ever sent twice.
                    .reinit_on_expired_session(false);
                config.retry_config = Arc::new(resumption());
                let transport = StreamableHttpClientTransport::with_client(client(url)?, config);
                (handler.serve(Bounded::new(transport)).await, None)
            }
        };
        let service = service.map_err(|error| {
            debug!(server = server.name, %error, "no handshake with an MCP server");
            why_no_handshake(&error)
        })?;
        let (over, broken) = (CancellationToken::new(), CancellationToken::new());
        let link = Self {
            peer: Peer {
                peer: service.peer().clone(),
                broken,
            },
            over: over.clone(),
            leave: Leave(service.cancellation_token()),
            child,
        };
        tokio::spawn(async move {
            let _ = service.waiting().await;
            over.cancel();
        });
        Ok(link)
    }

    /// The way to the server.
    pub(super) fn peer(&self) -> Peer {
        self.peer.clone()
    }

    /// All tools, as JSON of the protocol. Asked anew each time: neither an earlier answer nor the server's leave to keep one counts.
    ///
    /// # Errors
    /// Why there is no list, without the server's words.
    pub(super) async fn list(&self) -> Result<Vec<Value>, String> {
        let (mut tools, mut room) = (Vec::new(), MAX_LIST);
        let mut cursor = None;
        for _ in 0..MAX_PAGES {
            let page = PaginatedRequestParams::default().with_cursor(cursor);
            let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(page));
            let answer = self.peer.peer.send_request(request).await.map_err(|error| {
                debug!(%error, "no list of tools from an MCP server");
                why_no_list(&error)
            })?;
            // Whatever the library takes the answer for: it may be stricter about other members than we need.
            let answer = serde_json::to_value(answer).unwrap_or_default();
            let Some(page) = answer["tools"].as_array() else {
                return Err(String::from("its list of tools cannot be read"));
            };
            let bytes: usize = page.iter().map(|tool| tool.to_string().len()).sum();
            match room.checked_sub(bytes) {
                Some(left) => room = left,
                None => return Err(format!("its list of tools has more than {} MiB", MAX_LIST >> 20)),
            }
            tools.extend(page.iter().cloned());
            cursor = answer["nextCursor"].as_str().map(str::to_owned);
            if cursor.is_none() {
                return Ok(tools);
            }
        }
        Err(format!("its list of tools has more than {MAX_PAGES} pages"))
    }

    /// Comes back once the connection has ended or was found unusable.
    pub(super) async fn closed(&self) {
        tokio::select! {
            () = self.over.cancelled() => (),
            () = self.peer.broken.cancelled() => (),
            () = self.child_ended() => {
                // What it said last is read first.
                let _ = timeout(LAST_WORDS, self.over.cancelled()).await;
            }
        }
    }

    async fn child_ended(&self) {
        match &self.child {
            Some(child) => child.ended().await,
            None => std::future::pending().await,
        }
    }

    /// Leaves, and ends what was started for it.
    pub(super) async fn end(self) {
        self.leave.0.cancel();
        let _ = timeout(GOODBYE, self.over.cancelled()).await;
        if let Some(child) = self.child {
            child.end().await;
        }
    }
}

/// Has no `Debug` of its own.
struct Leave(RunningServiceCancellationToken);

impl std::fmt::Debug for Leave {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Leave")
    }
}

/// Sends one call and waits for its answer, until `enough`: then the server is told to cancel it.
pub(super) async fn call(peer: Peer, tool: String, arguments: Map<String, Value>, enough: CancellationToken) -> CallResult {
    let request = CallToolRequest::new(CallToolRequestParams::new(tool).with_arguments(arguments));
    let sent = peer
        .peer
        .send_cancellable_request(ClientRequest::CallToolRequest(request), PeerRequestOptions::default());
    let mut handle = match sent.await {
        Ok(handle) => handle,
        Err(_) => {
            peer.broken.cancel();
            return CallResult::NotSent(String::from("the connection has ended"));
        }
    };
    let answer = tokio::select! {
        answer = &mut handle.rx => answer,
        () = enough.cancelled() => {
            let reason = Some(String::from("stopped, or its time was up"));
            let _ = timeout(GOODBYE, peer.peer.notify_cancelled(CancelledNotificationParam::new(Some(handle.id.clone()), reason))).await;
            return CallResult::Unknown(String::from("it was told to stop before it answered"));
        }
    };
    let called = match answer {
        Ok(Ok(result)) => read(serde_json::to_value(result).unwrap_or_default()),
        Ok(Err(error)) => why_no_answer(error),
        Err(_) => CallResult::Unknown(String::from("the connection ended")),
    };
    if matches!(called, CallResult::NotSent(_) | CallResult::Unknown(_)) {
        peer.broken.cancel();
    }
    called
}

fn read(result: Value) -> CallResult {
    if result["content"].is_array() || result.get("structuredContent").is_some() || result.get("isError").is_some() {
        return CallResult::Answered(result);
    }
    CallResult::Refused(String::from("it answers with something that is no result of a tool"))
}

fn why_no_answer(error: ServiceError) -> CallResult {
    debug!(%error, "a call to an MCP server was not answered");
    match error {
        ServiceError::McpError(error) => CallResult::Refused(words(&error.message)),
        ServiceError::TransportSend(error) => why_not_sent(error.error.as_ref()),
        _ => CallResult::Unknown(String::from("the connection ended")),
    }
}

/// A request that could not be sent: did the server get it all the same?
fn why_not_sent(error: &(dyn std::error::Error + 'static)) -> CallResult {
    if let Some(error) = error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
        return match error {
            StreamableHttpError::Client(error) if error.is_connect() => CallResult::NotSent(String::from("nobody answers at its address")),
            StreamableHttpError::SessionExpired => CallResult::NotSent(String::from("it has begun a new session")),
            StreamableHttpError::AuthRequired(_) | StreamableHttpError::InsufficientScope(_) => {
                CallResult::NotSent(String::from("it refuses our credentials"))
            }
            _ => CallResult::Unknown(String::from("the request broke off")),
        };
    }
    match error.downcast_ref::<io::Error>() {
        // A message ends with its line; of one whose line was not taken nothing is carried out.
        Some(error) if error.kind() == io::ErrorKind::BrokenPipe => CallResult::NotSent(String::from("it has ended")),
        Some(_) | None => CallResult::Unknown(String::from("the request broke off")),
    }
}

fn why_no_list(error: &ServiceError) -> String {
    String::from(match error {
        ServiceError::McpError(_) => "it refuses to list its tools",
        ServiceError::TransportSend(error) => return why_unreachable(error.error.as_ref()),
        ServiceError::TransportClosed => "the connection ended",
        _ => "its list of tools cannot be read",
    })
}

fn why_no_handshake(error: &ClientInitializeError) -> String {
    String::from(match error {
        ClientInitializeError::TransportError { error, .. } => return why_unreachable(error.error.as_ref()),
        ClientInitializeError::ConnectionClosed(_) => "it ended before the handshake",
        ClientInitializeError::JsonRpcError(_) => "it refuses the handshake",
        _ => "it does not answer the handshake as an MCP server does",
    })
}

fn why_unreachable(error: &(dyn std::error::Error + 'static)) -> String {
    String::from(match error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
        Some(StreamableHttpError::Client(error)) if error.is_connect() => "nobody answers at its address",
        Some(StreamableHttpError::AuthRequired(_) | StreamableHttpError::InsufficientScope(_)) => "it refuses our credentials",
        Some(StreamableHttpError::SessionExpired) => "it has begun a new session",
        Some(StreamableHttpError::ReservedHeaderConflict(_)) => "one of its headers is set by the protocol",
        Some(_) => "its address does not answer as an MCP server does",
        None => "the connection ended",
    })
}

/// A server's own words, for the model: data, and not much of it.
fn words(text: &str) -> String {
    let mut words: String = visible(text).chars().take(MAX_WORDS).collect();
    if words.len() < text.len() && words.chars().count() == MAX_WORDS {
        words.push('…');
    }
    words
}

/// How often a stream that broke off is asked for again, from where it broke off: only as long as a hiccup lasts, for a call waits.
fn resumption() -> ExponentialBackoff {
    let mut resumption = ExponentialBackoff::default();
    resumption.base_duration = RESUME;
    resumption.max_times = Some(RESUMPTIONS);
    resumption
}

/// Follows no redirection, so that headers go to the configured host alone. The system's proxy holds for everything but this machine.
fn client(url: &str) -> Result<reqwest::Client, String> {
    let mut builder = crate::tls::http_client()
        .user_agent(concat!("countersign/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT)
        .redirect(reqwest::redirect::Policy::none());
    let host = Url::parse(url)
        .ok()
        .and_then(|url| url.host_str().map(str::to_owned))
        .unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    if host == "localhost" || address.is_ok_and(|address| address.is_loopback()) {
        builder = builder.no_proxy();
    }
    builder.build().map_err(|error| format!("no HTTP client: {}", error.without_url()))
}
