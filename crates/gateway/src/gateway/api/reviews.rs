//! Plan reviews: lists, one, deciding.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use countersign_agent::domain::{DecisionKind, GateId, GateKind};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{ListParams, body, views};
use crate::conversation::{ApiDecision, Verb, words_of};
use crate::gateway::error::ApiError;
use crate::gateway::request::{Id, NoParams, Params, check_id, check_text, next, principal};
use crate::gateway::state::Gateway;
use crate::store::{GateRecord, Read};

const STATUSES: &[&str] = &["pending", "approved", "revised", "cancelled", "expired", "superseded"];

/// `GET /reviews`, by default those that wait.
pub(in crate::gateway) async fn list(State(gateway): State<Gateway>, Params(params): Params<ListParams>) -> Result<Json<Value>, ApiError> {
    let query = params.query(STATUSES, Some("pending"))?;
    let mut read = gateway.ledger.read().await?;
    let records = read.list_reviews(&query).await?;
    let mut items = Vec::with_capacity(records.items.len());
    for record in &records.items {
        items.push(view(&gateway, &mut read, record).await?);
    }
    Ok(Json(json!({ "items": items, "next": next(records.next.as_ref()) })))
}

/// `GET /reviews/{id}`.
pub(in crate::gateway) async fn one(
    State(gateway): State<Gateway>,
    Id(id): Id,
    Params(NoParams {}): Params<NoParams>,
) -> Result<Json<Value>, ApiError> {
    let record = find(&gateway, &GateId::new(id)).await?;
    let mut read = gateway.ledger.read().await?;
    Ok(Json(view(&gateway, &mut read, &record).await?))
}

#[derive(Debug, Deserialize)]
pub(in crate::gateway) struct DecisionBody {
    decision: String,
    feedback: Option<String>,
    user_id: String,
}

/// `POST /reviews/{id}/decision`.
pub(in crate::gateway) async fn decide(
    State(gateway): State<Gateway>,
    Id(id): Id,
    Params(NoParams {}): Params<NoParams>,
    headers: HeaderMap,
    raw: Body,
) -> Result<Json<Value>, ApiError> {
    let DecisionBody {
        decision,
        feedback,
        user_id,
    } = body(&gateway, &headers, raw).await?;
    let words = words_of(feedback.as_deref());
    let verb = match DecisionKind::parse(&decision) {
        Some(DecisionKind::Approve) => Verb::Approve(words),
        Some(DecisionKind::Revise) => Verb::Revise(words),
        Some(DecisionKind::Cancel) => Verb::Refuse(words),
        _ => return Err(ApiError::invalid("decision must be approve, revise or cancel")),
    };
    check_id("user_id", &user_id)?;
    check_text("feedback", feedback.as_deref())?;
    let id = GateId::new(id);
    find(&gateway, &id).await?;
    let asked = ApiDecision {
        verb,
        user_id,
        principal: principal(&gateway),
        edit: None,
    };
    // Not always the one that was named: its successor may have taken the decision.
    let decided = gateway.conversations.decide_review(&id, asked).await?.taken()?;
    let mut read = gateway.ledger.read().await?;
    Ok(Json(view(&gateway, &mut read, &decided.record).await?))
}

/// A plan review, or another gate of the same buttons: what a disabled channel cannot carry stays decidable here. The
/// calls of a `tool_approval` gate are decided one by one under `/actions`.
async fn find(gateway: &Gateway, id: &GateId) -> Result<GateRecord, ApiError> {
    let record = gateway.ledger.read().await?.gate(id).await?;
    record
        .filter(|record| record.gate.kind != GateKind::ToolApproval)
        .ok_or_else(|| ApiError::not_found("there is no review with this id"))
}

/// The approvers are read now, as they are at a decision.
async fn view(gateway: &Gateway, read: &mut Read, record: &GateRecord) -> Result<Value, ApiError> {
    let approved = record
        .decision
        .as_ref()
        .is_some_and(|decision| decision.kind == DecisionKind::Approve);
    let calls = if approved && record.gate.kind == GateKind::PlanReview {
        read.actions_of_turn(&record.gate.turn_id).await?
    } else {
        Vec::new()
    };
    let live = gateway.settings.current();
    let place = &record.gate.conversation;
    let channel = live.in_chat(place.channel, &place.chat);
    Ok(views::review(record, channel.approvers_of(record.gate.kind), &calls))
}
