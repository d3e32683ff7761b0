//! Access to the console: the page that asked, the host name, the session.

use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::login;
use super::redirect::see;
use crate::gateway::error::ApiError;
use crate::gateway::origin::{local_host, own_page};
use crate::gateway::state::Gateway;

/// Nothing from elsewhere, nothing inline, no frame around us.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Around every page of the console. First failure answers: 404 not enabled · 403 foreign name or page · no session.
///
/// Without a token the server listens on loopback, and only this machine's own names are ours: a foreign name that was made
/// to point here is refused. With a token any name is good: the session's cookie belongs to the name under which somebody
/// logged in, and a page under another name has none.
pub(super) async fn guard(State(gateway): State<Gateway>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    if !gateway.settings.current().console.enabled {
        return ApiError::not_found("the console channel is not enabled (channels.console.enabled)").into_response();
    }
    if gateway.console_token.is_none() && !local_host(headers) {
        return ApiError::forbidden("without channels.console.token the Host must be localhost").into_response();
    }
    if request.method() != Method::GET && request.method() != Method::HEAD && !own_page(headers) {
        return ApiError::forbidden("this form was not sent from the console's own page").into_response();
    }
    let path = request.uri().path();
    let open =
        path == "/" || path == "/console" || path == "/console/login" || path == "/console/locale" || path.starts_with("/console/static/");
    if !open && !login::has_session(&gateway, headers) {
        return if request.method() == Method::GET && path != "/console/live" {
            see(&login::before(request.uri()), StatusCode::SEE_OTHER)
        } else {
            ApiError::unauthorized("log in at /console/login").into_response()
        };
    }
    next.run(request).await
}

/// Headers of every answer of the console, of its errors and of paths that are not there.
pub(in crate::gateway) async fn headers(request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let ours = path == "/" || path == "/console" || path.starts_with("/console/");
    let mut response = next.run(request).await;
    if !ours {
        return response;
    }
    let headers = response.headers_mut();
    let fixed: [(HeaderName, &'static str); 5] = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        // Not `no-referrer`: with that, browsers hide the origin of our own forms from us (`Origin: null`).
        (header::REFERRER_POLICY, "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (header::X_FRAME_OPTIONS, "DENY"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}
