//! The reducer's state as the text that the database holds.

use countersign_agent::reducer::{StateError, TurnState, read_state};

use super::WorkError;
use crate::store::{StoreError, TurnRow};

/// Reads a state that this or an older version wrote.
pub(super) fn decode(text: &str) -> Result<TurnState, StateError> {
    read_state(serde_json::from_str(text)?)
}

pub(super) fn encode(state: &TurnState) -> Result<String, StoreError> {
    serde_json::to_string(state).map_err(|error| StoreError::Corrupt(error.to_string()))
}

pub(super) fn read(row: &TurnRow) -> Result<TurnState, WorkError> {
    decode(&row.state).map_err(|error| WorkError::Unreadable {
        turn_id: row.id.to_string(),
        reason: error.to_string(),
    })
}
