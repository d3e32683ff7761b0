//! `GET /console/turn/{id}`: everything about one task, in full.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use countersign_agent::domain::{Action, ActionView, Message, TurnId};
use serde_json::{Value, json};

use super::assets::Assets;
use super::locale::PageLocale;
use super::page::{Scene, merge};
use super::tasks;
use crate::channels::{call_blocks, markdown_html};
use crate::gateway::api::Id;
use crate::gateway::error::ApiError;
use crate::gateway::state::Gateway;

/// Timeline entries; longer ones are in the API, page by page.
const EVENTS: i64 = 500;

pub(super) async fn show(State(gateway): State<Gateway>, language: PageLocale, Id(id): Id) -> Result<Response, ApiError> {
    let scene = Scene::new(&gateway, language, None, None)?;
    let mut session = gateway.ledger.read().await?;
    let Some(row) = session.turn(&TurnId::new(id)).await? else {
        let values = json!({ "locale": language.locale.as_str(), "assets": Assets::of(&gateway.templates) });
        let page = Html(gateway.templates.page("nothing.html", values));
        return Ok((StatusCode::NOT_FOUND, page).into_response());
    };
    let events = session.events(&row.id, 0, EVENTS).await?;
    let actions = session.actions_of_turn(&row.id).await?;
    let log = session.messages(&row.id).await?;
    drop(session);
    let details = gateway.runner.details(&row)?;
    let calls: Vec<ActionView> = actions.into_iter().map(whole).collect();
    let mut values = json!({ "turn": tasks::task(&scene, &row, &events, false) });
    values["turn"]["text"] = json!(row.text);
    if let Some(plan) = &details.plan {
        for (line, step) in values["turn"]["steps"].as_array_mut().into_iter().flatten().zip(&plan.steps) {
            line["result"] = json!(step.error.as_ref().or(step.result.as_ref().map(|result| &result.output)));
        }
    }
    let why = row
        .reason
        .map(|reason| scene.say(&format!("answer.reason.{}", reason.as_str()), json!({})));
    let said: Vec<Value> = gateway.runner.view(&row, log)?.iter().map(message).collect();
    merge(
        &mut values,
        json!({
            "locale": language.locale.as_str(),
            "assets": Assets::of(&gateway.templates),
            "goal": details.plan.as_ref().map(|plan| plan.goal.as_str()),
            "why": why,
            "answer_html": details.answer.as_deref().map(markdown_html),
            "card": { "blocks": call_blocks(&gateway.templates, language.locale, &calls) },
            "log": said,
            "chat": "", "me": scene.people.me,
        }),
    );
    Ok(Html(gateway.templates.page("turn.html", values)).into_response())
}

/// A call with all of its arguments and output.
fn whole(action: Action) -> ActionView {
    ActionView {
        id: action.id,
        tool: action.tool,
        effect: action.effect,
        justification: action.justification,
        arguments: serde_json::to_string_pretty(&action.arguments).unwrap_or_default(),
        hidden: 0,
        preview: action.preview,
        quorum: action.quorum,
        approvers: action.approvers,
        votes: 0,
        always: None,
        standing: action.decision.and_then(|decision| decision.standing),
        status: action.status,
        outdated: false,
        edited: action.edited.is_some(),
        output: action.result.map(|result| result.text),
    }
}

/// A message of the log: one line, and the whole of it.
fn message(message: &Message) -> Value {
    let mut text = message.content.clone();
    for call in &message.calls {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&format!("{}({})", call.name, call.arguments));
    }
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(100).collect();
    json!({ "role": message.role, "line": line, "text": text })
}
