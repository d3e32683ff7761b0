//! `countersign audit verify`.

use std::process::ExitCode;

use super::{problem, result};
use crate::config::Loaded;
use crate::domain::Clock;
use crate::store::Ledger;

/// Walks the approval trail; exit 1 when an entry was changed, removed or reordered.
pub(super) async fn verify(loaded: Loaded) -> anyhow::Result<ExitCode> {
    let ledger = Ledger::open_read_only(&loaded.boot.database_url, Clock::system()).await?;
    let verdict = ledger.read().await?.verify_audit().await?;
    match verdict {
        Ok(entries) => {
            result(&format!("the approval trail is whole: {entries} entries"))?;
            Ok(ExitCode::SUCCESS)
        }
        Err(entry) => {
            problem(&format!("the approval trail is broken at entry {entry}"));
            Ok(ExitCode::FAILURE)
        }
    }
}
