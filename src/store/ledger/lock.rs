//! One process a database file: an advisory lock beside it that dies with its holder.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use super::Result;
use crate::store::StoreError;

/// Takes `<database>.lock` and writes our process id into it. The lock belongs to the open file, so a killed
/// process leaves none behind; the file itself stays.
pub(super) fn take(database: &Path) -> Result<File> {
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
    match file.try_lock() {
        Ok(()) => {
            file.set_len(0).map_err(trouble)?;
            file.rewind().map_err(trouble)?;
            write!(file, "{}", std::process::id()).map_err(trouble)?;
            Ok(file)
        }
        Err(TryLockError::WouldBlock) => {
            let mut pid = String::new();
            // What the holder wrote is for people only; unreadable is no reason to say anything else.
            let _unreadable = file.read_to_string(&mut pid);
            Err(StoreError::Held {
                path: database.display().to_string(),
                pid: if pid.is_empty() { "unknown".to_owned() } else { pid },
            })
        }
        Err(TryLockError::Error(error)) => Err(trouble(error)),
    }
}

/// Gives it back at once. To close the file would not do: a child of ours that has not come to its `exec` yet has the same open
/// file, and with it the lock.
pub(super) fn give_back(held: &File) {
    if let Err(error) = held.unlock() {
        tracing::warn!(%error, "the lock of the database file is free when this process ends");
    }
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
        let of_a_child = held.try_clone().unwrap();
        assert!(matches!(take(&database), Err(StoreError::Held { .. })));
        give_back(&held);
        drop(held);
        take(&database).unwrap();
        drop(of_a_child);
    }
}
