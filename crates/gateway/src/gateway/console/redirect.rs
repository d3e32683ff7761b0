//! Redirects inside the console.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::gateway::error::ApiError;

/// Where a log-in leads when nothing else was asked for.
pub(super) const HOME: &str = "/console/";
/// Bytes of the path that a log-in goes on with.
const MAX_NEXT: usize = 500;

/// A redirect. `to` is one of our own paths.
pub(super) fn see(to: &str, code: StatusCode) -> Response {
    match HeaderValue::from_str(to) {
        Ok(to) => (code, [(header::LOCATION, to)]).into_response(),
        Err(_) => ApiError::internal().into_response(),
    }
}

/// The page to go on with: one of the console's own, whatever was asked for.
pub(super) fn local(next: &str) -> &str {
    let ours = next.starts_with(HOME) && next.len() <= MAX_NEXT && next.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    if ours { next } else { HOME }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// design: after the log-in the page that was asked for comes, if it is one of ours; nobody is sent elsewhere.
    #[test]
    fn only_own_pages_come_next() {
        for own in ["/console/turn/turn_1", "/console/?chat=demo&as=lin"] {
            assert_eq!(local(own), own);
        }
        let long = format!("/console/{}", "x".repeat(MAX_NEXT));
        for other in [
            "",
            "//evil.example/console/",
            "https://evil.example",
            "/console/\\evil",
            "/console/a\r\nb",
            "/api/v1/turns",
            long.as_str(),
        ] {
            assert_eq!(local(other), HOME, "{other:?}");
        }
    }
}
