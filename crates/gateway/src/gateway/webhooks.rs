//! The hot path over HTTP: check, verify, parse, commit, 200. No agent work happens here.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::LazyLock;
use std::time::Instant;

use axum::Json;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use countersign_agent::domain::ChannelKind;
use metrics::{Counter, Histogram, counter, histogram};
use serde_json::json;

use super::body::{FORM, JSON, read_push, require_json, require_type};
use super::error::ApiError;
use super::intake::{self, Outcome, refused};
use super::linger::Lingering;
use super::state::Gateway;

/// What `peer` pushed to `path`, a webhook of `channel`.
pub(super) async fn take(gateway: Gateway, channel: ChannelKind, path: &'static str, peer: SocketAddr, request: Request) -> Response {
    let (request, body) = request.into_parts();
    let pushed = Pushed {
        gateway: &gateway,
        path,
        peer,
        headers: &request.headers,
    };
    let body = Lingering::of(body);
    let taken = match channel {
        ChannelKind::Lark => metered(&LARK, pushed.take_lark(body)).await,
        ChannelKind::Slack | ChannelKind::Console => metered(&SLACK, pushed.take_slack(body)).await,
    };
    taken.into_response()
}

/// A request whose body is still to be read.
struct Pushed<'a> {
    gateway: &'a Gateway,
    path: &'static str,
    peer: SocketAddr,
    headers: &'a HeaderMap,
}

impl Pushed<'_> {
    async fn take_lark(self, body: Lingering) -> Result<(Outcome, Response), ApiError> {
        let Self { gateway, headers, .. } = self;
        require_webhooks(gateway, ChannelKind::Lark)?;
        require_json(headers)?;
        let hook = &gateway.channels.lark_hook;
        let body = read_push(gateway, headers, body, hook.unsigned_limit(headers)).await?;
        let received = body.and_then(|body| hook.receive(headers, &body, gateway.machine_clock.now()));
        let received = received.map_err(|refusal| refused(gateway, "lark", self.path, Some(self.peer), refusal))?;
        let (outcome, answer) = intake::lark(gateway, received).await?;
        Ok((outcome, Json(answer.unwrap_or_else(|| json!({}))).into_response()))
    }

    async fn take_slack(self, body: Lingering) -> Result<(Outcome, Response), ApiError> {
        let Self { gateway, headers, .. } = self;
        require_webhooks(gateway, ChannelKind::Slack)?;
        require_type(headers, &[JSON, FORM])?;
        let hook = &gateway.channels.slack_hook;
        let body = read_push(gateway, headers, body, hook.unsigned_limit(headers)).await?;
        let received = body.and_then(|body| hook.receive(headers, &body, gateway.machine_clock.now()));
        let received = received.map_err(|refusal| refused(gateway, "slack", self.path, Some(self.peer), refusal))?;
        let (outcome, answer) = intake::slack(gateway, received).await?;
        // Nothing in the answer closes a form.
        let answer = answer.map_or_else(|| StatusCode::OK.into_response(), |body| Json(body).into_response());
        Ok((outcome, answer))
    }
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

/// What is counted of a channel. The two series of an accepted event are looked up once.
struct HookMeters {
    channel: &'static str,
    accepted: Counter,
    seconds: Histogram,
}

static LARK: LazyLock<HookMeters> = LazyLock::new(|| HookMeters::of("lark"));
static SLACK: LazyLock<HookMeters> = LazyLock::new(|| HookMeters::of("slack"));

impl HookMeters {
    fn of(channel: &'static str) -> Self {
        Self {
            channel,
            accepted: requests(channel, Outcome::Accepted.as_str()),
            seconds: histogram!("countersign_webhook_seconds", "channel" => channel),
        }
    }
}

fn requests(channel: &'static str, outcome: &'static str) -> Counter {
    counter!("countersign_webhook_requests_total", "channel" => channel, "outcome" => outcome)
}

/// Counts a request and its time, and gives its answer.
async fn metered(meters: &HookMeters, handling: impl Future<Output = Result<(Outcome, Response), ApiError>>) -> Result<Response, ApiError> {
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
    if matches!(handled, Ok((Outcome::Accepted, _))) {
        meters.accepted.increment(1);
    } else {
        requests(meters.channel, outcome).increment(1);
    }
    meters.seconds.record(started.elapsed().as_secs_f64());
    handled.map(|(_, response)| response)
}
