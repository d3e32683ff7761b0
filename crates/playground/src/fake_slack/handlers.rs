//! Takes a call in: its method, its fault, its arguments, its caller.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::{APP_ID, BOT_ID, SLACK_BOT, Shared, TEAM, chat, files, home};
use crate::stage::{Fault, broken};

/// The method that gives out the address of a socket. It alone takes the app-level token.
const OPEN: &str = "apps.connections.open";

/// The members of an answer beside `ok`, or the refusal.
pub(super) type Answer = Result<Value, Refusal>;

/// `ok: false`.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) error: &'static str,
    /// What is wrong with the call, when a correct program would not have made it.
    pub(super) violation: Option<String>,
}

impl Refusal {
    /// An answer that callers must expect.
    pub(super) fn fair(error: &'static str) -> Self {
        Self { error, violation: None }
    }

    /// An answer to something that should not have been sent.
    pub(super) fn objection(error: &'static str, what: impl Into<String>) -> Self {
        Self {
            error,
            violation: Some(what.into()),
        }
    }
}

/// `POST /api/{method}`. The work goes on although the caller hangs up.
pub(super) async fn method(State(shared): State<Shared>, Path(method): Path<String>, headers: HeaderMap, body: Bytes) -> Response {
    let work = tokio::spawn(async move { serve(&shared, &method, &headers, &body).await });
    work.await.unwrap_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response())
}

/// Any other path. The gateway reads the clock by `HEAD`, which is no violation.
pub(super) async fn unknown(State(shared): State<Shared>, asked: Method, uri: Uri) -> Response {
    if asked != Method::HEAD {
        shared.stage.lock().violation(format!("unknown path {uri}"));
        shared.stage.tell_change();
    }
    StatusCode::NOT_FOUND.into_response()
}

async fn serve(shared: &Shared, method: &str, headers: &HeaderMap, body: &[u8]) -> Response {
    let arguments = arguments(method, headers, body);
    let endpoint = endpoint(method, arguments.as_ref().unwrap_or(&Value::Null));
    let body = arguments.as_ref().unwrap_or(&Value::Null);
    let lost = match shared.stage.begin_call(endpoint, body, fault_answer).await {
        Ok(lost) => lost,
        Err(answer) => return answer,
    };
    let outcome = arguments.and_then(|arguments| {
        authorized(shared, method, headers, &arguments)?;
        if method == OPEN {
            return Ok(json!({ "url": format!("{}&app_id={APP_ID}", shared.sockets.address(headers)) }));
        }
        act(shared, method, &arguments, headers)
    });
    let answer = match outcome {
        Ok(mut answer) => {
            answer["ok"] = json!(true);
            answer
        }
        Err(Refusal { error, violation }) => {
            if let Some(what) = &violation {
                shared.stage.lock().violation(format!("{method}: {error}: {what}"));
            }
            let messages: Vec<String> = violation.into_iter().map(|what| format!("[ERROR] {what}")).collect();
            json!({ "ok": false, "error": error, "response_metadata": { "messages": messages } })
        }
    };
    shared.stage.tell_change();
    if lost { broken() } else { Json(answer).into_response() }
}

pub(super) fn fault_answer(fault: &Fault) -> (StatusCode, Value) {
    let (status, error) = match fault {
        Fault::Answer { status: 429, .. } => (StatusCode::TOO_MANY_REQUESTS, "ratelimited"),
        Fault::Answer { status, .. } => {
            let status = StatusCode::from_u16(*status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            (status, "internal_error")
        }
        Fault::Error(error) => (StatusCode::OK, *error),
        Fault::LoseAnswer | Fault::Delay(_) => (StatusCode::OK, ""),
    };
    (status, json!({ "ok": false, "error": error }))
}

fn act(shared: &Shared, method: &str, arguments: &Value, headers: &HeaderMap) -> Answer {
    match method {
        "auth.test" => Ok(json!({
            "url": "https://demo.slack.invalid/", "team": "Demo", "user": "countersign", "team_id": TEAM, "user_id": SLACK_BOT,
            "bot_id": BOT_ID, "app_id": APP_ID, "is_enterprise_install": false,
        })),
        "chat.postMessage" => chat::post(shared, arguments),
        "chat.update" => chat::update(shared, arguments),
        "chat.postEphemeral" => chat::whisper(shared, arguments),
        "views.open" => chat::open(shared, arguments),
        "views.publish" => home::publish(shared, arguments),
        "conversations.open" => chat::open_direct(shared, arguments),
        "reactions.add" => chat::react(shared, arguments),
        "reactions.remove" => chat::unreact(shared, arguments),
        "users.info" => chat::user(arguments),
        "usergroups.users.list" => chat::members(shared, arguments),
        "conversations.replies" => chat::replies(shared, arguments),
        "conversations.history" => chat::history(shared, arguments),
        "files.getUploadURLExternal" => files::address(shared, arguments, headers),
        "files.completeUploadExternal" => files::complete(shared, arguments),
        "files.info" => files::info(shared, arguments, headers),
        "agents.sessions.setStatus" => chat::set_status(shared, arguments),
        "assistant.threads.setSuggestedPrompts" => chat::suggest(shared, arguments),
        other => Err(Refusal::objection("unknown_method", other)),
    }
}

/// The word for a method in the list of calls.
fn endpoint(method: &str, arguments: &Value) -> &'static str {
    match method {
        "auth.test" => "bot",
        OPEN => "socket",
        "chat.postMessage" if arguments["thread_ts"].is_string() => "reply",
        "chat.postMessage" => "create",
        "chat.update" => "patch",
        "chat.postEphemeral" => "whisper",
        "views.open" => "form",
        "views.publish" => "home",
        "conversations.open" => "direct",
        "reactions.add" => "react",
        "reactions.remove" => "unreact",
        "users.info" => "user",
        "usergroups.users.list" => "members",
        // Without a range from below it is no look for a lost post.
        "conversations.replies" | "conversations.history" if arguments["oldest"].is_null() => "said_before",
        "conversations.replies" => "replies",
        "conversations.history" => "history",
        "files.getUploadURLExternal" => "address",
        "files.completeUploadExternal" => "complete",
        "files.info" => "info",
        "agents.sessions.setStatus" => "session",
        "assistant.threads.setSuggestedPrompts" => "suggest",
        _ => "unknown",
    }
}

/// JSON for what posts, a form for what reads; either for the rest, as the reference has it.
fn arguments(method: &str, headers: &HeaderMap, body: &[u8]) -> Answer {
    let kind = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let reads = [
        "users.info",
        "usergroups.users.list",
        "conversations.replies",
        "conversations.history",
        "files.getUploadURLExternal",
        "files.info",
    ]
    .contains(&method);
    let posts = method.starts_with("chat.") || method.starts_with("views.");
    let media = kind.split(';').next().unwrap_or_default().trim();
    let value = match media {
        "application/json" if !reads => {
            serde_json::from_slice(body).map_err(|error| Refusal::objection("invalid_json", error.to_string()))?
        }
        "application/x-www-form-urlencoded" if !posts => form_urlencoded::parse(body)
            .map(|(name, value)| (name.into_owned(), Value::String(value.into_owned())))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        "" if body.is_empty() && !reads && !posts => json!({}),
        _ => return Err(Refusal::objection("invalid_arguments", format!("content type {kind:?}"))),
    };
    if value.is_object() {
        Ok(value)
    } else {
        Err(Refusal::objection("json_not_object", "not an object"))
    }
}

fn authorized(shared: &Shared, method: &str, headers: &HeaderMap, arguments: &Value) -> Result<(), Refusal> {
    if !arguments["token"].is_null() {
        return Err(Refusal::objection("invalid_arguments", "the token is among the arguments"));
    }
    let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let given = given.and_then(|value| value.strip_prefix("Bearer "));
    let (right, other_kind) = match method {
        OPEN => (shared.app_token().clone(), "xoxb-"),
        _ => (Some(shared.token.to_string()), "xapp-"),
    };
    match given {
        None => Err(Refusal::objection("not_authed", "no bearer token")),
        Some(token) if right.as_deref() == Some(token) => Ok(()),
        Some(token) if token.starts_with(other_kind) => Err(Refusal::fair("not_allowed_token_type")),
        Some(_) => Err(Refusal::fair("invalid_auth")),
    }
}

/// A text argument that must be there.
pub(super) fn text<'a>(arguments: &'a Value, name: &str) -> Result<&'a str, Refusal> {
    arguments[name]
        .as_str()
        .filter(|text| !text.is_empty())
        .ok_or_else(|| Refusal::objection("invalid_arguments", format!("no {name}")))
}
