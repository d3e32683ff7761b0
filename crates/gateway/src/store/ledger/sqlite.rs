//! SQLite: one file and one process; two writers, of the journal and of the inbox, beside a few readers.

use std::path::Path;

use countersign_agent::domain::{Clock, Millis};
use rusqlite::Connection;

use super::file::FileLock;
use super::file_inbox::FileInbox;
use super::file_pool::{self, Access, FilePool, wait_for_disk};
use super::ids::Sequence;
use super::inner::Pools;
use super::pool::Pool;
use super::schema::SchemaState;
use super::{Result, file, schema};
use crate::store::StoreError;

/// See [`super::Ledger::schema_state`].
pub(super) async fn schema_state(path: &Path) -> Result<SchemaState> {
    if !path.exists() {
        let above = path.ancestors().skip(1).find(|folder| folder.exists());
        return match above {
            Some(folder) if !folder.is_dir() => Err(StoreError::Unusable(format!("`{}` is no folder", folder.display()))),
            _ => Ok(SchemaState::Absent),
        };
    }
    on_disk(path, |path| {
        examine(path, Access::Look)?;
        schema::state_of_file(&file_pool::connect(path, Access::Look)?)
    })
    .await
}

/// Takes the file for this process; gives its connections, its inbox, the lock that says so, and its ids.
pub(super) async fn open(path: &Path, clock: &Clock, migrate: bool) -> Result<(Pools, FileInbox, FileLock, Sequence)> {
    file::prepare(path)?;
    let lock = FileLock::take(path)?;
    let (closed, now) = (lock.was_closed(), clock.now());
    // The lock stays with the work, which goes on if nobody waits for it any more, and goes after the connections.
    let (mut write, read, inbox, lock) = on_disk(path, move |path| {
        if !closed {
            examine(path, Access::Write)?;
        }
        let mut write = file_pool::connect(path, Access::Write)?;
        set_up(&mut write, now, migrate, closed)?;
        Ok((write, file_pool::connect(path, Access::Read)?, FileInbox::open(path)?, lock))
    })
    .await?;
    let sequence = Sequence::begin((&mut write).into()).await.map_err(|error| naming(path, error))?;
    let pools = Pools {
        journal: Some(Pool::File(FilePool::new(path, Access::Write, write)?)),
        read: Pool::File(FilePool::new(path, Access::Read, read)?),
    };
    Ok((pools, inbox, lock, sequence))
}

/// Read-only connections to a file that another process may have open.
pub(super) async fn open_read_only(path: &Path) -> Result<Pools> {
    if !path.exists() {
        return Err(StoreError::Unusable(format!("there is no file `{}`", path.display())));
    }
    let read = on_disk(path, |path| {
        examine(path, Access::Look)?;
        let read = file_pool::connect(path, Access::Look)?;
        schema::check_file(&read)?;
        Ok(read)
    });
    Ok(Pools {
        journal: None,
        read: Pool::File(FilePool::new(path, Access::Look, read.await?)?),
    })
}

/// Runs work that waits for the disk, and names the file in its errors.
async fn on_disk<T: Send + 'static>(path: &Path, work: impl FnOnce(&Path) -> Result<T> + Send + 'static) -> Result<T> {
    let here = path.to_owned();
    wait_for_disk(move || work(&here)).await?.map_err(|error| naming(path, error))
}

/// Brings the schema up to date and ends every lease: the lock has proved that no other process lives. After an orderly stop lanes have
/// their next times. After a crash every lane that may have work is made ready now, and one with a turn under way counts a crash more.
fn set_up(write: &mut Connection, now: Millis, migrate: bool, closed: bool) -> Result<()> {
    if migrate {
        schema::migrate_file(write)?;
    } else {
        schema::check_file(write)?;
    }
    write.execute(
        concat!(
            "UPDATE lanes SET crashes = crashes + CASE WHEN owner <> '",
            super::lanes::stopping!(),
            "' AND (turn_id IS NOT NULL OR gathering IS NOT NULL) THEN 1 ELSE 0 END, owner = '', lease_until = 0, ready_at = $1, wakes = wakes + 1 WHERE owner <> ''"
        ),
        [now.0],
    )?;
    if !closed {
        write.execute(
            "UPDATE lanes SET ready_at = $1, wakes = wakes + 1 WHERE ready_at > $1 AND (turn_id IS NOT NULL
             OR EXISTS (SELECT 1 FROM inbox WHERE inbox.lane_id = lanes.id AND inbox.state = 'laned'))",
            [now.0],
        )?;
    }
    // While no process ran, none tried: what waits gets its whole time again. The process that held a row may have sent it: its
    // name stays.
    write.execute(
        "UPDATE outbox SET held_until = 0, give_up_at = $1 WHERE state = 'waiting'",
        [now.0.saturating_add(super::outbox::GIVE_UP_MS)],
    )?;
    Ok(())
}

/// Names the file in what is said about it.
fn naming(path: &Path, error: StoreError) -> StoreError {
    match error {
        StoreError::Unusable(why) => StoreError::Unusable(format!("`{}`: {why}", path.display())),
        StoreError::Unavailable(why) => StoreError::Unavailable(format!("`{}`: {why}", path.display())),
        other @ (StoreError::Stale | StoreError::Held { .. } | StoreError::Corrupt(_)) => other,
    }
}

/// Is it a sound database?
fn examine(path: &Path, access: Access) -> Result<()> {
    let conn = file_pool::open(path, access)?;
    let verdict: String = conn.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if verdict == "ok" {
        Ok(())
    } else {
        Err(StoreError::Unusable(format!("the file is damaged: {verdict}")))
    }
}
