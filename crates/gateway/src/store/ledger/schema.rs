//! The schema's version: brought up to this program's, or refused.

use std::sync::LazyLock;
use std::time::Instant;

use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior};
use rust_embed::RustEmbed;
use sqlx::migrate::{Migrate, MigrateError, Migration, MigrationType, Migrator};
use sqlx::postgres::PgDatabaseError;
use sqlx::{AnyConnection, AssertSqlSafe, SqlSafeStr};

use super::Result;
use crate::store::StoreError;

/// `sqlx::migrate!` would do the same, but its macro compiles the database drivers a second time.
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

/// Brings the schema of a server up to this program's version.
pub(super) async fn migrate(conn: &mut AnyConnection) -> Result<()> {
    MIGRATIONS.run(conn).await.map_err(unmigrated)
}

/// Brings the schema of a file up to this program's version. It notes migrations in the table of sqlx, which earlier versions of this program
/// used for files, too.
pub(super) fn migrate_file(conn: &mut Connection) -> Result<()> {
    conn.execute_batch(
        "CREATE TABLE IF NOT EXISTS _sqlx_migrations (version BIGINT PRIMARY KEY, description TEXT NOT NULL,
         installed_on TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, success BOOLEAN NOT NULL, checksum BLOB NOT NULL, execution_time BIGINT NOT NULL)",
    )?;
    let half = "SELECT version FROM _sqlx_migrations WHERE NOT success ORDER BY version LIMIT 1";
    if let Some(version) = conn.query_row(half, [], |row| row.get(0)).optional()? {
        return Err(unmigrated(MigrateError::Dirty(version)));
    }
    for version in versions_of_file(conn)? {
        if !MIGRATIONS.iter().any(|migration| migration.version == version) {
            return Err(unmigrated(MigrateError::VersionMissing(version)));
        }
    }
    for migration in MIGRATIONS.iter() {
        let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        apply(&tx, migration)?;
        tx.commit()?;
    }
    Ok(())
}

fn apply(tx: &Transaction<'_>, migration: &Migration) -> Result<()> {
    let known = "SELECT checksum FROM _sqlx_migrations WHERE version = ?";
    let known: Option<Vec<u8>> = tx.query_row(known, [migration.version], |row| row.get(0)).optional()?;
    match known {
        Some(checksum) if checksum == *migration.checksum => return Ok(()),
        Some(_) => return Err(unmigrated(MigrateError::VersionMismatch(migration.version))),
        None => {}
    }
    let begun = Instant::now();
    tx.execute_batch(migration.sql.as_str())?;
    let nanoseconds = i64::try_from(begun.elapsed().as_nanos()).unwrap_or(i64::MAX);
    tx.execute(
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) VALUES (?, ?, TRUE, ?, ?)",
        (migration.version, &migration.description, &migration.checksum, nanoseconds),
    )?;
    Ok(())
}

/// Refuses a schema of a server that is not the one this program was built with.
pub(super) async fn check(conn: &mut AnyConnection) -> Result<()> {
    refuse_older(applied(conn).await?)
}

/// Refuses a schema of a file that is not the one this program was built with.
pub(super) fn check_file(conn: &Connection) -> Result<()> {
    refuse_older(applied_to_file(conn)?)
}

fn refuse_older(applied: i64) -> Result<()> {
    match standing(applied)? {
        SchemaState::Current => Ok(()),
        SchemaState::Absent | SchemaState::Behind => Err(StoreError::Unusable(format!(
            "its schema has version {applied}, this program needs {}: run `countersign migrate`",
            ours()
        ))),
    }
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

/// How the schema of a server's database stands. A newer one is refused.
pub(super) async fn state(conn: &mut AnyConnection) -> Result<SchemaState> {
    standing(applied(conn).await?)
}

/// How the schema of a file that is there stands. A newer one is refused.
pub(super) fn state_of_file(conn: &Connection) -> Result<SchemaState> {
    standing(applied_to_file(conn)?)
}

fn standing(applied: i64) -> Result<SchemaState> {
    refuse_newer(applied)?;
    Ok(if applied < ours() {
        SchemaState::Behind
    } else {
        SchemaState::Current
    })
}

/// This program's version.
fn ours() -> i64 {
    MIGRATIONS.iter().map(|migration| migration.version).max().unwrap_or(0)
}

/// The version of a server's schema; 0 if there is none.
async fn applied(conn: &mut AnyConnection) -> Result<i64> {
    match conn.list_applied_migrations(&MIGRATIONS.table_name).await {
        Ok(applied) => Ok(applied.iter().map(|migration| migration.version).max().unwrap_or(0)),
        Err(MigrateError::Execute(sqlx::Error::Database(error)))
            if error
                .try_downcast_ref::<PgDatabaseError>()
                .is_some_and(|server| server.code() == "42P01") =>
        {
            Ok(0)
        }
        Err(error) => Err(unmigrated(error)),
    }
}

/// The version of a file's schema; 0 if there is none.
fn applied_to_file(conn: &Connection) -> Result<i64> {
    let table = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = '_sqlx_migrations'";
    if conn.query_row(table, [], |_| Ok(())).optional()?.is_none() {
        return Ok(0);
    }
    Ok(versions_of_file(conn)?.into_iter().max().unwrap_or(0))
}

/// The versions of the migrations that a file has.
fn versions_of_file(conn: &Connection) -> Result<Vec<i64>> {
    let mut versions = conn.prepare("SELECT version FROM _sqlx_migrations")?;
    Ok(versions.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?)
}

fn refuse_newer(version: i64) -> Result<()> {
    if version <= ours() {
        return Ok(());
    }
    Err(StoreError::Unusable(format!(
        "its schema has version {version}, newer than this program's {}",
        ours()
    )))
}

fn unmigrated(error: MigrateError) -> StoreError {
    match error {
        MigrateError::VersionMissing(version) => match refuse_newer(version) {
            Err(newer) => newer,
            Ok(()) => StoreError::Unusable(format!("its schema has version {version}, which this program does not know")),
        },
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
