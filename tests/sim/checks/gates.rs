//! Gates and their decisions, when a life has come to rest.

use std::collections::{HashMap, HashSet};

use countersign_agent::domain::{Decision, DecisionKind, Millis, TurnStatus, Via, Vote};
use countersign_agent::reducer::Next;
use sqlx::Row;

use super::evidence;
use super::rest::{Found, read, rows, rows_of};
use crate::life::Life;

/// A gate as it is found at the end.
pub(super) struct Settled {
    pub(super) turn: String,
    pub(super) kind: String,
    /// Whose task it is.
    pub(super) requester: String,
    pub(super) decision: Option<Decision>,
    /// How long it was open, milliseconds; so far.
    pub(super) open: i64,
}

/// Every gate, with what came of it: decided once, by whom it may be, in time; or shown to those who are waited for.
pub(super) async fn gates(life: &mut Life<'_>, turns: &[Found]) -> Result<HashMap<String, Settled>, String> {
    let sql = "SELECT gates.id, gates.turn_id, gates.kind, gates.quorum, decisions.body, gates.status, gates.expires_at, gates.opened_at
               FROM gates LEFT JOIN decisions ON decisions.gate_id = gates.id";
    let mut gates = HashMap::new();
    let now = life.lab.clock.now();
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
        let (expires_at, opened_at) = (Millis(row.get(6)), Millis(row.get(7)));
        match &decision {
            Some(decision) => {
                life.meet(&format!("{kind} {} by {}", decision.kind.as_str(), decision.via.as_str()));
                decided(life, &id, &kind, quorum, decision, &requester).await?;
                in_time(&id, decision, expires_at)?;
            }
            None if expires_at <= now => return Err(format!("gate {id} is open past its time")),
            None => is_shown(life, &id).await?,
        }
        let until = decision.as_ref().map_or(now, |decision| decision.at);
        gates.insert(
            id,
            Settled {
                turn,
                kind,
                requester,
                open: until.0 - opened_at.0,
                decision,
            },
        );
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

/// Nobody decides after the time, and it is up for nobody before.
fn in_time(id: &str, decision: &Decision, expires_at: Millis) -> Result<(), String> {
    let lapsed = decision.at >= expires_at;
    let fits = match (decision.kind, decision.via) {
        (DecisionKind::Expire, _) => lapsed,
        // A task may be stopped at any time.
        (DecisionKind::Cancel | DecisionKind::Supersede, _) => true,
        (_, Via::Text | Via::Button | Via::Reaction) => !lapsed,
        (_, Via::Api | Via::System | Via::Grant | Via::Rule) => true,
    };
    if fits {
        Ok(())
    } else {
        Err(format!("gate {id}, which lapses at {expires_at:?}, took {decision:?}"))
    }
}

/// Whoever is waited for can see it: the card of an open gate is in the chat.
async fn is_shown(life: &mut Life<'_>, id: &str) -> Result<(), String> {
    let sql = "SELECT state FROM outbox WHERE gate_id = $1 AND op = 'post'";
    let sent: Vec<String> = rows_of(life, sql, id).await?.iter().map(|row| row.get(0)).collect();
    let seen = life.chat.cards().iter().any(|card| card.gate.as_str() == id);
    if sent == ["sent"] && seen {
        Ok(())
    } else {
        Err(format!("gate {id} is open, its card is {sent:?}, in the chat: {seen}"))
    }
}

/// What people are said to have decided, they have.
async fn decided(life: &mut Life<'_>, id: &str, kind: &str, quorum: i64, decision: &Decision, requester: &str) -> Result<(), String> {
    let by_person = matches!(decision.via, Via::Text | Via::Button | Via::Reaction);
    if decision.kind == DecisionKind::Approve && kind != "question" {
        if !by_person {
            return Err(format!("gate {id} was approved by {}", decision.via.as_str()));
        }
        let gates = evidence::same(life, id).await?;
        // The last row settles an approval card as a whole, whatever that row's own verdict is.
        if kind != "tool_approval" {
            evidence::consent(life, decision, requester, &gates, &[])?;
        }
        if kind == "plan_review" {
            let votes = rows_of(life, "SELECT body FROM votes WHERE gate_id = $1", id).await?;
            let votes: Vec<Vote> = votes.iter().map(|row| read(row.get(0))).collect::<Result<_, _>>()?;
            for vote in &votes {
                let decision = Decision {
                    in_place_of: vote.in_place_of.clone(),
                    kind: DecisionKind::Approve,
                    by: Some(vote.by.clone()),
                    via: vote.via,
                    through_api: vote.principal.is_some(),
                    text: None,
                    at: vote.at,
                    event_id: vote.event_id.clone(),
                    kept: Vec::new(),
                    approvers: Vec::new(),
                    standing: None,
                };
                evidence::consent(life, &decision, requester, &gates, &[])?;
            }
            let people: HashSet<&str> = votes.iter().map(|vote| vote.by.as_str()).collect();
            if i64::try_from(people.len()).unwrap_or(0) < quorum {
                return Err(format!("gate {id} was approved by {people:?}, {quorum} are needed"));
            }
        }
    }
    Ok(())
}

/// A turn is over, or waits at its one open gate.
pub(super) fn ends_or_waits(turn: &Found, gates: &HashMap<String, Settled>) -> Result<(), String> {
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
