//! One process a database file: an advisory lock beside it that dies with its holder, and what the last holder wrote into it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use super::Result;
use crate::store::StoreError;

/// The lock on a database file.
#[derive(Debug)]
pub(super) struct Held {
    file: File,
    database: PathBuf,
    /// The last holder closed the database in order, and it has not changed since.
    closed: bool,
}

impl Held {
    /// The last holder closed the database in order (it gave its leases back), and the file has not changed since.
    pub(super) fn was_closed(&self) -> bool {
        self.closed
    }

    /// Gives it back, and writes down for the next holder that the database is closed.
    pub(super) fn give_back(mut self) {
        if let Some(seal) = seal(&self.database)
            && let Err(error) = write(&mut self.file, &seal)
        {
            tracing::debug!(%error, "the next start checks the database file");
        }
    }
}

impl Drop for Held {
    /// Unlocks the file. Closing it is not enough: a child that was forked and has not reached its `exec` has the same open file, and with
    /// it the lock.
    fn drop(&mut self) {
        if let Err(error) = self.file.unlock() {
            tracing::warn!(%error, "the lock of the database file is free when this process ends");
        }
    }
}

/// Takes `<database>.lock` and writes our process id into it. The lock belongs to the open file, so a killed
/// process leaves none behind; the file itself stays.
pub(super) fn take(database: &Path) -> Result<Held> {
    let mut name = database.as_os_str().to_owned();
    name.push(".lock");
    let path = PathBuf::from(name);
    let trouble = |error: std::io::Error| StoreError::Unusable(format!("{}: {error}", path.display()));
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .map_err(trouble)?;
    let locked = file.try_lock();
    let mut before = String::new();
    // What the last holder wrote is worth a look only; unreadable is as good as nothing.
    let _unreadable = file.read_to_string(&mut before);
    match locked {
        Ok(()) => {
            write(&mut file, &std::process::id().to_string()).map_err(trouble)?;
            Ok(Held {
                file,
                closed: seal(database).is_some_and(|seal| seal == before),
                database: database.to_owned(),
            })
        }
        Err(TryLockError::WouldBlock) => Err(StoreError::Held {
            path: database.display().to_string(),
            pid: if before.is_empty() { "unknown".to_owned() } else { before },
        }),
        Err(TryLockError::Error(error)) => Err(trouble(error)),
    }
}

/// What tells a closed database file from one that somebody wrote to afterwards: its size and when it was last changed. `None` means it is
/// not closed, for its log is still there.
fn seal(database: &Path) -> Option<String> {
    let mut log = database.as_os_str().to_owned();
    log.push("-wal");
    if std::fs::metadata(log).is_ok_and(|log| log.len() > 0) {
        return None;
    }
    let file = std::fs::metadata(database).ok()?;
    let changed = file.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(format!("closed {} {}", file.len(), changed.as_nanos()))
}

fn write(file: &mut File, text: &str) -> std::io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process that was just forked has our open files: what is given back is free all the same.
    #[test]
    fn given_back_means_free() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("ledger.db");
        let held = take(&database).unwrap();
        let of_a_child = held.file.try_clone().unwrap();
        assert!(matches!(take(&database), Err(StoreError::Held { .. })));
        held.give_back();
        take(&database).unwrap();
        drop(of_a_child);
    }

    /// A start that is refused (by the schema, say) lets go of the file, whatever a forked child still has open.
    #[test]
    fn dropped_means_free() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("ledger.db");
        let held = take(&database).unwrap();
        let of_a_child = held.file.try_clone().unwrap();
        drop(held);
        assert!(!take(&database).unwrap().was_closed(), "nothing says how it was left");
        drop(of_a_child);
    }

    /// design: only a file that was closed in order and is as it was then counts as closed.
    #[test]
    fn what_changed_since_the_end_is_not_closed() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("ledger.db");
        std::fs::write(&database, "one").unwrap();
        let held = take(&database).unwrap();
        assert!(!held.was_closed(), "it was never closed");
        held.give_back();
        let held = take(&database).unwrap();
        assert!(held.was_closed());
        drop(held);
        let held = take(&database).unwrap();
        assert!(!held.was_closed(), "its last holder died");
        held.give_back();
        std::fs::write(&database, "other").unwrap();
        let held = take(&database).unwrap();
        assert!(!held.was_closed(), "somebody else wrote to it");
        let log = folder.path().join("ledger.db-wal");
        std::fs::write(&log, "rest").unwrap();
        held.give_back();
        std::fs::remove_file(log).unwrap();
        assert!(!take(&database).unwrap().was_closed(), "its log was not put into it");
    }
}
