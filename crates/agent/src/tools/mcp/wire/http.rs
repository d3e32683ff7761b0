//! A server behind an address: streamable HTTP. Each request is a POST, whose answer is one JSON text or a stream of events.

mod events;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{RequestBuilder, Response, StatusCode, Url};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::message::{RpcAnswer, RpcMessage, RpcRefusal, read, reply};
use super::waiting::{RpcConnection, RpcTrouble};

/// For a TCP connection and its TLS.
const CONNECT: Duration = Duration::from_secs(10);
/// Before a request is sent again when the server does not say how long.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest pause before a call is sent again: the call has 120 s in all. Nothing else waits so long, for it is tried again anyway.
const MAX_WAIT: Duration = Duration::from_secs(100);
const MAX_SHORT_WAIT: Duration = Duration::from_secs(5);
/// Bytes of the body of an error.
const MAX_ERROR: usize = 64 << 10;
/// Requests of a server that we are answering. We offer nothing that it could ask for but signs of life.
const MOST: usize = 64;
const SESSION: &str = "mcp-session-id";
const VERSION: &str = "mcp-protocol-version";

/// The way to an address.
#[derive(Debug)]
pub(super) struct HttpLink {
    client: reqwest::Client,
    url: Url,
    /// The configured ones: secrets.
    headers: HeaderMap,
    session: OnceLock<HeaderValue>,
    version: OnceLock<HeaderValue>,
    waiting: Arc<RpcConnection>,
    replies: Arc<Semaphore>,
}

/// One message to be sent.
pub(super) struct Post<'a> {
    /// The request that it is; `None` for a notice or an answer.
    pub(super) number: Option<u64>,
    pub(super) message: &'a Value,
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    /// Bytes that its answer may have.
    pub(super) limit: usize,
    /// Of a call: nobody waits for it any more.
    pub(super) enough: Option<&'a CancellationToken>,
}

impl Post<'_> {
    /// Waits until the server has time again; false when nobody waits for that, or it would be too long.
    async fn waits(&self, pause: Duration) -> bool {
        match self.enough {
            Some(enough) if pause <= MAX_WAIT => tokio::select! {
                () = sleep(pause) => true,
                () = enough.cancelled() => false,
            },
            None if pause <= MAX_SHORT_WAIT => {
                sleep(pause).await;
                true
            }
            _ => false,
        }
    }
}

impl HttpLink {
    /// Of a server's configuration.
    ///
    /// # Errors
    /// What of it cannot be used, without its secrets.
    pub(super) fn new(url: &str, headers: &BTreeMap<String, SecretString>, waiting: &Arc<RpcConnection>) -> Result<Self, String> {
        let mut secret = HeaderMap::new();
        for (name, value) in headers {
            let unfit = || format!("the header {name} cannot be sent");
            let mut value = HeaderValue::from_str(value.expose_secret()).map_err(|_| unfit())?;
            value.set_sensitive(true);
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| unfit())?;
            if [SESSION, VERSION, ACCEPT.as_str()].contains(&name.as_str()) {
                return Err(String::from("one of its headers is set by the protocol"));
            }
            secret.insert(name, value);
        }
        let url = Url::parse(url).map_err(|_| String::from("its address cannot be used"))?;
        Ok(Self {
            client: client(&url)?,
            url,
            headers: secret,
            session: OnceLock::new(),
            version: OnceLock::new(),
            waiting: Arc::clone(waiting),
            replies: Arc::new(Semaphore::new(MOST)),
        })
    }

    /// Requests name this version from now on.
    pub(super) fn speak(&self, version: &str) {
        if let Ok(version) = HeaderValue::from_str(version) {
            let _ = self.version.set(version);
        }
    }

    fn dressed(&self, request: RequestBuilder) -> RequestBuilder {
        let mut headers = self.headers.clone();
        for (name, value) in [(SESSION, &self.session), (VERSION, &self.version)] {
            if let Some(value) = value.get() {
                headers.insert(name, value.clone());
            }
        }
        request.headers(headers)
    }

    /// Sends a message and takes its answer in. Comes back when no answer will come this way any more.
    pub(super) async fn post(&self, post: &Post<'_>) -> Result<(), RpcTrouble> {
        let response = self.sent(post).await?;
        let Some(pause) = wait_told(&response) else {
            return self.answered(response, post).await;
        };
        // The server did not take the request, so that it may be sent once more.
        let refused = self.refused(response).await;
        if !post.waits(pause).await {
            return Err(refused);
        }
        self.answered(self.sent(post).await?, post).await
    }

    async fn sent(&self, post: &Post<'_>) -> Result<Response, RpcTrouble> {
        let request = self.dressed(self.client.post(self.url.clone()));
        let request = request
            .header(ACCEPT, "application/json, text/event-stream")
            .headers(post.headers.iter().cloned().collect())
            .json(post.message);
        request.send().await.map_err(not_answered)
    }

    async fn answered(&self, response: Response, post: &Post<'_>) -> Result<(), RpcTrouble> {
        let status = response.status();
        if !status.is_success() {
            return Err(self.refused(response).await);
        }
        if let Some(session) = response.headers().get(SESSION).filter(|_| post.message["method"] == "initialize") {
            let _ = self.session.set(session.clone());
        }
        let nothing = matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT);
        // The answer may come over the other stream, which is there once a version is agreed upon.
        if post.number.is_none() || (nothing && self.version.get().is_some()) {
            return Ok(());
        }
        if is_stream(&response) {
            return self.follow(response, post).await;
        }
        let kind = response
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|kind| kind.to_str().ok())
            .unwrap_or("nothing")
            .to_owned();
        let body = match body(response, post.limit).await {
            Ok(body) => body,
            Err(TooLong) => {
                self.too_long(post);
                return Ok(());
            }
        };
        let body = body.ok_or_else(|| RpcTrouble::Broken(String::from("the answer broke off")))?;
        self.take(&body, post.number);
        if post.number.is_some_and(|number| self.waiting.waits(number)) {
            let kind: String = kind.chars().filter(char::is_ascii_graphic).take(60).collect();
            return Err(RpcTrouble::Open(format!(
                "it answers HTTP {} with something that is no message ({kind})",
                status.as_u16()
            )));
        }
        Ok(())
    }

    /// What a status that is no success comes to.
    async fn refused(&self, response: Response) -> RpcTrouble {
        let status = response.status();
        let body = body(response, MAX_ERROR).await.ok().flatten().unwrap_or_default();
        let error = read(&body, |_| false).into_iter().find_map(|message| match message {
            RpcMessage::Answer(number, RpcAnswer::Error(error)) => Some((number, error)),
            _ => None,
        });
        let is_message = error.is_some();
        let (number, error) = error.unwrap_or_else(|| (None, RpcRefusal::of_text(&body)));
        let lost = match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS => false,
            StatusCode::NOT_FOUND | StatusCode::GONE => true,
            // Who does not know our session cannot know our request either, and so does not name it.
            _ if status.is_client_error() => error.is_about_session() || (is_message && number.is_none()),
            _ => is_message && error.is_about_session(),
        };
        if self.has_session() && lost {
            return RpcTrouble::NoSession;
        }
        match status.is_server_error() {
            true => RpcTrouble::Open(format!("it answers HTTP {}", status.as_u16())),
            false => RpcTrouble::Status(status.as_u16(), error),
        }
    }

    /// Does this error come of a session that the server does not know?
    pub(super) fn is_lost(&self, error: &RpcRefusal) -> bool {
        self.has_session() && error.is_about_session()
    }

    fn has_session(&self) -> bool {
        self.session.get().is_some()
    }

    fn too_long(&self, post: &Post<'_>) {
        if let Some(number) = post.number {
            self.waiting
                .unreadable(number, &format!("it has more than {} MiB", post.limit >> 20));
        }
    }

    /// Takes messages in, and answers those that ask.
    fn take(&self, text: &[u8], only: Option<u64>) -> bool {
        let asked = self.waiting.take(text, only);
        for (id, alive) in asked {
            let Ok(room) = Arc::clone(&self.replies).try_acquire_owned() else {
                warn!("an MCP server asks and does not take the answers; leaving it");
                self.waiting.end();
                return false;
            };
            let request = self.dressed(self.client.post(self.url.clone()));
            let request = request
                .header(ACCEPT, "application/json, text/event-stream")
                .json(&reply(&id, alive));
            let over = self.waiting.over.clone();
            tokio::spawn(async move {
                let _room = room;
                tokio::select! {
                    _ = request.timeout(CONNECT).send() => (),
                    () = over.cancelled() => (),
                }
            });
        }
        true
    }

    /// Tells the server that its session is over.
    pub(super) async fn leave(&self) {
        if self.has_session() {
            let _ = self.dressed(self.client.delete(self.url.clone())).send().await;
        }
        self.waiting.end();
    }
}

/// How long a server that has no time now wants us to wait.
fn wait_told(response: &Response) -> Option<Duration> {
    let told = response
        .headers()
        .get(RETRY_AFTER)
        .and_then(|told| told.to_str().ok()?.trim().parse().ok());
    let busy = response.status() == StatusCode::TOO_MANY_REQUESTS;
    busy.then(|| told.map_or(PAUSE, Duration::from_secs))
}

fn not_answered(error: reqwest::Error) -> RpcTrouble {
    let refused = error.is_connect();
    debug!(error = %error.without_url(), "a request to an MCP server was not answered");
    match refused {
        true => RpcTrouble::NotSent(String::from("nobody answers at its address")),
        false => RpcTrouble::Broken(String::from("the request broke off")),
    }
}

/// Is the answer a stream of events?
fn is_stream(response: &Response) -> bool {
    let kind = response
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok())
        .unwrap_or_default();
    kind.split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .eq_ignore_ascii_case("text/event-stream")
}

/// More came than was to be kept.
struct TooLong;

/// A body of at most `limit` bytes; `None` when it broke off.
async fn body(mut response: Response, limit: usize) -> Result<Option<Vec<u8>>, TooLong> {
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(piece)) if body.len() + piece.len() > limit => return Err(TooLong),
            Ok(Some(piece)) => body.extend_from_slice(&piece),
            Ok(None) => return Ok(Some(body)),
            Err(_) => return Ok(None),
        }
    }
}

/// Follows no redirection, so that headers go to the configured host alone. The system's proxy holds for everything but this machine.
fn client(url: &Url) -> Result<reqwest::Client, String> {
    let mut builder = crate::tls::http_client()
        .user_agent(concat!("countersign/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT)
        .redirect(reqwest::redirect::Policy::none());
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    if host == "localhost" || address.is_ok_and(|address| address.is_loopback()) {
        builder = builder.no_proxy();
    }
    builder.build().map_err(|error| format!("no HTTP client: {}", error.without_url()))
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    /// interface §10 M, F7: a call waits as long as its server says, within its own time, and no longer than somebody waits for it. Nothing
    /// else waits long.
    #[tokio::test(start_paused = true)]
    async fn a_call_waits_as_long_as_its_server_says() {
        let (nothing, wanted, given_up) = (Value::Null, CancellationToken::new(), CancellationToken::new());
        given_up.cancel();
        for (enough, seconds, waited) in [
            (Some(&wanted), 90, 90),
            (Some(&wanted), 101, 0),
            (Some(&given_up), 90, 0),
            (None, 5, 5),
            (None, 6, 0),
        ] {
            let post = Post {
                number: Some(1),
                message: &nothing,
                headers: Vec::new(),
                limit: 0,
                enough,
            };
            let began = Instant::now();
            assert_eq!(post.waits(Duration::from_secs(seconds)).await, waited > 0, "{seconds}");
            assert_eq!(began.elapsed().as_secs(), waited, "{seconds}");
        }
    }
}
