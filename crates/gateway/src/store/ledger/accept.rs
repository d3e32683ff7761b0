//! The accept path: concurrent events share one commit, and no request is answered before it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use countersign_agent::domain::Inbound;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use super::Result;
use super::arrive::{BATCH, DEADLINE, NewRow, ServerInbox};
use super::file_inbox::FileInbox;
use super::file_pool::runtime_has_one_thread;
use super::inner::Inner;
use super::wakeups::Effects;
use crate::store::StoreError;

/// Events that wait for the writer at most; more than this and the platform shall send again.
const WAITING: usize = 1024;

fn closing() -> StoreError {
    StoreError::Unavailable("shutting down".to_owned())
}

/// Where batches go.
#[derive(Debug)]
pub(super) enum InboxStore {
    File(FileInbox),
    Server(ServerInbox),
}

impl InboxStore {
    fn is_file(&self) -> bool {
        matches!(self, Self::File(_))
    }
}

/// What the writer task is asked for.
#[derive(Debug)]
enum Job {
    Row(NewRow, oneshot::Sender<Result<i64>>),
    /// Commit what came before, then stop.
    Finish(oneshot::Sender<()>),
}

/// The handle of the writer task; the task ends when the last handle is gone.
#[derive(Clone, Debug)]
pub(super) struct Acceptor {
    jobs: mpsc::Sender<Job>,
    commits: Arc<AtomicU64>,
    /// The newest event could not be stored.
    refusing: Arc<AtomicBool>,
}

impl Acceptor {
    pub(super) fn start(inner: Arc<Inner>, store: InboxStore) -> Result<Self> {
        let (jobs, inbox) = mpsc::channel(WAITING);
        let commits = Arc::new(AtomicU64::new(0));
        // A runtime of one thread writes on it.
        let blocks = store.is_file() && !runtime_has_one_thread();
        let writing = write_batches(inner, inbox, Arc::clone(&commits), store);
        if blocks {
            let runtime = Handle::current();
            let thread = std::thread::Builder::new().name("inbox".to_owned());
            let no_thread = |why| StoreError::Unavailable(format!("no thread for the inbox: {why}"));
            thread.spawn(move || runtime.block_on(writing)).map_err(no_thread)?;
        } else {
            tokio::spawn(writing);
        }
        Ok(Self {
            jobs,
            commits,
            refusing: Arc::default(),
        })
    }

    /// Stores one event within [`DEADLINE`], in a commit that it may share with others.
    pub(super) async fn accept(&self, inbound: &Inbound) -> Result<i64> {
        let row = NewRow::new(inbound)?;
        let (reply, answer) = oneshot::channel();
        let stored = async {
            self.jobs.send(Job::Row(row, reply)).await.map_err(|_| closing())?;
            answer.await.map_err(|_| closing())?
        };
        let stored = tokio::time::timeout(DEADLINE, stored)
            .await
            .unwrap_or_else(|_| Err(StoreError::Unavailable("the inbox is too slow".to_owned())));
        let refused = matches!(stored, Err(StoreError::Unavailable(_) | StoreError::Unusable(_)));
        self.refusing.store(refused, Ordering::Relaxed);
        stored
    }

    /// Commits so far.
    pub(super) fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    /// Was the newest event refused?
    pub(super) fn is_refusing(&self) -> bool {
        self.refusing.load(Ordering::Relaxed)
    }

    /// The database was written to since.
    pub(super) fn is_well(&self) {
        self.refusing.store(false, Ordering::Relaxed);
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

async fn write_batches(inner: Arc<Inner>, mut inbox: mpsc::Receiver<Job>, commits: Arc<AtomicU64>, mut store: InboxStore) {
    let mut jobs = Vec::with_capacity(BATCH);
    let mut finish = Vec::new();
    while inbox.recv_many(&mut jobs, BATCH).await > 0 {
        if store.is_file() {
            // The first event wakes this thread, perhaps on the core that reads the next ones: they come first, and share the commit. Where
            // nobody else wants the core, this is no wait.
            std::thread::yield_now();
            while jobs.len() < BATCH
                && let Ok(job) = inbox.try_recv()
            {
                jobs.push(job);
            }
        }
        let mut rows = Vec::with_capacity(jobs.len());
        let mut replies = Vec::with_capacity(jobs.len());
        for job in jobs.drain(..) {
            match job {
                // Its request was answered: the platform was told to send it again.
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
            let outcomes = commit_batch(&inner, &mut store, &rows, &commits).await;
            let new = outcomes.iter().any(Result::is_ok);
            for (reply, outcome) in replies.into_iter().zip(outcomes) {
                // A closed reply means that the caller's time was up; the row is committed and its repeat a copy.
                let _late = reply.send(outcome);
            }
            inner.wakeups.after_commit(Effects {
                inbox: new,
                ..Effects::default()
            });
        }
    }
    // Before anybody is told: the last connection to a file tidies it up.
    match store {
        InboxStore::File(file) => drop(file),
        InboxStore::Server(server) => server.close().await,
    }
    for done in finish {
        let _gone = done.send(());
    }
}

/// One commit for all rows. A row that the database refuses does not take the others with it.
async fn commit_batch(inner: &Inner, store: &mut InboxStore, rows: &[NewRow], commits: &AtomicU64) -> Vec<Result<i64>> {
    let _pass = match &inner.write_queue {
        Some(queue) => Some(queue.pass_for_batch().await),
        None => None,
    };
    let stored = match store {
        InboxStore::File(file) => file.store(inner, rows),
        InboxStore::Server(server) => server.store(inner, rows).await.map(|ids| ids.into_iter().map(Ok).collect()),
    };
    match stored {
        Ok(outcomes) => {
            commits.fetch_add(1, Ordering::Relaxed);
            outcomes
        }
        // A row that a server refuses: one commit each. What it cannot do now, it can do for none of them.
        Err(StoreError::Corrupt(_)) if !store.is_file() && rows.len() > 1 => {
            let mut outcomes = Vec::with_capacity(rows.len());
            for row in rows {
                outcomes.extend(Box::pin(commit_batch(inner, store, std::slice::from_ref(row), commits)).await);
            }
            outcomes
        }
        Err(error) => {
            let why = error.to_string();
            let mut first = Some(error);
            let each = || first.take().unwrap_or_else(|| StoreError::Unavailable(why.clone()));
            std::iter::repeat_with(each).take(rows.len()).map(Err).collect()
        }
    }
}
