//! The hot path: check, verify, parse, commit, 200. No agent work happens here.

mod lark;
mod slack;

use std::future::Future;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use axum::response::Response;
use countersign_agent::domain::Inbound;
use metrics::{counter, histogram};
use tracing::{debug, error, warn};

use super::body::read_push;
use super::error::ApiError;
use super::state::Gateway;
use crate::channels::Refusal;
use crate::conversation::ClickAnswer;

pub(super) use lark::lark;
pub(super) use slack::slack;

/// The platform shows an error of its own after three seconds.
const CLICK_TIME: Duration = Duration::from_secs(2);

/// What became of a request, for the metrics.
#[derive(Clone, Copy, Debug)]
enum Outcome {
    Accepted,
    Decided,
    Ignored,
    Handshake,
}

impl Outcome {
    fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Decided => "decided",
            Self::Ignored => "ignored",
            Self::Handshake => "handshake",
        }
    }
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

/// Decides a click while its request waits. The work goes on when the platform gives the request up or the connection ends: half a
/// decision is none, and a late one shows on the card.
async fn click(gateway: &Gateway, inbound: Inbound) -> Result<ClickAnswer, ApiError> {
    let conversations = gateway.conversations.clone();
    let deciding = tokio::spawn(async move { conversations.click(&inbound).await });
    match tokio::time::timeout(CLICK_TIME, deciding).await {
        Ok(Ok(decided)) => Ok(decided?),
        Ok(Err(panic)) => {
            error!(%panic, "a click was not decided");
            Err(ApiError::internal())
        }
        Err(_) => {
            warn!("a click was not decided in time");
            Err(ApiError::unavailable())
        }
    }
}

/// The log names channel, path, peer and reason; the sender hears only that it was refused.
fn refused(gateway: &Gateway, channel: &'static str, request: &Parts, refusal: Refusal) -> ApiError {
    let (Refusal::Unauthorized(reason) | Refusal::Bad(reason)) = refusal;
    if let Some(missed) = gateway.refusals().count(reason, gateway.machine_clock.now()) {
        let not_logged_before = (missed > 0).then_some(missed);
        // Behind a proxy the proxy's address.
        let peer = request.extensions.get::<SocketAddr>().map(tracing::field::display);
        warn!(channel, path = request.uri.path(), peer, reason = %refusal, not_logged_before, "webhook refused");
    }
    match refusal {
        Refusal::Unauthorized(_) => ApiError::unauthorized("signature, timestamp or token is wrong"),
        Refusal::Bad(_) => ApiError::bad_request("the body is not a readable event"),
    }
}

/// 200 only after the commit; a copy of an earlier event is as good.
async fn accept(gateway: &Gateway, inbound: &Inbound) -> Result<Outcome, ApiError> {
    gateway.failpoint.reach("verified");
    let id = gateway.ledger.accept(inbound).await?;
    gateway.failpoint.reach("accepted");
    // Triage says it again at `info`, with what became of it.
    debug!(
        event.id = inbound.event_key,
        kind = inbound.body.name(),
        inbox = id,
        "event accepted"
    );
    Ok(Outcome::Accepted)
}

const JSON: &str = "application/json";
const FORM: &str = "application/x-www-form-urlencoded";

/// One JSON content type and no content encoding, before the body is read.
pub(super) fn require_json(headers: &HeaderMap) -> Result<(), ApiError> {
    require_type(headers, &[JSON])
}

/// One content type of these, in UTF-8, and no content encoding.
fn require_type(headers: &HeaderMap, allowed: &[&str]) -> Result<(), ApiError> {
    if headers.contains_key(header::CONTENT_ENCODING) {
        return Err(ApiError::media_type("a content encoding is not accepted"));
    }
    let mut types = headers.get_all(header::CONTENT_TYPE).iter();
    let (Some(only), None) = (types.next(), types.next()) else {
        return Err(ApiError::media_type(format!(
            "send exactly one Content-Type: {}",
            allowed.join(" or ")
        )));
    };
    let text = only.to_str().unwrap_or("").to_ascii_lowercase();
    let mut parts = text.split(';').map(str::trim);
    let known = parts.next().is_some_and(|media| allowed.contains(&media));
    let utf8 = parts.all(|parameter| parameter.is_empty() || parameter == "charset=utf-8" || parameter == "charset=\"utf-8\"");
    if known && utf8 {
        Ok(())
    } else {
        Err(ApiError::media_type(format!(
            "send Content-Type: {} in UTF-8",
            allowed.join(" or ")
        )))
    }
}
