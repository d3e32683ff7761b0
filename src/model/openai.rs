//! Client of any server that speaks OpenAI's chat completions: one request, one answer.
//!
//! Protocol: <https://platform.openai.com/docs/api-reference/chat/create>. What other servers do
//! differently is noted where it is handled, in `wire`.

mod wire;

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, DATE, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Response, Url};
use secrecy::{ExposeSecret, SecretString};
use tokio::time::{Instant, sleep};

use super::retry::{self, Failure, TRIES, Verdict};
use super::{BoxFuture, ChatModel, ChatReply, ChatRequest, ModelError};
use crate::config::ModelLive;

/// An answer may be this long on the wire; a longer one is dropped unread.
const MAX_ANSWER_BYTES: usize = 10 << 20;
/// Of an error's body only the code is of use.
const MAX_ERROR_BYTES: usize = 64 << 10;

/// A chat model behind `POST {base_url}/chat/completions`.
pub struct OpenAi {
    http: Client,
    name: String,
    timeout: Duration,
    /// Where and with what key, or why these settings can never work.
    target: Result<Target, &'static str>,
}

struct Target {
    url: Url,
    key: Option<HeaderValue>,
    /// Kept to make sure that no server echoes it into our logs.
    secret: SecretString,
}

impl OpenAi {
    /// A client with these settings. Settings that cannot work (a base URL that is none, a key that no
    /// header can carry) fail each call with [`ModelError::Unreachable`].
    #[must_use]
    pub fn new(http: Client, model: &ModelLive) -> Self {
        Self {
            http,
            name: model.name.clone(),
            timeout: model.timeout,
            target: target(&model.base_url, &model.api_key),
        }
    }

    async fn ask(&self, request: &ChatRequest) -> Result<ChatReply, ModelError> {
        let target = self.target.as_ref().map_err(|why| ModelError::Unreachable((*why).to_owned()))?;
        let body = Bytes::from(wire::body(&self.name, request).to_string());
        let started = Instant::now();
        let mut attempt = 1;
        loop {
            let left = request.deadline.saturating_sub(started.elapsed());
            if left.is_zero() {
                return Err(ModelError::Timeout);
            }
            let outcome = match self.once(target, body.clone(), left.min(self.timeout)).await {
                Ok(answer) => wire::reply(&answer, request).map_err(Failure::Nonsense),
                Err(failure) => Err(failure),
            };
            let failure = match outcome {
                Ok(reply) => return Ok(reply),
                Err(failure) => failure,
            };
            let left = request.deadline.saturating_sub(started.elapsed());
            let verdict = retry::decide(failure.clone(), attempt, left, spread(&body));
            tracing::warn!(attempt, tries = TRIES, ?failure, ?verdict, "the model did not answer");
            match verdict {
                Verdict::Again(pause) => sleep(pause).await,
                Verdict::GiveUp(error) => return Err(error),
            }
            attempt += 1;
        }
    }

    async fn once(&self, target: &Target, body: Bytes, within: Duration) -> Result<Vec<u8>, Failure> {
        let mut call = self
            .http
            .post(target.url.clone())
            .header(CONTENT_TYPE, "application/json")
            .timeout(within)
            .body(body);
        if let Some(key) = &target.key {
            call = call.header(AUTHORIZATION, key.clone());
        }
        let response = call.send().await.map_err(|error| transport(&error))?;
        let status = response.status();
        if status.is_success() {
            return read(response, MAX_ANSWER_BYTES)
                .await?
                .ok_or_else(|| Failure::Nonsense(format!("more than {} MiB", MAX_ANSWER_BYTES >> 20)));
        }
        let retry_after =
            header(response.headers(), &RETRY_AFTER).and_then(|value| retry::retry_after(value, header(response.headers(), &DATE)));
        // The body is only good for its code: when it does not come, the status is still known.
        let body = read(response, MAX_ERROR_BYTES).await.ok().flatten().unwrap_or_default();
        Err(Failure::Status {
            status: status.as_u16(),
            code: wire::error_code(&body).filter(|code| !echoes(code, &target.secret)),
            retry_after,
        })
    }
}

impl ChatModel for OpenAi {
    fn chat<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        Box::pin(self.ask(request))
    }
}

/// Shows neither the key nor the URL, which may hold credentials.
impl fmt::Debug for OpenAi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAi").field("name", &self.name).finish_non_exhaustive()
    }
}

/// `{base_url}/chat/completions`; a query of the base (Azure's `api-version`) stays where it belongs.
fn target(base_url: &str, secret: &SecretString) -> Result<Target, &'static str> {
    let mut url = Url::parse(base_url).map_err(|_| "model.base_url is no URL")?;
    url.path_segments_mut()
        .map_err(|()| "model.base_url is no HTTP URL")?
        .pop_if_empty()
        .extend(["chat", "completions"]);
    let key = match secret.expose_secret().trim() {
        "" => None,
        text => {
            let mut value =
                HeaderValue::try_from(format!("Bearer {text}")).map_err(|_| "model.api_key holds characters that no header carries")?;
            value.set_sensitive(true);
            Some(value)
        }
    };
    Ok(Target {
        url,
        key,
        secret: secret.clone(),
    })
}

/// The whole body, or none when it is longer than `limit` bytes.
async fn read(mut response: Response, limit: usize) -> Result<Option<Vec<u8>>, Failure> {
    let mut whole = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(|error| transport(&error))? {
        if whole.len() + piece.len() > limit {
            return Ok(None);
        }
        whole.extend_from_slice(&piece);
    }
    Ok(Some(whole))
}

/// Names the trouble in our own words: an error of the HTTP client carries the URL.
fn transport(error: &reqwest::Error) -> Failure {
    if error.is_timeout() {
        Failure::Timeout
    } else if error.is_connect() {
        Failure::Transport("no connection")
    } else if error.is_redirect() {
        Failure::Nonsense("too many redirects".to_owned())
    } else {
        Failure::Transport("the connection broke off")
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &reqwest::header::HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn echoes(code: &str, secret: &SecretString) -> bool {
    let secret = secret.expose_secret().trim();
    !secret.is_empty() && (secret.contains(code) || code.contains(secret))
}

/// Differs between requests, is the same for the same one: enough to spread retries without randomness.
fn spread(body: &[u8]) -> u64 {
    let mut hash = DefaultHasher::new();
    body.hash(&mut hash);
    hash.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(base: &str) -> String {
        target(base, &SecretString::from(String::new())).map_or_else(str::to_owned, |target| target.url.to_string())
    }

    /// design: interface §6, `POST {base_url}/chat/completions`, with and without trailing slash or query.
    #[test]
    fn the_path_is_added_before_a_query() {
        assert_eq!(url("http://h:1/v1"), "http://h:1/v1/chat/completions");
        assert_eq!(url("http://h:1/v1/"), "http://h:1/v1/chat/completions");
        assert_eq!(url("http://h:1"), "http://h:1/chat/completions");
        assert_eq!(url("https://h/o/d?api-version=1"), "https://h/o/d/chat/completions?api-version=1");
        assert_eq!(url("localhost"), "model.base_url is no URL");
        assert_eq!(url("mailto:a@b"), "model.base_url is no HTTP URL");
    }

    /// design: a secret never shows, neither in `Debug` of the client nor of its header.
    #[test]
    fn the_key_never_shows() {
        let secret = SecretString::from("sk-canary".to_owned());
        let made = target("http://h/v1?k=canary", &secret).unwrap();
        assert!(!format!("{:?}", made.key).contains("canary"));
        assert!(echoes("sk-canary", &secret) && echoes("canary", &secret) && !echoes("rate_limit", &secret));
        assert!(target("http://h", &SecretString::from("a\nb".to_owned())).is_err());
    }
}
