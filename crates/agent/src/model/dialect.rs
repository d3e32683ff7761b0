//! What differs between providers: address, headers, bodies. The protocols themselves are pure and lie below.

use std::time::Duration;

use reqwest::Url;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use super::manner::Asking;
use super::retry::{Failure, Objection};
use super::{ChatReply, ChatRequest, advice, anthropic, openai};
use crate::domain::digest128;
use crate::domain::foreign_json::{self, Piece};

/// The version of Anthropic's API that we speak.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// Model providers of this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    /// Built in, deterministic.
    Demo,
    /// Any OpenAI-compatible server.
    OpenAi,
    /// The Anthropic messages API.
    Anthropic,
}

/// `model.*`.
#[derive(Clone, Debug)]
pub struct ModelLive {
    /// `provider`.
    pub provider: Provider,
    /// `base_url`, without a trailing slash.
    pub base_url: String,
    /// `name`.
    pub name: String,
    /// `api_key`.
    pub api_key: SecretString,
    /// `timeout_seconds`.
    pub timeout: Duration,
    /// `parallel_tool_calls`.
    pub parallel_tool_calls: bool,
    /// `vision`.
    pub vision: bool,
    /// `max_output_tokens`: of one answer. 0 means that no limit is sent; where the protocol wants one, 32,000.
    pub max_output_tokens: u64,
    /// `retry_minutes`.
    pub retry: Duration,
}

/// The protocol that a server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// Chat completions.
    OpenAi,
    /// Messages.
    Anthropic,
}

/// Where requests go, and with what headers.
pub(super) struct Target {
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    /// Kept to make sure that no server echoes it into our logs.
    secret: SecretString,
}

/// An answer that is put together from a stream, in the form in which it would have come in one piece: both are then read
/// by the same code.
pub(super) struct Assembly {
    pieces: AnswerPieces,
    /// Halves of characters are in it.
    is_torn: bool,
}

enum AnswerPieces {
    OpenAi(openai::OpenAiAssembly),
    Anthropic(anthropic::AnthropicAssembly),
}

impl Dialect {
    pub(super) fn of(provider: Provider) -> Self {
        match provider {
            Provider::Anthropic => Self::Anthropic,
            Provider::OpenAi | Provider::Demo => Self::OpenAi,
        }
    }

    /// Where answers are asked for.
    pub(super) fn target(self, base_url: &str, secret: &SecretString) -> Result<Target, &'static str> {
        let path: &[&str] = match self {
            Self::OpenAi => &["chat", "completions"],
            Self::Anthropic => &["messages"],
        };
        self.below(base_url, path, secret)
    }

    /// Where the server lists its models.
    pub(super) fn catalogue(self, base_url: &str, secret: &SecretString) -> Result<Target, &'static str> {
        self.below(base_url, &["models"], secret)
    }

    /// The endpoint below `base_url`; a query of the base (Azure's `api-version`) stays where it belongs.
    fn below(self, base_url: &str, path: &[&str], secret: &SecretString) -> Result<Target, &'static str> {
        let mut url = Url::parse(base_url).map_err(|_| "model.base_url is no URL")?;
        let versioned = url.path().trim_end_matches('/').ends_with("/v1");
        let version: &[&str] = if self == Self::Anthropic && !versioned { &["v1"] } else { &[] };
        url.path_segments_mut()
            .map_err(|()| "model.base_url is no HTTP URL")?
            .pop_if_empty()
            .extend(version)
            .extend(path);
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if self == Self::Anthropic {
            headers.insert("anthropic-version", HeaderValue::from_static(ANTHROPIC_VERSION));
        }
        let key = secret.expose_secret().trim();
        if !key.is_empty() {
            let (name, text) = match self {
                Self::OpenAi => (AUTHORIZATION, format!("Bearer {key}")),
                Self::Anthropic => (HeaderName::from_static("x-api-key"), key.to_owned()),
            };
            let mut value = HeaderValue::try_from(text).map_err(|_| "model.api_key holds characters that no header carries")?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        Ok(Target {
            url,
            headers,
            secret: secret.clone(),
        })
    }

    pub(super) fn body(self, asking: Asking<'_>, request: &ChatRequest) -> Value {
        match self {
            Self::OpenAi => openai::body(asking, request),
            Self::Anthropic => anthropic::body(asking, request),
        }
    }

    /// The limit of an answer that a request names, in tokens. 0 means none.
    pub(super) fn limit(self, asking: Asking<'_>) -> u64 {
        match self {
            Self::OpenAi => asking.limit(),
            Self::Anthropic => anthropic::limit(asking),
        }
    }

    pub(super) fn reply(self, answer: &Value, request: &ChatRequest) -> Result<ChatReply, Failure> {
        match self {
            Self::OpenAi => openai::reply(answer, request),
            Self::Anthropic => anthropic::reply(answer, request),
        }
    }

    pub(super) fn assembly(self) -> Assembly {
        let pieces = match self {
            Self::OpenAi => AnswerPieces::OpenAi(openai::OpenAiAssembly::default()),
            Self::Anthropic => AnswerPieces::Anthropic(anthropic::AnthropicAssembly::default()),
        };
        Assembly { pieces, is_torn: false }
    }
}

impl Assembly {
    /// Takes one event's data; true when it was the last one.
    ///
    /// # Errors
    /// When the answer is larger than one may be.
    pub(super) fn take(&mut self, data: &Piece) -> Result<bool, Failure> {
        self.is_torn |= data.is_torn;
        match &mut self.pieces {
            AnswerPieces::OpenAi(assembly) => assembly.take(&data.value),
            AnswerPieces::Anthropic(assembly) => assembly.take(&data.value),
        }
    }

    /// The server said that this is all (`[DONE]`).
    pub(super) fn end(&mut self) {
        match &mut self.pieces {
            AnswerPieces::OpenAi(assembly) => assembly.end(),
            // Has an event of its own for this.
            AnswerPieces::Anthropic(_) => {}
        }
    }

    /// The answer is there; only its end is not.
    pub(super) fn is_answered(&self) -> bool {
        match &self.pieces {
            AnswerPieces::OpenAi(assembly) => assembly.is_answered(),
            AnswerPieces::Anthropic(assembly) => assembly.is_answered(),
        }
    }

    /// The answer, or none when the stream ended before it did.
    pub(super) fn finish(self) -> Option<Value> {
        let mut answer = match self.pieces {
            AnswerPieces::OpenAi(assembly) => assembly.finish(),
            AnswerPieces::Anthropic(assembly) => assembly.finish(),
        }?;
        if self.is_torn {
            foreign_json::join(&mut answer);
        }
        Some(answer)
    }
}

impl Target {
    /// Drops a code that holds a part of the key, or the other way round, and makes the server's words harmless.
    pub(super) fn without_secrets(&self, failure: Failure) -> Failure {
        match failure {
            Failure::Status {
                status,
                code,
                said,
                retry_after,
            } => Failure::Status {
                status,
                code: code.filter(|code| !echoes(code, &self.secret)),
                said: said.map(|said| advice::harmless(&said, &self.secret)),
                retry_after,
            },
            Failure::Odd(word) => Failure::Odd(advice::harmless(&word, &self.secret)),
            Failure::Objection(objection) => {
                let Objection { status, words, failure } = *objection;
                let failure = self.without_secrets(failure);
                Failure::Objection(Box::new(Objection { status, words, failure }))
            }
            other => other,
        }
    }
}

/// Stands for a server and one of its models. The address may hold credentials, so it is no part of it.
pub(super) fn server(base_url: &str, model: &str) -> String {
    hex::encode(digest128(&[base_url, model]))
}

fn echoes(code: &str, secret: &SecretString) -> bool {
    let secret = secret.expose_secret().trim();
    !secret.is_empty() && (secret.contains(code) || code.contains(secret))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(dialect: Dialect, base: &str) -> String {
        let target = dialect.target(base, &SecretString::from(String::new()));
        target.map_or_else(str::to_owned, |target| target.url.to_string())
    }

    /// design: interface §6, `POST {base_url}/chat/completions`, with and without trailing slash or query.
    #[test]
    fn the_path_is_added_before_a_query() {
        let url = |base| url(Dialect::OpenAi, base);
        assert_eq!(url("http://h:1/v1"), "http://h:1/v1/chat/completions");
        assert_eq!(url("http://h:1/v1/"), "http://h:1/v1/chat/completions");
        assert_eq!(url("http://h:1"), "http://h:1/chat/completions");
        assert_eq!(url("https://h/o/d?api-version=1"), "https://h/o/d/chat/completions?api-version=1");
        assert_eq!(url("localhost"), "model.base_url is no URL");
        assert_eq!(url("mailto:a@b"), "model.base_url is no HTTP URL");
    }

    /// design: interface §6, `POST {base_url}/v1/messages`; a base that ends in the version does not get it twice.
    #[test]
    fn the_version_stands_in_the_path_once() {
        let url = |base| url(Dialect::Anthropic, base);
        assert_eq!(url("https://h"), "https://h/v1/messages");
        assert_eq!(url("https://h/v1/"), "https://h/v1/messages");
        assert_eq!(url("https://h/anthropic?x=1"), "https://h/anthropic/v1/messages?x=1");
    }

    /// design: a secret never shows, neither in `Debug` of the headers nor in a code that echoes it.
    #[test]
    fn the_key_never_shows() {
        let secret = SecretString::from("sk-canary".to_owned());
        for dialect in [Dialect::OpenAi, Dialect::Anthropic] {
            let made = dialect.target("http://h/v1?k=canary", &secret).unwrap();
            assert!(!format!("{:?}", made.headers).contains("canary"));
            assert!(dialect.target("http://h", &SecretString::from("a\nb".to_owned())).is_err());
        }
        assert!(echoes("sk-canary", &secret) && echoes("canary", &secret) && !echoes("rate_limit", &secret));
    }
}
