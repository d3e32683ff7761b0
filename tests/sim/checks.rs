//! What must hold in every life: while it goes on, and when it has come to rest.

mod again;
mod evidence;
mod gates;
mod left_out;
mod limits;
mod plan;
mod prompt;
mod rest;
mod spent;
mod words;

use std::collections::HashMap;

use countersign_agent::domain::{Action, ActionStatus, ApprovalMode, DecisionKind, EffectClass, Millis, Mode, TurnId, Via};
use countersign_agent::reducer::{Next, TurnState};
use sqlx::Row;

use super::life::Life;
use super::script::TOOLS;
use super::stage::{ActorId, Called, unpaced};

pub use plan::Prompts;
pub use prompt::asked;
pub use rest::at_rest;
pub use spent::{Book, Given};

/// What the tools really did.
#[derive(Debug, Default)]
pub struct Runs {
    /// Every time that a changing call was sent, by its number.
    by_call: HashMap<u64, Vec<Run>>,
    /// Every output that left a trace, and the number of its call.
    outputs: HashMap<String, u64>,
}

/// One of these times.
#[derive(Debug)]
struct Run {
    turn: TurnId,
    /// Evidence and moment of the decision under which it ran.
    under: (Option<String>, Millis),
    /// What it answered; empty: nothing that would be known again.
    gave: Option<String>,
}

impl Runs {
    /// The tool has answered call `number`, with this trace in its words.
    pub fn gave(&mut self, number: u64, mark: &str) {
        if let Some(run) = self.by_call.get_mut(&number).and_then(|runs| runs.last_mut()) {
            run.gave = Some(mark.to_owned());
        }
        if !mark.is_empty() {
            self.outputs.insert(mark.to_owned(), number);
        }
    }
}

/// The turn on which an actor works, if its lane is still its own.
struct Held {
    turn: String,
    state: TurnState,
}

async fn holder(life: &mut Life<'_>, actor: ActorId) -> Result<Option<Held>, String> {
    let lease = life.board.leases.borrow().get(&actor).cloned();
    let lease = lease.ok_or("somebody works beside every lane")?;
    let found = sqlx::query(
        "SELECT turns.id, turns.state FROM lanes JOIN turns ON turns.id = lanes.turn_id
         WHERE lanes.id = $1 AND lanes.fence = $2 AND lanes.owner <> ''",
    )
    .bind(lease.lane_id.as_str())
    .bind(lease.fence);
    let found = unpaced(found.fetch_optional(&mut life.lab.conn))
        .await
        .map_err(|error| error.to_string())?;
    let held = found.map(|row| {
        let state = serde_json::from_str(row.get(1)).map_err(|error| error.to_string())?;
        Ok(Held { turn: row.get(0), state })
    });
    held.transpose()
}

/// A call that has just been sent: a person or an approved plan must have allowed exactly it, and it must not have run before, unless
/// a person was asked again.
pub async fn sent(life: &mut Life<'_>, actor: ActorId, called: &Called) -> Result<(), String> {
    let effect = TOOLS.iter().find(|(name, _)| *name == called.tool).map(|(_, effect)| *effect);
    if effect == Some(EffectClass::Read) {
        return Ok(());
    }
    let number = called.arguments["n"].as_u64().ok_or("a call without a number ran")?;
    let lane = life.board.leases.borrow().get(&actor).map(|lease| lease.lane_id.clone());
    let lane = lane.ok_or("a call ran beside every lane")?;
    let held = holder(life, actor)
        .await?
        .ok_or_else(|| format!("call {number} ran, and the lane was lost before"))?;
    may_begin(&held, number)?;
    let step = match held.state.policy.mode {
        Mode::React => None,
        Mode::Plan => Some(plan::acts(life, &held).await.map_err(|wrong| format!("call {number}: {wrong}"))?),
    };
    let ledger = life.lab.ledger.clone();
    let (turn, rows) = unpaced(async {
        let mut read = ledger.read().await.map_err(|error| error.to_string())?;
        let turn = read.turn_of_lane(&lane).await.map_err(|error| error.to_string())?;
        let turn = turn.ok_or("a call ran, and its lane has no turn")?;
        let rows = read.actions_of_turn(&turn).await.map_err(|error| error.to_string())?;
        let state = read.turn(&turn).await.map_err(|error| error.to_string())?;
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
        Via::Grant => evidence::grant(life, &turn, &rows, row, step.as_deref()).await?,
        Via::System if life.live.agent.approval == ApprovalMode::Never && row.effect == EffectClass::Write => {}
        Via::System | Via::Api | Via::Rule => return Err(format!("call {number} ran, and nobody was asked")),
        Via::Text | Via::Button | Via::Reaction => evidence::row(life, &held.state, &rows, row, called).await?,
    }
    let runs = life.runs.by_call.entry(number).or_default();
    let under = (decision.event_id.clone(), decision.at);
    let again = row.gate_id.is_some()
        && matches!(decision.via, Via::Text | Via::Button | Via::Reaction)
        && runs.iter().all(|run| run.under != under);
    if !runs.is_empty() && !again {
        return Err(format!("call {number} ran {} times under one decision", runs.len() + 1));
    }
    let times = runs.len() + 1;
    runs.push(Run {
        turn: turn.id,
        under,
        gave: None,
    });
    life.meet(if times > 1 { "calls sent again" } else { "calls sent" });
    Ok(())
}

/// It is one of the calls that are due, and none is begun past a limit.
fn may_begin(held: &Held, number: u64) -> Result<(), String> {
    let Next::RunTools { calls } = &held.state.next else {
        return Err(format!("call {number} ran, and due was {:?}", held.state.next));
    };
    let fits =
        |arguments: &str| serde_json::from_str::<serde_json::Value>(arguments).is_ok_and(|value| value["n"].as_u64() == Some(number));
    let due = held
        .state
        .calls
        .open
        .iter()
        .any(|open| calls.contains(&open.call.id) && fits(&open.call.arguments));
    if !due {
        return Err(format!("call {number} ran, and due were {calls:?}"));
    }
    if spent::is_at_a_limit(&held.state.budget) {
        Err(format!("call {number} was begun past a limit: {:?}", held.state.budget))
    } else {
        Ok(())
    }
}
