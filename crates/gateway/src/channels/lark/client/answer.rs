//! What Lark answers, by code and not by HTTP status: an error mostly comes with HTTP 400, sometimes with 200.

use std::time::Duration;

use countersign_agent::domain::foreign_json;
use reqwest::{RequestBuilder, StatusCode};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;

use crate::channels::DeliveryError;
use crate::channels::answer::{ApiAnswer, CALL_TIMEOUT, harmless};

/// Lark's gateway says in the first one how long to wait; both count seconds.
pub(super) const WAITS: [&str; 2] = ["x-ogw-ratelimit-reset", "retry-after"];

/// Codes of a token that was not accepted. They come with HTTP 400 more often than with 401.
const TOKEN: [i64; 7] = [99_991_661, 99_991_663, 99_991_664, 99_991_665, 99_991_668, 99_991_671, 99_991_677];

/// A call that did not do what it should.
#[derive(Debug)]
pub(in crate::channels::lark) struct LarkFailure {
    /// Code of the body, 0 without one.
    pub(in crate::channels::lark) code: i64,
    status: Option<StatusCode>,
    /// The class, for the caller of the channel.
    pub(in crate::channels::lark) error: DeliveryError,
}

impl LarkFailure {
    /// An answer that makes no sense; worth another try.
    pub(in crate::channels::lark) fn nonsense(reason: &str) -> Self {
        Self::from(DeliveryError::Retry {
            reason: reason.to_owned(),
            after: None,
            uncertain: true,
        })
    }

    /// An answer that came in the place of a file; Lark may ask us to wait.
    pub(super) fn of_answer(status: u16, body: &[u8], after: Option<Duration>) -> Self {
        let body: Value = foreign_json::read(body).unwrap_or_default();
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
        let code = body["code"].as_i64();
        Self {
            code: code.unwrap_or(0),
            status: Some(status),
            error: classify(status, code, body["msg"].as_str().unwrap_or_default(), after),
        }
    }

    /// The same without `secret`: Lark may repeat what it was sent.
    pub(in crate::channels::lark) fn without(mut self, secret: &SecretString) -> Self {
        let secret = secret.expose_secret();
        if !secret.is_empty() {
            let (DeliveryError::Retry { reason, .. }
            | DeliveryError::Content(reason)
            | DeliveryError::Gone(reason)
            | DeliveryError::Forbidden(reason)) = &mut self.error;
            *reason = reason.replace(secret, "***");
        }
        self
    }

    pub(super) fn token_refused(&self) -> bool {
        TOKEN.contains(&self.code) || self.status == Some(StatusCode::UNAUTHORIZED)
    }

    /// The message to answer is recalled, deleted or invisible: the chat itself may still be spoken to.
    pub(super) fn target_gone(&self) -> bool {
        [230_011, 230_110, 231_003, 230_019, 230_050, 99_992_354].contains(&self.code)
    }

    /// The message has no such mark of ours.
    pub(super) fn mark_gone(&self) -> bool {
        [231_007, 231_010, 231_011].contains(&self.code)
    }

    /// On a reply: this chat or message takes no thread replies.
    pub(super) fn thread_impossible(&self) -> bool {
        [230_071, 230_072].contains(&self.code)
    }
}

impl From<DeliveryError> for LarkFailure {
    /// The call failed without an answer of Lark: there is no code.
    fn from(error: DeliveryError) -> Self {
        Self {
            code: 0,
            status: None,
            error,
        }
    }
}

impl From<LarkFailure> for DeliveryError {
    fn from(failure: LarkFailure) -> Self {
        failure.error
    }
}

/// Sends one call; the body of a success.
pub(in crate::channels::lark) async fn send(request: RequestBuilder) -> Result<Value, LarkFailure> {
    send_within(CALL_TIMEOUT, request).await
}

/// [`send`], for a call that may take this time.
pub(super) async fn send_within(time: Duration, request: RequestBuilder) -> Result<Value, LarkFailure> {
    let answer = ApiAnswer::to(request, time, "Lark", &WAITS).await?;
    // 0 is success. `None` means that the body is not what Lark sends.
    let code = answer.body["code"].as_i64();
    if code == Some(0) && answer.status.is_success() {
        return Ok(answer.body);
    }
    let msg = answer.body["msg"].as_str().unwrap_or_default();
    Err(LarkFailure {
        code: code.unwrap_or(0),
        status: Some(answer.status),
        error: classify(answer.status, code, msg, answer.after),
    })
}

/// Sorts a refusal into what the dispatcher can do about it. Codes: open platform, "server error codes" and the IM
/// pages; 230020 and 99991400 are rates, whatever other clients take them for.
fn classify(status: StatusCode, code: Option<i64>, msg: &str, after: Option<Duration>) -> DeliveryError {
    let reason = match code {
        Some(code) => format!("Lark code {code}, HTTP {}: {}", status.as_u16(), harmless(msg, is_token)),
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
        // A card that somebody uses at this moment is free again shortly after.
        99_991_400 | 230_020 | 11_232 | 11_233 | 11_247 | 230_049 | 18_121 | 231_015 | 1_500 | 2_200 | 200_810 => retry(reason),
        // A token refused twice: ours is not the fault of this message.
        code if TOKEN.contains(&code) => DeliveryError::Forbidden(reason),
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

/// Does a word look like a token, in whatever brackets?
fn is_token(word: &str) -> bool {
    let word = word.trim_start_matches(['"', '\'', '(', '[']);
    ["t-", "u-", "a-"].iter().any(|head| word.starts_with(head))
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

    /// design: no secret reaches a log line, also where Lark repeats it.
    #[test]
    fn a_repeated_secret_is_left_out() {
        let refused = || LarkFailure::of_answer(200, br#"{"code": 514, "msg": "auth failed for s3cret-0"}"#, None);
        let error = refused().without(&SecretString::from("s3cret-0")).error.to_string();
        assert!(error.contains("auth failed for ***") && !error.contains("s3cret"), "{error}");
        let as_it_is = refused().without(&SecretString::from("")).error.to_string();
        assert!(as_it_is.contains("auth failed for s3cret-0"), "{as_it_is}");
    }

    /// design: no secret and no query of a URL reaches a log line.
    #[test]
    fn messages_are_made_harmless() {
        assert_eq!(
            harmless("scope missing\nhttps://x.example/app/auth?q=im:message&token=abc", is_token),
            "scope missing https://x.example/app/auth"
        );
        assert_eq!(harmless("Bearer t-g1044qeGEDXTB6NDJOGV is stale", is_token), "Bearer *** is stale");
        assert_eq!(harmless(&"x".repeat(500), is_token).len(), 200);
    }
}
