//! The four verbs of every statement ([`run`], [`one`], [`maybe`], [`all`]), columns by name, and JSON.

use std::borrow::Cow;

use countersign_agent::domain::{ActionId, GateId, LaneId, Millis, TurnId};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::any::{AnyArguments, AnyRow};
use sqlx::query::Query;
use sqlx::{Any, AssertSqlSafe, Decode, Row as _, SqlSafeStr as _, Type};

use super::Result;
use super::arg::Arg;
use super::conn::Conn;
use super::file_sql::{self, FileRow, FileValue};
use crate::store::StoreError;

/// A type that can be read from a column of either database.
pub(super) trait Stored<'r>: Decode<'r, Any> + Type<Any> + FileValue<'r> {}

impl<'r, T: Decode<'r, Any> + Type<Any> + FileValue<'r>> Stored<'r> for T {}

/// A type that is made of what a column holds.
pub(super) trait FromColumn: Sized {
    /// What the column holds.
    type Stored: for<'r> Stored<'r>;
    fn from_stored(stored: Self::Stored, column: &str) -> Result<Self>;
}

impl<T: FromColumn> FromColumn for Option<T> {
    type Stored = Option<T::Stored>;
    fn from_stored(stored: Self::Stored, column: &str) -> Result<Self> {
        stored.map(|stored| T::from_stored(stored, column)).transpose()
    }
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
macro_rules! read_ids {
    ($($id:ty),*) => {$(
        read! { $id: String, text => Self::new(text); }
    )*};
}

read_ids!(ActionId, GateId, LaneId, TurnId);

/// A row of a result, read by column name.
pub(super) enum Row {
    File(FileRow),
    Server(AnyRow),
}

impl Row {
    fn stored<'r, T: Stored<'r>>(&'r self, column: &str) -> Result<T> {
        match self {
            Self::File(row) => row.get(column),
            Self::Server(row) => Ok(row.try_get(column)?),
        }
    }

    pub(super) fn get<T: FromColumn>(&self, column: &str) -> Result<T> {
        T::from_stored(self.stored(column)?, column)
    }

    pub(super) fn text(&self, column: &str) -> Result<String> {
        self.get(column)
    }

    pub(super) fn int(&self, column: &str) -> Result<i64> {
        self.get(column)
    }

    /// JSON in a TEXT column.
    pub(super) fn json<T: DeserializeOwned>(&self, column: &str) -> Result<T> {
        decode(column, self.stored(column)?)
    }

    /// JSON in a TEXT column that may be null.
    pub(super) fn maybe_json<T: DeserializeOwned>(&self, column: &str) -> Result<Option<T>> {
        let text: Option<&str> = self.stored(column)?;
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
pub(super) async fn run(conn: impl Into<Conn<'_>>, text: impl Into<Text>, args: Vec<Arg>) -> Result<u64> {
    match conn.into() {
        Conn::File(conn) => file_sql::run(conn, &text.into(), &args),
        Conn::Server(mut server) => {
            let done = query(text, args).execute(server.begin_statement()).await;
            Ok(server.note_end(done)?.rows_affected())
        }
    }
}

/// The first row of a result. None at all is an error.
pub(super) async fn one(conn: impl Into<Conn<'_>>, text: impl Into<Text>, args: Vec<Arg>) -> Result<Row> {
    match conn.into() {
        Conn::File(conn) => {
            let row = file_sql::maybe(conn, &text.into(), &args)?;
            row.map(Row::File).ok_or_else(|| rusqlite::Error::QueryReturnedNoRows.into())
        }
        Conn::Server(mut server) => {
            let done = query(text, args).fetch_one(server.begin_statement()).await;
            server.note_end(done).map(Row::Server)
        }
    }
}

/// The first row of a result, if it has any.
pub(super) async fn maybe(conn: impl Into<Conn<'_>>, text: impl Into<Text>, args: Vec<Arg>) -> Result<Option<Row>> {
    match conn.into() {
        Conn::File(conn) => Ok(file_sql::maybe(conn, &text.into(), &args)?.map(Row::File)),
        Conn::Server(mut server) => {
            let done = query(text, args).fetch_optional(server.begin_statement()).await;
            Ok(server.note_end(done)?.map(Row::Server))
        }
    }
}

/// All rows of a result.
pub(super) async fn all(conn: impl Into<Conn<'_>>, text: impl Into<Text>, args: Vec<Arg>) -> Result<Vec<Row>> {
    match conn.into() {
        Conn::File(conn) => Ok(file_sql::all(conn, &text.into(), &args)?.into_iter().map(Row::File).collect()),
        Conn::Server(mut server) => {
            let done = query(text, args).fetch_all(server.begin_statement()).await;
            Ok(server.note_end(done)?.into_iter().map(Row::Server).collect())
        }
    }
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
