//! What ties the rows of a gate to the approval trail: each entry about a gate that a transaction opened, voted on or decided holds
//! digests of what is stored of that gate at the commit. A row that is changed afterwards differs from the newest of them.

use std::collections::HashMap;

use countersign_agent::domain::{GateId, TurnId};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::Result;
use super::arg::args;
use super::audit::{AuditEntry, SealPart};
use super::sql::Row;
use super::transaction::{Read, Tx};

/// Gates looked at at a time.
const PAGE: i64 = 500;
/// The member of an entry's details.
const MEMBER: &str = "sealed";

/// Digests of what is stored of a gate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Seal {
    /// Its kind, digest, plan version, quorum and card.
    card: String,
    /// Its votes.
    votes: String,
    /// Its decision; none while it is open.
    decision: Option<String>,
}

/// What the newest entry about a gate says of it.
#[derive(Debug)]
pub(super) struct NewestEntry {
    turn: Option<TurnId>,
    /// `None` in an entry of a version that did not seal.
    seal: Option<Seal>,
}

impl Seal {
    /// Keeps what this entry says of its gate, in place of what an earlier one said.
    pub(super) fn remember(row: &Row, known: &mut HashMap<String, NewestEntry>) -> Result<()> {
        let Some(gate) = row.get::<Option<String>>("gate_id")? else {
            return Ok(());
        };
        let details: Value = row.json("details")?;
        let seal = details.get(MEMBER).and_then(|seal| Self::deserialize(seal).ok());
        let turn = row.get::<Option<TurnId>>("turn_id")?;
        let entry = known.entry(gate).or_insert(NewestEntry { turn, seal: None });
        entry.seal = seal.or(entry.seal.take());
        Ok(())
    }

    fn differs(&self, now: &Self) -> Option<SealPart> {
        [
            (SealPart::Decision, self.decision != now.decision),
            (SealPart::Votes, self.votes != now.votes),
            (SealPart::Card, self.card != now.card),
        ]
        .into_iter()
        .find_map(|(part, differs)| differs.then_some(part))
    }
}

impl Read {
    /// The first gate that is not as the trail says (`known`), and in what.
    pub(super) async fn differing_gate(&mut self, mut known: HashMap<String, NewestEntry>) -> Result<Option<(GateId, SealPart)>> {
        let mut after = String::new();
        loop {
            let rows = self
                .all("SELECT id FROM gates WHERE id > $1 ORDER BY id LIMIT $2", args![&after, PAGE])
                .await?;
            for row in &rows {
                after = row.text("id")?;
                let part = match (known.remove(&after), self.sealed_now(&after).await?) {
                    (None, _) => Some(SealPart::Entry),
                    (Some(NewestEntry { seal: Some(seal), .. }), Some(now)) => seal.differs(&now),
                    (Some(_), _) => None,
                };
                if let Some(part) = part {
                    return Ok(Some((GateId::new(after), part)));
                }
            }
            if rows.is_empty() {
                break;
            }
        }
        // Retention removes a gate together with its turn, never alone.
        for (gate, entry) in known {
            if let Some(turn) = &entry.turn
                && self.turn(turn).await?.is_some()
            {
                return Ok(Some((GateId::new(gate), SealPart::Gate)));
            }
        }
        Ok(None)
    }

    /// The digests of what is stored of a gate now. `None` means there is no such gate.
    async fn sealed_now(&mut self, gate: &str) -> Result<Option<Seal>> {
        let found = self
            .maybe(
                "SELECT gates.kind, gates.digest, plan_version, quorum, card, decisions.body AS decision
                 FROM gates LEFT JOIN decisions ON decisions.gate_id = gates.id WHERE gates.id = $1",
                args![gate],
            )
            .await?;
        let Some(row) = found else { return Ok(None) };
        let votes = self.all("SELECT body FROM votes WHERE gate_id = $1", args![gate]).await?;
        let mut votes = votes.iter().map(|row| row.text("body")).collect::<Result<Vec<_>>>()?;
        // By their text: databases sort keys and times of equal votes each in its own way.
        votes.sort();
        let numbers = [row.int("plan_version")?.to_string(), row.int("quorum")?.to_string()];
        let [version, quorum] = &numbers;
        Ok(Some(Seal {
            card: digest([&row.text("kind")?, &row.text("digest")?, version, quorum, &row.text("card")?]),
            votes: digest(&votes),
            decision: row.get::<Option<String>>("decision")?.map(|body| digest([&body])),
        }))
    }
}

impl Tx {
    /// The gate's rows have changed: its next entry of the trail seals them.
    pub(super) fn mark_unsealed(&mut self, gate: &GateId) {
        self.unsealed.insert(gate.clone());
    }

    /// Seals the gates that this transaction has changed, each in its last entry.
    pub(super) async fn seal(&mut self, entries: &mut [AuditEntry]) -> Result<()> {
        for gate in std::mem::take(&mut self.unsealed) {
            if let Some(entry) = entries.iter_mut().rfind(|entry| entry.gate_id.as_ref() == Some(&gate))
                && let Some(seal) = self.sealed_now(gate.as_str()).await?
            {
                entry.details[MEMBER] = json!(seal);
            }
        }
        Ok(())
    }
}

/// SHA-256 in hex over every part with its length.
fn digest<'a>(parts: impl IntoIterator<Item = &'a String>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    hex::encode(hash.finalize())
}
