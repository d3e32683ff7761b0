//! Watches one file: notices that it changed, and waits until whoever writes it is done.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use tracing::warn;

/// The net under the system's notifications, which can fail (limits, network file systems, a link to another folder).
const LOOK: Duration = Duration::from_secs(1);
/// An editor's or a tool's writes are closer together than this.
const QUIET: Duration = Duration::from_millis(250);
/// A file that never rests is looked at all the same, after so many [`QUIET`]s.
const RESTLESS: u32 = 3;

/// What tells one state of a file from another, without reading it. Links are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stamp {
    /// Nobody has looked yet.
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

/// A file under watch.
#[derive(Debug)]
pub struct Watch {
    file: PathBuf,
    seen: Stamp,
    bell: Arc<Notify>,
    /// Rings the bell while it lives; none: only the net is left.
    _watcher: Option<RecommendedWatcher>,
}

impl Watch {
    /// Watches `file`, which need not exist. The first [`Watch::changed`] comes back at once: what happened since the
    /// file was read for the start is not known.
    #[must_use]
    pub fn new(file: &Path) -> Self {
        let bell = Arc::new(Notify::new());
        let watcher = watcher(file, Arc::clone(&bell));
        if let Err(error) = &watcher {
            let every = LOOK.as_secs();
            warn!(%error, "no notice of changes from the system; the configuration file is looked at every {every} s");
        }
        Self {
            file: file.to_owned(),
            seen: Stamp::Unknown,
            bell,
            _watcher: watcher.ok(),
        }
    }

    /// Comes back once the file is not what it was when it last [settled](Watch::settle). May be dropped at any time.
    pub async fn changed(&self) {
        while self.is_settled() {
            // A missed notice costs one look.
            let _ = timeout(LOOK, self.bell.notified()).await;
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
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.seen == Stamp::of(&self.file)
    }

    /// Did it settle without content? Some writers empty a file before they fill it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        matches!(self.seen, Stamp::File { size: 0, .. })
    }
}

/// Watches the folder: editors put another file in the place of the old one, and a mounted ConfigMap swaps a link beside it.
fn watcher(file: &Path, bell: Arc<Notify>) -> notify::Result<RecommendedWatcher> {
    let name = file.file_name().map(std::ffi::OsStr::to_owned);
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
        // Other files of the folder are written all the time, perhaps the database among them; links are only swapped.
        let ours = event.is_ok_and(|event| {
            let written = matches!(
                event.kind,
                EventKind::Access(_) | EventKind::Modify(notify::event::ModifyKind::Data(_))
            );
            !written || event.paths.iter().any(|path| path.file_name() == name.as_deref())
        });
        if ours {
            bell.notify_one();
        }
    })?;
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    watcher.watch(folder.unwrap_or(Path::new(".")), RecursiveMode::NonRecursive)?;
    Ok(watcher)
}
