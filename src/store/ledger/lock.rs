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
