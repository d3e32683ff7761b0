//! The webhooks, which go past the router, then the routes of the API and of health. The console has a table of its own.

use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderValue, Method, header};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, delete, get, post};
use countersign_agent::domain::ChannelKind;
use futures_util::FutureExt;
use tower::ServiceExt;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::set_header::SetResponseHeaderLayer;
use tracing::error;

use super::api::{actions, auth, feedback, grants, messages, queue, reviews, servers, socket, turns};
use super::console;
use super::error::ApiError;
use super::health::{healthz, readyz};
use super::linger::{Lingering, linger};
use super::metrics::metrics;
use super::state::Gateway;
use super::webhooks;

/// Where the platforms push events; each path takes every kind of its channel.
const HOOKS: [(&str, ChannelKind); 5] = [
    ("/webhooks/lark/events", ChannelKind::Lark),
    ("/webhooks/lark/cards", ChannelKind::Lark),
    ("/webhooks/slack/events", ChannelKind::Slack),
    ("/webhooks/slack/interactions", ChannelKind::Slack),
    ("/webhooks/slack/commands", ChannelKind::Slack),
];

/// All routes. The hot path goes past the router, which puts each request into several boxes.
#[derive(Clone, Debug)]
pub struct Routes {
    gateway: Gateway,
    others: Router,
}

impl Routes {
    pub fn of(gateway: Gateway) -> Self {
        let others = router(gateway.clone());
        Self { gateway, others }
    }

    /// Answers a request from `peer`; behind a proxy that is the proxy's address.
    pub async fn answer(self, mut request: Request, peer: SocketAddr) -> Response {
        let pushed = self.gateway.roles.webhooks && request.method() == Method::POST;
        let hook = HOOKS.iter().find(|(path, _)| pushed && request.uri().path() == *path);
        let Some((path, channel)) = hook else {
            request.extensions_mut().insert(peer);
            let Ok(response) = self.others.oneshot(request).await;
            return response;
        };
        let taking = webhooks::take(self.gateway, *channel, path, peer, request);
        // In a box: a connection that waits for a request holds no room for one.
        let taken = AssertUnwindSafe(Box::pin(taking)).catch_unwind().await;
        let mut response = taken.unwrap_or_else(panicked);
        response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, NOSNIFF);
        response
    }
}

fn router(gateway: Gateway) -> Router {
    let watched = Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics));
    let layered = |router: Router<Gateway>| {
        router
            .method_not_allowed_fallback(|| async { ApiError::method_not_allowed() })
            .layer(from_fn(linger))
            .layer(from_fn(console::headers))
    };
    let surface = if gateway.roles.webhooks {
        let hooks = HOOKS
            .iter()
            .fold(Router::new(), |router, (path, _)| router.route(path, any(hook_method_not_allowed)));
        layered(watched.merge(surface(&gateway)).fallback(nothing)).merge(hooks)
    } else {
        layered(watched.fallback(nothing_but_workers))
    };
    let nosniff = SetResponseHeaderLayer::overriding(header::X_CONTENT_TYPE_OPTIONS, NOSNIFF);
    // Both in one layer: each layer of a router boxes every request once more.
    surface.layer((nosniff, CatchPanicLayer::custom(panicked))).with_state(gateway)
}

const NOSNIFF: HeaderValue = HeaderValue::from_static("nosniff");

/// What the role `webhooks` serves to people.
fn surface(gateway: &Gateway) -> Router<Gateway> {
    let api = Router::new()
        .route("/messages", post(messages::send).get(messages::list))
        .route("/reviews", get(reviews::list))
        .route("/reviews/{id}", get(reviews::one))
        .route("/reviews/{id}/decision", post(reviews::decide))
        .route("/actions", get(actions::list))
        .route("/actions/{id}", get(actions::one))
        .route("/actions/{id}/decision", post(actions::decide))
        .route("/grants", get(grants::list))
        .route("/grants/{id}", delete(grants::revoke))
        .route("/feedback", get(feedback::list))
        .route("/queue", get(queue::list))
        .route("/turns", get(turns::list))
        .route("/turns/{id}", get(turns::one))
        .route("/turns/{id}/messages", get(turns::messages))
        .route("/turns/{id}/events", get(turns::events))
        .route("/turns/{id}/cancel", post(turns::cancel))
        .route("/turns/{id}/retry", post(turns::retry))
        .route("/events", get(socket::connect))
        .route("/mcp", get(servers::list))
        .route("/mcp/{server}/confirm", post(servers::confirm))
        .fallback(nothing)
        .method_not_allowed_fallback(|| async { ApiError::method_not_allowed() })
        // Around the fallbacks too: without the token not even a path's existence is told.
        .layer(from_fn_with_state(gateway.clone(), auth));
    Router::new().nest("/api/v1", api).merge(console::routes(gateway))
}

async fn hook_method_not_allowed(body: Body) -> impl IntoResponse {
    drop(Lingering::of(body));
    ([(header::ALLOW, "POST")], ApiError::method_not_allowed())
}

async fn nothing() -> ApiError {
    ApiError::not_found("there is nothing at this path")
}

async fn nothing_but_workers() -> ApiError {
    ApiError::not_found(
        "this process runs only the workers (server.roles); webhooks, API and console are served by one with the role webhooks",
    )
}

/// A bug of ours costs one request, not the process.
fn panicked(panic: Box<dyn std::any::Any + Send + 'static>) -> Response {
    let what = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned());
    error!(panic = what, "a handler panicked");
    ApiError::internal().into_response()
}
