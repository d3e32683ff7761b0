//! What a reader of the page does: say something, decide something.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use countersign_agent::domain::{ActionId, ChannelKind, Decision, DecisionKind, Gate, GateId, GateKind, Notice, Outbound};
use serde_json::json;

use super::locale::PageLocale;
use super::page::{RefusedEdit, Scene, Toast};
use super::{Form, see};
use crate::channels::{notice_people, notice_text};
use crate::conversation::{ApiDecision, DecideError, row_done};
use crate::gateway::api::messages::{NewMessage, accept};
use crate::gateway::api::{check_text, principal};
use crate::gateway::error::ApiError;
use crate::gateway::state::Gateway;
use crate::store::ActionRecord;

/// The person in whose name the console decides for other channels, where nobody can be played.
const OPERATOR: &str = "console";

/// `POST /console/say`.
pub(super) async fn say(
    State(gateway): State<Gateway>,
    language: PageLocale,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let form = Form::read(&gateway, &headers, body).await?;
    let scene = scene(&gateway, language, &form)?;
    let text = form.get("text").trim();
    if !text.is_empty() {
        // The script names each message, so that one whose answer got lost is not said twice.
        let key = Some(form.get("key")).filter(|key| !key.is_empty()).map(|key| format!("page_{key}"));
        accept(&gateway, NewMessage::new(&scene.chat, &scene.people.me.id, text, key)).await?;
    }
    done(&scene, &headers, None).await
}

/// `POST /console/decide`: a `review` or a `call`, as the person who is played.
pub(super) async fn decide(
    State(gateway): State<Gateway>,
    language: PageLocale,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let form = Form::read(&gateway, &headers, body).await?;
    let mut scene = scene(&gateway, language, &form)?;
    let feedback = Some(form.get("feedback")).filter(|text| !text.trim().is_empty());
    check_text("feedback", feedback)?;
    if form.get("decision") == "ask_again" {
        let notice = ask_again(&scene, &GateId::new(form.get("review"))).await?;
        return done(&scene, &headers, Some(notice)).await;
    }
    let keep = (form.get("decision") == "keep_steps").then(|| form.all("keep"));
    let always = form.get("decision") == "approve_always" && !form.get("call").is_empty();
    let kind = match DecisionKind::parse(form.get("decision")) {
        _ if keep.is_some() => DecisionKind::Revise,
        _ if always => DecisionKind::Approve,
        Some(kind) => kind,
        None => {
            let why = "decision must be approve, revise, cancel, reject, keep_steps, ask_again or, of a call, approve_always";
            return Err(ApiError::invalid(why));
        }
    };
    if form.get("call").is_empty() {
        let notice = review(&scene, &GateId::new(form.get("review")), kind, feedback, keep).await?;
        return done(&scene, &headers, Some(notice)).await;
    }
    let gate = Some(form.get("gate")).filter(|gate| !gate.is_empty()).map(GateId::new);
    let id = ActionId::new(form.get("call"));
    let arguments = Some(form.get("arguments")).filter(|text| kind == DecisionKind::Approve && !text.trim().is_empty());
    let asked = ApiDecision {
        always,
        ..decision(&scene, ChannelKind::Console, kind, feedback)
    };
    match action(&scene, &id, gate, asked, arguments).await {
        Ok(notice) => done(&scene, &headers, Some(notice)).await,
        // The script puts the words beside the form; without it the page comes back with what was typed.
        Err(error) if arguments.is_some() && !wants_json(&headers) => {
            scene.refused_edit = Some(RefusedEdit {
                call: id.to_string(),
                text: arguments.unwrap_or_default().to_owned(),
                why: error.message().to_owned(),
            });
            Ok((error.status(), scene.page(None).await?).into_response())
        }
        Err(error) => Err(error),
    }
}

fn scene(gateway: &Gateway, language: PageLocale, form: &Form) -> Result<Scene, ApiError> {
    Scene::new(gateway, language, Some(form.get("chat")), Some(form.get("as")))
}

async fn review(
    scene: &Scene,
    id: &GateId,
    kind: DecisionKind,
    feedback: Option<&str>,
    keep: Option<Vec<String>>,
) -> Result<Notice, ApiError> {
    let gateway = &scene.gateway;
    let Some(record) = gateway.ledger.read().await?.gate(id).await? else {
        return Ok(Notice::UnknownReview {});
    };
    let gate = record.gate;
    if kind == DecisionKind::Revise && feedback.is_none() && keep.is_none() {
        return Ok(Notice::EmptyFeedback {});
    }
    let asked = ApiDecision {
        keep,
        ..decision(scene, gate.conversation.channel, kind, feedback)
    };
    Ok(match gateway.conversations.decide_review(id, asked).await {
        Ok(record) => match (&record.decision, kind) {
            (
                Some(Decision {
                    in_place_of: Some(person), ..
                }),
                kind,
            ) if gate.kind != GateKind::Question => Notice::DecidedInPlace {
                kind,
                person: scene.name(gate.conversation.channel, person),
            },
            (None, _) => Notice::VoteRecorded {
                votes: gateway.conversations.votes(&record),
                quorum: gate.quorum,
            },
            (Some(_), DecisionKind::Revise) if gate.kind == GateKind::Question => Notice::Answered {},
            (Some(_), DecisionKind::Revise) => Notice::Revised {},
            (Some(_), DecisionKind::Cancel | DecisionKind::Reject) => match gate.kind {
                GateKind::ToolApproval => Notice::Rejected {},
                GateKind::PlanReview | GateKind::Question | GateKind::Budget => Notice::Cancelled {},
            },
            (Some(_), DecisionKind::Approve | DecisionKind::Expire | DecisionKind::Supersede) => Notice::Approved {},
        },
        Err(error) => refused(
            scene,
            error,
            gate.conversation.channel,
            || not_entitled(scene, &gate),
            record.decision.map(|decision| decision.kind),
        )?,
    })
}

async fn action(
    scene: &Scene,
    id: &ActionId,
    gate: Option<GateId>,
    asked: ApiDecision,
    arguments: Option<&str>,
) -> Result<Notice, ApiError> {
    let gateway = &scene.gateway;
    let Some(found) = gateway.ledger.read().await?.action(id).await? else {
        return Ok(Notice::UnknownReview {});
    };
    let edit = match arguments {
        Some(text) => Some(gateway.runner.draft(&found, text).await?.map_err(ApiError::arguments)?),
        None => None,
    };
    let asked = ApiDecision {
        edit,
        user_id: speaker(scene, found.channel).to_owned(),
        ..asked
    };
    Ok(match gateway.conversations.decide_action(id, gate.as_ref(), asked).await {
        Ok(record) if record.action.status.waits() => Notice::VoteRecorded {
            votes: u32::try_from(record.votes.len()).unwrap_or(u32::MAX),
            quorum: record.action.quorum,
        },
        Ok(record) => row_done(&record.action),
        Err(error) => refused(
            scene,
            error,
            found.channel,
            || not_entitled_to_call(scene, &found),
            found.action.decision.as_ref().map(|decision| decision.kind),
        )?,
    })
}

async fn ask_again(scene: &Scene, id: &GateId) -> Result<Notice, ApiError> {
    let gateway = &scene.gateway;
    let Some(record) = gateway.ledger.read().await?.gate(id).await? else {
        return Ok(Notice::UnknownReview {});
    };
    let channel = record.gate.conversation.channel;
    let notice = gateway
        .conversations
        .ask_again(id, speaker(scene, channel), &principal(gateway))
        .await?;
    let name = |id: &str| scene.name(channel, id);
    Ok(notice_people(&notice, &name).unwrap_or(notice))
}

/// In whose name a reader of the page acts in this channel.
fn speaker(scene: &Scene, channel: ChannelKind) -> &str {
    if channel == ChannelKind::Console {
        &scene.people.me.id
    } else {
        OPERATOR
    }
}

fn decision(scene: &Scene, channel: ChannelKind, kind: DecisionKind, feedback: Option<&str>) -> ApiDecision {
    ApiDecision {
        kind,
        feedback: feedback.map(str::to_owned),
        keep: None,
        user_id: speaker(scene, channel).to_owned(),
        principal: principal(&scene.gateway),
        edit: None,
        always: false,
    }
}

/// What a refusal says on the page: the same words as on the platforms. `who_may`: whom it names to a person who may not. `before`: what was
/// decided first.
fn refused(
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

/// Who may decide `gate` in the console, where alone anybody is refused.
fn not_entitled(scene: &Scene, gate: &Gate) -> Notice {
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

/// The same of one call.
fn not_entitled_to_call(scene: &Scene, found: &ActionRecord) -> Notice {
    let ours = scene
        .live
        .in_chat(ChannelKind::Console, &found.chat)
        .approvers_of(GateKind::ToolApproval);
    let approvers = found.action.approvers.as_ref().unwrap_or(ours);
    Notice::not_entitled(&approvers.deciders(&found.user), &|id| scene.person(id).name)
}

/// Does the script of the page ask?
fn wants_json(headers: &HeaderMap) -> bool {
    headers.get(header::ACCEPT).is_some_and(|accept| accept == "application/json")
}

/// The script gets the words alone; a plain form goes back to the page, or sees it with the words when nothing was done.
async fn done(scene: &Scene, headers: &HeaderMap, notice: Option<Notice>) -> Result<Response, ApiError> {
    let (code, tone) = match &notice {
        None
        | Some(
            Notice::Approved {}
            | Notice::DecidedInPlace { .. }
            | Notice::Revised {}
            | Notice::Answered {}
            | Notice::Cancelled {}
            | Notice::Rejected {}
            | Notice::VoteRecorded { .. }
            | Notice::AllowedHere { .. }
            | Notice::AskingAgain { .. },
        ) => (StatusCode::OK, "good"),
        Some(Notice::NotEntitled { .. } | Notice::OwnTask {} | Notice::NobodyMay {}) => (StatusCode::FORBIDDEN, "bad"),
        Some(Notice::GroupUnknown { .. }) => (StatusCode::SERVICE_UNAVAILABLE, "bad"),
        Some(Notice::UnknownReview {}) => (StatusCode::NOT_FOUND, "bad"),
        Some(Notice::Expired { .. } | Notice::TooOldToAsk {}) => (StatusCode::GONE, "bad"),
        Some(Notice::EmptyFeedback {} | Notice::AllStepsKept {} | Notice::NoStepsKept {}) => (StatusCode::UNPROCESSABLE_ENTITY, "bad"),
        Some(_) => (StatusCode::CONFLICT, "bad"),
    };
    let locale = scene.language.locale;
    let toast = notice.map(|notice| Toast {
        tone,
        text: notice_text(&scene.gateway.templates, locale, &notice),
    });
    if wants_json(headers) {
        return Ok((code, Json(json!({ "toast": toast }))).into_response());
    }
    if code == StatusCode::OK {
        let query = form_urlencoded::Serializer::new(String::new())
            .append_pair("chat", &scene.chat)
            .append_pair("as", &scene.people.me.id)
            .finish();
        return Ok(see(&format!("/console/?{query}"), StatusCode::SEE_OTHER));
    }
    Ok((code, scene.page(toast).await?).into_response())
}
