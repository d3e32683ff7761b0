//! The accept path: concurrent events share one commit, and nobody is told "yes" before it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AnyPool, AssertSqlSafe, Executor, Row};
use tokio::sync::{mpsc, oneshot};

use super::bells::Touched;
use super::sql::encode;
use super::{Inner, Ledger, Result};
use crate::domain::{Inbound, Millis};
use crate::store::{Accepted, InboxState, StoreError, keys};

/// Rows of one commit at most.
const BATCH: usize = 64;
/// Events that wait for the writer at most; more than this and the platform shall send again.
const WAITING: usize = 1024;
/// A platform gives us about 3 s, the contract 1 s: an answer that comes later is as good as none.
const DEADLINE: Duration = Duration::from_millis(900);
/// Bound values of a row.
const COLUMNS: usize = 10;

impl Ledger {
    /// Stores one verified event. Concurrent calls share one commit; returns after it. 900 ms at most.
    ///
    /// # Errors
    /// `Unavailable` when it is not known to be committed; should the commit come through later, the event that is
    /// sent again is a duplicate.
    pub async fn accept(&self, inbound: &Inbound) -> Result<Accepted> {
        let Some(acceptor) = &self.acceptor else {
            return Err(StoreError::Unavailable("opened read-only".to_owned()));
        };
        let row = NewRow::new(inbound)?;
        let (reply, answer) = oneshot::channel();
        let stored = async {
            acceptor.jobs.send(Job::Row(row, reply)).await.map_err(|_| closing())?;
            answer.await.map_err(|_| closing())?
        };
        tokio::time::timeout(DEADLINE, stored)
            .await
            .unwrap_or_else(|_| Err(StoreError::Unavailable("the inbox is too slow".to_owned())))
    }

    /// Commits that [`Ledger::accept`] made so far: fewer than events when calls shared them.
    #[must_use]
    pub fn accept_commits(&self) -> u64 {
        self.acceptor
            .as_ref()
            .map_or(0, |acceptor| acceptor.commits.load(Ordering::Relaxed))
    }
}

fn closing() -> StoreError {
    StoreError::Unavailable("shutting down".to_owned())
}

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

/// What the writer task is asked for.
#[derive(Debug)]
enum Job {
    Row(NewRow, oneshot::Sender<Result<Accepted>>),
    /// Commit what came before, then stop.
    Finish(oneshot::Sender<()>),
}

/// The handle of the writer task; the task ends when the last handle is gone.
#[derive(Clone, Debug)]
pub(super) struct Acceptor {
    jobs: mpsc::Sender<Job>,
    commits: Arc<AtomicU64>,
}

impl Acceptor {
    pub(super) fn start(inner: Arc<Inner>) -> Self {
        let (jobs, inbox) = mpsc::channel(WAITING);
        let commits = Arc::new(AtomicU64::new(0));
        tokio::spawn(write_batches(inner, inbox, Arc::clone(&commits)));
        Self { jobs, commits }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.jobs.is_closed()
    }

    pub(super) async fn finish(&self) {
        let (done, finished) = oneshot::channel();
        if self.jobs.send(Job::Finish(done)).await.is_ok() {
            // An error says that the task is gone already, which is what we want.
            let _gone = finished.await;
        }
    }
}

async fn write_batches(inner: Arc<Inner>, mut inbox: mpsc::Receiver<Job>, commits: Arc<AtomicU64>) {
    let mut jobs = Vec::with_capacity(BATCH);
    let mut finish = Vec::new();
    while inbox.recv_many(&mut jobs, BATCH).await > 0 {
        let mut rows = Vec::with_capacity(jobs.len());
        let mut replies = Vec::with_capacity(jobs.len());
        for job in jobs.drain(..) {
            match job {
                // Nobody waits any more: the platform was told to send it again.
                Job::Row(_, reply) if reply.is_closed() => {}
                Job::Row(row, reply) => {
                    rows.push(row);
                    replies.push(reply);
                }
                Job::Finish(done) => {
                    inbox.close();
                    finish.push(done);
                }
            }
        }
        if !rows.is_empty() {
            let outcomes = commit_batch(&inner, &rows, &commits).await;
            let new = outcomes.iter().any(|outcome| matches!(outcome, Ok(Accepted::New(_))));
            for (reply, outcome) in replies.into_iter().zip(outcomes) {
                // A closed reply means that the caller's time was up; the row is committed and its repeat a duplicate.
                let _late = reply.send(outcome);
            }
            inner.bells.ring(Touched {
                inbox: new,
                ..Touched::default()
            });
        }
    }
    for done in finish {
        let _gone = done.send(());
    }
}

/// One commit for all rows; when that fails, one each, so that one bad row does not take the others with it.
async fn commit_batch(inner: &Inner, rows: &[NewRow], commits: &AtomicU64) -> Vec<Result<Accepted>> {
    let Some(write) = &inner.pools.accept else {
        return rows.iter().map(|_| Err(closing())).collect();
    };
    let _pass = match &inner.turnstile {
        Some(turnstile) => Some(turnstile.first().await),
        None => None,
    };
    let now = inner.clock.now();
    // Ids are given under the lock: their order is the order of commits.
    let ids: Vec<i64> = rows.iter().map(|_| inner.sequence.next(now)).collect();
    match insert(write, &ids, rows, now).await {
        Ok(fresh) => {
            commits.fetch_add(1, Ordering::Relaxed);
            ids.iter().map(|id| Ok(verdict(*id, &fresh))).collect()
        }
        Err(error) if rows.len() == 1 => vec![Err(error)],
        Err(_) => {
            let mut outcomes = Vec::with_capacity(rows.len());
            for (id, row) in ids.iter().zip(rows) {
                let one = insert(write, std::slice::from_ref(id), std::slice::from_ref(row), now).await;
                commits.fetch_add(u64::from(one.is_ok()), Ordering::Relaxed);
                outcomes.push(one.map(|fresh| verdict(*id, &fresh)));
            }
            outcomes
        }
    }
}

fn verdict(id: i64, fresh: &[i64]) -> Accepted {
    if fresh.contains(&id) {
        Accepted::New(id)
    } else {
        Accepted::Duplicate
    }
}

/// Inserts in one statement, which is a transaction of its own, and gives the ids of the rows that were new. The events
/// of a batch are told apart by their ids, not by their keys: two copies of one event may be in it.
async fn insert(write: &AnyPool, ids: &[i64], rows: &[NewRow], now: Millis) -> Result<Vec<i64>> {
    let mut conn = write.acquire().await?;
    let (size, text) = statement(rows.len());
    let mut query = sqlx::query(AssertSqlSafe(text));
    for (id, row) in ids.iter().zip(rows) {
        query = bind_row(query, *id, row, InboxState::New, now);
    }
    // There is not a statement for every number of rows: what is over is filled with the last row, a duplicate of itself.
    if let (Some(id), Some(row)) = (ids.last(), rows.last()) {
        for _ in rows.len()..size {
            query = bind_row(query, *id, row, InboxState::New, now);
        }
    }
    // Not `RETURNING`: SQLite's driver hands over every row from its thread to ours, which costs more than the insert.
    let inserted = conn.execute(query).await?.rows_affected();
    if usize::try_from(inserted).is_ok_and(|inserted| inserted == rows.len()) {
        return Ok(ids.to_vec());
    }
    let (Some(first), Some(last)) = (ids.first(), ids.last()) else {
        return Ok(Vec::new());
    };
    let found = sqlx::query("SELECT id FROM inbox WHERE id BETWEEN $1 AND $2")
        .bind(first)
        .bind(last)
        .fetch_all(&mut *conn)
        .await?;
    found.iter().map(|row: &AnyRow| Ok(row.try_get("id")?)).collect()
}

type Statement<'q> = sqlx::query::Query<'q, sqlx::Any, sqlx::any::AnyArguments>;

fn bind_row<'q>(query: Statement<'q>, id: i64, row: &NewRow, state: InboxState, now: Millis) -> Statement<'q> {
    query
        .bind(id)
        .bind(row.event_key.as_slice())
        .bind(row.message_key.as_deref())
        .bind(row.channel)
        .bind(row.chat.as_str())
        .bind(row.person_key.as_slice())
        .bind(row.kind)
        .bind(state.as_str())
        .bind(now.0)
        .bind(row.payload.as_str())
}

/// Inserts one row inside somebody's transaction; false: it is a duplicate.
pub(super) async fn insert_one(conn: &mut AnyConnection, id: i64, row: &NewRow, state: InboxState, now: Millis) -> Result<bool> {
    let query = sqlx::query(AssertSqlSafe(statement(1).1));
    let done = conn.execute(bind_row(query, id, row, state, now)).await?;
    Ok(done.rows_affected() > 0)
}

/// Rows of a statement. Few of them, so that each is prepared once a connection and stays there.
const SIZES: [usize; 12] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, BATCH];

/// The smallest statement that takes `rows` rows, and its size.
fn statement(rows: usize) -> (usize, Arc<str>) {
    let at = SIZES.partition_point(|size| *size < rows).min(SIZES.len() - 1);
    (SIZES[at], Arc::clone(&TEXTS[at]))
}

static TEXTS: LazyLock<Vec<Arc<str>>> = LazyLock::new(|| {
    let text = |rows: &usize| {
        let rows: Vec<String> = (0..*rows)
            .map(|row| {
                let marks: Vec<String> = (1..=COLUMNS).map(|column| format!("${}", row * COLUMNS + column)).collect();
                format!("({})", marks.join(", "))
            })
            .collect();
        Arc::from(format!(
            "INSERT INTO inbox (id, event_key, message_key, channel, chat, person_key, kind, state, received_at, payload)
             VALUES {} ON CONFLICT DO NOTHING",
            rows.join(", ")
        ))
    };
    SIZES.iter().map(text).collect()
});
