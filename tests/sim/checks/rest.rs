//! What must hold when a life has come to rest.

use std::collections::{HashMap, HashSet};

use countersign::agent::{Next, TurnState};
use countersign::domain::{Budget, Decision, DecisionKind, Event, Message, Outbound, Role, TurnStatus, Via, Vote};
use countersign::store::OutboxOp;
use sqlx::any::AnyRow;
use sqlx::{AssertSqlSafe, Row};

use super::evidence;
use crate::life::Life;
use crate::stage::unpaced;

/// Plans of its own accord, rounds of changes, top-ups and obeyed signals that a turn has at most.
const REPLANS: u64 = 3;
const ROUNDS: u64 = 5;
const TOP_UPS: u64 = 3;
const CONTINUES: u64 = 10;

/// A turn as it is found at the end.
struct Found {
    id: String,
    lane: String,
    inbox_id: i64,
    status: String,
    user: String,
    state: TurnState,
}

pub async fn at_rest(life: &mut Life<'_>) -> Result<(), String> {
    everything_was_handled(life).await?;
    let turns = turns(life).await?;
    in_order(&turns)?;
    let gates = gates(life, &turns).await?;
    for turn in &turns {
        ends_or_waits(turn, &gates)?;
        let reason = turn.state.reason.map_or("", countersign::domain::TurnReason::as_str);
        life.meet(&format!("turn {} {reason}", turn.status));
        within_budget(life, turn)?;
        log(life, turn).await?;
    }
    events(life, &gates).await?;
    answers(life, &turns).await?;
    actions(life).await
}

async fn rows(life: &mut Life<'_>, sql: &str) -> Result<Vec<AnyRow>, String> {
    let query = sqlx::query(AssertSqlSafe(sql.to_owned()));
    unpaced(query.fetch_all(&mut life.lab.conn))
        .await
        .map_err(|error| format!("{sql}: {error}"))
}

fn read<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, String> {
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
        "SELECT id, lane_id, inbox_id, status, state, user_id FROM turns ORDER BY rowid",
    )
    .await?;
    let found = found.iter().map(|row| {
        Ok(Found {
            id: row.get(0),
            lane: row.get(1),
            inbox_id: row.get(2),
            status: row.get(3),
            state: read(row.get(4))?,
            user: row.get(5),
        })
    });
    found.collect()
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

/// A gate as it is found at the end.
struct Settled {
    turn: String,
    decision: Option<Decision>,
}

async fn gates(life: &mut Life<'_>, turns: &[Found]) -> Result<HashMap<String, Settled>, String> {
    let sql = "SELECT gates.id, gates.turn_id, gates.kind, gates.quorum, decisions.body, gates.status FROM gates
               LEFT JOIN decisions ON decisions.gate_id = gates.id";
    let mut gates = HashMap::new();
    for row in rows(life, sql).await? {
        let (id, turn): (String, String) = (row.get(0), row.get(1));
        let (kind, quorum): (String, i64) = (row.get(2), row.get(3));
        let body: Option<String> = row.get(4);
        let decision: Option<Decision> = body.as_deref().map(read).transpose()?;
        if decision.is_none() != (row.get::<String, _>(5) == "pending") {
            return Err(format!("gate {id} is open and closed at once"));
        }
        let requester = turns.iter().find(|found| found.id == turn).map(|found| found.user.clone());
        let requester = requester.ok_or_else(|| format!("gate {id} has no turn"))?;
        if let Some(decision) = &decision {
            life.meet(&format!("{kind} {} by {}", decision.kind.as_str(), decision.via.as_str()));
            decided(life, &id, &kind, quorum, decision, &requester).await?;
        }
        gates.insert(id, Settled { turn, decision });
    }
    let twice = rows(
        life,
        "SELECT gate_id FROM audit WHERE kind = 'decision' GROUP BY gate_id HAVING COUNT(*) > 1",
    )
    .await?;
    if let Some(row) = twice.first() {
        return Err(format!("gate {} was decided twice", row.get::<String, _>(0)));
    }
    Ok(gates)
}

/// What people are said to have decided, they have.
async fn decided(life: &mut Life<'_>, id: &str, kind: &str, quorum: i64, decision: &Decision, requester: &str) -> Result<(), String> {
    let by_person = matches!(decision.via, Via::Text | Via::Button);
    if decision.kind == DecisionKind::Approve && kind != "question" {
        if !by_person {
            return Err(format!("gate {id} was approved by {}", decision.via.as_str()));
        }
        // The last row settles an approval card as a whole, whatever that row's own verdict is.
        if kind != "tool_approval" {
            evidence::consent(life, decision, requester)?;
        }
        if kind == "plan_review" {
            let votes = rows(life, &format!("SELECT body FROM votes WHERE gate_id = '{id}'")).await?;
            let votes: Vec<Vote> = votes.iter().map(|row| read(row.get(0))).collect::<Result<_, _>>()?;
            let people: HashSet<&str> = votes.iter().map(|vote| vote.by.as_str()).collect();
            if i64::try_from(people.len()).unwrap_or(0) < quorum {
                return Err(format!("gate {id} was approved by {people:?}, {quorum} are needed"));
            }
        }
    }
    Ok(())
}

fn ends_or_waits(turn: &Found, gates: &HashMap<String, Settled>) -> Result<(), String> {
    let open: Vec<&String> = gates
        .iter()
        .filter(|(_, gate)| gate.turn == turn.id && gate.decision.is_none())
        .map(|(id, _)| id)
        .collect();
    if turn.state.status.is_final() {
        return match (open.first(), &turn.state.next) {
            (None, Next::Nothing) => Ok(()),
            (gate, next) => Err(format!("{} is over; still open: {gate:?}, next: {next:?}", turn.id)),
        };
    }
    let waits = turn.state.gate.as_ref().map(|gate| gate.id.as_str());
    let at_one = open.len() == 1 && waits == open.first().map(|id| id.as_str());
    if at_one && turn.state.next == Next::Wait && turn.status == TurnStatus::Paused.as_str() {
        Ok(())
    } else {
        Err(format!(
            "{} neither ends nor waits: {} at {waits:?}, open {open:?}, next {:?}",
            turn.id, turn.status, turn.state.next
        ))
    }
}

fn within_budget(life: &Life<'_>, turn: &Found) -> Result<(), String> {
    let Budget {
        steps,
        nudges,
        replans,
        millis: _,
        tokens: _,
        rounds,
        top_ups,
        planner_only: _,
    } = turn.state.budget;
    let each = life.live.agent.max_iterations + 1;
    let kept = steps.used <= each * (1 + top_ups.used)
        && nudges.used <= nudges.limit
        && replans.used <= REPLANS
        && rounds.used <= ROUNDS
        && top_ups.used <= TOP_UPS
        && turn.state.continues <= CONTINUES;
    if kept {
        Ok(())
    } else {
        Err(format!("{} went past its limits: {:?}", turn.id, turn.state.budget))
    }
}

/// Calls and results are paired, each reply was paid for, and what a person added was read.
async fn log(life: &mut Life<'_>, turn: &Found) -> Result<(), String> {
    let found = rows(
        life,
        &format!("SELECT body FROM messages WHERE turn_id = '{}' ORDER BY seq", turn.id),
    )
    .await?;
    let log: Vec<Message> = found.iter().map(|row| read(row.get(0))).collect::<Result<_, _>>()?;
    let replies = log.iter().filter(|message| message.role == Role::Assistant).count();
    if u64::try_from(replies).unwrap_or(u64::MAX) > turn.state.budget.steps.used {
        return Err(format!(
            "{} has {replies} replies and paid for {}",
            turn.id, turn.state.budget.steps.used
        ));
    }
    let asked = log.iter().flat_map(|message| &message.calls).count();
    let answered = log.iter().filter(|message| message.role == Role::Tool).count();
    if asked != answered + turn.state.open_calls.len() {
        return Err(format!(
            "{}: {asked} calls, {answered} results, {} open",
            turn.id,
            turn.state.open_calls.len()
        ));
    }
    let steers = rows(
        life,
        &format!(
            "SELECT body, consumed_at FROM signals WHERE turn_id = '{}' AND kind = 'steer'",
            turn.id
        ),
    )
    .await?;
    for steer in steers {
        let said: serde_json::Value = read(steer.get(0))?;
        let words = said["text"].as_str().unwrap_or_default();
        let consumed: Option<i64> = steer.get(1);
        let times = log
            .iter()
            .filter(|message| message.content.starts_with("<mailbox>") && message.content.contains(words))
            .count();
        let kept = turn.state.mailbox.iter().any(|kept| kept == words);
        let cancelled = turn.state.status == TurnStatus::Cancelled;
        if times > 1 || !cancelled && (consumed.is_none() || times == 0 && !kept) {
            return Err(format!("{}: the words {words:?} came to the model {times} times", turn.id));
        }
    }
    Ok(())
}

/// The timeline tells of each decision once, and as it is stored.
async fn events(life: &mut Life<'_>, gates: &HashMap<String, Settled>) -> Result<(), String> {
    let mut told: HashSet<String> = HashSet::new();
    for row in rows(life, "SELECT body FROM events").await? {
        let Event::Decision { gate_id, kind, .. } = read(row.get(0))? else {
            continue;
        };
        let stored = gates.get(gate_id.as_str()).and_then(|gate| gate.decision.as_ref());
        if stored.map(|decision| decision.kind) != Some(kind) {
            return Err(format!(
                "gate {gate_id}: the turn went on with {}, stored is {stored:?}",
                kind.as_str()
            ));
        }
        if !told.insert(gate_id.to_string()) {
            return Err(format!("gate {gate_id}: its turn went on twice"));
        }
    }
    Ok(())
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

/// What is said to have run has, and nothing is under way when its turn is over.
async fn actions(life: &mut Life<'_>) -> Result<(), String> {
    let sql = "SELECT actions.id, actions.status, actions.call, turns.finished_at FROM actions JOIN turns ON turns.id = actions.turn_id";
    for row in rows(life, sql).await? {
        let (id, status): (String, String) = (row.get(0), row.get(1));
        let call: serde_json::Value = read(row.get(2))?;
        let ran = call["arguments"]["n"]
            .as_u64()
            .and_then(|number| life.runs.0.get(&number))
            .map_or(0, Vec::len);
        let over = row.get::<Option<i64>, _>(3).is_some();
        let fits = match status.as_str() {
            // `unknown` says nothing: a process may die between the mark and the call.
            "executed" | "failed" => ran > 0 || call["arguments"]["n"].is_null(),
            "pending" => ran == 0,
            "running" => !over,
            _ => true,
        };
        life.meet(&format!("action {status}"));
        if !fits {
            return Err(format!("action {id} is {status}, ran {ran} times, its turn is over: {over}"));
        }
    }
    let wrong = life.runs.0.values().flatten().find(|run| run.turn.as_str().is_empty());
    wrong.map_or(Ok(()), |run| Err(format!("{run:?}")))
}
