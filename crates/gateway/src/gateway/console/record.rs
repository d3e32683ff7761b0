//! `GET /console/turn/{id}`: everything about one task, in full.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use countersign_agent::domain::{Action, ActionView, ChannelKind, Message, TurnId, one_line};
use serde::Deserialize;
use serde_json::{Value, json};

use super::locale::PageLocale;
use super::scene::{Scene, clock, head, merge};
use super::tasks;
use crate::channels::{call_blocks, markdown_html};
use crate::gateway::error::ApiError;
use crate::gateway::request::{Id, Params};
use crate::gateway::state::Gateway;

/// Timeline entries; longer ones are in the API, page by page.
const EVENTS: i64 = 500;

/// Who looks at the record.
#[derive(Debug, Default, Deserialize)]
pub(super) struct RecordParams {
    #[serde(rename = "as")]
    who: Option<String>,
}

pub(super) async fn show(
    State(gateway): State<Gateway>,
    language: PageLocale,
    Id(id): Id,
    Params(params): Params<RecordParams>,
) -> Result<Response, ApiError> {
    let mut read = gateway.ledger.read().await?;
    let Some(row) = read.turn(&TurnId::new(id)).await? else {
        let page = Html(gateway.templates.page("nothing.html", head(&gateway, language, "/console/")));
        return Ok((StatusCode::NOT_FOUND, page).into_response());
    };
    let chat = Some(row.conversation.chat.as_str()).filter(|_| row.conversation.channel == ChannelKind::Console);
    let mut scene = Scene::new(&gateway, language, chat, params.who.as_deref())?;
    scene.record = Some(row.id.to_string());
    // Read before the calls: one that is decided in between is then shown twice rather than not at all.
    let open = tasks::open_card(&mut read, &scene, &row).await?;
    let events = read.events(&row.id, 0, EVENTS).await?;
    let actions = read.actions_of_turn(&row.id).await?;
    let log = read.messages(&row.id).await?;
    drop(read);
    let details = gateway.runner.details(&row)?;
    let edits: Vec<Value> = actions
        .iter()
        .filter_map(|action| edit(&scene, row.conversation.channel, action))
        .collect();
    // Those that are asked about stand on the card.
    let asked = |action: &Action| open.as_ref().is_some_and(|(gate, _)| action.gate_id.as_ref() == Some(&gate.id));
    let calls: Vec<ActionView> = actions.into_iter().filter(|action| !asked(action)).map(whole).collect();
    let mut values = scene.frame();
    merge(&mut values, head(&gateway, language, &scene.path()));
    merge(&mut values, json!({ "turn": tasks::task(&scene, &row, &events, false) }));
    values["turn"]["text"] = json!(row.text);
    if let Some(events) = values["turn"]["events"].as_array_mut() {
        events.extend(edits);
        events.sort_by(|one, other| one["at"].as_str().cmp(&other["at"].as_str()));
    }
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
            "open": open.map(|(_, page)| page),
            "goal": details.plan.as_ref().map(|plan| plan.goal.as_str()),
            "why": why,
            "answer_html": details.answer.as_deref().map(markdown_html),
            "card": { "blocks": call_blocks(&gateway.templates, language.locale, &calls) },
            "log": said,
        }),
    );
    Ok(Html(gateway.templates.page("turn.html", values)).into_response())
}

/// The entry of the timeline that says who changed the arguments of a call, and what they were. `None` means that nobody did.
fn edit(scene: &Scene, channel: ChannelKind, action: &Action) -> Option<Value> {
    let edit = action.edited.as_ref()?;
    let by = edit.by.as_deref().map(|id| scene.name(channel, id));
    let before = one_line(&edit.original.to_string(), 200);
    let values = json!({ "by": by, "tool": one_line(&action.tool, 64), "before": before });
    Some(json!({
        "at": edit.at.rfc3339(), "clock": clock(edit.at), "summary": scene.say("console.event.edited", values),
    }))
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
