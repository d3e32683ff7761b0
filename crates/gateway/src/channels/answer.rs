//! One call to a platform's API, read to its end: what both clients do before they look at what the platform says.

use std::error::Error;
use std::time::Duration;

use countersign_agent::domain::foreign_json;
use reqwest::header::HeaderMap;
use reqwest::{RequestBuilder, Response, StatusCode};
use serde_json::Value;

use super::DeliveryError;

/// Time for one call, connection included.
pub(super) const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// Longest body that is read: a page of a chat with long messages is a few MiB.
const MOST_BYTES: usize = 16 << 20;

/// The longest wait that a platform is believed to ask for, in seconds.
const LONGEST_WAIT: u64 = 3600;

/// An answer, whatever it says.
#[derive(Debug)]
pub(super) struct ApiAnswer {
    pub(super) status: StatusCode,
    /// How long the platform asked us to wait.
    pub(super) after: Option<Duration>,
    /// `Null` when it is not JSON.
    pub(super) body: Value,
}

impl ApiAnswer {
    /// Sends `request` to `platform`, which may take this `time`. The first of the headers `waits` that is there says how long to wait, in seconds.
    ///
    /// # Errors
    /// When there is no answer. Unless there was no connection, the call may have arrived all the same.
    pub(super) async fn to(request: RequestBuilder, time: Duration, platform: &str, waits: &[&str]) -> Result<Self, DeliveryError> {
        let response = request.timeout(time).send().await;
        let response = response.map_err(|error| unreachable(platform, &error))?;
        let status = response.status();
        let after = asked_wait(response.headers(), waits);
        let bytes = read(response).await.map_err(|error| unreachable(platform, &error))?;
        Ok(Self {
            status,
            after,
            body: foreign_json::read(&bytes).unwrap_or(Value::Null),
        })
    }
}

/// The body, at most [`MOST_BYTES`] of it.
async fn read(mut response: Response) -> Result<Vec<u8>, reqwest::Error> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if bytes.len() + chunk.len() > MOST_BYTES {
            break;
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// The number in the first of the headers `names` that holds one.
pub(super) fn asked_wait(headers: &HeaderMap, names: &[&str]) -> Option<Duration> {
    names.iter().find_map(|name| {
        let seconds: u64 = headers.get(*name)?.to_str().ok()?.trim().parse().ok()?;
        Some(Duration::from_secs(seconds.min(LONGEST_WAIT)))
    })
}

/// A transport error by its kind and its cause, such as a certificate: the error's own text may hold the URL.
pub(super) fn unreachable(platform: &str, error: &reqwest::Error) -> DeliveryError {
    DeliveryError::Retry {
        reason: if error.is_connect() {
            format!("no connection to {platform}: {}", deepest_cause(error))
        } else if error.is_timeout() {
            format!("{platform} did not answer in time")
        } else {
            format!("the connection to {platform} broke")
        },
        after: None,
        uncertain: !error.is_connect(),
    }
}

/// The deepest cause of an error, such as a refused connection or a certificate. Nothing of the URL is in it.
pub fn deepest_cause(error: &reqwest::Error) -> String {
    let mut cause = error.source();
    while let Some(earlier) = cause.and_then(Error::source) {
        cause = Some(earlier);
    }
    cause.map_or_else(
        || String::from("no cause is known"),
        |error| harmless(&error.to_string(), |_| false),
    )
}

/// The platform's words for the log: one line, capped, without queries of URLs and without what `is_secret` takes for a token. They may
/// name the missing scope, which an admin needs.
pub(super) fn harmless(words: &str, is_secret: fn(&str) -> bool) -> String {
    let words = words.split_whitespace().map(|word| match word.split_once('?') {
        _ if is_secret(word) => "***",
        Some((before, _)) if before.contains("://") => before,
        _ => word,
    });
    let line = words.collect::<Vec<_>>().join(" ");
    line.chars().filter(|c| !c.is_control()).take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// F-C1: the first of the headers that holds a number counts, in seconds, an hour at most.
    #[test]
    fn the_asked_wait_is_read() {
        let names = ["x-ogw-ratelimit-reset", "retry-after"];
        let mut headers = HeaderMap::new();
        assert_eq!(asked_wait(&headers, &names), None);
        headers.insert("retry-after", "7".parse().unwrap());
        assert_eq!(asked_wait(&headers, &names), Some(Duration::from_secs(7)));
        headers.insert("x-ogw-ratelimit-reset", "2".parse().unwrap());
        assert_eq!(asked_wait(&headers, &names), Some(Duration::from_secs(2)));
        headers.insert("x-ogw-ratelimit-reset", "soon".parse().unwrap());
        assert_eq!(asked_wait(&headers, &names), Some(Duration::from_secs(7)));
        headers.insert("retry-after", "86400".parse().unwrap());
        assert_eq!(asked_wait(&headers, &names), Some(Duration::from_secs(3600)));
    }
}
