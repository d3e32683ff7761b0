//! `countersign migrate`.

use std::process::ExitCode;

use super::result;
use crate::config::Loaded;
use crate::store::Ledger;

/// Brings the database to the current schema.
pub(super) async fn migrate(loaded: Loaded) -> anyhow::Result<ExitCode> {
    Ledger::migrate(&loaded.boot.stores.database_url).await?;
    result("the database has the current schema")?;
    Ok(ExitCode::SUCCESS)
}
