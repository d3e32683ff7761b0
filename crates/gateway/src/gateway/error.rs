//! The one shape of an HTTP error, and the table from our errors to it.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use tokio::time::Instant;
use tracing::{error, info};

use super::outages::{Lasting, Outages, Subject};
use crate::conversation::DecideError;
use crate::lanes::WorkError;
use crate::store::StoreError;

/// An error as the outside sees it: `{"error": {"code", "message"}}`. The message says what to mend and holds
/// no secret and no internals.
#[derive(Debug)]
pub(super) struct ApiError {
    status: StatusCode,
    code: &'static str,
    message: String,
}

impl ApiError {
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            code,
            message: message.into(),
        }
    }

    pub(super) fn status(&self) -> StatusCode {
        self.status
    }

    pub(super) fn message(&self) -> &str {
        &self.message
    }

    pub(super) fn code(&self) -> &'static str {
        self.code
    }

    pub(super) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_request", message)
    }

    pub(super) fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
    }

    pub(super) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", message)
    }

    pub(super) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    pub(super) fn method_not_allowed() -> Self {
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "method_not_allowed",
            "this path takes another method",
        )
    }

    /// What is to be mended in the arguments of a call.
    pub(super) fn arguments(problem: String) -> Self {
        Self::invalid(format!("arguments: {problem}"))
    }

    pub(super) fn too_large(limit: usize) -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "payload_too_large",
            format!("the body is over {limit} bytes"),
        )
    }

    pub(super) fn media_type(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", message)
    }

    pub(super) fn timeout() -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, "timeout", "the body did not arrive in time")
    }

    pub(super) fn conflict(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "conflict", message)
    }

    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", message)
    }

    pub(super) fn unavailable() -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", "nothing was stored; send it again")
    }

    pub(super) fn internal() -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal",
            "something failed here; the log says what",
        )
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let Self { status, code, message } = self;
        let mut response = (status, Json(json!({ "error": { "code": code, "message": message } }))).into_response();
        if status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if status == StatusCode::UNAUTHORIZED {
            response
                .headers_mut()
                .insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// Requests that met a ledger that is away. Of the process: an error knows of no gateway.
static AWAY: Outages = Outages::new();
const LEDGER: Subject = ("ledger", "requests");

/// Tells the log once that the ledger takes writes again after an outage.
pub(super) fn ledger_works() {
    if let Some(Lasting { seconds, tries }) = AWAY.ended(LEDGER, Instant::now()) {
        info!(seconds, requests = tries, "requests find the ledger again");
    }
}

impl From<StoreError> for ApiError {
    fn from(failure: StoreError) -> Self {
        // Logged once, here at the boundary; a ledger that is away, once a minute.
        let is_away = matches!(failure, StoreError::Unavailable(_));
        let away = is_away.then(|| AWAY.failed(LEDGER, Instant::now()));
        if let Some(Lasting { seconds, tries }) = away.flatten() {
            error!(error = %failure, seconds, requests = tries, "the ledger failed");
        } else if !is_away {
            error!(error = %failure, "the ledger failed");
        }
        match failure {
            StoreError::Unavailable(_) | StoreError::Stale => Self::unavailable(),
            StoreError::Held { .. } | StoreError::Unusable(_) | StoreError::Corrupt(_) => Self::internal(),
        }
    }
}

impl From<WorkError> for ApiError {
    fn from(failure: WorkError) -> Self {
        match failure {
            WorkError::Store(failure) => failure.into(),
            WorkError::Unreadable { .. } => {
                error!(error = %failure, "a stored turn cannot be shown");
                Self::internal()
            }
        }
    }
}

impl From<DecideError> for ApiError {
    fn from(failure: DecideError) -> Self {
        match failure {
            DecideError::NotFound => Self::not_found("there is nothing with this id"),
            DecideError::Forbidden => Self::forbidden("this person may not decide this"),
            DecideError::GroupUnknown(_) => Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", failure.to_string()),
            DecideError::Conflict {
                by,
                through_api,
                in_place_of,
                at,
            } => {
                let road = if through_api { "the API, in the name of " } else { "" };
                let by = by.as_deref().unwrap_or("the system");
                let place = in_place_of.map(|person| format!(" in the place of {person}")).unwrap_or_default();
                let message = format!("already decided by {road}{by}{place} at {}", at.rfc3339());
                Self::conflict(message)
            }
            DecideError::AskedAgain => {
                Self::conflict("this call is asked about again: read the action, then decide with the gate_id that it has now")
            }
            DecideError::NotEditable(why) => Self::conflict(why),
            DecideError::Gone => Self::new(StatusCode::GONE, "gone", "it expired; ask again for a new one"),
            DecideError::Invalid(message) => Self::invalid(message),
            DecideError::Store(failure) => failure.into(),
        }
    }
}
