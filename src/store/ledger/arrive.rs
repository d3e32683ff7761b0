//! New rows of the inbox: stored once, and told from copies by their keys.

use std::sync::{Arc, LazyLock};

use sqlx::any::AnyRow;
use sqlx::pool::PoolConnection;
use sqlx::{Any, AnyConnection, AnyPool, AssertSqlSafe, Connection, Executor, Row};

use super::accept::DEADLINE;
use super::sql::encode;
use super::{Inner, Result, fault};
use crate::domain::{Inbound, Millis};
use crate::store::{Accepted, InboxState, StoreError, keys};

/// Rows of one commit at most.
pub(super) const BATCH: usize = 64;
/// Bound values of a row.
const COLUMNS: usize = 10;
/// How often a row whose id somebody else has taken gets another one.
const IDS: usize = 4;

/// An inbox row, serialized before anybody waits for the writer.
#[derive(Debug)]
pub(super) struct NewRow {
    event_key: Vec<u8>,
    message_key: Option<Vec<u8>>,
    channel: &'static str,
    chat: String,
    person_key: Vec<u8>,
    kind: &'static str,
    payload: String,
}

impl NewRow {
    pub(super) fn new(inbound: &Inbound) -> Result<Self> {
        Ok(Self {
            event_key: keys::event_key(inbound),
            message_key: keys::message_key(inbound),
            channel: inbound.conversation.channel.as_str(),
            chat: keys::shown(&inbound.conversation.chat).into_owned(),
            person_key: keys::person_key(&inbound.conversation, &inbound.sender),
            kind: inbound.body.name(),
            payload: encode(inbound)?,
        })
    }
}

/// A row on its way in.
struct Arrival<'a> {
    id: i64,
    row: &'a NewRow,
    verdict: Option<Accepted>,
}

/// Stores the rows in one commit and says of each whether it was new. On a server: over another connection when one has broken
/// (the keys keep what came through all the same from being stored twice), and for no longer than anybody waits for the
/// answer, else a connection that has gone silent would hold up the inbox.
pub(super) async fn store(inner: &Inner, write: &AnyPool, rows: &[NewRow]) -> Result<Vec<Accepted>> {
    let now = inner.clock.now();
    // Ids are given when it is the batch's turn: on one machine their order is the order of commits.
    let mut batch: Vec<Arrival<'_>> = rows.iter().map(|row| Arrival::of(inner, row, now)).collect();
    // Two processes that are pushed the same events wait for each other's rows in one order, not in a circle.
    batch.sort_by_key(|arrival| arrival.row.message_key.as_ref().unwrap_or(&arrival.row.event_key));
    let stored = store_over_any(inner, write, &mut batch, now);
    if inner.shared {
        let slow = |_| StoreError::Unavailable("the database is too slow".to_owned());
        tokio::time::timeout(DEADLINE, stored).await.map_err(slow)??;
    } else {
        stored.await?;
    }
    // As they came: ids were given in that order.
    let mut verdicts = Vec::with_capacity(rows.len());
    for row in rows {
        let arrival = batch.iter().find(|arrival| std::ptr::eq(arrival.row, row));
        verdicts.push(arrival.and_then(|arrival| arrival.verdict).unwrap_or(Accepted::Duplicate));
    }
    Ok(verdicts)
}

async fn store_over_any(inner: &Inner, write: &AnyPool, batch: &mut [Arrival<'_>], now: Millis) -> Result<()> {
    let mut tries = write.options().get_max_connections();
    loop {
        let mut line = Line(Some(write.acquire().await?));
        match line.store(inner, batch, now).await {
            Err(error) if fault::is_broken(&error) && tries > 0 => {
                tries -= 1;
                tracing::debug!(%error, "a connection to the database broke");
            }
            stored => {
                if !stored.as_ref().is_err_and(fault::is_broken) {
                    line.give_back();
                }
                return Ok(stored?);
            }
        }
    }
}

/// Inserts one row inside somebody's transaction and gives its id; none: it is a duplicate.
pub(super) async fn store_one(inner: &Inner, conn: &mut AnyConnection, row: &NewRow, state: InboxState) -> Result<Option<i64>> {
    let now = inner.clock.now();
    let mut batch = [Arrival::of(inner, row, now)];
    settle(inner, conn, &mut batch, state, now).await?;
    let [arrival] = batch;
    match arrival.verdict {
        Some(Accepted::New(id)) => Ok(Some(id)),
        Some(Accepted::Duplicate) | None => Ok(None),
    }
}

impl<'a> Arrival<'a> {
    fn of(inner: &Inner, row: &'a NewRow, now: Millis) -> Self {
        Self {
            id: inner.sequence.next(now),
            row,
            verdict: None,
        }
    }
}

/// A connection that goes back to the pool when it is told to. One that broke, or was left in the middle of something, is
/// dropped at once: nobody waits for what it may still say.
struct Line(Option<PoolConnection<Any>>);

impl Line {
    async fn store(&mut self, inner: &Inner, batch: &mut [Arrival<'_>], now: Millis) -> sqlx::Result<()> {
        let Some(conn) = &mut self.0 else { return Ok(()) };
        settle(inner, conn, batch, InboxState::New, now).await
    }

    fn give_back(mut self) {
        drop(self.0.take());
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if let Some(conn) = self.0.take() {
            drop(conn.detach());
        }
    }
}

/// Inserts until every row has its verdict. What an insert leaves out is a duplicate only if one of its keys is there, and
/// not under its own id (then it came through before the connection broke); else its id was taken, and it gets another.
async fn settle(inner: &Inner, conn: &mut AnyConnection, batch: &mut [Arrival<'_>], state: InboxState, now: Millis) -> sqlx::Result<()> {
    for _ in 0..IDS {
        let mut open: Vec<&mut Arrival<'_>> = batch.iter_mut().filter(|arrival| arrival.verdict.is_none()).collect();
        let fresh = insert(conn, &open, state, now).await?;
        for arrival in &mut open {
            arrival.verdict = fresh.contains(&arrival.id).then_some(Accepted::New(arrival.id));
        }
        open.retain(|arrival| arrival.verdict.is_none());
        if open.is_empty() {
            return Ok(());
        }
        let there = known(conn, &open).await?;
        for arrival in open {
            let row = arrival.row;
            let found = there
                .iter()
                .find(|known| known.event == row.event_key || row.message_key.is_some() && known.message == row.message_key);
            match found {
                Some(known) if known.id == arrival.id => arrival.verdict = Some(Accepted::New(known.id)),
                Some(_) => arrival.verdict = Some(Accepted::Duplicate),
                None => arrival.id = inner.sequence.next(now),
            }
        }
    }
    if batch.iter().all(|arrival| arrival.verdict.is_some()) {
        Ok(())
    } else {
        Err(sqlx::Error::Protocol("ids are taken again and again".to_owned()))
    }
}

/// Inserts in one commit and gives the ids of the rows that were new. Rows of a batch are told apart by
/// their ids, not by their keys: two copies of one event may be in it.
async fn insert(conn: &mut AnyConnection, rows: &[&mut Arrival<'_>], state: InboxState, now: Millis) -> sqlx::Result<Vec<i64>> {
    if rows.len().is_power_of_two() {
        // A single statement is a transaction of its own: no BEGIN and COMMIT to wait for.
        return insert_chunk(conn, rows, state, now).await;
    }
    let mut tx = conn.begin().await?;
    let mut fresh = Vec::with_capacity(rows.len());
    let mut at = 0;
    while at < rows.len() {
        let end = at + (1 << (rows.len() - at).ilog2());
        fresh.extend(insert_chunk(&mut tx, &rows[at..end], state, now).await?);
        at = end;
    }
    tx.commit().await?;
    Ok(fresh)
}

async fn insert_chunk(conn: &mut AnyConnection, rows: &[&mut Arrival<'_>], state: InboxState, now: Millis) -> sqlx::Result<Vec<i64>> {
    let mut query = sqlx::query(AssertSqlSafe(Arc::clone(&INSERTS[rows.len().ilog2() as usize])));
    for Arrival { id, row, .. } in rows {
        query = query
            .bind(*id)
            .bind(row.event_key.as_slice())
            .bind(row.message_key.as_deref())
            .bind(row.channel)
            .bind(row.chat.as_str())
            .bind(row.person_key.as_slice())
            .bind(row.kind)
            .bind(state.as_str())
            .bind(now.0)
            .bind(row.payload.as_str());
    }
    let fresh = conn.fetch_all(query).await?;
    fresh.iter().map(|row: &AnyRow| row.try_get("id")).collect()
}

/// A row that is there.
struct Known {
    id: i64,
    event: Vec<u8>,
    message: Option<Vec<u8>>,
}

/// The rows that have a key of one of these.
async fn known(conn: &mut AnyConnection, rows: &[&mut Arrival<'_>]) -> sqlx::Result<Vec<Known>> {
    let power = rows.len().next_power_of_two().ilog2();
    // Marks that are left over repeat the last row.
    let marks = || rows.iter().chain(rows.last().into_iter().cycle()).take(1 << power);
    let mut query = sqlx::query(AssertSqlSafe(Arc::clone(&LOOKS[power as usize])));
    for arrival in marks() {
        query = query.bind(arrival.row.event_key.as_slice());
    }
    for arrival in marks() {
        query = query.bind(arrival.row.message_key.as_deref());
    }
    let rows = conn.fetch_all(query).await?;
    let known = rows.iter().map(|row: &AnyRow| {
        Ok(Known {
            id: row.try_get("id")?,
            event: row.try_get("event_key")?,
            message: row.try_get("message_key")?,
        })
    });
    known.collect()
}

/// Texts for 1, 2, 4, … 64 rows: few, so that each is prepared once a connection.
fn texts(text: fn(usize) -> String) -> Vec<Arc<str>> {
    (0..=BATCH.ilog2()).map(|power| Arc::from(text(1 << power))).collect()
}

/// `$from, …`, so many of them.
fn marks(from: usize, count: usize) -> String {
    let marks: Vec<String> = (from..from + count).map(|number| format!("${number}")).collect();
    marks.join(", ")
}

static INSERTS: LazyLock<Vec<Arc<str>>> = LazyLock::new(|| {
    texts(|rows| {
        let rows: Vec<String> = (0..rows).map(|row| format!("({})", marks(row * COLUMNS + 1, COLUMNS))).collect();
        format!(
            "INSERT INTO inbox (id, event_key, message_key, channel, chat, person_key, kind, state, received_at, payload)
             VALUES {} ON CONFLICT DO NOTHING RETURNING id",
            rows.join(", ")
        )
    })
});

static LOOKS: LazyLock<Vec<Arc<str>>> = LazyLock::new(|| {
    texts(|rows| {
        format!(
            "SELECT id, event_key, message_key FROM inbox WHERE event_key IN ({})
             UNION SELECT id, event_key, message_key FROM inbox WHERE message_key IN ({})",
            marks(1, rows),
            marks(rows + 1, rows)
        )
    })
});
