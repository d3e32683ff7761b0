//! The schema's version: brought up to this program's, or refused.

use std::sync::LazyLock;

use rust_embed::RustEmbed;
use sqlx::error::DatabaseError;
use sqlx::migrate::{Migrate, MigrateError, Migration, MigrationType, Migrator};
use sqlx::postgres::PgDatabaseError;
use sqlx::{AnyConnection, AssertSqlSafe, SqlSafeStr};

use super::Result;
use crate::store::StoreError;

/// `sqlx::migrate!` would do the same, but its macro compiles both database drivers a second time.
#[derive(RustEmbed)]
#[folder = "../../migrations/"]
struct Files;

static MIGRATIONS: LazyLock<Migrator> =
    LazyLock::new(|| Migrator::with_migrations(Files::iter().filter_map(|name| migration(&name)).collect()));

/// The migration in a file `VERSION_DESCRIPTION.sql`, named and hashed as sqlx does it: databases keep both. Another file is none; a test
/// sees to it that there is no such file. All migrations run in a transaction.
fn migration(name: &str) -> Option<Migration> {
    let (version, description) = name.strip_suffix(".sql")?.split_once('_')?;
    let sql = String::from_utf8(Files::get(name)?.data.into_owned()).ok()?;
    Some(Migration::new(
        version.parse().ok()?,
        description.replace('_', " ").into(),
        MigrationType::Simple,
        AssertSqlSafe(sql).into_sql_str(),
        false,
    ))
}

/// How the schema of a database stands; see [`Ledger::schema_state`](super::Ledger::schema_state).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaState {
    /// There is none yet, but there can be.
    Absent,
    /// Its schema is older than this program's.
    Behind,
    /// It is as this program wants it.
    Current,
}

/// Brings the schema up to this program's version.
pub(super) async fn migrate(conn: &mut AnyConnection) -> Result<()> {
    MIGRATIONS.run(conn).await.map_err(unmigrated)
}

/// Refuses a schema that is not the one this program was built with.
pub(super) async fn check(conn: &mut AnyConnection) -> Result<()> {
    let (applied, ours) = versions(conn).await?;
    if applied < ours {
        return Err(StoreError::Unusable(format!(
            "its schema has version {applied}, this program needs {ours}: run `countersign migrate`"
        )));
    }
    Ok(())
}

/// The tables of the newest schema. Migrations only add.
pub(super) fn tables() -> Vec<String> {
    let made = |migration: &Migration| {
        let lines = migration.sql.as_str().lines();
        let names = lines.filter_map(|line| line.strip_prefix("CREATE TABLE ")?.split([' ', '(']).next());
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    MIGRATIONS.iter().flat_map(made).collect()
}

/// How the schema of a database that is there stands. A newer one is refused.
pub(super) async fn state(conn: &mut AnyConnection) -> Result<SchemaState> {
    let (applied, ours) = versions(conn).await?;
    Ok(if applied < ours {
        SchemaState::Behind
    } else {
        SchemaState::Current
    })
}

/// The schema's version, which is not newer than this program's, and this program's.
async fn versions(conn: &mut AnyConnection) -> Result<(i64, i64)> {
    let ours = MIGRATIONS.iter().map(|migration| migration.version).max().unwrap_or(0);
    let applied = match conn.list_applied_migrations(&MIGRATIONS.table_name).await {
        Ok(applied) => applied.iter().map(|migration| migration.version).max().unwrap_or(0),
        Err(MigrateError::Execute(sqlx::Error::Database(error))) if is_unknown_table(error.as_ref()) => 0,
        Err(error) => return Err(unmigrated(error)),
    };
    if applied > ours { Err(newer(applied)) } else { Ok((applied, ours)) }
}

fn is_unknown_table(error: &dyn DatabaseError) -> bool {
    match error.try_downcast_ref::<PgDatabaseError>() {
        Some(server) => server.code() == "42P01",
        None => error.message().contains("no such table"),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// design: each file of `migrations/` is a migration, and none asks to run outside of a transaction.
    #[test]
    fn every_file_is_a_migration() {
        let files: Vec<_> = Files::iter().collect();
        assert!(files.len() > 10, "{files:?}");
        assert_eq!(MIGRATIONS.iter().count(), files.len(), "{files:?}");
        assert!(
            MIGRATIONS
                .iter()
                .all(|migration| !migration.sql.as_str().starts_with("-- no-transaction"))
        );
        let tables = tables();
        assert!(
            tables.len() > 15
                && ["facts", "outbox_files", "feedback"]
                    .iter()
                    .all(|name| tables.iter().any(|table| table == name)),
            "{tables:?}"
        );
    }
}
