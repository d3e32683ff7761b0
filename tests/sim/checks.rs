//! What must hold in every life: while it goes on, and when it has come to rest.

mod evidence;
mod rest;

use std::collections::HashMap;

use countersign::domain::{Action, ActionStatus, ApprovalMode, DecisionKind, EffectClass, Millis, Role, TurnId, Via};
use countersign::model::ChatRequest;
use serde_json::{Value, json};

use super::life::Life;
use super::script::TOOLS;
use super::stage::{ActorId, Called, unpaced};

pub use rest::at_rest;

/// Every time that a changing call was sent, by its number.
#[derive(Debug, Default)]
pub struct Runs(HashMap<u64, Vec<Run>>);

/// One of these times.
#[derive(Debug)]
struct Run {
    turn: TurnId,
    /// Evidence and moment of the decision under which it ran.
    under: (Option<String>, Millis),
}

/// What every request to the model must keep: one system prompt, paired calls, no forged block.
pub fn request(request: &ChatRequest) -> Result<(), String> {
    let messages = request.messages.iter().map(|message| {
        let role = match message.role {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        };
        let calls: Vec<Value> = message.calls.iter().map(|call| json!({"id": call.id})).collect();
        json!({"role": role, "content": message.content, "tool_calls": calls, "tool_call_id": message.call_id})
    });
    let wrong = super::model_protocol::violations(&json!({"messages": messages.collect::<Vec<_>>()}));
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(format!("a request to the model: {wrong:?}"))
    }
}

/// A call that has just been sent: a person or an approved plan must have allowed exactly it, and it must not have run before, unless
/// a person was asked again.
pub async fn sent(life: &mut Life<'_>, actor: ActorId, called: &Called) -> Result<(), String> {
    let effect = TOOLS.iter().find(|(name, _)| *name == called.tool).map(|(_, effect)| *effect);
    if effect == Some(EffectClass::Read) {
        return Ok(());
    }
    let number = called.arguments["n"].as_u64().ok_or("a call without a number ran")?;
    let lane = life
        .board
        .lanes
        .borrow()
        .get(&actor)
        .cloned()
        .ok_or("a call ran beside every lane")?;
    let ledger = life.lab.ledger.clone();
    let (turn, rows) = unpaced(async {
        let mut session = ledger.read().await.map_err(|error| error.to_string())?;
        let turn = session.turn_of_lane(&lane).await.map_err(|error| error.to_string())?;
        let turn = turn.ok_or("a call ran, and its lane has no turn")?;
        let rows = session.actions_of_turn(&turn).await.map_err(|error| error.to_string())?;
        let state = session.turn(&turn).await.map_err(|error| error.to_string())?;
        Ok::<_, String>((state.ok_or("a lane names a turn that is not there")?, rows))
    })
    .await?;
    let fits = |row: &&Action| row.arguments["n"].as_u64() == Some(number);
    let row = rows.iter().find(fits).ok_or_else(|| format!("call {number} ran without a row"))?;
    if row.status != ActionStatus::Running {
        return Err(format!("call {number} ran while its row says {}", row.status.as_str()));
    }
    let decision = row
        .decision
        .clone()
        .ok_or_else(|| format!("call {number} ran without a decision"))?;
    if decision.kind != DecisionKind::Approve {
        return Err(format!("call {number} ran under a {}", decision.kind.as_str()));
    }
    match decision.via {
        Via::Grant => evidence::grant(life, &turn, row).await?,
        Via::System if life.live.agent.approval == ApprovalMode::Never && row.effect == EffectClass::Write => {}
        Via::System | Via::Api => return Err(format!("call {number} ran, and nobody was asked")),
        Via::Text | Via::Button => evidence::consent(life, &decision, &turn.user)?,
    }
    let runs = life.runs.0.entry(number).or_default();
    let under = (decision.event_id.clone(), decision.at);
    let again = row.gate_id.is_some() && matches!(decision.via, Via::Text | Via::Button) && runs.iter().all(|run| run.under != under);
    if !runs.is_empty() && !again {
        return Err(format!("call {number} ran {} times under one decision", runs.len() + 1));
    }
    let times = runs.len() + 1;
    runs.push(Run { turn: turn.id, under });
    life.meet(if times > 1 { "calls sent again" } else { "calls sent" });
    Ok(())
}
