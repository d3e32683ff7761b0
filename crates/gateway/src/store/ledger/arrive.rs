//! New rows of the inbox: batches of events on a server (`file_inbox` has those of a file), and on both databases the rows that a transaction
//! handles itself. Copies are told by their keys when they are triaged.

use std::time::Duration;

use countersign_agent::domain::{Inbound, LaneId, Millis};
use sqlx::pool::PoolConnection;
use sqlx::{Executor, PgConnection, PgPool, Postgres};

use super::arg::args;
use super::conn::Conn;
use super::inner::Inner;
use super::sql::encode;
use super::sql_errors::is_broken;
use super::{Result, sql};
use crate::store::{StoreError, keys};

/// A platform gives us about 3 s, the contract 1 s: an answer that comes later is as good as none.
pub(super) const DEADLINE: Duration = Duration::from_millis(900);
/// Rows of one commit at most.
pub(super) const BATCH: usize = 64;
/// How often a row whose id somebody else has taken gets another one.
const IDS: usize = 4;

/// An inbox row, serialized before anybody waits for the writer.
#[derive(Debug)]
pub(super) struct NewRow {
    pub(super) event_key: Vec<u8>,
    pub(super) message_key: Option<Vec<u8>>,
    pub(super) channel: &'static str,
    pub(super) chat: String,
    pub(super) person_key: Vec<u8>,
    pub(super) kind: &'static str,
    pub(super) payload: String,
}

impl NewRow {
    pub(super) fn new(inbound: &Inbound) -> Result<Self> {
        Ok(Self {
            event_key: keys::event_key(inbound),
            message_key: keys::message_key(inbound),
            channel: inbound.conversation.channel.as_str(),
            chat: keys::without_nul(&inbound.conversation.chat).into_owned(),
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
}

/// Appends to the inbox on a server. It keeps its connection: the pool would ask the server after each batch whether it still lives.
#[derive(Debug)]
pub(super) struct ServerInbox {
    pool: PgPool,
    conn: Option<BatchConnection>,
}

impl ServerInbox {
    pub(super) fn new(pool: PgPool) -> Self {
        Self { pool, conn: None }
    }

    /// Stores the rows in one commit and gives their ids: over another connection when one has broken (their ids keep what came through
    /// all the same from being stored twice), and for no longer than anybody waits for the answer, else a connection that has gone silent
    /// would hold up the inbox.
    pub(super) async fn store(&mut self, inner: &Inner, rows: &[NewRow]) -> Result<Vec<i64>> {
        let now = inner.clock.now();
        let mut batch: Vec<Arrival<'_>> = rows.iter().map(|row| Arrival::of(inner, row, now)).collect();
        let stored = self.store_over_any(inner, &mut batch, now);
        let slow = |_| StoreError::Unavailable("the database is too slow".to_owned());
        tokio::time::timeout(DEADLINE, stored).await.map_err(slow)??;
        Ok(batch.iter().map(|arrival| arrival.id).collect())
    }

    pub(super) async fn close(mut self) {
        if let Some(mut kept) = self.conn.take() {
            // Goes back to the pool, which takes leave of the server.
            drop(kept.0.take());
        }
        self.pool.close().await;
    }

    async fn store_over_any(&mut self, inner: &Inner, batch: &mut [Arrival<'_>], now: Millis) -> Result<()> {
        let mut tries = self.pool.options().get_max_connections();
        loop {
            let mut conn = match self.conn.take() {
                Some(conn) => conn,
                None => BatchConnection(Some(self.pool.acquire().await?)),
            };
            match conn.store(inner, batch, now).await {
                Err(error) if is_broken(&error) && tries > 0 => {
                    tries -= 1;
                    tracing::debug!(%error, "a connection to the database broke");
                }
                stored => {
                    self.conn = Some(conn).filter(|_| !stored.as_ref().is_err_and(is_broken));
                    return Ok(stored?);
                }
            }
        }
    }
}

impl<'a> Arrival<'a> {
    fn of(inner: &Inner, row: &'a NewRow, now: Millis) -> Self {
        Self {
            id: inner.sequence.next(now),
            row,
        }
    }
}

/// A connection that is kept as long as all goes well. One that broke, or was left in the middle of something, is dropped at once: its
/// answer is not waited for.
#[derive(Debug)]
struct BatchConnection(Option<PoolConnection<Postgres>>);

impl BatchConnection {
    async fn store(&mut self, inner: &Inner, batch: &mut [Arrival<'_>], now: Millis) -> sqlx::Result<()> {
        let Some(conn) = &mut self.0 else { return Ok(()) };
        append(inner, conn, batch, now).await
    }
}

impl Drop for BatchConnection {
    fn drop(&mut self) {
        if let Some(conn) = self.0.take() {
            drop(conn.detach());
        }
    }
}

/// Inserts until every row is there. One that was left out is there already (the connection broke after the commit), or its id was
/// taken by another, and it gets another.
async fn append(inner: &Inner, conn: &mut PgConnection, batch: &mut [Arrival<'_>], now: Millis) -> sqlx::Result<()> {
    let mut open: Vec<&mut Arrival<'_>> = batch.iter_mut().collect();
    for _ in 0..IDS {
        if insert(conn, &open, now).await? == open.len() as u64 {
            return Ok(());
        }
        let there = known(conn, &open).await?;
        open.retain_mut(|arrival| {
            let found = there.iter().find(|(id, _)| *id == arrival.id);
            if found.is_some_and(|(_, event)| *event == arrival.row.event_key) {
                return false;
            }
            arrival.id = inner.sequence.next(now);
            true
        });
        if open.is_empty() {
            return Ok(());
        }
    }
    Err(sqlx::Error::Protocol("ids are taken again and again".to_owned()))
}

/// Inserts in one statement, which is a transaction of its own, and gives the number of rows that went in. It has a list for each column: one text for
/// batches of every size.
async fn insert(conn: &mut PgConnection, arrivals: &[&mut Arrival<'_>], now: Millis) -> sqlx::Result<u64> {
    let rows = || arrivals.iter().map(|arrival| arrival.row);
    let query = sqlx::query(
        "INSERT INTO inbox (id, event_key, message_key, channel, chat, person_key, kind, state, received_at, payload)
         SELECT id, event_key, message_key, channel, chat, person_key, kind, 'new', $8, payload
         FROM UNNEST($1::BIGINT[], $2::BYTEA[], $3::BYTEA[], $4::TEXT[], $5::TEXT[], $6::BYTEA[], $7::TEXT[], $9::TEXT[])
           AS arrived (id, event_key, message_key, channel, chat, person_key, kind, payload)
         ON CONFLICT DO NOTHING",
    )
    .bind(arrivals.iter().map(|arrival| arrival.id).collect::<Vec<_>>())
    .bind(rows().map(|row| row.event_key.as_slice()).collect::<Vec<_>>())
    .bind(rows().map(|row| row.message_key.as_deref()).collect::<Vec<_>>())
    .bind(rows().map(|row| row.channel).collect::<Vec<_>>())
    .bind(rows().map(|row| row.chat.as_str()).collect::<Vec<_>>())
    .bind(rows().map(|row| row.person_key.as_slice()).collect::<Vec<_>>())
    .bind(rows().map(|row| row.kind).collect::<Vec<_>>())
    .bind(now.0)
    .bind(rows().map(|row| row.payload.as_str()).collect::<Vec<_>>());
    Ok(conn.execute(query).await?.rows_affected())
}

/// Which of these ids are there, and with which event.
async fn known(conn: &mut PgConnection, arrivals: &[&mut Arrival<'_>]) -> sqlx::Result<Vec<(i64, Vec<u8>)>> {
    let ids: Vec<i64> = arrivals.iter().map(|arrival| arrival.id).collect();
    sqlx::query_as("SELECT id, event_key FROM inbox WHERE id = ANY($1)")
        .bind(ids)
        .fetch_all(conn)
        .await
}

/// Inserts a row that somebody's transaction has handled, or a task that it gave to `lane`. Gives `false` when a copy of it was handled
/// before.
pub(super) async fn insert_handled(inner: &Inner, mut conn: Conn<'_>, row: &NewRow, lane: Option<&LaneId>) -> Result<bool> {
    let now = inner.clock.now();
    for _ in 0..IDS {
        let id = inner.sequence.next(now);
        let values = args![
            id,
            row.event_key.as_slice(),
            row.message_key.as_deref(),
            row.channel,
            row.chat.as_str(),
            row.person_key.as_slice(),
            row.kind,
            if lane.is_some() { "laned" } else { "done" },
            lane,
            now,
            row.payload.as_str()
        ];
        let inserted = sql::run(
            conn.lend(),
            "INSERT INTO inbox (id, event_key, message_key, channel, chat, person_key, kind, state, lane_id, received_at, payload)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT DO NOTHING",
            values,
        );
        if inserted.await? > 0 {
            return Ok(true);
        }
        if sql::maybe(conn.lend(), "SELECT id FROM inbox WHERE id = $1", args![id])
            .await?
            .is_none()
        {
            return Ok(false);
        }
    }
    Err(StoreError::Unavailable("ids are taken again and again".to_owned()))
}
