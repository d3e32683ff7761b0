//! Taking an approval back: only one that a reaction gave, and only while the gate waits.

use super::{Actor, GateStanding, Refusal, is_open};
use crate::domain::{Via, Vote};

/// The approvals at `gate` that end when `actor` takes their reaction away: of the gate, or of its calls. Words and presses of theirs stay.
pub fn withdrawn(gate: &GateStanding<'_>, actor: &Actor) -> Result<Vec<Vote>, Refusal> {
    is_open(gate, actor)?;
    let by_reaction = |vote: &&Vote| vote.via == Via::Reaction && actor.user.as_deref() == Some(vote.by.as_str());
    Ok(gate.votes.iter().filter(by_reaction).cloned().collect())
}
