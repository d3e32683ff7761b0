//! Reading a file through beside the work: for damage that nothing else would show until somebody needs the page.
//!
//! A file that was not closed in order, or was changed since, is read through before anything else (`sqlite::examine`). One that is as
//! we left it may still have rotted on its disk; that is worth a look, but nobody has to wait for it. A process that ends before its
//! reading does leaves the file as one that was not closed in order: a file is trusted unread once, not for ever.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{Ledger, Result};
use crate::store::StoreError;

/// A process that has just started has better things to do.
const PAUSE: Duration = Duration::from_secs(2);
/// Steps of SQLite's machine between two looks whether it shall go on.
const STEPS: i32 = 100_000;

/// The reading of a file; it ends with this value.
#[derive(Debug)]
pub(super) struct Reading {
    stop: CancellationToken,
    /// What came of it, once it has come to its end.
    found: Arc<OnceLock<std::result::Result<(), String>>>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Reading {
    /// Begins in a moment.
    pub(super) fn begin(path: &Path) -> Self {
        let (stop, found) = (CancellationToken::new(), Arc::default());
        let task = read(path.to_owned(), stop.clone(), Arc::clone(&found));
        Self {
            stop,
            found,
            task: Mutex::new(Some(tokio::spawn(task))),
        }
    }

    /// It has come to its end, and nothing was wrong.
    pub(super) fn found_nothing(&self) -> bool {
        self.found.get().is_some_and(std::result::Result::is_ok)
    }

    /// Comes back when nothing of it is open any more.
    pub(super) async fn end(&self) {
        self.stop.cancel();
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = task {
            // A panic in it has been told.
            let _ended = task.await;
        }
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn read(path: PathBuf, stop: CancellationToken, found: Arc<OnceLock<std::result::Result<(), String>>>) {
    if tokio::time::timeout(PAUSE, stop.cancelled()).await.is_ok() {
        return;
    }
    match verdict(&path, stop.clone()).await {
        Ok(verdict) if verdict == "ok" => {
            tracing::debug!("the database file is sound");
            // Nobody else sets it, here and below.
            let _first = found.set(Ok(()));
        }
        _ if stop.is_cancelled() => (),
        Ok(verdict) => {
            tracing::error!(file = %path.display(), verdict, "the database file is damaged: stop, and restore it from a copy");
            let _first = found.set(Err(format!("`{}`: the file is damaged: {verdict}", path.display())));
        }
        Err(error) => tracing::warn!(file = %path.display(), %error, "the database file could not be read through"),
    }
}

/// What SQLite finds first; `ok`: nothing.
async fn verdict(path: &Path, stop: CancellationToken) -> Result<String> {
    let mut conn = SqliteConnectOptions::new().filename(path).read_only(true).connect().await?;
    conn.lock_handle().await?.set_progress_handler(STEPS, move || !stop.is_cancelled());
    let verdict = sqlx::query_scalar("PRAGMA quick_check(1)").fetch_one(&mut conn).await;
    conn.close().await?;
    // What cannot be read on at all is damage, too.
    match verdict.map_err(StoreError::from) {
        Err(StoreError::Unusable(why)) => Ok(why),
        verdict => verdict,
    }
}

impl Ledger {
    /// What is wrong with the database file, if it was read through since the start and found damaged.
    #[must_use]
    pub fn damage(&self) -> Option<&str> {
        self.reading.as_ref()?.found.get()?.as_ref().err().map(String::as_str)
    }
}
