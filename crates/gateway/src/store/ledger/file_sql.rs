//! Statements on a database file. SQLite runs in this process, and most statements take microseconds. So they run on the caller's thread: a
//! hand-over to another thread costs more. Commits of transactions, checks and migrations wait for the disk on other threads
//! (`file_pool.rs`). A read that misses the cache, a rollback and the opening of a further reader do not.

use std::sync::Arc;

use rusqlite::types::{FromSql, ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, Connection, Rows, ToSql};

use super::Result;
use super::arg::Arg;
use crate::store::StoreError;

/// A row of a result, taken out of the statement that gave it.
pub(super) struct FileRow {
    columns: Arc<[String]>,
    cells: Vec<Cell>,
}

/// What SQLite has stored, unchecked: a TEXT may hold anything.
enum Cell {
    Null,
    Int(i64),
    Real(f64),
    Text(Vec<u8>),
    Bytes(Vec<u8>),
}

impl Cell {
    fn of(value: ValueRef<'_>) -> Self {
        match value {
            ValueRef::Null => Self::Null,
            ValueRef::Integer(number) => Self::Int(number),
            ValueRef::Real(number) => Self::Real(number),
            ValueRef::Text(text) => Self::Text(text.to_vec()),
            ValueRef::Blob(bytes) => Self::Bytes(bytes.to_vec()),
        }
    }

    fn value(&self) -> ValueRef<'_> {
        match self {
            Self::Null => ValueRef::Null,
            Self::Int(number) => ValueRef::Integer(*number),
            Self::Real(number) => ValueRef::Real(*number),
            Self::Text(text) => ValueRef::Text(text),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
        }
    }
}

/// A type that can be read from a value of SQLite. `&str` borrows from it.
pub(super) trait FileValue<'r>: Sized {
    fn of_value(value: ValueRef<'r>) -> rusqlite::types::FromSqlResult<Self>;
}

/// Types that own what they hold.
macro_rules! owned {
    ($($type:ty),*) => {$(
        impl FileValue<'_> for $type {
            fn of_value(value: ValueRef<'_>) -> rusqlite::types::FromSqlResult<Self> {
                Self::column_result(value)
            }
        }
    )*};
}

owned!(i64, String, Vec<u8>);

impl<'r> FileValue<'r> for &'r str {
    fn of_value(value: ValueRef<'r>) -> rusqlite::types::FromSqlResult<Self> {
        value.as_str()
    }
}

impl<'r, T: FileValue<'r>> FileValue<'r> for Option<T> {
    fn of_value(value: ValueRef<'r>) -> rusqlite::types::FromSqlResult<Self> {
        match value {
            ValueRef::Null => Ok(None),
            value => T::of_value(value).map(Some),
        }
    }
}

impl FileRow {
    pub(super) fn get<'r, T: FileValue<'r>>(&'r self, column: &str) -> Result<T> {
        let corrupt = |why: String| StoreError::Corrupt(format!("column `{column}`: {why}"));
        let at = self.columns.iter().position(|name| name == column);
        let cell = at
            .and_then(|at| self.cells.get(at))
            .ok_or_else(|| corrupt("there is none".to_owned()))?;
        T::of_value(cell.value()).map_err(|why| corrupt(why.to_string()))
    }
}

impl ToSql for Arg {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let value = match self {
            Self::Int(Some(number)) => ValueRef::Integer(*number),
            Self::Text(Some(text)) => ValueRef::Text(text.as_bytes()),
            Self::Bytes(Some(bytes)) => ValueRef::Blob(bytes),
            Self::Int(None) | Self::Text(None) | Self::Bytes(None) => ValueRef::Null,
        };
        Ok(ToSqlOutput::Borrowed(value))
    }
}

/// Runs a statement and gives the number of rows that it changed.
pub(super) fn run(conn: &Connection, text: &str, args: &[Arg]) -> Result<u64> {
    let mut statement = prepare(conn, text, args)?;
    if statement.column_count() == 0 {
        return Ok(statement.raw_execute()? as u64);
    }
    let writes = !statement.readonly();
    let mut rows = statement.raw_query();
    while rows.next()?.is_some() {}
    drop(rows);
    Ok(if writes { conn.changes() } else { 0 })
}

/// The first row of a result, if it has any.
pub(super) fn maybe(conn: &Connection, text: &str, args: &[Arg]) -> Result<Option<FileRow>> {
    let mut statement = prepare(conn, text, args)?;
    let (columns, writes) = (columns(&statement), !statement.readonly());
    let mut rows = statement.raw_query();
    let first = next(&mut rows, &columns)?;
    // To the end: outside of a transaction what it wrote is committed there, and that may fail.
    while writes && rows.next()?.is_some() {}
    Ok(first)
}

/// All rows of a result.
pub(super) fn all(conn: &Connection, text: &str, args: &[Arg]) -> Result<Vec<FileRow>> {
    let mut statement = prepare(conn, text, args)?;
    let columns = columns(&statement);
    let mut rows = statement.raw_query();
    let mut read = Vec::new();
    while let Some(row) = next(&mut rows, &columns)? {
        read.push(row);
    }
    Ok(read)
}

fn columns(statement: &CachedStatement<'_>) -> Arc<[String]> {
    statement.column_names().into_iter().map(str::to_owned).collect()
}

fn next(rows: &mut Rows<'_>, columns: &Arc<[String]>) -> Result<Option<FileRow>> {
    let Some(row) = rows.next()? else { return Ok(None) };
    let cells = (0..columns.len()).map(|at| row.get_ref(at).map(Cell::of));
    Ok(Some(FileRow {
        columns: Arc::clone(columns),
        cells: cells.collect::<rusqlite::Result<_>>()?,
    }))
}

/// The statement with its values. SQLite numbers `$n` by its first place in the text, not by n. So each value is bound by its name.
fn prepare<'c>(conn: &'c Connection, text: &str, args: &[Arg]) -> Result<CachedStatement<'c>> {
    let mut statement = conn.prepare_cached(text)?;
    for place in 1..=statement.parameter_count() {
        let number = statement
            .parameter_name(place)
            .and_then(|name| name.strip_prefix('$')?.parse::<usize>().ok());
        let arg = number.and_then(|number| args.get(number.checked_sub(1)?));
        let arg = arg.ok_or_else(|| StoreError::Unusable(format!("a statement lacks its value {place}")))?;
        statement.raw_bind_parameter(place, arg)?;
    }
    Ok(statement)
}
