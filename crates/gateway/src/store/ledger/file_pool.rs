//! Connections to a database file: the one that writes, or a few that read.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use parking_lot::Mutex;
use rusqlite::{Connection, OpenFlags};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::Instant;

use super::conn::Purpose;
use super::sql_errors::is_busy;
use super::{Result, file_sql};
use crate::store::StoreError;

/// How long [`FilePool::begin`] waits for a free connection.
const CONNECTION_WAIT: Duration = Duration::from_secs(2);
/// How long a transaction waits for the lock of another program.
const LOCK_WAIT: Duration = Duration::from_secs(5);
/// The pause between two tries for the lock.
const LOCK_CHECK: Duration = Duration::from_millis(5);
/// Readers beside the writers.
const READERS: u32 = 4;
/// Statements that a connection keeps prepared.
const STATEMENTS: usize = 100;

/// Whether a connection writes, and beside whom it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// A writer.
    Write,
    /// A reader of our own process.
    Read,
    /// A reader beside another process.
    Look,
}

/// Connections of one kind.
#[derive(Debug)]
pub(super) struct FilePool {
    path: PathBuf,
    access: Access,
    size: u32,
    /// One for each connection that may be taken.
    permits: Arc<Semaphore>,
    free: Mutex<Vec<Connection>>,
    closed: AtomicBool,
    /// Where commits wait. `None`: on the thread that asks.
    disk: Option<CommitThread>,
}

impl FilePool {
    /// With its first connection.
    pub(super) fn new(path: &Path, access: Access, first: Connection) -> Result<Arc<Self>> {
        let writes = access == Access::Write;
        let size = if writes { 1 } else { READERS };
        Ok(Arc::new(Self {
            path: path.to_owned(),
            access,
            size,
            permits: Arc::new(Semaphore::new(size as usize)),
            free: Mutex::new(vec![first]),
            closed: AtomicBool::new(false),
            disk: if writes { CommitThread::start()? } else { None },
        }))
    }

    pub(super) async fn begin(self: &Arc<Self>, purpose: Purpose) -> Result<FileTransaction> {
        self.refuse_if_closed()?;
        let permit = tokio::time::timeout(CONNECTION_WAIT, Arc::clone(&self.permits).acquire_owned())
            .await
            .map_err(|_| StoreError::Unavailable("no connection within the time".to_owned()))?
            .map_err(|_| closed())?;
        self.refuse_if_closed()?;
        let free = self.free.lock().pop();
        let conn = match free {
            Some(conn) => conn,
            None => connect(&self.path, self.access)?,
        };
        let mut begun = FileTransaction {
            conn: Some(conn),
            pool: Arc::clone(self),
            _permit: permit,
        };
        match purpose {
            Purpose::Read => begun.run("BEGIN")?,
            Purpose::Write | Purpose::WriteChat(_) => begun.wait_for_lock().await?,
        }
        Ok(begun)
    }

    fn refuse_if_closed(&self) -> Result<()> {
        if self.closed.load(Ordering::Acquire) {
            Err(closed())
        } else {
            Ok(())
        }
    }

    /// Closes all connections, once those that are taken have come back.
    pub(super) async fn close(&self) {
        self.closed.store(true, Ordering::Release);
        // An error says that it is closed already.
        let _all = self.permits.acquire_many(self.size).await;
        let free = std::mem::take(&mut *self.free.lock());
        // The last connection to be closed runs SQLite's final checkpoint. So the writer is closed last, and on the thread of commits.
        if let Some(disk) = &self.disk {
            let _gone = disk.run(move || drop(free)).await;
        }
        self.permits.close();
    }
}

fn closed() -> StoreError {
    StoreError::Unavailable("closed".to_owned())
}

/// A transaction on a file; dropped without [`FileTransaction::commit`] it is rolled back.
pub(super) struct FileTransaction {
    /// Until it is given back.
    conn: Option<Connection>,
    pool: Arc<FilePool>,
    /// Goes after the connection was given back.
    _permit: OwnedSemaphorePermit,
}

impl FileTransaction {
    /// The connection, if the transaction still stands. SQLite rolls back by itself when the disk is full. A later statement would then be
    /// committed alone.
    pub(super) fn conn(&mut self) -> Result<&mut Connection> {
        let conn = self.conn.as_mut().filter(|conn| !conn.is_autocommit());
        conn.ok_or_else(|| StoreError::Unavailable("the transaction was rolled back".to_owned()))
    }

    pub(super) async fn commit(self) -> Result<()> {
        let pool = Arc::clone(&self.pool);
        let commit = move || {
            let mut begun = self;
            begun.conn()?;
            begun.run("COMMIT")
        };
        match &pool.disk {
            Some(disk) => disk.run(commit).await?,
            None => commit(),
        }
    }

    /// Begins with the lock of the file. In this process `write_queue.rs` lets one connection write at a time, but another program may hold
    /// the lock. SQLite itself would wait on the runtime's thread, so this sleeps between tries.
    async fn wait_for_lock(&mut self) -> Result<()> {
        let until = Instant::now() + LOCK_WAIT;
        loop {
            let conn = self.conn.as_ref().ok_or_else(closed)?;
            conn.busy_timeout(Duration::ZERO)?;
            let begun = conn.prepare_cached("BEGIN IMMEDIATE").and_then(|mut begin| begin.execute([]));
            conn.busy_timeout(LOCK_WAIT)?;
            match begun {
                Ok(_) => return Ok(()),
                Err(error) if Instant::now() >= until || !is_busy(&error) => return Err(error.into()),
                Err(_) => tokio::time::sleep(LOCK_CHECK).await,
            }
        }
    }

    fn run(&self, text: &str) -> Result<()> {
        file_sql::run(self.conn.as_ref().ok_or_else(closed)?, text, &[])?;
        Ok(())
    }
}

impl Drop for FileTransaction {
    fn drop(&mut self) {
        let open = self.conn.as_ref().is_some_and(|conn| !conn.is_autocommit());
        let ended = !open || self.run("ROLLBACK").is_ok();
        // One that cannot leave its transaction is closed.
        if let Some(conn) = self.conn.take().filter(|conn| ended && conn.is_autocommit()) {
            self.pool.free.lock().push(conn);
        }
    }
}

/// A thread that waits for the disk, one commit after another. The runtime's threads for blocking work may all be taken, by tools whose
/// files hang.
#[derive(Debug)]
struct CommitThread(mpsc::Sender<Box<dyn FnOnce() + Send>>);

impl CommitThread {
    /// `None`: a runtime of one thread waits itself.
    fn start() -> Result<Option<Self>> {
        if runtime_has_one_thread() {
            return Ok(None);
        }
        let (jobs, waiting) = mpsc::channel::<Box<dyn FnOnce() + Send>>();
        let thread = std::thread::Builder::new().name("commits".to_owned());
        let no_thread = |why| StoreError::Unavailable(format!("no thread for commits: {why}"));
        let work = move || {
            for job in waiting {
                // A job that panics drops its answer, so its caller gets an error. The next commits need this thread.
                let _panicked = catch_unwind(AssertUnwindSafe(job));
            }
        };
        thread.spawn(work).map_err(no_thread)?;
        Ok(Some(Self(jobs)))
    }

    async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        let (done, answer) = oneshot::channel();
        // If the caller was dropped meanwhile, nobody reads the answer. The work is done all the same.
        let job = Box::new(move || drop(done.send(work())));
        self.0.send(job).map_err(|_| closed())?;
        answer
            .await
            .map_err(|_| StoreError::Unavailable("it is not known whether the commit was made".to_owned()))
    }
}

/// Has the runtime one thread? A simulation repeats exactly only on one thread, so all work is done there.
pub(super) fn runtime_has_one_thread() -> bool {
    Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread
}

/// Runs work of the start that waits for the disk on a thread for blocking work, unless the runtime has one thread.
pub(super) async fn wait_for_disk<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    if runtime_has_one_thread() {
        return Ok(work());
    }
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| StoreError::Unavailable("the file could not be opened".to_owned()))
}

/// A connection that is set up for its purpose.
pub(super) fn connect(path: &Path, access: Access) -> Result<Connection> {
    let conn = open(path, access)?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    for pragma in pragmas(access) {
        conn.execute_batch(pragma)?;
    }
    Ok(conn)
}

/// A connection that is not set up: it waits 5 s for a lock, as `rusqlite` has it.
pub(super) fn open(path: &Path, access: Access) -> Result<Connection> {
    let rights = if access == Access::Look {
        OpenFlags::SQLITE_OPEN_READ_ONLY
    } else {
        OpenFlags::SQLITE_OPEN_READ_WRITE
    };
    Ok(Connection::open_with_flags(path, rights | OpenFlags::SQLITE_OPEN_NO_MUTEX)?)
}

/// `FULL`: a commit that was answered with 200 survives a power cut, <https://www.sqlite.org/pragma.html#pragma_synchronous>.
fn pragmas(access: Access) -> &'static [&'static str] {
    match access {
        Access::Write => &[
            "PRAGMA journal_mode = WAL",
            "PRAGMA synchronous = FULL",
            "PRAGMA foreign_keys = ON",
            // 16 MiB: keys are spread, and a page that changes again before the checkpoint is written once.
            "PRAGMA wal_autocheckpoint = 4000",
        ],
        Access::Read | Access::Look => &["PRAGMA query_only = ON"],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn pool(folder: &Path) -> Arc<FilePool> {
        let path = folder.join("x.db");
        Connection::open(&path).unwrap().execute_batch("CREATE TABLE t (x)").unwrap();
        let first = connect(&path, Access::Write).unwrap();
        FilePool::new(&path, Access::Write, first).unwrap()
    }

    async fn rows(pool: &Arc<FilePool>) -> i64 {
        let mut begun = pool.begin(Purpose::Write).await.unwrap();
        begun
            .conn()
            .unwrap()
            .query_row("SELECT COUNT(*) FROM t", [], |row| row.get(0))
            .unwrap()
    }

    /// A commit that nobody waits for any more is made all the same, and its connection comes back.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_commit_goes_on_without_its_caller() {
        let folder = tempfile::tempdir().unwrap();
        let pool = pool(folder.path()).await;
        let mut begun = pool.begin(Purpose::Write).await.unwrap();
        begun.conn().unwrap().execute("INSERT INTO t VALUES (1)", []).unwrap();
        let mut commit = Box::pin(begun.commit());
        // Ready, too, if the disk was quick.
        let _begun = futures_util::poll!(&mut commit);
        drop(commit);
        assert_eq!(rows(&pool).await, 1);
        pool.close().await;
    }

    /// A transaction that is dropped is rolled back, and its connection comes back; after the close there is none.
    #[tokio::test]
    async fn what_is_dropped_is_rolled_back() {
        let folder = tempfile::tempdir().unwrap();
        let pool = pool(folder.path()).await;
        let mut begun = pool.begin(Purpose::Write).await.unwrap();
        begun.conn().unwrap().execute("INSERT INTO t VALUES (1)", []).unwrap();
        drop(begun);
        assert_eq!(rows(&pool).await, 0);
        pool.close().await;
        assert!(pool.begin(Purpose::Write).await.is_err());
    }

    /// Work that panics takes nobody else's commits with it.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn the_thread_of_commits_outlives_a_panic() {
        let disk = CommitThread::start().unwrap().unwrap();
        assert!(disk.run(|| panic!("a test")).await.is_err());
        assert_eq!(disk.run(|| 7).await.unwrap(), 7);
    }
}
