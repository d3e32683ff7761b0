//! What a reader of the page does: say something, decide something.

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use countersign_agent::domain::{ActionId, ChannelKind, GateId, Notice, TurnId};
use serde_json::Value;

use super::form::BrowserForm;
use super::locale::PageLocale;
use super::outcome::{done, wants_json};
use super::page::whole_page;
use super::scene::{RefusedEdit, Scene};
use crate::channels::with_names;
use crate::conversation::{Answered, ApiDecision, DecideError, GateOutcome, Verb, words_of};
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
    check_text("feedback", Some(form.get("feedback")))?;
    if !form.get("turn").is_empty() {
        let notice = task(&scene, &TurnId::new(form.get("turn")), form.get("decision")).await?;
        return done(&scene, &headers, notice).await;
    }
    let words = words_of(Some(form.get("feedback")));
    let verb = match form.get("decision") {
        "approve" => Verb::Approve(words),
        "approve_always" => Verb::ApproveAlways(words),
        "revise" => Verb::Revise(words),
        "keep_steps" => Verb::Keep(form.all("keep")),
        "cancel" | "reject" => Verb::Refuse(words),
        "ask_again" => Verb::AskAgain,
        _ => {
            let why = "decision must be approve, revise, cancel, reject, keep_steps, ask_again or, of a call, approve_always";
            return Err(ApiError::invalid(why));
        }
    };
    let call = Some(form.get("call")).filter(|id| !id.is_empty()).map(ActionId::new);
    let arguments = match (&verb, &call) {
        (Verb::Approve(_) | Verb::ApproveAlways(_), Some(call)) => edited(&scene, &form, call).await?,
        _ => None,
    };
    let told = match &call {
        Some(call) => action(&scene, &form, call, verb, arguments.as_deref()).await,
        None => review(&scene, &form, verb).await,
    };
    match told {
        Ok(notice) => done(&scene, &headers, Some(notice)).await,
        // The script puts the words beside the form; without it the page comes back with what was typed.
        Err(error) if arguments.is_some() && !wants_json(&headers) => {
            scene.refused_edit = Some(RefusedEdit {
                call: form.get("call").to_owned(),
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
        "stop" => match gateway.conversations.cancel_turn(id, who, &token).await {
            Ok(_) => return Ok(None),
            Err(DecideError::Forbidden) => Notice::NotEntitled { requester: turn.user },
            Err(DecideError::Conflict { .. }) => Notice::NothingToStop {},
            Err(error) => return Err(error.into()),
        },
        "try_again" => match gateway.conversations.try_again(id, who, &token).await? {
            Ok(retry) => retry.notice(),
            Err(why) => why,
        },
        _ => return Err(ApiError::invalid("decision must be stop or try_again")),
    };
    Ok(Some(named(scene, channel, told)))
}

async fn review(scene: &Scene, form: &BrowserForm, verb: Verb) -> Result<Notice, ApiError> {
    let id = GateId::new(form.get("review"));
    let Some(record) = scene.gateway.ledger.read().await?.gate(&id).await? else {
        return Ok(Notice::UnknownReview {});
    };
    let asked = decision(scene, record.gate.conversation.channel, verb);
    told(scene, scene.gateway.conversations.decide_review(&id, asked).await)
}

async fn action(scene: &Scene, form: &BrowserForm, id: &ActionId, verb: Verb, arguments: Option<&str>) -> Result<Notice, ApiError> {
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
        ..decision(scene, found.channel, verb)
    };
    let gate = Some(form.get("gate")).filter(|gate| !gate.is_empty()).map(GateId::new);
    told(scene, gateway.conversations.decide_action(id, gate.as_ref(), asked).await)
}

/// What the person is told: the same words as on the platforms.
fn told(scene: &Scene, answered: Result<Answered, DecideError>) -> Result<Notice, ApiError> {
    match answered {
        Ok(answered) if matches!(answered.outcome, GateOutcome::NotEditable(_)) => Ok(answered.taken()?.notice),
        Ok(answered) => Ok(named(scene, answered.record.gate.conversation.channel, answered.notice)),
        Err(DecideError::NotFound) => Ok(Notice::UnknownReview {}),
        Err(error) => Err(error.into()),
    }
}

/// The notice with the names of people.
fn named(scene: &Scene, channel: ChannelKind, notice: Notice) -> Notice {
    with_names(&notice, &|id| scene.name(channel, id)).unwrap_or(notice)
}

/// In whose name a reader of the page acts in this channel.
fn speaker(scene: &Scene, channel: ChannelKind) -> &str {
    if channel == ChannelKind::Console {
        &scene.people.me.id
    } else {
        OPERATOR
    }
}

fn decision(scene: &Scene, channel: ChannelKind, verb: Verb) -> ApiDecision {
    ApiDecision {
        verb,
        user_id: speaker(scene, channel).to_owned(),
        principal: principal(&scene.gateway),
        edit: None,
    }
}
