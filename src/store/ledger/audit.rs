//! The approval trail: rows chained by hashes, so that a changed, removed or reordered one is found.

use sha2::{Digest, Sha256};
use sqlx::any::AnyRow;

use super::sql::{Columns, encode};
use super::{Result, Session};
use crate::domain::{ActionId, GateId, TurnId};
use crate::store::{AuditEntry, StoreError, keys};

/// Rows read at a time.
const PAGE: i64 = 1000;

/// What a walk along the approval trail found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditCheck {
    /// Every row is as it was written, none is missing.
    Sound {
        /// How many there are.
        rows: u64,
    },
    /// The trail was tampered with.
    Broken {
        /// The first row that is not as it was written, or is not there.
        seq: i64,
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

impl Session {
    /// Adds to the approval trail, with the commit.
    pub fn audit(&mut self, entry: AuditEntry) {
        self.trail.push(entry);
    }

    /// Writes what was added to the trail; false: nothing was. Last of all: whoever else adds to the trail, in whatever
    /// chat, waits from here to the commit.
    pub(super) async fn append_trail(&mut self) -> Result<bool> {
        let entries = std::mem::take(&mut self.trail);
        if entries.is_empty() {
            return Ok(false);
        }
        let count = i64::try_from(entries.len()).unwrap_or(i64::MAX);
        // The head's row is also the lock: two writers append one after the other.
        let head = sqlx::query(
            "INSERT INTO audit_head (id, seq, hash) VALUES (1, $1, $2)
             ON CONFLICT (id) DO UPDATE SET seq = audit_head.seq + excluded.seq RETURNING seq, hash",
        )
        .bind(count)
        .bind(&[][..])
        .fetch_one(&mut *self.tx)
        .await?;
        let (last, mut hash) = (head.int("seq")?, head.bytes("hash")?);
        for (seq, entry) in (last - count + 1..).zip(&entries) {
            hash = self.append(seq, hash, entry).await?;
        }
        sqlx::query("UPDATE audit_head SET hash = $1 WHERE id = 1")
            .bind(hash)
            .execute(&mut *self.tx)
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
        .execute(&mut *self.tx)
        .await?;
        Ok(hash)
    }

    /// Walks the approval trail from its first row to its head.
    pub async fn verify_audit(&mut self) -> Result<AuditCheck> {
        let (mut seq, mut previous) = (0, Vec::new());
        loop {
            let rows = sqlx::query("SELECT seq, at, kind, turn_id, gate_id, action_id, principal, details, prev_hash, hash FROM audit WHERE seq > $1 ORDER BY seq LIMIT $2")
                .bind(seq)
                .bind(PAGE)
                .fetch_all(&mut *self.tx)
                .await?;
            for row in &rows {
                let Some(hash) = follows(row, seq + 1, &previous)? else {
                    return Ok(AuditCheck::Broken { seq: seq + 1 });
                };
                seq += 1;
                previous = hash;
            }
            if rows.is_empty() {
                break;
            }
        }
        let head = sqlx::query("SELECT seq, hash FROM audit_head WHERE id = 1")
            .fetch_optional(&mut *self.tx)
            .await?;
        let (last, hash) = match head {
            Some(head) => (head.int("seq")?, head.bytes("hash")?),
            None => (0, Vec::new()),
        };
        if last != seq || hash != previous {
            return Ok(AuditCheck::Broken { seq: seq + 1 });
        }
        let rows = u64::try_from(seq).map_err(|_| StoreError::Corrupt("column `seq` is negative".to_owned()))?;
        Ok(AuditCheck::Sound { rows })
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
