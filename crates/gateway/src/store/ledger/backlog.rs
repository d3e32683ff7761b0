//! What waits in all queues: how much of it, since when, and when the next of it is due.

use countersign_agent::domain::Millis;

use super::Result;
use super::arg::args;
use super::outbox_claim::heads;
use super::transaction::Read;

/// What waits now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
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
    pub async fn backlog(&mut self) -> Result<Backlog> {
        let row = self
            .one(
                "SELECT (SELECT COUNT(*) FROM inbox WHERE state = 'new') AS inbox,
                 (SELECT received_at FROM inbox WHERE state = 'new' ORDER BY id LIMIT 1) AS inbox_since,
                 (SELECT COUNT(*) FROM inbox WHERE state = 'laned') AS lanes,
                 (SELECT COUNT(*) FROM outbox WHERE state = 'waiting') AS outbox,
                 (SELECT MIN(created_at) FROM outbox WHERE state = 'waiting') AS outbox_since,
                 (SELECT COUNT(*) FROM gates WHERE status = 'pending') AS gates,
                 (SELECT COUNT(*) FROM turns WHERE finished_at IS NULL) AS turns",
                args![],
            )
            .await?;
        Ok(Backlog {
            inbox: row.get("inbox")?,
            inbox_since: row.get("inbox_since")?,
            lanes: row.get("lanes")?,
            outbox: row.get("outbox")?,
            outbox_since: row.get("outbox_since")?,
            gates: row.get("gates")?,
            turns: row.get("turns")?,
        })
    }

    /// When the oldest event came in that waits for triage.
    pub(super) async fn oldest_untriaged(&mut self) -> Result<Option<Millis>> {
        let row = self
            .maybe("SELECT received_at FROM inbox WHERE state = 'new' ORDER BY id LIMIT 1", args![])
            .await?;
        row.map(|row| row.get("received_at")).transpose()
    }

    /// The moment the next lane or outbox row is due; in the past when something is due already. A lane may be
    /// due and still not be given out: while `per_chat` others of its chat are leased, or, after two deaths, while another such lane is.
    pub async fn next_due(&mut self) -> Result<Option<Millis>> {
        let row = self
            .one(
                concat!(
                    "SELECT CAST(MIN(due) AS BIGINT) AS due FROM (
                     SELECT MIN(CASE WHEN lease_until > ready_at THEN lease_until ELSE ready_at END) AS due FROM lanes WHERE ready_at < $1
                     UNION ALL
                     SELECT MIN(CASE WHEN held_until > ready_at THEN held_until ELSE ready_at END) FROM outbox AS head
                      WHERE state = 'waiting' AND ",
                    heads!(),
                    ") AS dues"
                ),
                args![Millis::NEVER.0],
            )
            .await?;
        row.get("due")
    }
}
