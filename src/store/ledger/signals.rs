//! Signals: what people do to a turn from outside its lease; the lease holder reads them before every effect.

use serde::{Deserialize, Serialize};
use sqlx::any::AnyRow;

use super::sql::{Columns, encode, named};
use super::{Result, Session};
use crate::domain::TurnId;
use crate::store::{Lease, Signal, SignalKind, TurnRow};

#[derive(Serialize, Deserialize)]
struct Said {
    text: Option<String>,
    by: Option<String>,
}

impl Session {
    /// Leaves a signal for a turn and wakes its lane.
    pub async fn signal(&mut self, turn: &TurnRow, kind: SignalKind, text: Option<&str>, by: Option<&str>) -> Result<()> {
        sqlx::query("INSERT INTO signals (id, turn_id, kind, body) VALUES ($1, $2, $3, $4)")
            .bind(self.next_id())
            .bind(turn.id.as_str())
            .bind(name(kind))
            .bind(encode(&Said {
                text: text.map(str::to_owned),
                by: by.map(str::to_owned),
            })?)
            .execute(&mut *self.tx)
            .await?;
        self.wake_lane(&turn.lane_id).await
    }

    /// Unread signals, oldest first.
    pub async fn signals(&mut self, turn: &TurnId) -> Result<Vec<Signal>> {
        let rows = sqlx::query("SELECT id, kind, body FROM signals WHERE turn_id = $1 AND consumed_at IS NULL ORDER BY id")
            .bind(turn.as_str())
            .fetch_all(&mut *self.tx)
            .await?;
        rows.iter().map(read).collect()
    }

    /// What is unread, and whose it is, of all turns.
    pub async fn unread_signals(&mut self) -> Result<Vec<(TurnId, SignalKind)>> {
        let rows = sqlx::query("SELECT turn_id, kind FROM signals WHERE consumed_at IS NULL")
            .fetch_all(&mut *self.tx)
            .await?;
        let whose = |row: &AnyRow| Ok((TurnId::new(row.text("turn_id")?), named("kind", row.text("kind")?)?));
        rows.iter().map(whose).collect()
    }

    /// Marks signals as read, under the fence.
    ///
    /// # Errors
    /// `Stale` when the lease is lost.
    pub async fn consume(&mut self, lease: &Lease, ids: &[i64]) -> Result<()> {
        self.hold(lease).await?;
        for id in ids {
            sqlx::query("UPDATE signals SET consumed_at = $1 WHERE id = $2 AND consumed_at IS NULL")
                .bind(self.now().0)
                .bind(*id)
                .execute(&mut *self.tx)
                .await?;
        }
        Ok(())
    }
}

fn read(row: &AnyRow) -> Result<Signal> {
    let said: Said = row.json("body")?;
    Ok(Signal {
        id: row.int("id")?,
        kind: named("kind", row.text("kind")?)?,
        text: said.text,
        by: said.by,
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
