//! Watches one file: notices that it changed, and waits until its writer is done.
//!
//! It looks at size and times, and does not ask the system for notices: a database in the same folder makes thousands of them a second,
//! and network file systems make none.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::sleep;

/// Between two looks. With what [`Watch::settle`] takes, an edit is in force within two seconds.
const LOOK: Duration = Duration::from_millis(500);
/// An editor's or a tool's writes are closer together than this.
const QUIET: Duration = Duration::from_millis(250);
/// A file that never rests is looked at all the same, after so many [`QUIET`]s.
const RESTLESS: u32 = 3;

/// What tells one state of a file from another, without reading it. Links are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stamp {
    /// The file was not looked at yet.
    Unknown,
    Missing,
    File {
        device: u64,
        inode: u64,
        size: u64,
        /// Seconds and nanoseconds of the last change of content, name or rights.
        changed: (i64, i64),
        /// Seconds and nanoseconds of the last change of content: a copy may bring an older one.
        modified: (i64, i64),
    },
}

impl Stamp {
    fn of(file: &Path) -> Self {
        fs::metadata(file).map_or(Self::Missing, |meta| Self::File {
            device: meta.dev(),
            inode: meta.ino(),
            size: meta.size(),
            changed: (meta.ctime(), meta.ctime_nsec()),
            modified: (meta.mtime(), meta.mtime_nsec()),
        })
    }
}

#[derive(Debug)]
pub struct Watch {
    file: PathBuf,
    seen: Stamp,
}

impl Watch {
    /// Watches `file`, which need not exist. The first [`Watch::changed`] comes back at once: what happened since the
    /// file was read for the start is not known.
    pub fn new(file: &Path) -> Self {
        Self {
            file: file.to_owned(),
            seen: Stamp::Unknown,
        }
    }

    /// Comes back once the file is not what it was when it last [settled](Watch::settle). May be dropped at any time.
    pub async fn changed(&self) {
        while self.is_settled() {
            sleep(LOOK).await;
        }
    }

    /// Waits until the file rests.
    pub async fn settle(&mut self) {
        for _ in 0..RESTLESS {
            self.seen = Stamp::of(&self.file);
            sleep(QUIET).await;
            if self.is_settled() {
                return;
            }
        }
        self.seen = Stamp::of(&self.file);
    }

    /// Is the file still as it settled?
    pub fn is_settled(&self) -> bool {
        self.seen == Stamp::of(&self.file)
    }

    /// Did it settle without content? Some writers empty a file before they fill it.
    pub fn is_empty(&self) -> bool {
        matches!(self.seen, Stamp::File { size: 0, .. })
    }
}
