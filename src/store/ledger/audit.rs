//! The approval trail: rows chained by hashes, so that a changed, removed or reordered one is found.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use countersign_agent::domain::{ActionId, GateId, TurnId};
use sha2::{Digest, Sha256};
use sqlx::any::AnyRow;

use super::seal::{Seal, SealPart};
use super::sql::{Columns, encode};
use super::{Read, Result, Tx};
use crate::store::{AuditEntry, keys};

/// Rows read at a time.
const PAGE: i64 = 1000;

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
pub struct NoAuditHead;

impl FromStr for AuditHead {
    type Err = NoAuditHead;

    fn from_str(text: &str) -> std::result::Result<Self, NoAuditHead> {
        let (seq, hash) = text.split_once(':').ok_or(NoAuditHead)?;
        let seq: i64 = seq.parse().map_err(|_| NoAuditHead)?;
        let hash = hex::decode(hash).map_err(|_| NoAuditHead)?;
        if seq < 1 || hash.len() != 32 {
            return Err(NoAuditHead);
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
struct Link<'a> {
    seq: i64,
    at: i64,
    kind: &'a str,
    turn: Option<&'a str>,
    gate: Option<&'a str>,
    action: Option<&'a str>,
    principal: Option<&'a str>,
    details: &'a str,
}

impl Link<'_> {
    /// SHA-256 over the hash before and every field with its length; an absent field is not an empty one.
    fn hash(&self, previous: &[u8]) -> Vec<u8> {
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

impl Read {
    /// The newest entry of the trail, as the head's row names it.
    pub async fn audit_head(&mut self) -> Result<AuditHead> {
        let head = sqlx::query("SELECT seq, hash FROM audit_head WHERE id = 1")
            .fetch_optional(&mut *self.conn)
            .await?;
        let (seq, hash) = match head {
            Some(head) => (head.int("seq")?, head.bytes("hash")?),
            None => (0, Vec::new()),
        };
        Ok(AuditHead { seq, hash })
    }

    /// Walks the approval trail from its first row to its head, then compares what is stored of each gate with it. `expected`: an entry
    /// that must be in it.
    pub async fn verify_audit(&mut self, expected: Option<&AuditHead>) -> Result<AuditCheck> {
        let (mut seq, mut previous, mut below) = (0, Vec::new(), i64::MIN);
        let mut sealed = HashMap::new();
        let mut met = expected.is_none();
        loop {
            let rows = sqlx::query("SELECT seq, at, kind, turn_id, gate_id, action_id, principal, details, prev_hash, hash FROM audit WHERE seq > $1 ORDER BY seq LIMIT $2")
                .bind(below)
                .bind(PAGE)
                .fetch_all(&mut *self.conn)
                .await?;
            for row in &rows {
                let Some(hash) = follows(row, seq + 1, &previous)? else {
                    return Ok(AuditCheck::Broken { seq: seq + 1 });
                };
                seq += 1;
                met |= expected.is_some_and(|head| head.seq == seq && head.hash == hash);
                previous = hash;
                Seal::remember(row, &mut sealed)?;
            }
            if rows.is_empty() {
                break;
            }
            below = seq;
        }
        let head = AuditHead { seq, hash: previous };
        if self.audit_head().await? != head {
            return Ok(AuditCheck::Broken { seq: seq + 1 });
        }
        if let (false, Some(expected)) = (met, expected) {
            return Ok(AuditCheck::Unexpected { seq: expected.seq });
        }
        let differs = self.differing_gate(sealed).await?;
        Ok(differs.map_or(AuditCheck::Sound(head), |(gate, part)| AuditCheck::Differs { gate, part }))
    }
}

impl Tx {
    /// Adds to the approval trail, with the commit.
    pub fn audit(&mut self, entry: AuditEntry) {
        self.trail.push(entry);
    }

    /// Writes what was added to the trail; `false` when nothing was. Last of all: every other writer of the trail, of
    /// any chat, waits from here to the commit.
    pub(super) async fn append_trail(&mut self) -> Result<bool> {
        let mut entries = std::mem::take(&mut self.trail);
        if entries.is_empty() {
            return Ok(false);
        }
        self.seal(&mut entries).await?;
        let count = i64::try_from(entries.len()).unwrap_or(i64::MAX);
        // The head's row is also the lock: two writers append one after the other.
        let head = sqlx::query(
            "INSERT INTO audit_head (id, seq, hash) VALUES (1, $1, $2)
             ON CONFLICT (id) DO UPDATE SET seq = audit_head.seq + excluded.seq RETURNING seq, hash",
        )
        .bind(count)
        .bind(&[][..])
        .fetch_one(&mut *self.conn)
        .await?;
        let (last, mut hash) = (head.int("seq")?, head.bytes("hash")?);
        for (seq, entry) in (last - count + 1..).zip(&entries) {
            hash = self.append(seq, hash, entry).await?;
        }
        sqlx::query("UPDATE audit_head SET hash = $1 WHERE id = 1")
            .bind(hash)
            .execute(&mut *self.conn)
            .await?;
        Ok(true)
    }

    /// Writes one row of the trail and gives its hash.
    async fn append(&mut self, seq: i64, previous: Vec<u8>, entry: &AuditEntry) -> Result<Vec<u8>> {
        let principal = entry.principal.as_deref().map(keys::shown);
        let details = encode(&entry.details)?;
        let link = Link {
            seq,
            at: self.now().0,
            kind: entry.kind,
            turn: entry.turn_id.as_ref().map(TurnId::as_str),
            gate: entry.gate_id.as_ref().map(GateId::as_str),
            action: entry.action_id.as_ref().map(ActionId::as_str),
            principal: principal.as_deref(),
            details: &details,
        };
        let hash = link.hash(&previous);
        sqlx::query(
            "INSERT INTO audit (seq, at, kind, turn_id, gate_id, action_id, principal, details, prev_hash, hash)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
        )
        .bind(link.seq)
        .bind(link.at)
        .bind(link.kind)
        .bind(link.turn)
        .bind(link.gate)
        .bind(link.action)
        .bind(link.principal)
        .bind(link.details)
        .bind(previous)
        .bind(hash.as_slice())
        .execute(&mut *self.conn)
        .await?;
        Ok(hash)
    }
}

/// The row's hash, if it is row `seq` and stands on `previous`.
fn follows(row: &AnyRow, seq: i64, previous: &[u8]) -> Result<Option<Vec<u8>>> {
    let (kind, details) = (row.text("kind")?, row.text("details")?);
    let (turn, gate) = (row.maybe_text("turn_id")?, row.maybe_text("gate_id")?);
    let (action, principal) = (row.maybe_text("action_id")?, row.maybe_text("principal")?);
    let link = Link {
        seq: row.int("seq")?,
        at: row.int("at")?,
        kind: &kind,
        turn: turn.as_deref(),
        gate: gate.as_deref(),
        action: action.as_deref(),
        principal: principal.as_deref(),
        details: &details,
    };
    let hash = row.bytes("hash")?;
    let sound = link.seq == seq && row.bytes("prev_hash")? == previous && link.hash(previous) == hash;
    Ok(sound.then_some(hash))
}
