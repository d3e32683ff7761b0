//! Slack's webhooks: a press is answered with nothing, since the card shows what came of it; what it cannot show goes to the
//! one who pressed as a note.

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use countersign_agent::domain::{ChannelKind, ClickTarget, Inbound, InboundBody, Locale, Notice};
use serde_json::json;
use tracing::{info, warn};

use super::{FORM, JSON, Outcome, accept, click, metered, read_push, refused, require_type};
use crate::channels::{FormContext, SlackReceived as Received, form_errors, notice_text, revise_form};
use crate::gateway::error::ApiError;
use crate::gateway::linger::Lingering;
use crate::gateway::state::Gateway;

/// `POST /webhooks/slack/events`, `/interactions` and `/commands`; each takes every kind.
pub(in crate::gateway) async fn slack(State(gateway): State<Gateway>, request: Request) -> Result<Response, ApiError> {
    let (request, body) = request.into_parts();
    metered("slack", handle(&gateway, &request, Lingering::of(body))).await
}

async fn handle(gateway: &Gateway, request: &Parts, body: Lingering) -> Result<(Outcome, Response), ApiError> {
    let live = gateway.settings.current();
    if !live.slack.enabled {
        return Err(ApiError::not_found("the Slack channel is not enabled (channels.slack.enabled)"));
    }
    let locale = |chat: &str| live.in_chat(ChannelKind::Slack, chat).locale;
    require_type(&request.headers, &[JSON, FORM])?;
    let hook = &gateway.channels.slack_hook;
    let body = read_push(gateway, &request.headers, body, hook.unsigned_limit(&request.headers)).await?;
    match body
        .and_then(|body| hook.receive(&request.headers, &body, gateway.machine_clock.now()))
        .map_err(|refusal| refused(gateway, "slack", request, refusal))?
    {
        Received::Challenge(challenge) => Ok((Outcome::Handshake, Json(json!({ "challenge": challenge })).into_response())),
        Received::Probe => Ok((Outcome::Handshake, done())),
        Received::Ignored(reason) => {
            info!(reason, "event ignored");
            Ok((Outcome::Ignored, done()))
        }
        Received::Event(inbound) => Ok((accept(gateway, &inbound).await?, done())),
        Received::EmptyCommand { chat } => {
            let text = notice_text(&gateway.templates, locale(&chat), &Notice::Greeting {});
            Ok((Outcome::Ignored, told(&text)))
        }
        Received::Command(inbound) => {
            let locale = locale(&inbound.conversation.chat);
            let outcome = accept(gateway, &inbound).await?;
            Ok((outcome, told(&gateway.templates.say(locale, "note.command_taken", json!({})))))
        }
        Received::Press {
            inbound,
            trigger_id,
            thread,
        } => {
            let locale = locale(&inbound.conversation.chat);
            let answer = click(gateway, inbound.clone()).await?;
            gateway.failpoint.reach("decision_written");
            // The answer does not wait for the note: it must be there in three seconds.
            tokio::spawn(follow_up(gateway.clone(), inbound, answer.notice, trigger_id, thread, locale));
            Ok((Outcome::Decided, done()))
        }
        Received::Submit(inbound) => {
            let locale = locale(&inbound.conversation.chat);
            let answer = click(gateway, inbound).await?;
            gateway.failpoint.reach("decision_written");
            if shows_on_card(&answer.notice) {
                // Nothing in the answer closes the form.
                return Ok((Outcome::Decided, done()));
            }
            let body = form_errors(&gateway.templates, locale, &answer.notice);
            Ok((Outcome::Decided, Json(body).into_response()))
        }
    }
}

fn done() -> Response {
    StatusCode::OK.into_response()
}

/// An answer to a command, for the one who typed it.
fn told(text: &str) -> Response {
    Json(json!({ "response_type": "ephemeral", "text": text })).into_response()
}

/// What a press leads to beside the repainted card: the form for changes, or a note to the person who pressed. It is not retried.
async fn follow_up(gateway: Gateway, inbound: Inbound, notice: Notice, trigger_id: Option<String>, thread: Option<String>, locale: Locale) {
    if shows_on_card(&notice) {
        return;
    }
    let text = if matches!(notice, Notice::EmptyFeedback {}) {
        if open_form(&gateway, &inbound, trigger_id, locale).await {
            return;
        }
        gateway.templates.say(locale, "note.form_failed", json!({}))
    } else {
        notice_text(&gateway.templates, locale, &notice)
    };
    let (chat, user) = (&inbound.conversation.chat, &inbound.sender);
    if let Err(error) = gateway.channels.slack.whisper(chat, user, thread.as_deref(), &text).await {
        warn!(%error, notice = notice.key(), "a note to the one who pressed was not delivered");
    }
}

/// Opens the form for changes to the plan; false: it did not open.
async fn open_form(gateway: &Gateway, inbound: &Inbound, trigger_id: Option<String>, locale: Locale) -> bool {
    let InboundBody::Click(click) = &inbound.body else {
        return false;
    };
    let (Some(ClickTarget::Gate(gate)), Some(trigger_id)) = (&click.target, trigger_id) else {
        return false;
    };
    let context = FormContext {
        review_id: gate.to_string(),
        chat: inbound.conversation.chat.clone(),
        card: click.card.clone().unwrap_or_default(),
    };
    let form = revise_form(&gateway.templates, locale, &context);
    match gateway.channels.slack.open_form(&trigger_id, &form).await {
        Ok(()) => true,
        Err(error) => {
            warn!(%error, "the form for changes did not open");
            false
        }
    }
}

/// Done as asked: everybody sees it on the repainted card.
fn shows_on_card(notice: &Notice) -> bool {
    matches!(
        notice,
        Notice::Approved {}
            | Notice::DecidedInPlace { .. }
            | Notice::Revised {}
            | Notice::Cancelled {}
            | Notice::Rejected {}
            | Notice::Answered {}
            | Notice::VoteRecorded { .. }
            | Notice::AskingAgain { before: 0 }
    )
}
