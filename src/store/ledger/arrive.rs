//! New rows of the inbox: stored once, and told from copies by their keys.

use std::sync::{Arc, LazyLock};

use sqlx::any::AnyRow;
use sqlx::pool::PoolConnection;
use sqlx::{Any, AnyConnection, AnyPool, AssertSqlSafe, Executor, Row};

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
    if inner.is_shared() {
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

/// Inserts until every row has its verdict. When an insert leaves something out, a row whose key is there under its own id is
/// new (now, or before the connection broke), under another's it is a duplicate; else its id was taken, and it gets another.
async fn settle(inner: &Inner, conn: &mut AnyConnection, batch: &mut [Arrival<'_>], state: InboxState, now: Millis) -> sqlx::Result<()> {
    for _ in 0..IDS {
        let mut open: Vec<&mut Arrival<'_>> = batch.iter_mut().filter(|arrival| arrival.verdict.is_none()).collect();
        if open.is_empty() {
            return Ok(());
        }
        if insert(inner, conn, &open, state, now).await? == open.len() as u64 {
            for arrival in &mut open {
                arrival.verdict = Some(Accepted::New(arrival.id));
            }
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

/// Inserts in one statement, which is a transaction of its own, and gives the number of rows that were new. Not `RETURNING`:
/// SQLite's driver hands over every row from its thread to ours, which costs more than the insert.
async fn insert(inner: &Inner, conn: &mut AnyConnection, rows: &[&mut Arrival<'_>], state: InboxState, now: Millis) -> sqlx::Result<u64> {
    let (at, filled) = fitting(rows);
    let texts = if inner.is_shared() { &INSERTS } else { &FILE_INSERTS };
    let mut query = sqlx::query(AssertSqlSafe(Arc::clone(&texts[at])));
    for Arrival { id, row, .. } in filled {
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
    Ok(conn.execute(query).await?.rows_affected())
}

/// A row that is there.
struct Known {
    id: i64,
    event: Vec<u8>,
    message: Option<Vec<u8>>,
}

/// The rows that have a key of one of these.
async fn known(conn: &mut AnyConnection, rows: &[&mut Arrival<'_>]) -> sqlx::Result<Vec<Known>> {
    let (at, filled) = fitting(rows);
    let mut query = sqlx::query(AssertSqlSafe(Arc::clone(&LOOKS[at])));
    for arrival in filled.clone() {
        query = query.bind(arrival.row.event_key.as_slice());
    }
    for arrival in filled {
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

/// Rows of a statement: few numbers, so that each text is prepared once a connection and stays there.
const SIZES: [usize; 12] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, BATCH];

/// The smallest of [`SIZES`] that takes the rows, and the rows with the last one repeated until it is full: it is a duplicate
/// of itself.
fn fitting<'r, 'a>(rows: &'r [&mut Arrival<'a>]) -> (usize, impl Iterator<Item = &'r Arrival<'a>> + Clone) {
    let at = SIZES.partition_point(|size| *size < rows.len()).min(SIZES.len() - 1);
    let filled = rows.iter().chain(rows.last().into_iter().cycle()).take(SIZES[at]);
    (at, filled.map(|arrival| &**arrival))
}

fn texts(text: impl Fn(usize) -> String) -> Vec<Arc<str>> {
    SIZES.iter().map(|rows| Arc::from(text(*rows))).collect()
}

/// `$from, …`, so many of them.
fn marks(from: usize, count: usize) -> String {
    let marks: Vec<String> = (from..from + count).map(|number| format!("${number}")).collect();
    marks.join(", ")
}

fn inserts(marks: impl Fn(usize) -> String) -> Vec<Arc<str>> {
    texts(|rows| {
        let rows: Vec<String> = (0..rows).map(|row| format!("({})", marks(row))).collect();
        format!(
            "INSERT INTO inbox (id, event_key, message_key, channel, chat, person_key, kind, state, received_at, payload)
             VALUES {} ON CONFLICT DO NOTHING",
            rows.join(", ")
        )
    })
}

static INSERTS: LazyLock<Vec<Arc<str>>> = LazyLock::new(|| inserts(|row| marks(row * COLUMNS + 1, COLUMNS)));

/// The same with marks that have no names: SQLite's driver asks for the name of every mark of a statement, and SQLite looks
/// through all of them for each, 400 000 steps for 64 rows.
static FILE_INSERTS: LazyLock<Vec<Arc<str>>> = LazyLock::new(|| inserts(|_| ["?"; COLUMNS].join(", ")));

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
