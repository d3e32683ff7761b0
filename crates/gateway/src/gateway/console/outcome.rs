//! What a press is answered: the words of a notice, and the page where it was made.

use axum::Json;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use countersign_agent::domain::{Notice, NoticeTone};
use serde_json::json;

use super::page::{Toast, whole_page};
use super::redirect::see;
use super::scene::Scene;
use crate::channels::notice_text;
use crate::gateway::error::ApiError;

/// Does the script of the page ask?
pub(super) fn wants_json(headers: &HeaderMap) -> bool {
    headers.get(header::ACCEPT).is_some_and(|accept| accept == "application/json")
}

/// The script gets the words alone; a plain form goes back to the page, or sees it with the words when nothing was done.
pub(super) async fn done(scene: &Scene, headers: &HeaderMap, notice: Option<Notice>) -> Result<Response, ApiError> {
    let code = match &notice {
        Some(Notice::NotEntitled { .. } | Notice::OwnTask {} | Notice::NobodyMay {}) => StatusCode::FORBIDDEN,
        Some(Notice::GroupUnknown { .. }) => StatusCode::SERVICE_UNAVAILABLE,
        Some(Notice::UnknownReview {}) => StatusCode::NOT_FOUND,
        Some(Notice::Expired { .. } | Notice::TooOldToAsk {}) => StatusCode::GONE,
        Some(Notice::EmptyFeedback {} | Notice::AllStepsKept {} | Notice::NoStepsKept {}) => StatusCode::UNPROCESSABLE_ENTITY,
        Some(notice) if !matches!(notice.tone(), NoticeTone::Good | NoticeTone::Ended) => StatusCode::CONFLICT,
        _ => StatusCode::OK,
    };
    let tone = if code == StatusCode::OK { "good" } else { "bad" };
    let locale = scene.language.locale;
    let toast = notice.map(|notice| Toast {
        tone,
        text: notice_text(&scene.gateway.templates, locale, &notice),
    });
    if wants_json(headers) {
        return Ok((code, Json(json!({ "toast": toast }))).into_response());
    }
    if code == StatusCode::OK {
        return Ok(see(&scene.path(), StatusCode::SEE_OTHER));
    }
    Ok((code, whole_page(scene, toast).await?).into_response())
}
