//! Proposed and granted tool calls: lists, one, deciding.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use countersign_agent::domain::{ActionId, DecisionKind, GateId, GateKind};
use serde::Deserialize;
use serde_json::Value;

use super::{ListParams, body, page, views};
use crate::conversation::{ApiDecision, Verb, words_of};
use crate::gateway::error::ApiError;
use crate::gateway::request::{Id, NoParams, Params, check_id, check_text, principal};
use crate::gateway::state::Gateway;
use crate::store::ActionRecord;

const STATUSES: &[&str] = &[
    "pending", "approved", "rejected", "expired", "running", "executed", "failed", "unknown",
];

/// `GET /actions`, by default those that wait.
pub(in crate::gateway) async fn list(State(gateway): State<Gateway>, Params(params): Params<ListParams>) -> Result<Json<Value>, ApiError> {
    let query = params.query(STATUSES, Some("pending"))?;
    let records = gateway.ledger.read().await?.list_actions(&query).await?;
    Ok(Json(page(records, |record| view(&gateway, &record))))
}

/// `GET /actions/{id}`.
pub(in crate::gateway) async fn one(
    State(gateway): State<Gateway>,
    Id(id): Id,
    Params(NoParams {}): Params<NoParams>,
) -> Result<Json<Value>, ApiError> {
    Ok(Json(view(&gateway, &find(&gateway, &ActionId::new(id)).await?)))
}

#[derive(Debug, Deserialize)]
pub(in crate::gateway) struct ActionDecisionBody {
    decision: String,
    reason: Option<String>,
    user_id: String,
    gate_id: Option<String>,
    arguments: Option<Value>,
}

/// `POST /actions/{id}/decision`.
pub(in crate::gateway) async fn decide(
    State(gateway): State<Gateway>,
    Id(id): Id,
    Params(NoParams {}): Params<NoParams>,
    headers: HeaderMap,
    raw: Body,
) -> Result<Json<Value>, ApiError> {
    let ActionDecisionBody {
        decision,
        reason,
        user_id,
        gate_id,
        arguments,
    } = body(&gateway, &headers, raw).await?;
    let words = words_of(reason.as_deref());
    let verb = match DecisionKind::parse(&decision) {
        Some(DecisionKind::Approve) => Verb::Approve(words),
        Some(DecisionKind::Reject) => Verb::Refuse(words),
        _ => return Err(ApiError::invalid("decision must be approve or reject")),
    };
    check_id("user_id", &user_id)?;
    check_text("reason", reason.as_deref())?;
    let id = ActionId::new(id);
    let edit = match &arguments {
        Some(_) if !matches!(verb, Verb::Approve(_)) => return Err(ApiError::invalid("arguments: only an approval can change them")),
        Some(arguments) => {
            let found = find(&gateway, &id).await?;
            Some(
                gateway
                    .runner
                    .draft(&found, &arguments.to_string())
                    .await?
                    .map_err(ApiError::arguments)?,
            )
        }
        None => None,
    };
    let asked = ApiDecision {
        verb,
        user_id,
        principal: principal(&gateway),
        edit,
    };
    let gate = gate_id.map(GateId::new);
    gateway.conversations.decide_action(&id, gate.as_ref(), asked).await?.taken()?;
    Ok(Json(view(&gateway, &find(&gateway, &id).await?)))
}

/// The approvers are read now, as they are at a decision.
fn view(gateway: &Gateway, record: &ActionRecord) -> Value {
    let live = gateway.settings.current();
    views::action(
        record,
        live.in_chat(record.channel, &record.chat).approvers_of(GateKind::ToolApproval),
    )
}

async fn find(gateway: &Gateway, id: &ActionId) -> Result<ActionRecord, ApiError> {
    gateway
        .ledger
        .read()
        .await?
        .action(id)
        .await?
        .ok_or_else(|| ApiError::not_found("there is no action with this id"))
}
