//! The database file: how it is made, and the lock that gives it to one process.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use super::Result;
use crate::store::StoreError;

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

/// May we write the file, and make its side files? One is made beside it, or where its folder would be, and removed.
pub(super) fn try_writing(path: &Path) -> Result<()> {
    let trouble = |place: &Path, error: std::io::Error| StoreError::Unusable(format!("`{}` cannot be written: {error}", place.display()));
    if path.exists() {
        OpenOptions::new().append(true).open(path).map_err(|error| trouble(path, error))?;
    }
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let Some(folder) = real.ancestors().skip(1).find(|folder| folder.exists()) else {
        return Ok(());
    };
    let trial = folder.join(format!(".countersign-check-{}", std::process::id()));
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&trial)
        .and_then(|_| std::fs::remove_file(&trial))
        .map_err(|error| trouble(folder, error))
}

/// The lock on a database file.
#[derive(Debug)]
pub(super) struct FileLock {
    file: File,
    /// The database itself, locked under whatever name it is opened.
    inode: Option<File>,
    /// Without links.
    database: PathBuf,
    /// The last holder closed the database in order, and it has not changed since.
    closed: bool,
}

impl FileLock {
    /// Takes `<database>.lock` and writes our process id into it. The lock belongs to the open file, so a killed
    /// process leaves none behind; the file itself stays. A file of several names has a `.lock` beside each: the database itself is locked, too.
    pub(super) fn take(database: &Path) -> Result<Self> {
        let database = database.canonicalize().unwrap_or_else(|_| database.to_owned());
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
                let mut lock = Self {
                    file,
                    inode: None,
                    closed: closing_mark(&database).is_some_and(|mark| mark == before),
                    database,
                };
                lock.inode = lock_inode(&lock.database)?;
                write(&mut lock.file, &std::process::id().to_string()).map_err(trouble)?;
                Ok(lock)
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
        for file in std::iter::once(&self.file).chain(&self.inode) {
            if let Err(error) = file.unlock() {
                tracing::warn!(%error, "the lock of the database file is free when this process ends");
            }
        }
    }
}

/// Locks what the path leads to, its device and inode, whatever its name. Only on Linux, where such a lock and those of SQLite do not know of each other;
/// elsewhere they would meet.
fn lock_inode(database: &Path) -> Result<Option<File>> {
    if !cfg!(target_os = "linux") || !database.exists() {
        return Ok(None);
    }
    let trouble = |error: std::io::Error| StoreError::Unusable(format!("`{}`: {error}", database.display()));
    let inode = File::open(database).map_err(trouble)?;
    match inode.try_lock() {
        Ok(()) => Ok(Some(inode)),
        Err(TryLockError::WouldBlock) => Err(StoreError::Held {
            path: database.display().to_string(),
            pid: "unknown, under another name of the file".to_owned(),
        }),
        Err(TryLockError::Error(error)) => Err(trouble(error)),
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

    /// bugs F18: one file is locked once, whatever name leads to it: a link to it, a second name, a linked folder.
    #[cfg(target_os = "linux")]
    #[test]
    fn other_names_are_the_same_file() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("ledger.db");
        std::fs::write(&database, "").unwrap();
        std::fs::create_dir(folder.path().join("other")).unwrap();
        let (link, name) = (folder.path().join("other/link.db"), folder.path().join("other/name.db"));
        std::os::unix::fs::symlink(&database, &link).unwrap();
        std::fs::hard_link(&database, &name).unwrap();
        std::os::unix::fs::symlink(folder.path(), folder.path().join("folder")).unwrap();
        let all = [database.clone(), link, name, folder.path().join("folder/ledger.db")];
        for held in &all {
            let lock = FileLock::take(held).unwrap();
            for other in &all {
                let refused = FileLock::take(other);
                assert!(matches!(refused, Err(StoreError::Held { .. })), "{held:?} {other:?}: {refused:?}");
            }
            drop(lock);
        }
        FileLock::take(&database).unwrap();
    }

    /// peers F7: a place where no file can be made, or a folder in the place of the file, is told before the start; nothing stays behind.
    #[test]
    fn writing_is_tried() {
        let folder = tempfile::tempdir().unwrap();
        try_writing(&folder.path().join("a/b/ledger.db")).unwrap();
        let database = folder.path().join("ledger.db");
        std::fs::write(&database, "one").unwrap();
        try_writing(&database).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        assert_eq!(std::fs::read(&database).unwrap(), b"one");
        let error = try_writing(folder.path()).unwrap_err();
        assert!(matches!(error, StoreError::Unusable(_)), "{error}");
        #[cfg(target_os = "linux")]
        assert!(
            try_writing(Path::new("/proc/ledger.db"))
                .unwrap_err()
                .to_string()
                .contains("`/proc` cannot be written")
        );
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
