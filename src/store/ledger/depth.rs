//! How much waits: for the metrics, counted when somebody asks.

use countersign_agent::domain::Millis;

use super::sql::Columns;
use super::{Read, Result};

/// What waits now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Depth {
    /// Events that wait for triage.
    pub inbox: i64,
    /// When the oldest of them came.
    pub inbox_since: Option<Millis>,
    /// Tasks in line behind another one of their lane, or about to begin.
    pub lanes: i64,
    /// Messages to send.
    pub outbox: i64,
    /// When the oldest of them was made.
    pub outbox_since: Option<Millis>,
    /// Gates that wait for people.
    pub gates: i64,
    /// Turns that have not ended.
    pub turns: i64,
}

impl Read {
    /// Counts what waits. Every count reads an index that holds nothing but what waits.
    pub async fn depth(&mut self) -> Result<Depth> {
        let row = sqlx::query(
            "SELECT (SELECT COUNT(*) FROM inbox WHERE state = 'new') AS inbox,
               (SELECT received_at FROM inbox WHERE state = 'new' ORDER BY id LIMIT 1) AS inbox_since,
               (SELECT COUNT(*) FROM inbox WHERE state = 'laned') AS lanes,
               (SELECT COUNT(*) FROM outbox WHERE state = 'waiting') AS outbox,
               (SELECT MIN(created_at) FROM outbox WHERE state = 'waiting') AS outbox_since,
               (SELECT COUNT(*) FROM gates WHERE status = 'pending') AS gates,
               (SELECT COUNT(*) FROM turns WHERE finished_at IS NULL) AS turns",
        )
        .fetch_one(&mut *self.conn)
        .await?;
        Ok(Depth {
            inbox: row.int("inbox")?,
            inbox_since: row.maybe_int("inbox_since")?.map(Millis),
            lanes: row.int("lanes")?,
            outbox: row.int("outbox")?,
            outbox_since: row.maybe_int("outbox_since")?.map(Millis),
            gates: row.int("gates")?,
            turns: row.int("turns")?,
        })
    }
}
