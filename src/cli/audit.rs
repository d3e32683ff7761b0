//! `countersign audit verify`.

use std::process::ExitCode;

use super::{problem, result};
use crate::config::Loaded;
use crate::store::{AuditCheck, Ledger};

/// Walks the approval trail; exit 1 when an entry was changed, removed or reordered.
pub(super) async fn verify(loaded: Loaded) -> anyhow::Result<ExitCode> {
    let ledger = Ledger::open_read_only(&loaded.boot.stores.database_url).await?;
    let verdict = ledger.read().await?.verify_audit().await?;
    match verdict {
        AuditCheck::Sound { rows } => {
            result(&format!("the approval trail is whole: {rows} entries"))?;
            Ok(ExitCode::SUCCESS)
        }
        AuditCheck::Broken { seq } => {
            problem(&format!("the approval trail is broken at entry {seq}"));
            Ok(ExitCode::FAILURE)
        }
    }
}
