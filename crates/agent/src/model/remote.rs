//! A model behind HTTP: one request, one answer, streamed or not; tries, time and limits for all providers.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use parking_lot::Mutex;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName};
use reqwest::{Client, Response};
use serde::de::IgnoredAny;
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout};

use super::dialect::{self, Assembly, Dialect, Target};
use super::manner::{self, Asking, Manner};
use super::refusal;
use super::retry::{self, Failure, RetryDecision};
use super::{BoxFuture, ChatModel, ChatReply, ChatRequest, ModelError, answer, told_wait};
use super::{ModelLive, Provider};
use crate::sse;

/// An answer may be this long on the wire; a longer one is dropped unread.
const MAX_ANSWER_BYTES: usize = 10 << 20;
/// Of an error's body only the code and its first words are of use.
const MAX_ERROR_BYTES: usize = 64 << 10;
/// How long the end of a stream is waited for when the answer is there.
const LEFTOVER: Duration = Duration::from_secs(1);
/// So often one request is made again without what the server objects to.
const MAX_CONCESSIONS: usize = 16;
/// Bytes of JSON to a token, for servers that do not count.
const BYTES_PER_TOKEN: usize = 4;

/// A chat model behind HTTP, in the protocol of `model.provider`.
pub struct Remote {
    http: Client,
    name: String,
    timeout: Duration,
    dialect: Dialect,
    /// Where and with what headers, or why these settings can never work.
    target: Result<Target, &'static str>,
    /// Stands for the server and the model.
    server: String,
    max_output_tokens: u64,
    /// What this server is known not to take is not sent again.
    manner: Mutex<Manner>,
}

impl Remote {
    /// A client with these settings. Settings that cannot work (a base URL that is none, a key that no
    /// header can carry) fail each call with [`ModelError::Unreachable`].
    #[must_use]
    pub fn new(http: Client, model: &ModelLive) -> Self {
        let dialect = Dialect::of(model.provider);
        Self {
            http,
            name: model.name.clone(),
            timeout: model.timeout,
            dialect,
            target: dialect.target(&model.base_url, &model.api_key),
            server: dialect::server(&model.base_url, &model.name),
            max_output_tokens: model.max_output_tokens,
            manner: Mutex::default(),
        }
    }

    /// A model of an OpenAI-compatible server: the base URL (`https://api.openai.com/v1`), the model's name there, and the key. A call may take
    /// five minutes; [`Remote::new`] has all settings.
    ///
    /// # Errors
    /// [`ModelError::Unreachable`] when no HTTP client can be set up, for want of TLS roots on this machine.
    pub fn openai(url: &str, name: &str, key: &str) -> Result<Self, ModelError> {
        Self::at(Provider::OpenAi, url, name, key)
    }

    /// A model of Anthropic's messages API: the base URL (`https://api.anthropic.com`), the model's name there, and the key.
    ///
    /// # Errors
    /// The errors of [`Remote::openai`].
    pub fn anthropic(url: &str, name: &str, key: &str) -> Result<Self, ModelError> {
        Self::at(Provider::Anthropic, url, name, key)
    }

    fn at(provider: Provider, url: &str, name: &str, key: &str) -> Result<Self, ModelError> {
        let http = crate::tls::http_client().redirect(reqwest::redirect::Policy::none()).build();
        let http = http.map_err(|error| ModelError::Unreachable(error.to_string()))?;
        let settings = ModelLive {
            provider,
            base_url: url.trim_end_matches('/').to_owned(),
            name: name.to_owned(),
            api_key: key.into(),
            timeout: Duration::from_secs(300),
            parallel_tool_calls: true,
            vision: true,
            max_output_tokens: 0,
            retry: Duration::ZERO,
        };
        Ok(Self::new(http, &settings))
    }

    /// A request for the server's list of models, which costs nothing.
    ///
    /// # Errors
    /// Why these settings can never work.
    pub fn catalogue(http: &Client, model: &ModelLive) -> Result<reqwest::RequestBuilder, &'static str> {
        let target = Dialect::of(model.provider).catalogue(&model.base_url, &model.api_key)?;
        Ok(http.get(target.url).headers(target.headers))
    }

    async fn ask(&self, request: &ChatRequest) -> Result<ChatReply, ModelError> {
        let target = self.target.as_ref().map_err(|why| ModelError::Unreachable((*why).to_owned()))?;
        let started = Instant::now();
        let mut manner = self.manner();
        let (mut attempt, mut conceded) = (1, 0);
        loop {
            let left = request.deadline.saturating_sub(started.elapsed());
            if left.is_zero() {
                return Err(ModelError::Timeout);
            }
            let asking = self.asking(&manner);
            let limit = self.dialect.limit(asking);
            let body = Bytes::from(self.dialect.body(asking, request).to_string());
            let (size, spread) = (body.len(), spread(&body));
            // Given away: what was sent need not be held while a slow model thinks.
            let failure = match self.once(target, body, left.min(self.timeout), request).await {
                Ok(reply) => {
                    self.learn(manner);
                    return Ok(self.marked(counted(reply, size)));
                }
                Err(Failure::Objection(objection)) => {
                    let left_out = manner.concede(objection.status, &objection.words, request, limit);
                    if let Some(left_out) = left_out.filter(|_| conceded < MAX_CONCESSIONS) {
                        conceded += 1;
                        let why = retry::spell(&objection.failure);
                        tracing::warn!(left_out, why, "the model's server does not take the request; asking without that");
                        continue;
                    }
                    objection.failure
                }
                Err(failure) => failure,
            };
            let left = request.deadline.saturating_sub(started.elapsed());
            let verdict = retry::decide(failure.clone(), attempt, left, spread);
            tracing::warn!(
                attempt,
                tries = retry::tries(&failure),
                failure = retry::spell(&failure),
                ?verdict,
                "the model did not answer"
            );
            match verdict {
                RetryDecision::Again(pause) => sleep(pause).await,
                RetryDecision::GiveUp(error) => return Err(error),
            }
            attempt += 1;
        }
    }

    async fn once(&self, target: &Target, body: Bytes, within: Duration, request: &ChatRequest) -> Result<ChatReply, Failure> {
        let call = self.http.post(target.url.clone()).headers(target.headers.clone());
        // As a body of its own kind, which the client cannot copy for a second try, and so does not keep.
        let call = call.timeout(within).body(reqwest::Body::wrap(Full::new(body)));
        let mut response = call.send().await.map_err(|error| transport(&error))?;
        let status = response.status();
        if !status.is_success() {
            let retry_after = told_wait::in_headers(response.headers());
            // Without its body the status is still known.
            let body = read(&mut response, MAX_ERROR_BYTES).await.ok().flatten().unwrap_or_default();
            return Err(target.without_secrets(refusal::by_status(status.as_u16(), &body, retry_after)));
        }
        let streamed = header(response.headers(), &CONTENT_TYPE).is_some_and(|kind| kind.starts_with("text/event-stream"));
        let answer = if streamed {
            self.follow(&mut response).await
        } else {
            let whole = read(&mut response, MAX_ANSWER_BYTES).await?.ok_or_else(too_big)?;
            self.parse(&whole)
        };
        let read = answer.and_then(|answer| self.dialect.reply(&answer, request));
        read.map_err(|failure| target.without_secrets(failure))
    }

    /// Reads a stream to its end. Dropping this closes the connection, and the server may stop to think.
    async fn follow(&self, response: &mut Response) -> Result<Value, Failure> {
        let mut parser = sse::Parser::default();
        let mut assembly = self.dialect.assembly();
        let mut size = 0;
        // What came before the first event: perhaps it is no stream at all.
        let mut head = Some(Vec::new());
        loop {
            let next = response.chunk();
            let next = if assembly.is_answered() {
                timeout(LEFTOVER, next).await.unwrap_or(Ok(None))
            } else {
                next.await
            };
            let piece = match next {
                Ok(Some(piece)) => piece,
                Ok(None) => break,
                // What is whole needs no orderly end.
                Err(error) => return assembly.finish().ok_or_else(|| transport(&error)),
            };
            size += piece.len();
            if size > MAX_ANSWER_BYTES {
                return Err(too_big());
            }
            if let Some(head) = &mut head {
                head.extend_from_slice(&piece);
            }
            for event in parser.feed(&piece) {
                head = None;
                if take(&mut assembly, &event)? {
                    return assembly.finish().ok_or_else(broken);
                }
            }
        }
        match (parser.end(), head) {
            (Some(event), _) => drop(take(&mut assembly, &event)?),
            (None, Some(head)) if !head.is_empty() => return self.parse(&head),
            (None, _) => {}
        }
        assembly.finish().ok_or_else(broken)
    }

    /// Reads an answer in one piece; a stream under a wrong content type is one too.
    fn parse(&self, whole: &[u8]) -> Result<Value, Failure> {
        let body = whole.strip_prefix("\u{feff}".as_bytes()).unwrap_or(whole).trim_ascii_start();
        let is_stream = [&b"data:"[..], b"event:", b"id:", b"retry:", b":"]
            .iter()
            .any(|start| body.starts_with(start));
        if is_stream {
            let mut parser = sse::Parser::default();
            let mut assembly = self.dialect.assembly();
            let events = parser.feed(whole);
            for event in events.into_iter().chain(parser.end()) {
                if take(&mut assembly, &event)? {
                    break;
                }
            }
            return assembly.finish().ok_or_else(broken);
        }
        let answer = answer::parse(body, if body.starts_with(b"<") { "a web page" } else { "no JSON" })?;
        match refusal::inside(&answer) {
            Some(failure) => Err(failure),
            None => Ok(answer),
        }
    }

    fn asking<'a>(&'a self, manner: &'a Manner) -> Asking<'a> {
        Asking {
            model: &self.name,
            limit: self.max_output_tokens,
            server: &self.server,
            manner,
        }
    }

    fn manner(&self) -> Manner {
        self.manner.lock().clone()
    }

    /// A request in this manner was answered: the next one begins with it.
    fn learn(&self, manner: Manner) {
        self.manner.lock().learn(manner);
    }

    /// The reply, whose fields are for this server and model alone.
    fn marked(&self, mut reply: ChatReply) -> ChatReply {
        if let Some(raw) = &mut reply.raw {
            manner::mark(raw, &self.server);
        }
        reply
    }
}

impl ChatModel for Remote {
    fn chat<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        Box::pin(self.ask(request))
    }

    fn refused_tools(&self) -> Vec<String> {
        self.manner().refused()
    }
}

/// Shows neither the key nor the URL, which may hold credentials.
impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote")
            .field("dialect", &self.dialect)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Takes one event into the answer; true when it was the last one.
fn take(assembly: &mut Assembly, event: &sse::SseEvent) -> Result<bool, Failure> {
    let data = event.data.trim();
    if data.contains('\n') && serde_json::from_str::<IgnoredAny>(data).is_err() {
        // Some servers leave out the blank line that ends an event: then each line is one.
        for line in data.lines() {
            if take_data(assembly, line.trim())? {
                return Ok(true);
            }
        }
        return Ok(false);
    }
    take_data(assembly, data)
}

fn take_data(assembly: &mut Assembly, data: &str) -> Result<bool, Failure> {
    if data == "[DONE]" {
        assembly.end();
        return Ok(true);
    }
    if data.is_empty() {
        return Ok(false);
    }
    let data = answer::parse_piece(data.as_bytes(), "no JSON in the stream")?;
    match refusal::inside(&data.value) {
        Some(failure) => Err(failure),
        None => assembly.take(&data),
    }
}

/// Limits on tokens hold with servers that do not count, too: then by the size of what was sent and read.
fn counted(mut reply: ChatReply, asked: usize) -> ChatReply {
    if reply.tokens == 0 {
        let calls = reply.calls.iter().map(|call| call.name.len() + call.arguments.len());
        let bytes = asked + reply.text.len() + calls.sum::<usize>();
        reply.tokens = u64::try_from(bytes / BYTES_PER_TOKEN).unwrap_or(u64::MAX);
    }
    reply
}

/// The whole body, or none when it is longer than `limit` bytes.
async fn read(response: &mut Response, limit: usize) -> Result<Option<Vec<u8>>, Failure> {
    let mut whole = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(|error| transport(&error))? {
        if whole.len() + piece.len() > limit {
            return Ok(None);
        }
        whole.extend_from_slice(&piece);
    }
    Ok(Some(whole))
}

fn too_big() -> Failure {
    Failure::Nonsense(format!("more than {} MiB", MAX_ANSWER_BYTES >> 20))
}

fn broken() -> Failure {
    Failure::Transport("the stream ended before the answer")
}

/// Names the trouble in our own words: an error of the HTTP client carries the URL.
fn transport(error: &reqwest::Error) -> Failure {
    // A connection that takes too long is none: it is no answer that takes too long.
    if error.is_connect() {
        Failure::Transport("no connection")
    } else if error.is_timeout() {
        Failure::Timeout
    } else if error.is_redirect() {
        Failure::nonsense("too many redirects")
    } else {
        Failure::Transport("the connection broke off")
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Differs between requests, is the same for the same one: enough to spread retries without randomness.
fn spread(body: &[u8]) -> u64 {
    let mut hash = DefaultHasher::new();
    body.hash(&mut hash);
    hash.finish()
}
