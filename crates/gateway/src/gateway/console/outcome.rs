//! What a press is answered: the words of a notice, and the page where it was made.

use axum::Json;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use countersign_agent::domain::{Approvers, ChannelKind, DecisionKind, Gate, GateKind, Notice, NoticeTone, Outbound};
use serde_json::json;

use super::page::{Toast, whole_page};
use super::redirect::see;
use super::scene::Scene;
use crate::channels::notice_text;
use crate::conversation::DecideError;
use crate::gateway::error::ApiError;
use crate::store::ActionRecord;

/// What a refusal says on the page: the same words as on the platforms. `who_may`: whom it names to a person who may not. `before`: what was
/// decided first.
pub(super) fn refused(
    scene: &Scene,
    error: DecideError,
    channel: ChannelKind,
    who_may: impl FnOnce() -> Notice,
    before: Option<DecisionKind>,
) -> Result<Notice, ApiError> {
    Ok(match error {
        DecideError::NotFound => Notice::UnknownReview {},
        DecideError::Forbidden => who_may(),
        DecideError::GroupUnknown(groups) => Notice::GroupUnknown { groups },
        DecideError::Conflict {
            by,
            through_api,
            in_place_of,
            at,
        } => Notice::AlreadyDecided {
            kind: before.unwrap_or(DecisionKind::Approve),
            by: by.map(|by| scene.name(channel, &by)),
            through_api,
            in_place_of: in_place_of.map(|person| scene.name(channel, &person)),
            at: at.rfc3339(),
        },
        DecideError::AskedAgain => Notice::Superseded {},
        DecideError::AllStepsKept => Notice::AllStepsKept {},
        DecideError::NoStepsKept => Notice::NoStepsKept {},
        DecideError::OnceOnly(notice) => notice,
        DecideError::Gone => Notice::Expired {
            goal: String::new(),
            again: false,
        },
        DecideError::Invalid(_) | DecideError::NotAgain(_) | DecideError::NotEditable(_) | DecideError::Store(_) => {
            return Err(error.into());
        }
    })
}

/// Who may decide `gate` in the console. Over the API only the console refuses a person.
pub(super) fn not_entitled(scene: &Scene, gate: &Gate) -> Notice {
    let approvers = scene
        .live
        .in_chat(ChannelKind::Console, &gate.conversation.chat)
        .approvers_of(gate.kind);
    let deciders = match &gate.card {
        Outbound::ApprovalCard(card) => card.deciders_by(approvers),
        _ => approvers.deciders(&gate.requester),
    };
    Notice::not_entitled(&deciders, &|id| scene.person(id).name)
}

/// Who may decide this call in the console.
pub(super) fn not_entitled_to_call(scene: &Scene, found: &ActionRecord) -> Notice {
    let ours = scene
        .live
        .in_chat(ChannelKind::Console, &found.chat)
        .approvers_of(GateKind::ToolApproval);
    let call = &found.action;
    let deciders = Approvers::deciders_of_call(call.approvers.as_ref(), call.quorum, ours, &found.user);
    Notice::not_entitled(&deciders, &|id| scene.person(id).name)
}

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
