//! The inbox of a database file: a connection of its own, on a thread of its own, appends what comes in, a whole batch at a time.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, ErrorCode, TransactionBehavior, params};

use super::Result;
use super::arrive::{DEADLINE, NewRow};
use super::file_pool::{self, Access};
use super::inner::Inner;

const INSERT: &str = "INSERT INTO inbox (id, event_key, message_key, channel, chat, person_key, kind, state, received_at, payload)
     VALUES (?, ?, ?, ?, ?, ?, ?, 'new', ?, ?)";

/// Appends to the inbox of a file.
#[derive(Debug)]
pub(super) struct FileInbox {
    path: PathBuf,
    /// `None` after a failure: a connection that failed may not have left its transaction, and would refuse every later one.
    conn: Option<Connection>,
}

impl FileInbox {
    /// For a file whose schema is current.
    pub(super) fn open(path: &Path) -> Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            conn: Some(connect(path)?),
        })
    }

    /// Stores the rows in one commit and gives their ids. A row that the database refuses does not take the others with it.
    pub(super) fn store(&mut self, inner: &Inner, rows: &[NewRow]) -> Result<Vec<Result<i64>>> {
        let mut conn = match self.conn.take() {
            Some(conn) => conn,
            None => connect(&self.path)?,
        };
        let stored = append_all(&mut conn, inner, rows)?;
        self.conn = Some(conn);
        Ok(stored)
    }
}

fn connect(path: &Path) -> Result<Connection> {
    let conn = file_pool::connect(path, Access::Write)?;
    // After this time the request was answered with 503: to wait longer for another program's lock helps nobody.
    conn.busy_timeout(DEADLINE)?;
    // What is appended to is at the ends of its trees.
    conn.execute_batch("PRAGMA cache_size = -512")?;
    Ok(conn)
}

fn append_all(conn: &mut Connection, inner: &Inner, rows: &[NewRow]) -> Result<Vec<Result<i64>>> {
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut stored = Vec::with_capacity(rows.len());
    for row in rows {
        stored.push(append(&tx, inner, row)?);
    }
    tx.commit()?;
    Ok(stored)
}

/// Appends one row. The inner error is a refusal of this row alone.
fn append(conn: &Connection, inner: &Inner, row: &NewRow) -> rusqlite::Result<Result<i64>> {
    let now = inner.clock.now();
    // Given now that it is the batch's turn: the order of ids is the order of commits.
    let id = inner.sequence.next(now);
    let values = params![
        id,
        row.event_key,
        row.message_key,
        row.channel,
        row.chat,
        row.person_key,
        row.kind,
        now.0,
        row.payload
    ];
    match conn.prepare_cached(INSERT)?.execute(values) {
        Ok(_) => Ok(Ok(id)),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => Ok(Err(error.into())),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::{FileInbox, NewRow};
    use crate::config::Stores;
    use crate::store::StoreError;
    use crate::store::ledger::{Ledger, sqlite};
    use countersign_agent::domain::{ChannelKind, Clock, Conversation, Inbound, InboundBody, Millis};
    use secrecy::SecretString;

    fn event(chat: &str) -> Inbound {
        Inbound {
            event_key: chat.to_owned(),
            message_key: None,
            conversation: Conversation {
                channel: ChannelKind::Slack,
                app: "app".to_owned(),
                tenant: "T1".to_owned(),
                chat: chat.to_owned(),
                thread: String::new(),
            },
            sender: "U1".to_owned(),
            sender_teams: Vec::new(),
            at: Millis(0),
            body: InboundBody::Joined,
        }
    }

    /// design: an event that was answered with 200 survives a power cut: WAL with `synchronous=FULL` (2). A lock is waited for while the platform waits.
    #[tokio::test]
    async fn every_batch_is_synced() {
        let folder = tempfile::tempdir().unwrap();
        let (pools, inbox, _lock, _) = sqlite::open(&folder.path().join("x.db"), &Clock::system(), true).await.unwrap();
        let conn = inbox.conn.as_ref().unwrap();
        let pragma = |name: &str| conn.query_row(name, [], |row| row.get::<_, i64>(0)).unwrap();
        assert_eq!((pragma("PRAGMA synchronous"), pragma("PRAGMA busy_timeout")), (2, 900));
        let mode: String = conn.query_row("PRAGMA journal_mode", [], |row| row.get(0)).unwrap();
        assert_eq!(mode, "wal");
        drop(inbox);
        pools.close().await;
    }

    /// A connection that was left inside a transaction, or failed otherwise, is replaced: events are taken again.
    #[tokio::test]
    async fn a_failed_connection_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let url = SecretString::from(format!("sqlite://{}/x.db", folder.path().display()));
        let ledger = Ledger::open(&Stores::embedded(url), Clock::system()).await.unwrap();
        let mut inbox = FileInbox::open(&folder.path().join("x.db")).unwrap();
        inbox.conn.as_ref().unwrap().execute_batch("BEGIN").unwrap();
        let row = || NewRow::new(&event("C1")).unwrap();
        inbox.store(&ledger.inner, &[row()]).unwrap_err();
        assert_eq!(inbox.store(&ledger.inner, &[row()]).unwrap().len(), 1);
        drop(inbox);
        ledger.close().await;
    }

    /// design: a row that the database refuses does not take the others of its commit with it.
    #[tokio::test]
    async fn a_refused_row_goes_alone() {
        let folder = tempfile::tempdir().unwrap();
        let url = SecretString::from(format!("sqlite://{}/x.db", folder.path().display()));
        let ledger = Ledger::open(&Stores::embedded(url), Clock::system()).await.unwrap();
        let trigger = "CREATE TRIGGER refuse BEFORE INSERT ON inbox WHEN NEW.chat = 'bad' BEGIN SELECT RAISE(ABORT, 'refused'); END";
        let mut tx = ledger.begin().await.unwrap();
        tx.run(trigger, Vec::new()).await.unwrap();
        tx.commit().await.unwrap();
        let (one, bad, other) = (event("C1"), event("bad"), event("C2"));
        let (one, bad, other) = tokio::join!(ledger.accept(&one), ledger.accept(&bad), ledger.accept(&other));
        assert!(one.unwrap() < other.unwrap());
        assert!(matches!(bad, Err(StoreError::Corrupt(_))), "{bad:?}");
        ledger.close().await;
    }
}
