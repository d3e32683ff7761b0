//! Plan reviews: lists, one, deciding.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use countersign_agent::domain::{Approvers, DecisionKind, GateId, GateKind};
use serde::Deserialize;
use serde_json::Value;

use super::{Id, ListParams, NoParams, Params, body, check_id, check_text, page, principal, views};
use crate::conversation::ApiDecision;
use crate::gateway::error::ApiError;
use crate::gateway::state::Gateway;
use crate::store::GateRecord;

const STATUSES: &[&str] = &["pending", "approved", "revised", "cancelled", "expired", "superseded"];

/// `GET /reviews`, by default those that wait.
pub(in crate::gateway) async fn list(State(gateway): State<Gateway>, Params(params): Params<ListParams>) -> Result<Json<Value>, ApiError> {
    let query = params.query(STATUSES, Some("pending"))?;
    let records = gateway.ledger.read().await?.list_reviews(&query).await?;
    Ok(Json(page(records, |record| view(&gateway, &record))))
}

/// `GET /reviews/{id}`.
pub(in crate::gateway) async fn one(
    State(gateway): State<Gateway>,
    Id(id): Id,
    Params(NoParams {}): Params<NoParams>,
) -> Result<Json<Value>, ApiError> {
    Ok(Json(view(&gateway, &find(&gateway, &GateId::new(id)).await?)))
}

/// Body of a decision.
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
    let kind = match DecisionKind::parse(&decision) {
        Some(kind @ (DecisionKind::Approve | DecisionKind::Revise | DecisionKind::Cancel)) => kind,
        _ => return Err(ApiError::invalid("decision must be approve, revise or cancel")),
    };
    check_id("user_id", &user_id)?;
    check_text("feedback", feedback.as_deref())?;
    let id = GateId::new(id);
    find(&gateway, &id).await?;
    let asked = ApiDecision {
        kind,
        feedback,
        user_id,
        principal: principal(&gateway),
        edit: None,
    };
    // Not always the one that was named: its successor may have taken the decision.
    let decided = gateway.conversations.decide_review(&id, asked).await?;
    Ok(Json(view(&gateway, &decided)))
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
fn view(gateway: &Gateway, record: &GateRecord) -> Value {
    let place = &record.gate.conversation;
    let approvers = match &gateway.settings.current().in_chat(place.channel, &place.chat).approvers {
        Approvers::Requester => Value::from("requester"),
        Approvers::Anyone => Value::from("anyone"),
        Approvers::Listed(ids) => Value::from(ids.clone()),
    };
    views::review(record, &approvers)
}
