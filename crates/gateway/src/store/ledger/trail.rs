//! Writing the approval trail, and walking along it.

use std::collections::HashMap;

use countersign_agent::domain::{ActionId, GateId, TurnId};

use super::Result;
use super::arg::args;
use super::audit::{AuditCheck, AuditEntry, AuditHead, AuditLink};
use super::seal::Seal;
use super::sql::{Row, encode};
use super::transaction::{Read, Tx};
use crate::store::keys;

/// Rows read at a time.
const PAGE: i64 = 1000;

impl Read {
    /// The newest entry of the trail, as the head's row names it.
    pub async fn audit_head(&mut self) -> Result<AuditHead> {
        let head = self.maybe("SELECT seq, hash FROM audit_head WHERE id = 1", args![]).await?;
        let (seq, hash) = match head {
            Some(head) => (head.int("seq")?, head.get::<Vec<u8>>("hash")?),
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
            let rows = self.all("SELECT seq, at, kind, turn_id, gate_id, action_id, principal, details, prev_hash, hash FROM audit WHERE seq > $1 ORDER BY seq LIMIT $2", args![below, PAGE]).await?;
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

    /// Writes what was added to the trail. Last of all: every other writer of the trail, of any chat, waits from here to the commit.
    pub(super) async fn append_trail(&mut self) -> Result<()> {
        let mut entries = std::mem::take(&mut self.trail);
        if entries.is_empty() {
            return Ok(());
        }
        self.seal(&mut entries).await?;
        let count = i64::try_from(entries.len()).unwrap_or(i64::MAX);
        // The head's row is also the lock: two writers append one after the other.
        let head = self
            .one(
                "INSERT INTO audit_head (id, seq, hash) VALUES (1, $1, $2)
                 ON CONFLICT (id) DO UPDATE SET seq = audit_head.seq + excluded.seq RETURNING seq, hash",
                args![count, &[][..]],
            )
            .await?;
        let (last, mut hash) = (head.int("seq")?, head.get::<Vec<u8>>("hash")?);
        for (seq, entry) in (last - count + 1..).zip(&entries) {
            hash = self.append(seq, hash, entry).await?;
        }
        self.run("UPDATE audit_head SET hash = $1 WHERE id = 1", args![hash]).await?;
        Ok(())
    }

    /// Writes one row of the trail and gives its hash.
    async fn append(&mut self, seq: i64, previous: Vec<u8>, entry: &AuditEntry) -> Result<Vec<u8>> {
        let principal = entry.principal.as_deref().map(keys::without_nul);
        let details = encode(&entry.details)?;
        let link = AuditLink {
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
        self.run(
            "INSERT INTO audit (seq, at, kind, turn_id, gate_id, action_id, principal, details, prev_hash, hash)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
            args![
                link.seq,
                link.at,
                link.kind,
                link.turn,
                link.gate,
                link.action,
                link.principal,
                link.details,
                previous,
                hash.as_slice()
            ],
        )
        .await?;
        Ok(hash)
    }
}

/// The row's hash, if it is row `seq` and stands on `previous`.
fn follows(row: &Row, seq: i64, previous: &[u8]) -> Result<Option<Vec<u8>>> {
    let (kind, details) = (row.text("kind")?, row.text("details")?);
    let (turn, gate) = (row.get::<Option<String>>("turn_id")?, row.get::<Option<String>>("gate_id")?);
    let (action, principal) = (row.get::<Option<String>>("action_id")?, row.get::<Option<String>>("principal")?);
    let link = AuditLink {
        seq: row.get("seq")?,
        at: row.get("at")?,
        kind: &kind,
        turn: turn.as_deref(),
        gate: gate.as_deref(),
        action: action.as_deref(),
        principal: principal.as_deref(),
        details: &details,
    };
    let hash = row.get::<Vec<u8>>("hash")?;
    let sound = link.seq == seq && row.get::<Vec<u8>>("prev_hash")? == previous && link.hash(previous) == hash;
    Ok(sound.then_some(hash))
}
