//! What a reader of events asks for: whose events, and behind which one.

use countersign_agent::domain::TurnId;
use serde::Deserialize;

use crate::gateway::error::ApiError;
use crate::gateway::state::Gateway;
use crate::store::{EventPlace, Read, Tail};

/// So many events may `after` name.
const NAMED: usize = 100;

/// Which events, and behind which one.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::gateway) struct SocketParams {
    turn: Option<String>,
    chat: Option<String>,
    after: Option<String>,
}

/// What a reader has still to be told.
pub(super) enum EventCursor {
    /// Of one turn, behind this `seq`.
    Turn(TurnId, i64),
    /// Of all turns, or of a chat's.
    All(Tail),
}

/// The cursor that is asked for, or what is wrong with the question.
pub(super) async fn cursor(gateway: &Gateway, params: SocketParams) -> Result<EventCursor, ApiError> {
    let SocketParams { turn, chat, after } = params;
    let mut read = gateway.ledger.read().await?;
    let Some(turn) = turn else {
        let Some(after) = after else {
            return Ok(EventCursor::All(Tail::from_now(&mut read, chat).await?));
        };
        let mut last = Vec::new();
        for id in after.split(',') {
            if last.len() == NAMED {
                return Err(ApiError::bad_request(format!("after may name {NAMED} events")));
            }
            last.push(place(&mut read, id).await?);
        }
        return Ok(EventCursor::All(Tail::after(chat, &last)));
    };
    let row = read.turn(&TurnId::new(turn)).await?;
    let row = row.filter(|row| chat.is_none_or(|chat| row.conversation.chat == chat));
    let id = row.ok_or_else(|| ApiError::not_found("there is no such turn"))?.id;
    let seq = match after.as_deref() {
        None => 0,
        Some(after) => match after.parse::<i64>() {
            Ok(seq) if seq >= 0 => seq,
            Ok(_) => return Err(ApiError::bad_request("after must be a whole number from 0, or an event's id")),
            Err(_) => {
                let place = place(&mut read, after).await?;
                if place.turn_id != id {
                    return Err(ApiError::invalid("after names an event of another turn"));
                }
                place.seq
            }
        },
    };
    Ok(EventCursor::Turn(id, seq))
}

async fn place(read: &mut Read, id: &str) -> Result<EventPlace, ApiError> {
    if !id.starts_with("ev_") || id.chars().any(char::is_control) {
        return Err(ApiError::bad_request(
            "after must be an event's id, or several with commas between; with turn a seq will do",
        ));
    }
    let place = read.event_place(id).await?;
    place.ok_or_else(|| ApiError::invalid("after names an event that is not there, or not any more: begin without it"))
}
