//! What Slack answers: the word in `error` decides, since HTTP is 200 for nearly all of them.

use std::time::Duration;

use reqwest::{RequestBuilder, StatusCode};
use serde_json::Value;

use super::method::Method;
use crate::channels::DeliveryError;
use crate::channels::answer::{self, ApiAnswer, CALL_TIMEOUT};

/// A call that did not do what it should.
#[derive(Debug)]
pub(in crate::channels::slack) struct SlackFailure {
    /// Slack's word for it; empty when Slack did not speak.
    pub(super) code: String,
    /// Too many calls of this method.
    pub(super) limited: bool,
    /// The class, for the caller of the channel.
    pub(in crate::channels::slack) error: DeliveryError,
}

impl SlackFailure {
    /// An answer that makes no sense; worth another try.
    pub(super) fn nonsense(reason: &str) -> Self {
        Self {
            code: String::new(),
            limited: false,
            error: DeliveryError::Retry {
                reason: reason.to_owned(),
                after: None,
                uncertain: false,
            },
        }
    }

    /// The thread to post in is not there any more: the chat itself may still be spoken to.
    pub(super) fn thread_lost(&self) -> bool {
        ["thread_not_found", "cannot_reply_to_message"].contains(&self.code.as_str())
    }

    /// The app has as many connections as Slack allows.
    pub(in crate::channels::slack) fn too_many_connections(&self) -> bool {
        self.code == "too_many_websockets"
    }

    /// We ourselves held the call back: it never left.
    pub(super) fn held_back(error: DeliveryError) -> Self {
        Self {
            code: String::new(),
            limited: true,
            error,
        }
    }
}

impl From<DeliveryError> for SlackFailure {
    /// The call failed without an answer of Slack: there is no code.
    fn from(error: DeliveryError) -> Self {
        Self {
            code: String::new(),
            limited: false,
            error,
        }
    }
}

impl From<SlackFailure> for DeliveryError {
    fn from(failure: SlackFailure) -> Self {
        failure.error
    }
}

/// Sends one call; the body of a success.
pub(super) async fn send(method: Method, request: RequestBuilder) -> Result<Value, SlackFailure> {
    let answer = ApiAnswer::to(request, CALL_TIMEOUT, "Slack", &["retry-after"]).await?;
    if answer.body["ok"] == true && answer.status.is_success() {
        return Ok(answer.body);
    }
    Err(failure(method, &answer))
}

fn failure(method: Method, ApiAnswer { status, after, body }: &ApiAnswer) -> SlackFailure {
    let code = harmless(body["error"].as_str().unwrap_or_default());
    let limited = *status == StatusCode::TOO_MANY_REQUESTS || matches!(code.as_str(), "ratelimited" | "rate_limited");
    let class = if limited { Class::Retry } else { classify(*status, &code) };
    let mut reason = format!("Slack {}: {} (HTTP {})", method.name(), word(&code), status.as_u16());
    if code == "missing_scope" {
        let scope = |name: &str| harmless(body[name].as_str().unwrap_or("?"));
        reason.push_str(&format!(", needed {}, provided {}", scope("needed"), scope("provided")));
    }
    for detail in body["response_metadata"]["messages"].as_array().into_iter().flatten().take(3) {
        reason.push_str("; ");
        reason.push_str(&harmless(detail.as_str().unwrap_or_default()));
    }
    SlackFailure {
        limited,
        error: match class {
            // A body without a wait still means: not at once.
            Class::Retry => DeliveryError::Retry {
                reason,
                after: after.or(limited.then_some(Duration::from_secs(if method == Method::OpenSocket { 30 } else { 1 }))),
                uncertain: !limited,
            },
            Class::Content => DeliveryError::Content(reason),
            Class::Gone => DeliveryError::Gone(reason),
            Class::Forbidden => DeliveryError::Forbidden(reason),
        },
        code,
    }
}

fn word(code: &str) -> &str {
    if code.is_empty() { "no answer of Slack's" } else { code }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Retry,
    Content,
    Gone,
    Forbidden,
}

/// Sorts a refusal into what the dispatcher can do about it.
fn classify(status: StatusCode, code: &str) -> Class {
    match code {
        "internal_error"
        | "fatal_error"
        | "service_unavailable"
        | "request_timeout"
        | "team_added_to_org"
        | "update_failed"
        | "message_limit_exceeded"
        | "too_many_websockets" => Class::Retry,
        // The token, the app or its scopes: an admin must act.
        "not_authed"
        | "invalid_auth"
        | "account_inactive"
        | "token_revoked"
        | "token_expired"
        | "user_removed_from_team"
        | "team_disabled"
        | "team_access_not_granted"
        | "forbidden_team"
        | "link_disabled"
        | "team_not_found"
        | "org_login_required"
        | "missing_scope"
        | "no_permission"
        | "access_denied"
        | "not_allowed_token_type"
        | "method_deprecated"
        | "unknown_method"
        | "feature_not_enabled"
        | "feature_disabled"
        | "ekm_access_denied"
        | "two_factor_setup_required" => Class::Forbidden,
        // The chat, the message, the person or the click is not there for us (any more).
        "channel_not_found"
        | "not_in_channel"
        | "is_archived"
        | "is_inactive"
        | "message_not_found"
        | "cant_update_message"
        | "edit_window_closed"
        | "thread_not_found"
        | "cannot_reply_to_message"
        | "messages_tab_disabled"
        | "user_not_in_channel"
        | "user_not_found"
        | "user_not_visible"
        | "thread_locked"
        | "too_many_reactions"
        | "bad_timestamp"
        | "invalid_thread_ts"
        | "expired_trigger_id"
        | "exchanged_trigger_id"
        | "invalid_trigger_id"
        | "streaming_state_conflict" => Class::Gone,
        _ if code.starts_with("restricted_action") => Class::Gone,
        _ if status.is_server_error() => Class::Retry,
        // No word from Slack: a proxy or a half-up server spoke.
        "" => Class::Retry,
        // invalid_blocks and its kin, and the unknown: plain text may pass where this did not.
        _ => Class::Content,
    }
}

/// Words of the platform without anything that looks like a token.
fn harmless(words: &str) -> String {
    answer::harmless(words, |word| word.contains("xox") || word.contains("xapp-"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answered(status: u16, body: Value) -> ApiAnswer {
        ApiAnswer {
            status: StatusCode::from_u16(status).unwrap(),
            after: None,
            body,
        }
    }

    fn class(status: u16, code: &str) -> &'static str {
        let body = json!({"ok": false, "error": code});
        match failure(Method::Post, &answered(status, body)).error {
            DeliveryError::Retry { .. } => "retry",
            DeliveryError::Content(_) => "content",
            DeliveryError::Gone(_) => "gone",
            DeliveryError::Forbidden(_) => "forbidden",
        }
    }

    /// F-C1, F-C2, F-C3, F-C6: the word decides, not the HTTP status.
    #[test]
    fn every_word_has_its_class() {
        for (status, code, expected) in [
            (429, "ratelimited", "retry"),
            (200, "rate_limited", "retry"),
            (200, "internal_error", "retry"),
            (500, "", "retry"),
            (502, "whatever", "retry"),
            (200, "", "retry"),
            (200, "invalid_auth", "forbidden"),
            (200, "missing_scope", "forbidden"),
            (200, "ekm_access_denied", "forbidden"),
            (200, "link_disabled", "forbidden"),
            (200, "not_in_channel", "gone"),
            (200, "channel_not_found", "gone"),
            (200, "is_archived", "gone"),
            (200, "message_not_found", "gone"),
            (200, "edit_window_closed", "gone"),
            (200, "restricted_action_read_only_channel", "gone"),
            (200, "expired_trigger_id", "gone"),
            (200, "invalid_blocks", "content"),
            (200, "msg_blocks_too_long", "content"),
            (200, "msg_too_long", "content"),
            (200, "metadata_too_large", "content"),
            (200, "a_word_of_tomorrow", "content"),
        ] {
            assert_eq!(class(status, code), expected, "{status} {code}");
        }
    }

    /// design: a refusal names what an admin needs, and no token.
    #[test]
    fn reasons_are_useful_and_harmless() {
        let body = json!({
            "ok": false, "error": "missing_scope", "needed": "reactions:write", "provided": "chat:write",
            "response_metadata": {"messages": ["[ERROR] token xoxb-1-2-abc\nis bad [json-pointer:/blocks/3]"]},
        });
        let said = failure(Method::React, &answered(200, body)).error.to_string();
        assert_eq!(
            said,
            "not permitted: Slack reactions.add: missing_scope (HTTP 200), needed reactions:write, provided chat:write; \
             [ERROR] token *** is bad [json-pointer:/blocks/3]"
        );
    }
}
