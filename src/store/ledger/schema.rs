//! The schema's version: brought up to this program's, or refused.

use sqlx::AnyConnection;
use sqlx::migrate::{Migrate, MigrateError, Migrator};

use super::Result;
use crate::store::StoreError;

static MIGRATIONS: Migrator = sqlx::migrate!("./migrations");

/// Brings the schema up to this program's version.
pub(super) async fn migrate(conn: &mut AnyConnection) -> Result<()> {
    MIGRATIONS.run(conn).await.map_err(unmigrated)
}

/// Refuses a schema that is not the one this program was built with.
pub(super) async fn check(conn: &mut AnyConnection) -> Result<()> {
    let ours = MIGRATIONS.iter().map(|migration| migration.version).max().unwrap_or(0);
    let applied = match conn.list_applied_migrations(&MIGRATIONS.table_name).await {
        Ok(applied) => applied.iter().map(|migration| migration.version).max().unwrap_or(0),
        Err(MigrateError::Execute(sqlx::Error::Database(error))) if error.message().contains("no such table") => 0,
        Err(error) => return Err(unmigrated(error)),
    };
    match applied.cmp(&ours) {
        std::cmp::Ordering::Equal => Ok(()),
        std::cmp::Ordering::Less => Err(StoreError::Unusable(format!(
            "its schema has version {applied}, this program needs {ours}: run `countersign migrate`"
        ))),
        std::cmp::Ordering::Greater => Err(newer(applied)),
    }
}

fn newer(version: i64) -> StoreError {
    let ours = MIGRATIONS.iter().map(|migration| migration.version).max().unwrap_or(0);
    StoreError::Unusable(format!("its schema has version {version}, newer than this program's {ours}"))
}

fn unmigrated(error: MigrateError) -> StoreError {
    match error {
        MigrateError::VersionMissing(version) => newer(version),
        MigrateError::VersionMismatch(version) => {
            StoreError::Unusable(format!("migration {version} was applied with another text than this program's"))
        }
        MigrateError::Dirty(version) => StoreError::Unusable(format!("migration {version} is half applied")),
        MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => error.into(),
        other => StoreError::Unusable(other.to_string()),
    }
}
