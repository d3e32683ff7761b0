//! Signals: what people do to a turn from outside its lease; the lease holder reads them before every effect.

use countersign_agent::domain::SignalKind;
use countersign_agent::domain::TurnId;
use serde::{Deserialize, Serialize};

use super::Result;
use super::arg::args;
use super::lanes::Lease;
use super::sql::{Row, encode};
use super::transaction::{Read, Tx};
use super::turns::TurnRow;

/// Something a person did to a turn from outside its lane's lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signal {
    /// Row id.
    pub id: i64,
    /// What.
    pub kind: SignalKind,
    /// Steering text.
    pub text: Option<String>,
    /// The person who did it. `None` means the gateway itself.
    pub by: Option<String>,
}

/// The column `body`.
#[derive(Serialize, Deserialize)]
struct Body {
    text: Option<String>,
    by: Option<String>,
}

impl Read {
    /// Unread signals, oldest first.
    pub async fn signals(&mut self, turn: &TurnId) -> Result<Vec<Signal>> {
        let rows = self
            .all(
                "SELECT id, kind, body FROM signals WHERE turn_id = $1 AND consumed_at IS NULL ORDER BY id",
                args![turn.as_str()],
            )
            .await?;
        rows.iter().map(read).collect()
    }

    /// Is the turn about to end, whatever is said to it now? It was told to stop, or its last gate was refused or has lapsed, and
    /// it has not read that yet.
    pub async fn is_ending(&mut self, turn: &TurnId) -> Result<bool> {
        let row = self.one("SELECT (SELECT COUNT(*) FROM signals WHERE turn_id = $1 AND consumed_at IS NULL AND kind IN ('cancel', 'supersede')) AS stops,
               (SELECT CASE WHEN gates.kind <> 'tool_approval' AND decisions.kind IN ('cancel', 'expire', 'supersede') THEN 1 ELSE 0 END
                FROM gates LEFT JOIN decisions ON decisions.gate_id = gates.id
                WHERE gates.turn_id = $1 ORDER BY gates.opened_at DESC, gates.id DESC LIMIT 1) AS refused", args![turn.as_str()]).await?;
        Ok(row.int("stops")? > 0 || row.get::<Option<i64>>("refused")?.is_some_and(|refused| refused > 0))
    }

    /// What is unread, and whose it is, of all turns.
    pub async fn unread_signals(&mut self) -> Result<Vec<(TurnId, SignalKind)>> {
        let rows = self
            .all("SELECT turn_id, kind FROM signals WHERE consumed_at IS NULL", args![])
            .await?;
        let whose = |row: &Row| Ok((row.get::<TurnId>("turn_id")?, row.named("kind")?));
        rows.iter().map(whose).collect()
    }
}

impl Tx {
    /// Leaves a signal for a turn and wakes its lane.
    pub async fn signal(&mut self, turn: &TurnRow, kind: SignalKind, text: Option<&str>, by: Option<&str>) -> Result<()> {
        self.run(
            "INSERT INTO signals (id, turn_id, kind, body) VALUES ($1, $2, $3, $4)",
            args![
                self.next_id(),
                turn.id.as_str(),
                name(kind),
                encode(&Body {
                    text: text.map(str::to_owned),
                    by: by.map(str::to_owned),
                })?
            ],
        )
        .await?;
        self.wake_lane(&turn.lane_id).await
    }

    /// Marks the signals of a finished turn as read.
    pub(super) async fn drop_signals(&mut self, turn: &TurnId) -> Result<()> {
        self.run(
            "UPDATE signals SET consumed_at = $1 WHERE turn_id = $2 AND consumed_at IS NULL",
            args![self.now(), turn.as_str()],
        )
        .await?;
        Ok(())
    }

    /// Marks signals as read, under the fence.
    ///
    /// # Errors
    /// `Stale` when the lease is lost.
    pub async fn consume(&mut self, lease: &Lease, ids: &[i64]) -> Result<()> {
        self.prove_lease(lease).await?;
        for id in ids {
            self.run(
                "UPDATE signals SET consumed_at = $1 WHERE id = $2 AND consumed_at IS NULL",
                args![self.now(), *id],
            )
            .await?;
        }
        Ok(())
    }
}

fn read(row: &Row) -> Result<Signal> {
    let body: Body = row.json("body")?;
    Ok(Signal {
        id: row.get("id")?,
        kind: row.named("kind")?,
        text: body.text,
        by: body.by,
    })
}

fn name(kind: SignalKind) -> &'static str {
    match kind {
        SignalKind::Cancel => "cancel",
        SignalKind::Supersede => "supersede",
        SignalKind::Steer => "steer",
        SignalKind::Edited => "edited",
    }
}
