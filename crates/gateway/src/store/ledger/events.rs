//! The timeline of a turn.

use std::time::Duration;

use countersign_agent::domain::{Event, Millis, TurnId};

use super::Result;
use super::arg::args;
use super::lanes::Lease;
use super::sql::{Row, encode};
use super::transaction::{Read, Tx};
use super::turns::TurnRow;
use crate::store::{StoreError, keys};

/// How far an event may be stamped before the newest one.
pub(super) const BEHIND: Duration = Duration::from_secs(30);

/// A timeline entry as stored and as the API gives it.
#[derive(Clone, Debug, PartialEq)]
pub struct EventRow {
    /// 1.. per turn without gaps.
    pub seq: i64,
    /// `ev_…`.
    pub id: String,
    /// Its turn.
    pub turn_id: TurnId,
    /// The chat.
    pub chat: String,
    /// When.
    pub at: Millis,
    /// What.
    pub event: Event,
    /// One line.
    pub summary: String,
    /// Iteration.
    pub iteration: u64,
}

/// The id of a turn's event.
#[must_use]
pub fn event_id(turn: &TurnId, seq: i64) -> String {
    format!("ev_{}_{seq}", turn.as_str().trim_start_matches("turn_"))
}

impl Read {
    /// No event of this turn may be stamped before this.
    async fn earliest_event_time(&mut self, turn: &TurnId) -> Result<Millis> {
        let row = self.one("SELECT (SELECT at FROM events WHERE turn_id = $1 ORDER BY seq DESC LIMIT 1) AS own, (SELECT MAX(at) FROM events) AS newest", args![turn.as_str()]).await?;
        let (own, newest) = (row.get::<Option<i64>>("own")?, row.get::<Option<i64>>("newest")?);
        let newest = newest.map(|at| at.saturating_sub(Millis(0).plus(BEHIND).0));
        Ok(Millis(own.max(newest).unwrap_or(i64::MIN)))
    }

    /// The timeline after `after`, oldest first.
    pub async fn events(&mut self, turn: &TurnId, after: i64, limit: i64) -> Result<Vec<EventRow>> {
        let rows = self.all("SELECT seq, id, turn_id, chat, at, iteration, summary, body FROM events WHERE turn_id = $1 AND seq > $2 ORDER BY seq LIMIT $3", args![turn.as_str(), after, limit]).await?;
        rows.iter().map(read).collect()
    }
}

impl Tx {
    /// Appends timeline entries of one turn; `seq` is given by the caller. Their times are set forward where a clock went back: never
    /// before the turn's earlier ones, and not far before the newest of all.
    ///
    /// # Errors
    /// `Stale` when the lease is lost; `Corrupt` when a `seq` is taken.
    pub async fn append_events(&mut self, lease: &Lease, events: &[EventRow]) -> Result<()> {
        self.prove_lease(lease).await?;
        self.insert_events(events).await
    }

    /// Appends one entry to the timeline of a turn that is over. No worker writes such a turn any more, so there is no lease to prove: the
    /// turn's own count gives the `seq`, and its row keeps two writers in line.
    ///
    /// # Errors
    /// `Corrupt` when the turn is not over, or is gone.
    pub(super) async fn append_after_end(&mut self, turn: &TurnRow, event: Event, summary: &str, now: Millis) -> Result<()> {
        let counted = self
            .maybe(
                "UPDATE turns SET events = events + 1 WHERE id = $1 AND finished_at IS NOT NULL RETURNING events",
                args![turn.id.as_str()],
            )
            .await?;
        let counted = counted.ok_or_else(|| StoreError::Corrupt(format!("turn {} is not over", turn.id)))?;
        let seq = counted.int("events")?;
        let last = self.events(&turn.id, seq - 2, 1).await?;
        let entry = EventRow {
            seq,
            id: event_id(&turn.id, seq),
            turn_id: turn.id.clone(),
            chat: turn.conversation.chat.clone(),
            at: now,
            event,
            summary: summary.to_owned(),
            iteration: last.first().map_or(0, |last| last.iteration),
        };
        self.insert_events(&[entry]).await
    }

    async fn insert_events(&mut self, events: &[EventRow]) -> Result<()> {
        let Some(first) = events.first() else { return Ok(()) };
        self.effects.events = true;
        let earliest = self.earliest_event_time(&first.turn_id).await?;
        for event in events {
            let iteration = i64::try_from(event.iteration).unwrap_or(i64::MAX);
            self.run(
                "INSERT INTO events (turn_id, seq, id, chat, at, iteration, summary, body) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
                args![
                    event.turn_id.as_str(),
                    event.seq,
                    &event.id,
                    keys::without_nul(&event.chat),
                    event.at.max(earliest).0,
                    iteration,
                    keys::without_nul(&event.summary),
                    encode(&event.event)?
                ],
            )
            .await?;
        }
        Ok(())
    }
}

fn read(row: &Row) -> Result<EventRow> {
    let iteration = row.int("iteration")?;
    Ok(EventRow {
        seq: row.get("seq")?,
        id: row.get("id")?,
        turn_id: row.get("turn_id")?,
        chat: row.get("chat")?,
        at: row.get("at")?,
        event: row.json("body")?,
        summary: row.get("summary")?,
        iteration: u64::try_from(iteration).map_err(|_| StoreError::Corrupt("column `iteration` is negative".to_owned()))?,
    })
}
