//! The database file: which one an address names, how it is made, and the lock that gives it to one process.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use secrecy::{ExposeSecret, SecretString};

use super::Result;
use crate::store::StoreError;

/// The file that a `sqlite://` address names, absolute. Of other addresses nothing is repeated: they hold passwords.
pub(super) fn path_of(url: &SecretString) -> Result<PathBuf> {
    let url = url.expose_secret();
    let Some(path) = url.strip_prefix("sqlite://") else {
        return Err(StoreError::Unusable(
            "the address must be sqlite://PATH, for example sqlite://data/countersign.db".to_owned(),
        ));
    };
    if path.is_empty() || path.contains(":memory:") || path.contains('?') {
        return Err(StoreError::Unusable(
            "the address must name a file after sqlite://, without options".to_owned(),
        ));
    }
    std::path::absolute(path).map_err(|error| StoreError::Unusable(format!("`{path}`: {error}")))
}

/// Makes the folder and an empty file that only we may read: people's chats are in it. SQLite gives its
/// side files the rights of the main one.
pub(super) fn prepare(path: &Path) -> Result<()> {
    let trouble = |error: std::io::Error| StoreError::Unusable(format!("`{}`: {error}", path.display()));
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(trouble)?;
    }
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map_err(trouble)?;
    Ok(())
}

/// The path inside a URL: every byte that could mean something there is spelled out.
pub(super) fn encoded(path: &Path) -> Result<String> {
    use std::fmt::Write as _;
    let text = path
        .to_str()
        .ok_or_else(|| StoreError::Unusable(format!("`{}` is not UTF-8", path.display())))?;
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-_.".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _infallible = write!(out, "%{byte:02X}");
        }
    }
    Ok(out)
}

/// The lock on a database file.
#[derive(Debug)]
pub(super) struct FileLock {
    file: File,
    database: PathBuf,
    /// The last holder closed the database in order, and it has not changed since.
    closed: bool,
}

impl FileLock {
    /// Takes `<database>.lock` and writes our process id into it. The lock belongs to the open file, so a killed
    /// process leaves none behind; the file itself stays.
    pub(super) fn take(database: &Path) -> Result<Self> {
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
                Ok(Self {
                    file,
                    closed: closing_mark(database).is_some_and(|mark| mark == before),
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

    /// The last holder closed the database in order (it gave its leases back), and the file has not changed since.
    pub(super) fn was_closed(&self) -> bool {
        self.closed
    }

    /// Gives it back, and writes down for the next holder that the database is closed.
    pub(super) fn give_back(mut self) {
        if let Some(mark) = closing_mark(&self.database)
            && let Err(error) = write(&mut self.file, &mark)
        {
            tracing::debug!(%error, "the next start checks the database file");
        }
    }
}

impl Drop for FileLock {
    /// Unlocks the file. Closing it is not enough: a child that was forked and has not reached its `exec` has the same open file, and with
    /// it the lock.
    fn drop(&mut self) {
        if let Err(error) = self.file.unlock() {
            tracing::warn!(%error, "the lock of the database file is free when this process ends");
        }
    }
}

/// What tells a closed database file from one that somebody wrote to afterwards: its size and when it was last changed. `None` means it is
/// not closed, for its log is still there.
fn closing_mark(database: &Path) -> Option<String> {
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

    /// design: addresses of other databases are refused without repeating their password.
    #[test]
    fn addresses() {
        for (url, wanted) in [
            ("oracle://u:hunter2@db/x", "sqlite://PATH"),
            ("mysql://u:hunter2@db/x", "sqlite://PATH"),
            ("sqlite::memory:", "sqlite://PATH"),
            ("sqlite://:memory:", "must name a file"),
            ("sqlite://x.db?mode=ro", "must name a file"),
            ("sqlite://", "must name a file"),
        ] {
            let error = path_of(&SecretString::from(url.to_owned())).unwrap_err().to_string();
            assert!(error.contains(wanted), "{url}: {error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
        let absolute = path_of(&SecretString::from("sqlite:///var/lib/x.db".to_owned())).unwrap();
        assert_eq!(absolute, Path::new("/var/lib/x.db"));
        let relative = path_of(&SecretString::from("sqlite://data/x.db".to_owned())).unwrap();
        assert!(relative.is_absolute() && relative.ends_with("data/x.db"));
    }

    /// A process that was just forked has our open files: what is given back is free all the same.
    #[test]
    fn given_back_means_free() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("ledger.db");
        let held = FileLock::take(&database).unwrap();
        let of_a_child = held.file.try_clone().unwrap();
        assert!(matches!(FileLock::take(&database), Err(StoreError::Held { .. })));
        held.give_back();
        FileLock::take(&database).unwrap();
        drop(of_a_child);
    }

    /// A start that is refused (by the schema, say) lets go of the file, whatever a forked child still has open.
    #[test]
    fn dropped_means_free() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("ledger.db");
        let held = FileLock::take(&database).unwrap();
        let of_a_child = held.file.try_clone().unwrap();
        drop(held);
        assert!(!FileLock::take(&database).unwrap().was_closed(), "nothing says how it was left");
        drop(of_a_child);
    }

    /// design: only a file that was closed in order and is as it was then counts as closed.
    #[test]
    fn what_changed_since_the_end_is_not_closed() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("ledger.db");
        std::fs::write(&database, "one").unwrap();
        let held = FileLock::take(&database).unwrap();
        assert!(!held.was_closed(), "it was never closed");
        held.give_back();
        let held = FileLock::take(&database).unwrap();
        assert!(held.was_closed());
        drop(held);
        let held = FileLock::take(&database).unwrap();
        assert!(!held.was_closed(), "its last holder died");
        held.give_back();
        std::fs::write(&database, "other").unwrap();
        let held = FileLock::take(&database).unwrap();
        assert!(!held.was_closed(), "somebody else wrote to it");
        let log = folder.path().join("ledger.db-wal");
        std::fs::write(&log, "rest").unwrap();
        held.give_back();
        std::fs::remove_file(log).unwrap();
        assert!(!FileLock::take(&database).unwrap().was_closed(), "its log was not put into it");
    }
}
