//! What a reader of the page does: say something, decide something.

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use countersign_agent::domain::{ActionId, ChannelKind, Decision, DecisionKind, GateId, GateKind, Notice, TurnId};
use serde_json::Value;

use super::form::BrowserForm;
use super::locale::PageLocale;
use super::outcome::{done, not_entitled, not_entitled_to_call, refused, wants_json};
use super::page::whole_page;
use super::scene::{RefusedEdit, Scene};
use crate::channels::with_names;
use crate::conversation::{ApiDecision, DecideError, row_done};
use crate::gateway::error::ApiError;
use crate::gateway::intake::{self, NewMessage};
use crate::gateway::request::{check_text, principal};
use crate::gateway::state::Gateway;

/// The person in whose name the console decides for other channels, where nobody can be played.
const OPERATOR: &str = "console";

/// `POST /console/say`.
pub(super) async fn say(
    State(gateway): State<Gateway>,
    language: PageLocale,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let form = BrowserForm::read(&gateway, &headers, body).await?;
    let scene = scene(&gateway, language, &form)?;
    let text = form.get("text").trim();
    if !text.is_empty() {
        // The script names each message, so that one whose answer got lost is not said twice.
        let key = Some(form.get("key")).filter(|key| !key.is_empty()).map(|key| format!("page_{key}"));
        intake::console(&gateway, NewMessage::new(&scene.chat, &scene.people.me.id, text, key)).await?;
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
    let form = BrowserForm::read(&gateway, &headers, body).await?;
    let mut scene = scene(&gateway, language, &form)?;
    let feedback = Some(form.get("feedback")).filter(|text| !text.trim().is_empty());
    check_text("feedback", feedback)?;
    if !form.get("turn").is_empty() {
        let notice = task(&scene, &TurnId::new(form.get("turn")), form.get("decision")).await?;
        return done(&scene, &headers, notice).await;
    }
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
    let arguments = match kind {
        DecisionKind::Approve => edited(&scene, &form, &id).await?,
        _ => None,
    };
    let asked = ApiDecision {
        always,
        ..decision(&scene, ChannelKind::Console, kind, feedback)
    };
    match action(&scene, &id, gate, asked, arguments.as_deref()).await {
        Ok(notice) => done(&scene, &headers, Some(notice)).await,
        // The script puts the words beside the form; without it the page comes back with what was typed.
        Err(error) if arguments.is_some() && !wants_json(&headers) => {
            scene.refused_edit = Some(RefusedEdit {
                call: id.to_string(),
                text: arguments.unwrap_or_default(),
                why: error.message().to_owned(),
            });
            Ok((error.status(), whole_page(&scene, None).await?).into_response())
        }
        Err(error) => Err(error),
    }
}

fn scene(gateway: &Gateway, language: PageLocale, form: &BrowserForm) -> Result<Scene, ApiError> {
    let mut scene = Scene::new(gateway, language, Some(form.get("chat")), Some(form.get("as")))?;
    scene.record = Some(form.get("record")).filter(|turn| !turn.is_empty()).map(str::to_owned);
    Ok(scene)
}

/// The arguments as they were typed, as JSON. `None` means that the call runs as it is.
async fn edited(scene: &Scene, form: &BrowserForm, id: &ActionId) -> Result<Option<String>, ApiError> {
    let (json, fields) = (form.get("arguments"), form.behind("argument:"));
    if !json.trim().is_empty() || fields.is_empty() {
        return Ok(Some(json.to_owned()).filter(|text| !text.trim().is_empty()));
    }
    let found = scene.gateway.ledger.read().await?.action(id).await?;
    let Some(Value::Object(mut arguments)) = found.map(|found| found.action.arguments) else {
        return Ok(None);
    };
    for (name, typed) in fields {
        // Browsers end lines with two characters; a text with such ends of its own is edited as JSON.
        let text = Value::String(typed.replace("\r\n", "\n"));
        let value = match arguments.get(name) {
            Some(Value::String(_)) => text,
            // What is no JSON is judged as a text by the schema.
            _ => serde_json::from_str(typed).unwrap_or(text),
        };
        arguments.insert(name.to_owned(), value);
    }
    Ok(Some(Value::Object(arguments).to_string()))
}

/// Stops a task, or continues it after its model's server was away or gave no answer in time. `None` means that the task itself will say it.
async fn task(scene: &Scene, id: &TurnId, decision: &str) -> Result<Option<Notice>, ApiError> {
    let gateway = &scene.gateway;
    let Some(turn) = gateway.ledger.read().await?.turn(id).await? else {
        return Ok(Some(Notice::UnknownReview {}));
    };
    let channel = turn.conversation.channel;
    let (who, token) = (speaker(scene, channel), principal(gateway));
    let told = match decision {
        "stop" => gateway.conversations.cancel_turn(id, who, &token).await.map(|_| None),
        "try_again" => gateway.conversations.told_to_try_again(id, who, &token).await.map(Some),
        _ => return Err(ApiError::invalid("decision must be stop or try_again")),
    };
    let of_requester = || Notice::NotEntitled {
        requester: scene.name(channel, &turn.user),
    };
    match told {
        Ok(Some(Notice::NotEntitled { .. })) => Ok(Some(of_requester())),
        Ok(notice) => Ok(notice),
        Err(DecideError::Conflict { .. }) => Ok(Some(Notice::NothingToStop {})),
        Err(error) => refused(scene, error, channel, of_requester, None).map(Some),
    }
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
    Ok(with_names(&notice, &name).unwrap_or(notice))
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
