//! `countersign migrate`.

use std::process::ExitCode;

use super::result;
use crate::config::Loaded;
use crate::domain::Clock;
use crate::store::Ledger;

/// Brings the database to the current schema.
pub(super) async fn migrate(loaded: Loaded) -> anyhow::Result<ExitCode> {
    let ledger = Ledger::open(&loaded.boot.database_url, Clock::system(), true).await?;
    ledger.close().await;
    result("the database has the current schema")?;
    Ok(ExitCode::SUCCESS)
}
