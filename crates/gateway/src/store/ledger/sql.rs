//! The four verbs of every statement ([`run`], [`one`], [`maybe`], [`all`]), columns by name, JSON, and what a database error means to a caller.
//!
//! An error never holds a row's content: a server's message may quote one, so it is passed on only where it speaks of the server itself.

use std::borrow::Cow;

use countersign_agent::domain::{ActionId, GateId, LaneId, Millis, TurnId};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::any::{AnyArguments, AnyRow};
use sqlx::postgres::PgDatabaseError;
use sqlx::query::Query;
use sqlx::{Any, AnyConnection, AssertSqlSafe, Decode, Row as _, SqlSafeStr as _, Type};

use super::Result;
use crate::store::StoreError;

/// A value that a statement is given. A null has the type of its column: PostgreSQL refuses another one.
#[derive(Debug)]
pub(super) enum Arg {
    /// BIGINT.
    Int(Option<i64>),
    /// TEXT.
    Text(Option<String>),
    /// BYTEA.
    Bytes(Option<Vec<u8>>),
}

/// What can be given to a statement.
pub(super) trait IntoArg {
    /// The null of the column's type.
    const NULL: Arg;
    fn into_arg(self) -> Arg;
}

impl<T: IntoArg> IntoArg for Option<T> {
    const NULL: Arg = T::NULL;
    fn into_arg(self) -> Arg {
        self.map_or(Self::NULL, T::into_arg)
    }
}

/// What can be read from a column.
pub(super) trait FromColumn: Sized {
    /// What the column holds.
    type Stored: for<'r> Decode<'r, Any> + Type<Any>;
    fn from_stored(stored: Self::Stored, column: &str) -> Result<Self>;
}

impl<T: FromColumn> FromColumn for Option<T> {
    type Stored = Option<T::Stored>;
    fn from_stored(stored: Self::Stored, column: &str) -> Result<Self> {
        stored.map(|stored| T::from_stored(stored, column)).transpose()
    }
}

/// How types are given to statements.
macro_rules! given {
    ($($type:ty: $arg:ident($value:ident => $given:expr);)*) => {$(
        impl IntoArg for $type {
            const NULL: Arg = Arg::$arg(None);
            fn into_arg(self) -> Arg {
                let $value = self;
                Arg::$arg(Some($given))
            }
        }
    )*};
}

given! {
    i64: Int(number => number);
    Millis: Int(at => at.0);
    u32: Int(count => i64::from(count));
    bool: Int(flag => i64::from(flag));
    String: Text(text => text);
    &String: Text(text => text.clone());
    &str: Text(text => text.to_owned());
    Cow<'_, str>: Text(text => text.into_owned());
    Vec<u8>: Bytes(bytes => bytes);
    &[u8]: Bytes(bytes => bytes.to_vec());
}

/// How types are read.
macro_rules! read {
    ($($type:ty: $stored:ty, $value:ident => $read:expr;)*) => {$(
        impl FromColumn for $type {
            type Stored = $stored;
            fn from_stored($value: $stored, _column: &str) -> Result<Self> {
                Ok($read)
            }
        }
    )*};
}

read! {
    i64: i64, number => number;
    Millis: i64, at => Self(at);
    bool: i64, flag => flag == 1;
    String: String, text => text;
    Vec<u8>: Vec<u8>, bytes => bytes;
}

impl FromColumn for u32 {
    type Stored = i64;
    fn from_stored(stored: i64, column: &str) -> Result<Self> {
        Self::try_from(stored).map_err(|_| StoreError::Corrupt(format!("column `{column}`: {stored} is out of range")))
    }
}

/// Ids are TEXT.
macro_rules! ids {
    ($($id:ty),*) => {$(
        given! { &$id: Text(id => id.as_str().to_owned()); }
        read! { $id: String, text => Self::new(text); }
    )*};
}

ids!(ActionId, GateId, LaneId, TurnId);

/// The values of a statement, in the order of its marks.
macro_rules! args {
    ($($value:expr),* $(,)?) => {
        vec![$($crate::store::ledger::sql::IntoArg::into_arg($value)),*]
    };
}
pub(super) use args;

/// A row of a result, read by column name.
pub(super) struct Row(AnyRow);

impl Row {
    pub(super) fn get<T: FromColumn>(&self, column: &str) -> Result<T> {
        T::from_stored(self.0.try_get(column)?, column)
    }

    pub(super) fn text(&self, column: &str) -> Result<String> {
        self.get(column)
    }

    pub(super) fn int(&self, column: &str) -> Result<i64> {
        self.get(column)
    }

    /// JSON in a TEXT column.
    pub(super) fn json<T: DeserializeOwned>(&self, column: &str) -> Result<T> {
        decode(column, self.0.try_get(column)?)
    }

    /// JSON in a TEXT column that may be null.
    pub(super) fn maybe_json<T: DeserializeOwned>(&self, column: &str) -> Result<Option<T>> {
        let text: Option<&str> = self.0.try_get(column)?;
        text.map(|text| decode(column, text)).transpose()
    }

    /// A value of a closed set, by the name that serde gives it.
    pub(super) fn named<T: DeserializeOwned>(&self, column: &str) -> Result<T> {
        self.maybe_named(column)?
            .ok_or_else(|| StoreError::Corrupt(format!("column `{column}`: null")))
    }

    /// A value of a closed set that may be null.
    pub(super) fn maybe_named<T: DeserializeOwned>(&self, column: &str) -> Result<Option<T>> {
        let Some(name) = self.get::<Option<String>>(column)? else {
            return Ok(None);
        };
        let value = serde_json::from_value(serde_json::Value::String(name));
        value
            .map_err(|_| StoreError::Corrupt(format!("column `{column}`: unknown name")))
            .map(Some)
    }
}

/// A statement's text.
pub(super) type Text = Cow<'static, str>;

/// Runs a statement and gives the number of rows that it changed.
pub(super) async fn run(conn: &mut AnyConnection, text: impl Into<Text>, args: Vec<Arg>) -> Result<u64> {
    Ok(query(text, args).execute(conn).await?.rows_affected())
}

/// The one row of a result.
pub(super) async fn one(conn: &mut AnyConnection, text: impl Into<Text>, args: Vec<Arg>) -> Result<Row> {
    Ok(Row(query(text, args).fetch_one(conn).await?))
}

/// The first row of a result, if it has any.
pub(super) async fn maybe(conn: &mut AnyConnection, text: impl Into<Text>, args: Vec<Arg>) -> Result<Option<Row>> {
    Ok(query(text, args).fetch_optional(conn).await?.map(Row))
}

/// All rows of a result.
pub(super) async fn all(conn: &mut AnyConnection, text: impl Into<Text>, args: Vec<Arg>) -> Result<Vec<Row>> {
    Ok(query(text, args).fetch_all(conn).await?.into_iter().map(Row).collect())
}

fn query(text: impl Into<Text>, args: Vec<Arg>) -> Query<'static, Any, AnyArguments> {
    let text = match text.into() {
        Cow::Borrowed(text) => text.into_sql_str(),
        // Texts are made of our own words alone; what others wrote is an argument.
        Cow::Owned(text) => AssertSqlSafe(text).into_sql_str(),
    };
    args.into_iter().fold(sqlx::query(text), |query, arg| match arg {
        Arg::Int(value) => query.bind(value),
        Arg::Text(value) => query.bind(value),
        Arg::Bytes(value) => query.bind(value),
    })
}

/// The JSON of `value`.
pub(super) fn encode<T: Serialize + ?Sized>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(|error| StoreError::Corrupt(format!("cannot be written as JSON: {error}")))
}

/// Reads JSON back. The message names the column and the place, never the content.
pub(super) fn decode<T: DeserializeOwned>(column: &str, text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| {
        StoreError::Corrupt(format!(
            "column `{column}`, line {}, character {}: {:?}",
            error.line(),
            error.column(),
            error.classify()
        ))
    })
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        match &error {
            sqlx::Error::Database(inner) => match inner.try_downcast_ref::<PgDatabaseError>() {
                Some(server) => of_postgres(server.code(), server.message(), server.constraint().or(server.table())),
                None => of_sqlite(&inner.code().unwrap_or_default(), inner.message()),
            },
            sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) | sqlx::Error::ColumnNotFound(_) => Self::Corrupt(error.to_string()),
            sqlx::Error::Configuration(why) => Self::Unusable(format!("the address is wrong: {why}")),
            sqlx::Error::PoolTimedOut => Self::Unavailable("no connection within the time".to_owned()),
            sqlx::Error::PoolClosed => Self::Unavailable("closed".to_owned()),
            sqlx::Error::Io(why) => Self::Unavailable(format!("no connection: {why}")),
            _ => Self::Unavailable(error.to_string()),
        }
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        match &error {
            rusqlite::Error::SqliteFailure(failure, message) => {
                let why = message.clone().unwrap_or_else(|| failure.to_string());
                of_sqlite(&failure.extended_code.to_string(), &why)
            }
            _ => Self::Unavailable(error.to_string()),
        }
    }
}

fn of_sqlite(code: &str, message: &str) -> StoreError {
    // SQLite gives extended result codes; the primary one is the low byte.
    match code.parse::<u32>().map(|code| code & 0xff) {
        Ok(CORRUPT | NOT_A_DATABASE) => StoreError::Unusable(message.to_owned()),
        Ok(CONSTRAINT) => StoreError::Corrupt(message.to_owned()),
        _ => StoreError::Unavailable(format!("{message} (code {code})")),
    }
}

/// By SQLSTATE, <https://www.postgresql.org/docs/current/errcodes-appendix.html>; `object`: the constraint or table that it is about.
fn of_postgres(code: &str, message: &str, object: Option<&str>) -> StoreError {
    match (code.get(..2).unwrap_or_default(), code) {
        // Another client's statement has the name of ours, or ours is in another session.
        (_, "42P05" | "26000") => StoreError::Unavailable(format!("{POOLER} (code {code})")),
        (_, "25006") => StoreError::Unavailable(format!("{message}: the server is read-only, perhaps a standby (code {code})")),
        (_, "3D000") => StoreError::Unusable(format!("{message}: create it")),
        ("28", _) => StoreError::Unusable(format!("the server refuses the user: {message}")),
        // An unknown table or column, or no right to it.
        ("42" | "3F", _) => StoreError::Unusable(format!("{message} (code {code})")),
        ("22" | "23", _) => match object {
            Some(object) => StoreError::Corrupt(format!("`{object}` refuses a value (code {code})")),
            None => StoreError::Corrupt(format!("a value is refused (code {code})")),
        },
        // Connections, transactions that met another one or waited too long, resources, the operator, the machine.
        // `0A`: what a standby answers to a transaction that is to write.
        ("08" | "0A" | "25" | "40" | "53" | "55" | "57" | "58", _) => StoreError::Unavailable(format!("{message} (code {code})")),
        _ => StoreError::Unavailable(format!("the server reports code {code}")),
    }
}

/// Did the connection break? What is tried over another one may go well.
pub(super) fn is_broken(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::Protocol(_) => true,
        // Class 08; the server is shut down or was started anew; a session that was ended for its idleness.
        sqlx::Error::Database(inner) => inner.try_downcast_ref::<PgDatabaseError>().is_some_and(|server| {
            let code = server.code();
            code.starts_with("08") || ["57P01", "57P02", "57P03", "57P05", "25P03"].contains(&code)
        }),
        _ => false,
    }
}

/// A pooler between us and the server.
pub(super) const POOLER: &str = "a pooler in front of PostgreSQL hands out transactions, it must hand out sessions";

/// `SQLITE_CORRUPT`, <https://www.sqlite.org/rescode.html>.
const CORRUPT: u32 = 11;
/// `SQLITE_CONSTRAINT`.
const CONSTRAINT: u32 = 19;
/// `SQLITE_NOTADB`.
const NOT_A_DATABASE: u32 = 26;

#[cfg(test)]
mod tests {
    use super::*;

    /// design: an error says what the caller can do: try again, mend the set-up, or set the row aside; never what a row holds.
    #[test]
    fn postgres_errors_have_classes() {
        for code in [
            "42P05", "26000", "0A000", "40001", "40P01", "55P03", "57P01", "57P03", "57014", "53300", "53100", "08006", "25P03", "25006",
            "58030", "XX000",
        ] {
            assert!(matches!(of_postgres(code, "m", None), StoreError::Unavailable(_)), "{code}");
        }
        for code in ["28P01", "28000", "3D000", "42P01", "42703", "42501", "3F000"] {
            assert!(matches!(of_postgres(code, "m", None), StoreError::Unusable(_)), "{code}");
        }
        for code in ["23505", "23503", "22P02", "22021"] {
            let error = of_postgres(code, "Key (id)=(secret) exists", Some("turns_pkey"));
            assert!(matches!(error, StoreError::Corrupt(_)), "{code}");
            assert!(
                error.to_string().contains("turns_pkey") && !error.to_string().contains("secret"),
                "{error}"
            );
        }
        for code in ["42P05", "26000"] {
            let said = of_postgres(code, "prepared statement \"sqlx_s_1\" already exists", None).to_string();
            assert!(said.contains(POOLER), "{said}");
        }
        let standby = of_postgres("25006", "cannot execute INSERT in a read-only transaction", None).to_string();
        assert!(standby.contains("perhaps a standby"), "{standby}");
        let missing = of_postgres("3D000", "database \"x\" does not exist", None).to_string();
        assert!(missing.contains("database \"x\" does not exist: create it"), "{missing}");
    }
}
