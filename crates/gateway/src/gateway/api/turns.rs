//! Turns: lists, one with all its details, its messages, its timeline, cancelling.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use countersign_agent::domain::{Notice, TurnId};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{ListParams, body, views};
use crate::conversation::DecideError;
use crate::gateway::error::ApiError;
use crate::gateway::request::{Id, NoParams, Params, check_id, limit, next, principal};
use crate::gateway::state::Gateway;
use crate::lanes::{Details, WorkError};
use crate::store::{ListQuery, Read, TurnRow};

/// Programs that were written for earlier versions may ask for `queued` turns; there are none any more.
const STATUSES: &[&str] = &["queued", "running", "paused", "completed", "failed", "cancelled"];

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::gateway) struct TurnParams {
    status: Option<String>,
    chat: Option<String>,
    user: Option<String>,
    turn: Option<String>,
    event: Option<String>,
    limit: Option<String>,
    cursor: Option<String>,
}

/// `GET /turns`.
pub(in crate::gateway) async fn list(State(gateway): State<Gateway>, Params(params): Params<TurnParams>) -> Result<Json<Value>, ApiError> {
    let TurnParams {
        status,
        chat,
        user,
        turn,
        event,
        limit,
        cursor,
    } = params;
    let list = ListParams {
        status,
        chat,
        user,
        turn,
        limit,
        cursor,
    };
    let query = ListQuery {
        event,
        ..list.query(STATUSES, None)?
    };
    let mut read = gateway.ledger.read().await?;
    let rows = read.list_turns(&query).await?;
    let mut items = Vec::with_capacity(rows.items.len());
    for row in &rows.items {
        let details = details(&gateway, row)?;
        items.push(summary(&mut read, row, &details).await?);
    }
    Ok(Json(json!({ "items": items, "next": next(rows.next.as_ref()) })))
}

/// `GET /turns/{id}`.
pub(in crate::gateway) async fn one(
    State(gateway): State<Gateway>,
    Id(id): Id,
    Params(NoParams {}): Params<NoParams>,
) -> Result<Json<Value>, ApiError> {
    let mut read = gateway.ledger.read().await?;
    let row = find(&mut read, &id).await?;
    Ok(Json(full(&gateway, &mut read, &row).await?))
}

/// `GET /turns/{id}/messages`.
pub(in crate::gateway) async fn messages(
    State(gateway): State<Gateway>,
    Id(id): Id,
    Params(NoParams {}): Params<NoParams>,
) -> Result<Json<Value>, ApiError> {
    let mut read = gateway.ledger.read().await?;
    let row = find(&mut read, &id).await?;
    let log = read.messages(&row.id).await?;
    let items: Vec<Value> = gateway.runner.view(&row, log)?.iter().map(views::message).collect();
    Ok(Json(json!({ "items": items, "next": null })))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::gateway) struct EventParams {
    after: Option<String>,
    limit: Option<String>,
}

/// `GET /turns/{id}/events?after=SEQ`, oldest first.
pub(in crate::gateway) async fn events(
    State(gateway): State<Gateway>,
    Id(id): Id,
    Params(params): Params<EventParams>,
) -> Result<Json<Value>, ApiError> {
    let after = match params.after.as_deref().map(str::parse::<i64>) {
        None => 0,
        Some(Ok(after)) if after >= 0 => after,
        Some(_) => return Err(ApiError::bad_request("after must be a whole number from 0")),
    };
    let limit = limit(params.limit.as_deref(), 200)?;
    let mut read = gateway.ledger.read().await?;
    let row = find(&mut read, &id).await?;
    let rows = read.events(&row.id, after, limit).await?;
    let full_page = i64::try_from(rows.len()).is_ok_and(|length| length == limit);
    let next = rows.last().filter(|_| full_page).map(|last| last.seq.to_string());
    Ok(Json(
        json!({ "items": rows.iter().map(views::event).collect::<Vec<_>>(), "next": next }),
    ))
}

/// Body of a request that only says in whose name it is made.
#[derive(Debug, Deserialize)]
pub(in crate::gateway) struct InTheNameOf {
    user_id: String,
}

/// `POST /turns/{id}/cancel`; gives the turn as it is then (the stop itself takes effect within a second).
pub(in crate::gateway) async fn cancel(
    State(gateway): State<Gateway>,
    Id(id): Id,
    Params(NoParams {}): Params<NoParams>,
    headers: HeaderMap,
    raw: Body,
) -> Result<Json<Value>, ApiError> {
    let InTheNameOf { user_id } = body(&gateway, &headers, raw).await?;
    check_id("user_id", &user_id)?;
    gateway
        .conversations
        .cancel_turn(&TurnId::new(id.clone()), &user_id, &principal(&gateway))
        .await?;
    let mut read = gateway.ledger.read().await?;
    let row = find(&mut read, &id).await?;
    Ok(Json(full(&gateway, &mut read, &row).await?))
}

/// `POST /turns/{id}/retry` → 202 with the id of the turn that goes on; it begins when its lane comes to it.
pub(in crate::gateway) async fn retry(
    State(gateway): State<Gateway>,
    Id(id): Id,
    Params(NoParams {}): Params<NoParams>,
    headers: HeaderMap,
    raw: Body,
) -> Result<(StatusCode, Json<Value>), ApiError> {
    let InTheNameOf { user_id } = body(&gateway, &headers, raw).await?;
    check_id("user_id", &user_id)?;
    let asked = gateway
        .conversations
        .try_again(&TurnId::new(id), &user_id, &principal(&gateway))
        .await?;
    let retry = asked.map_err(|why| match why {
        Notice::NotEntitled { .. } => DecideError::Forbidden.into(),
        Notice::GroupUnknown { groups } => DecideError::GroupUnknown(groups).into(),
        Notice::TriedBefore {} => ApiError::conflict("it was tried again before"),
        Notice::QueueFull { .. } => ApiError::conflict("too many tasks of this person wait in this chat"),
        _ => ApiError::conflict(
            "only a turn that ended because the model's server was away, or gave no answer in time, is tried again, within 24 hours",
        ),
    })?;
    Ok((StatusCode::ACCEPTED, Json(json!({ "turn_id": retry.turn }))))
}

async fn find(read: &mut Read, id: &str) -> Result<TurnRow, ApiError> {
    read.turn(&TurnId::new(id))
        .await?
        .ok_or_else(|| ApiError::not_found("there is no turn with this id"))
}

fn details(gateway: &Gateway, row: &TurnRow) -> Result<Details, WorkError> {
    gateway.runner.details(row)
}

async fn summary(read: &mut Read, row: &TurnRow, details: &Details) -> Result<Value, ApiError> {
    let gate = match &details.gate {
        Some(id) => read.gate(id).await?.map(|record| record.gate),
        None => None,
    };
    let mut view = views::turn(row, &details.budget, gate.as_ref());
    view["error"] = json!(details.error.as_deref().or_else(|| views::why_failed(row)));
    Ok(view)
}

async fn full(gateway: &Gateway, read: &mut Read, row: &TurnRow) -> Result<Value, ApiError> {
    let details = details(gateway, row)?;
    let mut view = summary(read, row, &details).await?;
    view["plan"] = details.plan.as_ref().map_or(Value::Null, views::plan);
    view["todos"] = json!(details.todos);
    view["todos_revision"] = json!(details.todos_revision);
    view["budget"] = views::budget(&details.budget);
    view["pauses"] = json!(details.pauses);
    view["answer"] = json!(details.answer);
    view["open_steps"] = json!(details.open_steps);
    view["capsule"] = json!(details.capsule);
    Ok(view)
}
