//! Words of people are never lost: what was taken for a task has its turn, what was handed to a turn came before its model.

use std::collections::HashSet;

use countersign_agent::domain::{Inbound, InboundBody, TurnReason, TurnStatus};
use sqlx::Row;

use super::rest::{Found, read, rows, rows_of};
use crate::life::Life;
use crate::words::BOT;

/// Everything that was said and looked at has become what it was taken for.
pub(super) async fn arrived(life: &mut Life<'_>, turns: &[Found]) -> Result<(), String> {
    let begun: HashSet<i64> = turns.iter().map(|turn| turn.inbox_id).collect();
    let handed: HashSet<String> = rows(life, "SELECT body FROM signals WHERE kind = 'steer'")
        .await?
        .iter()
        .map(|row| words_of(row.get(0)))
        .collect::<Result<_, String>>()?;
    let said = rows(
        life,
        "SELECT id, outcome, payload FROM inbox WHERE state = 'done' AND kind = 'message'",
    )
    .await?;
    for row in said {
        let (id, outcome): (i64, String) = (row.get(0), row.get(1));
        let inbound: Inbound = read(row.get(2))?;
        let InboundBody::Message(message) = &inbound.body else { continue };
        let text = message.addressed(BOT).text;
        let kept = match outcome.as_str() {
            "turn" => begun.contains(&id),
            "steer" => handed.contains(&text),
            _ => true,
        };
        if !kept {
            return Err(format!("{text:?} of {} was taken for a {outcome} and is lost", inbound.sender));
        }
        life.meet(&format!("words: {outcome}"));
    }
    Ok(())
}

/// What was said to a turn is in its log once, and came before the model of one that was completed.
pub(super) async fn heard(life: &mut Life<'_>, turn: &Found, log: &[countersign_agent::domain::Message]) -> Result<(), String> {
    let steers = rows_of(
        life,
        "SELECT body, consumed_at FROM signals WHERE turn_id = $1 AND kind = 'steer'",
        &turn.id,
    )
    .await?;
    let book = life.books.get(&turn.id);
    let prompted: Vec<_> = book.iter().flat_map(|book| book.logs.values().flatten()).collect();
    for steer in steers {
        let words = words_of(steer.get(0))?;
        let consumed: Option<i64> = steer.get(1);
        let is_it = |message: &&countersign_agent::domain::Message| {
            message.content.starts_with("<mailbox>") && message.content.lines().any(|line| line.trim() == words)
        };
        let times = log.iter().filter(is_it).count();
        let before_the_model = prompted.iter().any(is_it);
        let waits = turn.state.mailbox.contains(&words);
        let kept = match turn.state.status {
            // A turn that killed its process is ended without a look at what waits (docs/known-limits.md).
            TurnStatus::Failed if turn.state.reason == Some(TurnReason::Crashed) => true,
            // Whoever stops a task takes back what was said to it.
            TurnStatus::Cancelled => true,
            TurnStatus::Completed => consumed.is_some() && before_the_model,
            TurnStatus::Failed | TurnStatus::Queued | TurnStatus::Running | TurnStatus::Paused => {
                consumed.is_some() && (times == 1 || waits)
            }
        };
        if times > 1 || !kept {
            return Err(format!(
                "{} is {}: the words {words:?} are {times} times in its log, before the model: {before_the_model}",
                turn.id, turn.status
            ));
        }
    }
    Ok(())
}

fn words_of(body: &str) -> Result<String, String> {
    let said: serde_json::Value = read(body)?;
    Ok(said["text"].as_str().unwrap_or_default().to_owned())
}
