//! Lark's webhooks: a click is answered with a toast and the card as it stands now.

use axum::Json;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use countersign_agent::domain::{ChannelKind, InboundBody};
use serde_json::json;
use tracing::info;

use super::{Outcome, accept, click, metered, read_push, refused, require_json};
use crate::channels::{LarkReceived as Received, click_response};
use crate::gateway::error::ApiError;
use crate::gateway::linger::Lingering;
use crate::gateway::state::Gateway;

/// `POST /webhooks/lark/events` and `/webhooks/lark/cards`; each takes every kind.
pub(in crate::gateway) async fn lark(State(gateway): State<Gateway>, request: Request) -> Result<Response, ApiError> {
    let (request, body) = request.into_parts();
    metered("lark", handle(&gateway, &request, Lingering::of(body))).await
}

async fn handle(gateway: &Gateway, request: &Parts, body: Lingering) -> Result<(Outcome, Response), ApiError> {
    let live = gateway.settings.current();
    if !live.lark.enabled {
        return Err(ApiError::not_found("the Lark channel is not enabled (channels.lark.enabled)"));
    }
    require_json(&request.headers)?;
    let hook = &gateway.channels.lark_hook;
    let body = read_push(gateway, &request.headers, body, hook.unsigned_limit(&request.headers)).await?;
    match body.and_then(|body| hook.receive(&request.headers, &body, gateway.machine_clock.now())) {
        Ok(Received::Challenge(challenge)) => Ok((Outcome::Handshake, Json(json!({ "challenge": challenge })).into_response())),
        Ok(Received::Ignored(reason)) => {
            info!(reason, "event ignored");
            Ok((Outcome::Ignored, accepted()))
        }
        Ok(Received::Event(inbound)) if matches!(inbound.body, InboundBody::Click(_)) => {
            let locale = live.in_chat(ChannelKind::Lark, &inbound.conversation.chat).locale;
            let answer = click(gateway, inbound).await?;
            gateway.failpoint.reach("decision_written");
            let body = click_response(&gateway.templates, locale, &answer.notice, answer.card.as_ref());
            Ok((Outcome::Decided, Json(body).into_response()))
        }
        Ok(Received::Event(inbound)) => Ok((accept(gateway, &inbound).await?, accepted())),
        Err(refusal) => Err(refused(gateway, "lark", request, refusal)),
    }
}

fn accepted() -> Response {
    Json(json!({})).into_response()
}
