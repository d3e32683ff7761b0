//! What must hold when a life has come to rest.

use std::collections::{HashMap, HashSet};

use countersign_agent::domain::{Decision, DecisionKind, Event, Message, Mode, Outbound, Role, TurnReason, TurnStatus};
use countersign_agent::reducer::TurnState;
use countersign_gateway::store::{AuditCheck, OutboxOp};
use sqlx::Row;
use sqlx::any::AnyRow;

use super::again::{self, Left};
use super::gates::{Settled, ends_or_waits, gates};
use super::limits::within_budget;
use super::{Held, evidence, left_out, plan, prompt, spent, words};
use crate::life::Life;
use crate::stage::unpaced;

/// A turn as it is found at the end.
pub(super) struct Found {
    pub(super) id: String,
    lane: String,
    pub(super) inbox_id: i64,
    pub(super) status: String,
    pub(super) user: String,
    pub(super) state: TurnState,
    /// From the request to the end, milliseconds; so far.
    pub(super) lasted: i64,
    /// What an expired turn left to it.
    pub(super) left: Left,
}

pub async fn at_rest(life: &mut Life<'_>) -> Result<(), String> {
    everything_was_handled(life).await?;
    let turns = turns(life).await?;
    in_order(&turns)?;
    let gates = gates(life, &turns).await?;
    for turn in &turns {
        ends_or_waits(turn, &gates)?;
        let reason = turn.state.reason.map_or("", TurnReason::as_str);
        life.meet(&format!("turn {} {reason}", turn.status));
        log(life, turn).await?;
        let held = Held {
            turn: turn.id.clone(),
            state: turn.state.clone(),
        };
        spent::look(life, &held)?;
    }
    let told = events(life, &gates).await?;
    for turn in &turns {
        within_budget(turn, &gates, &told)?;
    }
    left_out::next_versions(life, &gates).await?;
    plan::reviewed_once(life).await?;
    answers(life, &turns).await?;
    actions(life, &gates).await?;
    words::arrived(life, &turns).await?;
    let trail = unpaced(async { life.lab.ledger.read().await?.verify_audit(None).await }).await;
    match trail {
        Ok(AuditCheck::Sound(_)) => Ok(()),
        other => Err(format!("the approval trail: {other:?}")),
    }
}

pub(super) async fn rows(life: &mut Life<'_>, sql: &'static str) -> Result<Vec<AnyRow>, String> {
    let found = unpaced(sqlx::query(sql).fetch_all(&mut life.lab.conn)).await;
    found.map_err(|error| format!("{sql}: {error}"))
}

/// Those of one turn or gate, which the statement calls `$1`.
pub(super) async fn rows_of(life: &mut Life<'_>, sql: &'static str, id: &str) -> Result<Vec<AnyRow>, String> {
    let found = unpaced(sqlx::query(sql).bind(id).fetch_all(&mut life.lab.conn)).await;
    found.map_err(|error| format!("{sql}: {error}"))
}

pub(super) fn read<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

async fn everything_was_handled(life: &mut Life<'_>) -> Result<(), String> {
    let left = rows(life, "SELECT payload FROM inbox WHERE state = 'new'").await?;
    if let Some(row) = left.first() {
        return Err(format!("{} events were never looked at: {}", left.len(), row.get::<String, _>(0)));
    }
    let held = rows(life, "SELECT owner FROM lanes WHERE owner <> ''").await?;
    if let Some(row) = held.first() {
        return Err(format!("{} holds a lane and does not work on it", row.get::<String, _>(0)));
    }
    let waiting = rows(
        life,
        "SELECT lanes.id FROM lanes JOIN inbox ON inbox.lane_id = lanes.id WHERE inbox.state = 'laned' AND lanes.turn_id IS NULL",
    )
    .await?;
    if !waiting.is_empty() {
        return Err(String::from("a task waits in a lane that does nothing"));
    }
    Ok(())
}

async fn turns(life: &mut Life<'_>) -> Result<Vec<Found>, String> {
    let found = rows(
        life,
        "SELECT id, lane_id, inbox_id, status, state, user_id, created_at, finished_at FROM turns ORDER BY rowid",
    )
    .await?;
    let now = life.lab.clock.now();
    let found = found.iter().map(|row| {
        Ok(Found {
            id: row.get(0),
            lane: row.get(1),
            inbox_id: row.get(2),
            status: row.get(3),
            state: read(row.get(4))?,
            user: row.get(5),
            lasted: row.get::<Option<i64>, _>(7).unwrap_or(now.0) - row.get::<i64, _>(6),
            left: Left::default(),
        })
    });
    let mut turns = found.collect::<Result<Vec<Found>, String>>()?;
    for turn in &mut turns {
        turn.left = again::left_by_the_turn_before(life, turn).await?;
    }
    Ok(turns)
}

/// One turn an event, and a lane's turns in the order in which they were asked for.
fn in_order(turns: &[Found]) -> Result<(), String> {
    let mut last: HashMap<&str, i64> = HashMap::new();
    for turn in turns {
        let before = last.insert(&turn.lane, turn.inbox_id);
        if before.is_some_and(|before| before >= turn.inbox_id) {
            return Err(format!("{} overtook its lane, or was begun twice", turn.id));
        }
    }
    Ok(())
}

/// Calls and results are paired, each reply was paid for, and what a person added was read.
async fn log(life: &mut Life<'_>, turn: &Found) -> Result<(), String> {
    let found = rows_of(life, "SELECT body FROM messages WHERE turn_id = $1 ORDER BY seq", &turn.id).await?;
    let log: Vec<Message> = found.iter().map(|row| read(row.get(0))).collect::<Result<_, _>>()?;
    if turn.state.reason == Some(TurnReason::Crashed) && turn.state.budget.steps.used == 0 {
        // It was ended without its state being read: the state began anew, and the log stays.
        return words::heard(life, turn, &log).await;
    }
    // What an expired turn left was paid for there.
    let own = log.iter().skip(turn.left.messages);
    let replies = own.filter(|message| message.role == Role::Assistant).count();
    if u64::try_from(replies).unwrap_or(u64::MAX) > turn.state.budget.steps.used {
        return Err(format!(
            "{} has {replies} replies and paid for {}",
            turn.id, turn.state.budget.steps.used
        ));
    }
    let asked = log.iter().flat_map(|message| &message.calls).count();
    let answered = log.iter().filter(|message| message.role == Role::Tool).count();
    if asked != answered + turn.state.calls.open.len() {
        return Err(format!(
            "{}: {asked} calls, {answered} results, {} open",
            turn.id,
            turn.state.calls.open.len()
        ));
    }
    // A turn that is given up answers what it leaves in words of its own; no model reads them.
    if turn.state.status == TurnStatus::Completed {
        prompt::told(&life.runs, &log)?;
    }
    if turn.state.policy.mode == Mode::Plan {
        plan::ended(turn, &log)?;
    }
    words::heard(life, turn, &log).await
}

/// What the timelines tell.
#[derive(Default)]
pub(super) struct Told {
    /// Gates with whose decision their turn went on.
    pub(super) gates: HashSet<String>,
    /// How often a look at the plan changed its steps, by turn.
    pub(super) changed: HashMap<String, u64>,
}

/// The timeline tells of each decision once, and as it is stored.
async fn events(life: &mut Life<'_>, gates: &HashMap<String, Settled>) -> Result<Told, String> {
    let mut told = Told::default();
    for row in rows(life, "SELECT body, turn_id FROM events").await? {
        let (gate_id, kind) = match read(row.get(0))? {
            Event::Decision { gate_id, kind, .. } => (gate_id, kind),
            Event::Reflected { outcome } => {
                life.meet(&format!("plan mode: {outcome}"));
                let changes = matches!(outcome.as_str(), "refine" | "expand" | "refined_done");
                *told.changed.entry(row.get(1)).or_default() += u64::from(changes);
                continue;
            }
            _ => continue,
        };
        let stored = gates.get(gate_id.as_str()).and_then(|gate| gate.decision.as_ref());
        if stored.map(|decision| decision.kind) != Some(kind) {
            return Err(format!(
                "gate {gate_id}: the turn went on with {}, stored is {stored:?}",
                kind.as_str()
            ));
        }
        if !told.gates.insert(gate_id.to_string()) {
            return Err(format!("gate {gate_id}: its turn went on twice"));
        }
    }
    Ok(told)
}

/// One final answer a turn, in the outbox and in the chat.
async fn answers(life: &mut Life<'_>, turns: &[Found]) -> Result<(), String> {
    let mut queued: HashMap<String, usize> = HashMap::new();
    for row in rows(life, "SELECT turn_id, body FROM outbox WHERE op = 'post' AND turn_id IS NOT NULL").await? {
        if let OutboxOp::Post {
            content: Outbound::Answer(_),
            ..
        } = read(row.get(1))?
        {
            *queued.entry(row.get(0)).or_default() += 1;
        }
    }
    for turn in turns {
        let made = queued.get(&turn.id).copied().unwrap_or(0);
        let seen = life.chat.posts().filter(|posted| matches!(posted.content, Outbound::Answer(_)));
        let seen = seen
            .filter(|posted| posted.turn.as_ref().is_some_and(|id| id.as_str() == turn.id))
            .count();
        let due = matches!(turn.state.status, TurnStatus::Completed | TurnStatus::Failed);
        if made != usize::from(due) || seen > made {
            return Err(format!("{} is {}: {made} final answers, {seen} in the chat", turn.id, turn.status));
        }
    }
    Ok(())
}

/// What is said to have run has, under the consent of its gate; nothing is under way when its turn is over; nothing ran that has no row.
async fn actions(life: &mut Life<'_>, gates: &HashMap<String, Settled>) -> Result<(), String> {
    let sql = "SELECT actions.id, actions.status, actions.call, turns.finished_at, actions.turn_id, actions.gate_id, actions.decision
               FROM actions JOIN turns ON turns.id = actions.turn_id";
    let found = rows(life, sql).await?;
    let mut known: HashSet<(u64, String)> = HashSet::new();
    for row in &found {
        let (id, status): (String, String) = (row.get(0), row.get(1));
        let call: serde_json::Value = read(row.get(2))?;
        let number = call["arguments"]["n"].as_u64();
        known.extend(number.map(|number| (number, row.get(4))));
        let ran = number.and_then(|number| life.runs.by_call.get(&number)).map_or(0, Vec::len);
        let over = row.get::<Option<i64>, _>(3).is_some();
        let fits = match status.as_str() {
            // `unknown` says nothing: a process may die between the mark and the call.
            "executed" | "failed" => ran > 0 || number.is_none(),
            "pending" => ran == 0,
            "running" => !over,
            _ => true,
        };
        life.meet(&format!("action {status}"));
        if !fits {
            return Err(format!("action {id} is {status}, ran {ran} times, its turn is over: {over}"));
        }
        let gate: Option<String> = row.get(5);
        let decision: Option<Decision> = row.get::<Option<String>, _>(6).as_deref().map(read).transpose()?;
        let consent = decision.filter(|decision| decision.kind == DecisionKind::Approve);
        // A call whose outcome was lost keeps its first consent until it is decided about again.
        let (Some(gate), Some(decision), false) = (gate, consent, status == "unknown") else {
            continue;
        };
        let settled = gates.get(&gate).ok_or_else(|| format!("action {id} has no gate"))?;
        let own: Vec<String> = found
            .iter()
            .filter(|other| other.get::<Option<String>, _>(5).as_ref() == Some(&gate))
            .map(|other| other.get(0))
            .collect();
        evidence::consent(life, &decision, &settled.requester, std::slice::from_ref(&gate), &own)?;
    }
    let mut ran = life
        .runs
        .by_call
        .iter()
        .flat_map(|(number, runs)| runs.iter().map(|run| (*number, run)));
    match ran.find(|(number, run)| !known.contains(&(*number, run.turn.to_string()))) {
        Some((number, run)) => Err(format!("call {number} ran for {}, whose actions do not know it", run.turn)),
        None => Ok(()),
    }
}
