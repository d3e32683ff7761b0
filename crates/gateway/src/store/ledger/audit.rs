//! What the approval trail consists of: entries chained by hashes, so that a changed, removed or reordered one is found.

use std::fmt;
use std::str::FromStr;

use countersign_agent::domain::{ActionId, GateId, TurnId};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// One line of the approval trail.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditEntry {
    /// What happened: `gate_opened`, `vote`, `decision`, `action_decision`, `action_executed`, `refused`, …
    pub kind: &'static str,
    /// Turn.
    pub turn_id: Option<TurnId>,
    /// Gate.
    pub gate_id: Option<GateId>,
    /// Action.
    pub action_id: Option<ActionId>,
    /// The person or part that did it.
    pub principal: Option<String>,
    /// Details; no secrets.
    pub details: Value,
}

/// The newest entry of a trail: kept elsewhere, it shows later that no earlier entry was rewritten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditHead {
    /// Number of the entry; 0: the trail is empty.
    pub seq: i64,
    /// SHA-256 of the entry over the hash before it; empty for an empty trail.
    pub hash: Vec<u8>,
}

impl fmt::Display for AuditHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.seq, hex::encode(&self.hash))
    }
}

/// Not `SEQ:HASH`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be SEQ:HASH, as `audit verify` prints it: a number from 1 on and 64 hex digits")]
pub struct InvalidAuditHead;

impl FromStr for AuditHead {
    type Err = InvalidAuditHead;

    fn from_str(text: &str) -> Result<Self, InvalidAuditHead> {
        let (seq, hash) = text.split_once(':').ok_or(InvalidAuditHead)?;
        let seq: i64 = seq.parse().map_err(|_| InvalidAuditHead)?;
        let hash = hex::decode(hash).map_err(|_| InvalidAuditHead)?;
        if seq < 1 || hash.len() != 32 {
            return Err(InvalidAuditHead);
        }
        Ok(Self { seq, hash })
    }
}

/// What a walk along the approval trail found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuditCheck {
    /// Every entry is as it was written, none is missing, and the reviews that are stored agree with it.
    Sound(AuditHead),
    /// The trail was tampered with.
    Broken {
        /// The first entry that is not as it was written, or is not there.
        seq: i64,
    },
    /// The trail is whole in itself, but entry `seq` is not the one that was expected.
    Unexpected {
        /// Number of the entry.
        seq: i64,
    },
    /// The trail is whole, but what is stored of a gate is not what the trail says.
    Differs {
        /// The gate.
        gate: GateId,
        /// What differs.
        part: SealPart,
    },
}

/// One row as it is hashed.
pub(super) struct AuditLink<'a> {
    pub(super) seq: i64,
    pub(super) at: i64,
    pub(super) kind: &'a str,
    pub(super) turn: Option<&'a str>,
    pub(super) gate: Option<&'a str>,
    pub(super) action: Option<&'a str>,
    pub(super) principal: Option<&'a str>,
    pub(super) details: &'a str,
}

impl AuditLink<'_> {
    /// SHA-256 over the hash before and every field with its length; an absent field is not an empty one.
    pub(super) fn hash(&self, previous: &[u8]) -> Vec<u8> {
        let mut hash = Sha256::new();
        let mut part = |bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_be_bytes());
            hash.update(bytes);
        };
        part(previous);
        part(&self.seq.to_be_bytes());
        part(&self.at.to_be_bytes());
        part(self.kind.as_bytes());
        for maybe in [self.turn, self.gate, self.action, self.principal] {
            part(&[u8::from(maybe.is_some())]);
            part(maybe.unwrap_or_default().as_bytes());
        }
        part(self.details.as_bytes());
        hash.finalize().to_vec()
    }
}

/// What of a gate is not as the trail says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SealPart {
    /// It is missing although its turn is stored.
    Gate,
    /// The trail does not know it.
    Entry,
    /// The card, or what it asks for: kind, digest, quorum.
    Card,
    /// The votes.
    Votes,
    /// The decision.
    Decision,
}

impl fmt::Display for SealPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gate => "it is missing, although its task is stored",
            Self::Entry => "no entry of the trail is about it",
            Self::Card => "its card or quorum is not the one that the trail recorded",
            Self::Votes => "its votes are not those that the trail recorded",
            Self::Decision => "its decision is not the one that the trail recorded",
        })
    }
}
