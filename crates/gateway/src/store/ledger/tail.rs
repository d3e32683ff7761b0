//! Following the events of all turns.
//!
//! `seq` orders the events of one turn. Nothing orders those of different turns: on a server transactions become visible in another
//! order than they were begun in, so that a reader who only asked for what is newer than the last event would miss some. A [`Tail`]
//! looks anew at everything that is at most [`LATE`] older than the newest event, and knows of each turn in there how far it was told.
//!
//! Nothing comes later than that, whatever clocks and processes do: an event is never stamped [`BEHIND`](super::events::BEHIND) the newest one
//! (`append_events`), a transaction older than [`OLDEST_COMMIT`](super::transaction::OLDEST_COMMIT) is not committed ([`Tx::commit`](super::Tx::commit)), and a server ends one that
//! stands still for 10 s and a COMMIT that takes 30 s. On a file writers follow one another.

use std::collections::HashMap;
use std::time::Duration;

use countersign_agent::domain::{Millis, TurnId};

use super::Result;
use super::arg::args;
use super::events::event_id;
use super::sql::Row;
use super::transaction::Read;
use crate::store::keys;

/// An event that becomes visible is at most this much older than the newest that is visible: both of the above, and what the server
/// grants to one that stands still.
const LATE: Duration = Duration::from_secs(90);
/// How much one look takes in: far more than [`LATE`], so that each look gets on.
const LOOK: Duration = Duration::from_secs(180);

/// Where an event stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventPlace {
    /// When it was.
    pub at: Millis,
    /// Its turn.
    pub turn_id: TurnId,
    /// Its place there.
    pub seq: i64,
}

/// Events of one turn that follow one another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventSpan {
    /// The turn.
    pub turn_id: TurnId,
    /// `seq` of the first.
    pub first: i64,
    /// `seq` of the last.
    pub last: i64,
}

/// Where a reader of the events of all turns, or of one chat's, stands.
#[derive(Clone, Debug)]
pub struct Tail {
    chat: Option<String>,
    /// Whatever it was not told is from here on.
    since: Millis,
    /// How far it was told, of the turns that have events from `since` on.
    told: HashMap<TurnId, i64>,
}

impl Tail {
    /// Begins behind everything that is there.
    ///
    /// # Errors
    /// `Unavailable` when the ledger does not answer.
    pub async fn from_now(read: &mut Read, chat: Option<String>) -> Result<Self> {
        let Some((_, newest)) = read.event_times(Millis(0)).await? else {
            return Ok(Self::at(chat, Millis(0), HashMap::new()));
        };
        let since = before(newest, LATE);
        let recent = read.event_spans(since, Millis::NEVER, chat.as_deref()).await?;
        Ok(Self::at(chat, since, last_of(recent)))
    }

    /// Begins behind `last`, the last event that was told of each turn, or of some. Of a turn that is not named, what is up to
    /// three minutes older than the newest of `last` is told again: what of it was told is unknown. At least one.
    #[must_use]
    pub fn after(chat: Option<String>, last: &[EventPlace]) -> Self {
        let newest = last.iter().map(|place| place.at).max().unwrap_or(Millis::NEVER);
        // What a look finds is told turn by turn: its end may be told when its beginning is not.
        let since = before(newest, LOOK);
        let mut told = HashMap::new();
        for place in last {
            let seq = told.entry(place.turn_id.clone()).or_insert(place.seq);
            *seq = place.seq.max(*seq);
        }
        Self::at(chat, since, told)
    }

    fn at(chat: Option<String>, since: Millis, told: HashMap<TurnId, i64>) -> Self {
        Self { chat, since, told }
    }

    /// What it was not told yet, a turn at a time and the oldest first; and whether there may be more already. The next look takes
    /// for granted that all of it was told.
    ///
    /// # Errors
    /// `Unavailable` when the ledger does not answer; then nothing is taken for granted.
    pub async fn next_spans(&mut self, read: &mut Read) -> Result<(Vec<EventSpan>, bool)> {
        let Some((oldest, newest)) = read.event_times(self.since).await? else {
            return Ok((Vec::new(), false));
        };
        let until = oldest.plus(LOOK);
        let spans = read.event_spans(oldest, until, self.chat.as_deref()).await?;
        let mut untold = Vec::new();
        for span in &spans {
            // Of a turn that nothing was known of, all that is from `since` on is new.
            let first = self.told.get(&span.turn_id).map_or(span.first, |told| told + 1);
            if first <= span.last {
                untold.push(EventSpan { first, ..span.clone() });
            }
        }
        // A turn without an event from `since` on is forgotten: its next one will be from there on, and new.
        let known = std::mem::take(&mut self.told);
        self.told = last_of(spans);
        for (turn, last) in &mut self.told {
            *last = known.get(turn).copied().unwrap_or(0).max(*last);
        }
        self.since = self.since.max(before(newest.min(until), LATE));
        Ok((untold, until <= newest))
    }
}

fn before(at: Millis, span: Duration) -> Millis {
    Millis(at.0.saturating_sub(Millis(0).plus(span).0))
}

fn last_of(spans: Vec<EventSpan>) -> HashMap<TurnId, i64> {
    spans.into_iter().map(|span| (span.turn_id, span.last)).collect()
}

impl Read {
    /// The times of the first event from `since` on and of the newest of all; none when nothing is from there on.
    async fn event_times(&mut self, since: Millis) -> Result<Option<(Millis, Millis)>> {
        let row = self
            .one(
                "SELECT (SELECT MIN(at) FROM events WHERE at >= $1) AS oldest, (SELECT MAX(at) FROM events) AS newest",
                args![since],
            )
            .await?;
        let times = row.get::<Option<i64>>("oldest")?.zip(row.get::<Option<i64>>("newest")?);
        Ok(times.map(|(oldest, newest)| (Millis(oldest), Millis(newest))))
    }

    /// Of each turn with events at `from` or later and before `until`: the first and the last of these.
    async fn event_spans(&mut self, from: Millis, until: Millis, chat: Option<&str>) -> Result<Vec<EventSpan>> {
        let rows = self
            .all(
                "SELECT turn_id, MIN(seq) AS first, MAX(seq) AS last FROM events
                 WHERE at >= $1 AND at < $2 AND (CAST($3 AS TEXT) IS NULL OR chat = $3) GROUP BY turn_id ORDER BY MIN(at), turn_id",
                args![from, until, chat.map(keys::without_nul)],
            )
            .await?;
        let span = |row: &Row| {
            Ok(EventSpan {
                turn_id: row.get("turn_id")?,
                first: row.get("first")?,
                last: row.get("last")?,
            })
        };
        rows.iter().map(span).collect()
    }

    /// Where the event with this id stands.
    ///
    /// # Errors
    /// `Unavailable` when the ledger does not answer.
    pub async fn event_place(&mut self, id: &str) -> Result<Option<EventPlace>> {
        let named = id.strip_prefix("ev_").and_then(|rest| rest.rsplit_once('_'));
        let Some((turn_id, seq)) = named.and_then(|(turn, seq)| Some((TurnId::new(format!("turn_{turn}")), seq.parse().ok()?))) else {
            return Ok(None);
        };
        if event_id(&turn_id, seq) != id {
            return Ok(None);
        }
        let row = self
            .maybe(
                "SELECT at FROM events WHERE turn_id = $1 AND seq = $2",
                args![keys::without_nul(turn_id.as_str()), seq],
            )
            .await?;
        row.map(|row| {
            Ok(EventPlace {
                at: row.get("at")?,
                turn_id,
                seq,
            })
        })
        .transpose()
    }
}
