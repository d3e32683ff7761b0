//! What Lark answers, by code and not by HTTP status: an error mostly comes with HTTP 400, sometimes with 200.

use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::HeaderMap;
use serde_json::Value;

use crate::channels::DeliveryError;

/// One answer, read to its end.
#[derive(Debug)]
pub(super) struct Answer {
    status: StatusCode,
    /// `code` of the body; 0 is success. `None` means the body is not what Lark sends.
    code: Option<i64>,
    /// What we were asked to wait.
    after: Option<Duration>,
    body: Value,
}

/// A call that did not do what it should.
#[derive(Debug)]
pub(super) struct Refused {
    /// Code of the body, 0 without one.
    pub(super) code: i64,
    status: Option<StatusCode>,
    /// The class, for the caller of the channel.
    pub(super) error: DeliveryError,
}

impl Refused {
    /// An answer that makes no sense; worth another try.
    pub(super) fn other(reason: &str) -> Self {
        Self {
            code: 0,
            status: None,
            error: DeliveryError::Retry {
                reason: reason.to_owned(),
                after: None,
                uncertain: true,
            },
        }
    }

    /// The token was not accepted; the platform answers HTTP 400 with these codes more often than 401.
    pub(super) fn token_refused(&self) -> bool {
        const TOKEN: [i64; 7] = [99_991_661, 99_991_663, 99_991_664, 99_991_665, 99_991_668, 99_991_671, 99_991_677];
        TOKEN.contains(&self.code) || self.status == Some(StatusCode::UNAUTHORIZED)
    }

    /// The message to answer is recalled, deleted or invisible: the chat itself may still be spoken to.
    pub(super) fn target_gone(&self) -> bool {
        [230_011, 230_110, 231_003, 230_019, 230_050, 99_992_354].contains(&self.code)
    }

    /// On a reply: this chat or message takes no thread replies.
    pub(super) fn thread_impossible(&self) -> bool {
        [230_071, 230_072].contains(&self.code)
    }
}

impl Answer {
    pub(super) async fn read(sent: Result<reqwest::Response, reqwest::Error>) -> Result<Self, Refused> {
        let response = sent.map_err(|error| unreachable(&error))?;
        let (status, after) = (response.status(), wait(response.headers()));
        let body: Value = match response.bytes().await {
            Ok(bytes) => serde_json::from_slice(&bytes).unwrap_or(Value::Null),
            Err(error) => return Err(unreachable(&error)),
        };
        Ok(Self {
            status,
            code: body["code"].as_i64(),
            after,
            body,
        })
    }

    /// The body of a success.
    pub(super) fn into_value(self) -> Result<Value, Refused> {
        if self.code == Some(0) && self.status.is_success() {
            return Ok(self.body);
        }
        let code = self.code.unwrap_or(0);
        Err(Refused {
            code,
            status: Some(self.status),
            error: classify(self.status, self.code, self.body["msg"].as_str().unwrap_or_default(), self.after),
        })
    }
}

/// Sorts a refusal into what the dispatcher can do about it. Codes: open platform, "server error codes" and the IM
/// pages; 230020 and 99991400 are rates, whatever other clients take them for.
fn classify(status: StatusCode, code: Option<i64>, msg: &str, after: Option<Duration>) -> DeliveryError {
    let reason = match code {
        Some(code) => format!("Lark code {code}, HTTP {}: {}", status.as_u16(), harmless(msg)),
        None => format!("HTTP {} without an answer of Lark's", status.as_u16()),
    };
    // Lark knows each message by its key: whether a try arrived need not be told apart.
    let retry = |reason| DeliveryError::Retry {
        reason,
        after,
        uncertain: true,
    };
    match code.unwrap_or(0) {
        // Rates, "being sent", "same create in progress", and the platform's own trouble.
        99_991_400 | 230_020 | 11_232 | 11_233 | 11_247 | 230_049 | 18_121 | 231_015 | 1_500 | 2_200 => retry(reason),
        // A token refused twice: ours is not the fault of this message.
        99_991_661 | 99_991_663 | 99_991_664 | 99_991_665 | 99_991_668 | 99_991_671 | 99_991_677 => DeliveryError::Forbidden(reason),
        // Scope, quota, allow-list, app stopped or not installed, wrong secret, bot ability off.
        99_991_672 | 99_991_679 | 99_991_403 | 99_991_401 | 99_991_662 | 99_991_673 | 10_003 | 10_014 | 10_015 | 230_006 | 230_027 => {
            DeliveryError::Forbidden(reason)
        }
        // Message recalled, deleted, topic gone, invisible, no message id; too old or not ours to change; chat
        // dissolved, bot not in it, muted, stopped by the user, user out of reach.
        230_011 | 230_110 | 231_003 | 230_019 | 230_050 | 99_992_354 | 230_009 | 230_026 | 230_075 | 232_009 | 230_002 | 230_035
        | 230_053 | 230_013 | 230_018 => DeliveryError::Gone(reason),
        _ if status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error() => retry(reason),
        _ if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => DeliveryError::Forbidden(reason),
        // No word from Lark: a proxy or a half-up server spoke.
        0 => retry(reason),
        // Content codes (2300xx, 230099 for cards) and the unknown: plain text may pass where this did not.
        _ => DeliveryError::Content(reason),
    }
}

/// `x-ogw-ratelimit-reset` of the gateway, else `Retry-After`; both in seconds, an hour at most.
fn wait(headers: &HeaderMap) -> Option<Duration> {
    ["x-ogw-ratelimit-reset", "retry-after"].iter().find_map(|name| {
        let seconds: u64 = headers.get(*name)?.to_str().ok()?.trim().parse().ok()?;
        Some(Duration::from_secs(seconds.min(3600)))
    })
}

/// A transport error by its kind only: its text may hold the URL.
fn unreachable(error: &reqwest::Error) -> Refused {
    let reason = if error.is_timeout() {
        "Lark did not answer in time"
    } else if error.is_connect() {
        "no connection to Lark"
    } else {
        "the connection to Lark broke"
    };
    Refused::other(reason)
}

/// The platform's message for the log: one line, capped, without queries of URLs and without anything that looks
/// like a token. It may name the missing scope, which an admin needs.
fn harmless(msg: &str) -> String {
    msg.split_whitespace()
        .map(|word| match word.split_once('?') {
            _ if ["t-", "u-", "a-"]
                .iter()
                .any(|head| word.trim_start_matches(['"', '\'', '(', '[']).starts_with(head)) =>
            {
                "***"
            }
            Some((before, _)) if before.contains("://") => before,
            _ => word,
        })
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
        .take(200)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(status: u16, code: Option<i64>) -> &'static str {
        match classify(StatusCode::from_u16(status).unwrap(), code, "", Some(Duration::from_secs(3))) {
            DeliveryError::Retry { after, .. } => {
                assert_eq!(after, Some(Duration::from_secs(3)));
                "retry"
            }
            DeliveryError::Content(_) => "content",
            DeliveryError::Gone(_) => "gone",
            DeliveryError::Forbidden(_) => "forbidden",
        }
    }

    /// F-C1, F-C2, F-C3, F-C6: the code decides, not the HTTP status.
    #[test]
    fn every_code_has_its_class() {
        for (status, code, expected) in [
            (400, Some(99_991_400), "retry"),
            (200, Some(230_020), "retry"),
            (400, Some(230_049), "retry"),
            (400, Some(11_232), "retry"),
            (429, Some(1), "retry"),
            (502, None, "retry"),
            (200, None, "retry"),
            (404, None, "retry"),
            (400, Some(99_991_672), "forbidden"),
            (400, Some(99_991_403), "forbidden"),
            (200, Some(10_014), "forbidden"),
            (400, Some(99_991_663), "forbidden"),
            (403, Some(7), "forbidden"),
            (400, Some(230_002), "gone"),
            (400, Some(232_009), "gone"),
            (400, Some(230_011), "gone"),
            (400, Some(230_053), "gone"),
            (400, Some(230_099), "content"),
            (400, Some(230_025), "content"),
            (400, Some(230_022), "content"),
            (400, Some(230_001), "content"),
            (400, Some(424_242), "content"),
        ] {
            assert_eq!(class(status, code), expected, "{status} {code:?}");
        }
    }

    /// F-C1: the gateway's reset header counts seconds and goes before Retry-After.
    #[test]
    fn the_asked_wait_is_read() {
        let mut headers = HeaderMap::new();
        assert_eq!(wait(&headers), None);
        headers.insert("retry-after", "7".parse().unwrap());
        assert_eq!(wait(&headers), Some(Duration::from_secs(7)));
        headers.insert("x-ogw-ratelimit-reset", "2".parse().unwrap());
        assert_eq!(wait(&headers), Some(Duration::from_secs(2)));
        headers.insert("x-ogw-ratelimit-reset", "soon".parse().unwrap());
        assert_eq!(wait(&headers), Some(Duration::from_secs(7)));
    }

    /// design: no secret and no query of a URL reaches a log line.
    #[test]
    fn messages_are_made_harmless() {
        assert_eq!(
            harmless("scope missing\nhttps://x.example/app/auth?q=im:message&token=abc"),
            "scope missing https://x.example/app/auth"
        );
        assert_eq!(harmless("Bearer t-g1044qeGEDXTB6NDJOGV is stale"), "Bearer *** is stale");
        assert_eq!(harmless(&"x".repeat(500)).len(), 200);
    }
}
