//! The reducer's state as text: written with its schema version, read back from this and older ones.

use countersign_agent::reducer::{SCHEMA_VERSION, TurnState};

use super::WorkError;
use crate::store::{StoreError, TurnRow};

/// Why a stored state does not read back.
#[derive(Debug, thiserror::Error)]
pub(super) enum StateError {
    #[error("its schema version is {0}, this program reads up to {SCHEMA_VERSION}")]
    Newer(u64),
    #[error("{0}")]
    Damaged(#[from] serde_json::Error),
}

/// Reads a state, an older version's as one of ours; a newer version's is left alone.
pub(super) fn decode(text: &str) -> Result<TurnState, StateError> {
    #[derive(serde::Deserialize)]
    struct Version {
        #[serde(default)]
        schema_version: u64,
    }
    let Version { schema_version: version } = serde_json::from_str(text)?;
    if version > u64::from(SCHEMA_VERSION) {
        return Err(StateError::Newer(version));
    }
    let state: TurnState = serde_json::from_str(text)?;
    Ok(TurnState {
        schema_version: SCHEMA_VERSION,
        ..state
    })
}

pub(super) fn encode(state: &TurnState) -> Result<String, StoreError> {
    serde_json::to_string(state).map_err(|error| StoreError::Corrupt(error.to_string()))
}

/// The state of a turn of the ledger.
pub(super) fn read(row: &TurnRow) -> Result<TurnState, WorkError> {
    decode(&row.state).map_err(|unread| WorkError::Unreadable {
        turn_id: row.id.to_string(),
        reason: unread.to_string(),
    })
}
