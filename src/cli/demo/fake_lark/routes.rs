//! The HTTP side: each endpoint reads its parts, the world decides, faults come in between.

use std::sync::Arc;

use axum::Json;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, patch, post};
use serde::Deserialize;
use serde_json::{Value, json};

use super::world::{Reply, World};
use super::{Fault, LarkCall, LarkRoute, Shared};

pub(super) fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/open-apis/auth/v3/tenant_access_token/internal", post(token))
        .route("/open-apis/bot/v3/info", get(bot_info))
        .route("/open-apis/im/v1/messages", post(create))
        .route("/open-apis/im/v1/messages/{id}", patch(update))
        .route("/open-apis/im/v1/messages/{id}/reply", post(reply))
        .route("/open-apis/im/v1/messages/{id}/reactions", post(react))
        .route("/open-apis/im/v1/messages/{id}/reactions/{reaction}", delete(unreact))
        .fallback(unknown)
        .with_state(shared)
}

#[derive(Deserialize)]
struct CreateQuery {
    receive_id_type: Option<String>,
}

async fn token(State(shared): State<Arc<Shared>>, body: Bytes) -> Response {
    let clock = shared.clock.clone();
    call(&shared, LarkRoute::Token, None, &body, |world, body| world.token(body, &clock)).await
}

async fn bot_info(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    authorized(&shared, LarkRoute::BotInfo, None, &headers, &Bytes::new(), |world, _| {
        world.bot_info()
    })
    .await
}

async fn create(State(shared): State<Arc<Shared>>, Query(query): Query<CreateQuery>, headers: HeaderMap, body: Bytes) -> Response {
    let now = shared.clock.now();
    authorized(&shared, LarkRoute::Create, None, &headers, &body, |world, body| {
        world.create(query.receive_id_type.as_deref(), body, now)
    })
    .await
}

async fn reply(State(shared): State<Arc<Shared>>, Path(id): Path<String>, headers: HeaderMap, body: Bytes) -> Response {
    let now = shared.clock.now();
    authorized(&shared, LarkRoute::Reply, Some(&id), &headers, &body, |world, body| {
        world.reply(&id, body, now)
    })
    .await
}

async fn update(State(shared): State<Arc<Shared>>, Path(id): Path<String>, headers: HeaderMap, body: Bytes) -> Response {
    authorized(&shared, LarkRoute::Patch, Some(&id), &headers, &body, |world, body| {
        world.patch(&id, body)
    })
    .await
}

async fn react(State(shared): State<Arc<Shared>>, Path(id): Path<String>, headers: HeaderMap, body: Bytes) -> Response {
    authorized(&shared, LarkRoute::React, Some(&id), &headers, &body, |world, body| {
        world.react(&id, body)
    })
    .await
}

async fn unreact(State(shared): State<Arc<Shared>>, Path((id, reaction)): Path<(String, String)>, headers: HeaderMap) -> Response {
    authorized(&shared, LarkRoute::Unreact, Some(&id), &headers, &Bytes::new(), |world, _| {
        world.unreact(&reaction)
    })
    .await
}

async fn unknown(State(shared): State<Arc<Shared>>, request: axum::extract::Request) -> Response {
    let what = format!("unknown endpoint {} {}", request.method(), request.uri().path());
    shared.world().state.violations.push(what);
    shared.touch();
    StatusCode::NOT_FOUND.into_response()
}

async fn authorized(
    shared: &Shared,
    route: LarkRoute,
    target: Option<&str>,
    headers: &HeaderMap,
    body: &Bytes,
    act: impl FnOnce(&mut World, &Value) -> Reply,
) -> Response {
    let bearer = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let now = shared.clock.now();
    call(shared, route, target, body, |world, body| match world.authorize(bearer, now) {
        Ok(()) => act(world, body),
        Err(refused) => refused,
    })
    .await
}

/// One call: its fault if one is due, else its effect; then the answer, perhaps late or lost.
async fn call(
    shared: &Shared,
    route: LarkRoute,
    target: Option<&str>,
    body: &Bytes,
    act: impl FnOnce(&mut World, &Value) -> Reply,
) -> Response {
    let mut value: Value = serde_json::from_slice(body).unwrap_or_default();
    let (reply, fault) = {
        let mut world = shared.world();
        let fault = world.faults.get_mut(&route).and_then(std::collections::VecDeque::pop_front);
        let reply = match &fault {
            Some(Fault::Refuse { status, code, reset }) => Reply::fault(*status, *code, "as the test wants it", *reset),
            Some(Fault::Delay(_) | Fault::LoseAnswer) | None => act(&mut world, &value),
        };
        if let Some(body) = value.as_object_mut() {
            body.remove("app_secret");
        }
        world.state.calls.push(LarkCall {
            route,
            target: target.map(str::to_owned),
            body: value,
            outcome: (reply.status, reply.code),
        });
        (reply, fault)
    };
    shared.touch();
    match fault {
        Some(Fault::Delay(span)) => tokio::time::sleep(span).await,
        Some(Fault::LoseAnswer) => return StatusCode::BAD_GATEWAY.into_response(),
        Some(Fault::Refuse { .. }) | None => {}
    }
    let status = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = (status, Json(reply.body)).into_response();
    if let Some(seconds) = reply.reset
        && let Ok(value) = json!(seconds).to_string().parse()
    {
        response.headers_mut().insert("x-ogw-ratelimit-reset", value);
    }
    response
}
