//! The hot path over HTTP: check, verify, parse, commit, 200. No agent work happens here.

use std::future::Future;
use std::net::SocketAddr;
use std::time::Instant;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use countersign_agent::domain::ChannelKind;
use metrics::{counter, histogram};
use serde_json::json;

use super::body::{FORM, JSON, read_push, require_json, require_type};
use super::error::ApiError;
use super::intake::{self, Outcome, refused};
use super::linger::Lingering;
use super::state::Gateway;

/// `POST /webhooks/lark/events` and `/webhooks/lark/cards`; each takes every kind.
pub(super) async fn lark(State(gateway): State<Gateway>, request: Request) -> Result<Response, ApiError> {
    let (request, body) = request.into_parts();
    metered("lark", take_lark(&gateway, &request, Lingering::of(body))).await
}

async fn take_lark(gateway: &Gateway, request: &Parts, body: Lingering) -> Result<(Outcome, Response), ApiError> {
    require_webhooks(gateway, ChannelKind::Lark)?;
    require_json(&request.headers)?;
    let hook = &gateway.channels.lark_hook;
    let body = read_push(gateway, &request.headers, body, hook.unsigned_limit(&request.headers)).await?;
    let received = body.and_then(|body| hook.receive(&request.headers, &body, gateway.machine_clock.now()));
    let received = received.map_err(|refusal| refused(gateway, "lark", request.uri.path(), peer(request), refusal))?;
    let (outcome, answer) = intake::lark(gateway, received).await?;
    Ok((outcome, Json(answer.unwrap_or_else(|| json!({}))).into_response()))
}

/// `POST /webhooks/slack/events`, `/interactions` and `/commands`; each takes every kind.
pub(super) async fn slack(State(gateway): State<Gateway>, request: Request) -> Result<Response, ApiError> {
    let (request, body) = request.into_parts();
    metered("slack", take_slack(&gateway, &request, Lingering::of(body))).await
}

async fn take_slack(gateway: &Gateway, request: &Parts, body: Lingering) -> Result<(Outcome, Response), ApiError> {
    require_webhooks(gateway, ChannelKind::Slack)?;
    require_type(&request.headers, &[JSON, FORM])?;
    let hook = &gateway.channels.slack_hook;
    let body = read_push(gateway, &request.headers, body, hook.unsigned_limit(&request.headers)).await?;
    let received = body.and_then(|body| hook.receive(&request.headers, &body, gateway.machine_clock.now()));
    let received = received.map_err(|refusal| refused(gateway, "slack", request.uri.path(), peer(request), refusal))?;
    let (outcome, answer) = intake::slack(gateway, received).await?;
    // Nothing in the answer closes a form.
    let answer = answer.map_or_else(|| StatusCode::OK.into_response(), |body| Json(body).into_response());
    Ok((outcome, answer))
}

/// The channel is enabled, and its events come over HTTP.
fn require_webhooks(gateway: &Gateway, kind: ChannelKind) -> Result<(), ApiError> {
    let (name, key) = match kind {
        ChannelKind::Lark => ("Lark", "channels.lark"),
        ChannelKind::Slack | ChannelKind::Console => ("Slack", "channels.slack"),
    };
    if !gateway.settings.current().is_enabled(kind) {
        return Err(ApiError::not_found(format!("the {name} channel is not enabled ({key}.enabled)")));
    }
    if gateway.channels.comes_over_sockets(kind) {
        return Err(ApiError::not_found(format!(
            "{name} events come over a connection that the gateway opens ({key}.delivery)"
        )));
    }
    Ok(())
}

/// Behind a proxy the proxy's address.
fn peer(request: &Parts) -> Option<SocketAddr> {
    request.extensions.get().copied()
}

/// Counts a request and its time, and gives its answer.
async fn metered(
    channel: &'static str,
    handling: impl Future<Output = Result<(Outcome, Response), ApiError>>,
) -> Result<Response, ApiError> {
    let started = Instant::now();
    let handled = handling.await;
    let outcome = match &handled {
        Ok((outcome, _)) => outcome.as_str(),
        Err(error) => match error.code() {
            "not_found" => "disabled",
            "unsupported_media_type" => "media_type",
            "payload_too_large" => "too_large",
            other => other,
        },
    };
    counter!("countersign_webhook_requests_total", "channel" => channel, "outcome" => outcome).increment(1);
    histogram!("countersign_webhook_seconds", "channel" => channel).record(started.elapsed().as_secs_f64());
    handled.map(|(_, response)| response)
}
