//! `countersign migrate` and `countersign audit verify`: what is done with the database alone.

use std::process::ExitCode;

use countersign_gateway::config::Loaded;
use countersign_gateway::store::{AuditCheck, AuditHead, Ledger};

use super::output::{problem, result};

/// Brings the database to the current schema.
pub(super) async fn migrate(loaded: Loaded) -> anyhow::Result<ExitCode> {
    Ledger::migrate(&loaded.boot.stores.database_url).await?;
    result("the database has the current schema")?;
    Ok(ExitCode::SUCCESS)
}

/// Walks the approval trail; exit 1 when an entry was changed, removed or reordered, when what is stored of a review is not what the trail
/// says, or when the entry that was `expected` is not in it.
pub(super) async fn verify_audit(loaded: Loaded, expected: Option<AuditHead>) -> anyhow::Result<ExitCode> {
    let ledger = Ledger::open_read_only(&loaded.boot.stores.database_url).await?;
    let found = ledger.read().await?.verify_audit(expected.as_ref()).await?;
    let wrong = match found {
        AuditCheck::Sound(head) if head.seq == 0 => {
            result("0 entries, no head")?;
            return Ok(ExitCode::SUCCESS);
        }
        AuditCheck::Sound(head) => {
            result(&format!("{} entries, head {head}", head.seq))?;
            return Ok(ExitCode::SUCCESS);
        }
        AuditCheck::Broken { seq } => format!("the approval trail is broken at entry {seq}"),
        AuditCheck::Unexpected { seq } => format!("entry {seq} of the approval trail is not the one that --expect names, or is missing"),
        AuditCheck::Differs { gate, part } => format!("{gate}: {part}"),
    };
    problem(&wrong);
    Ok(ExitCode::FAILURE)
}
