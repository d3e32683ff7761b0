//! Reading columns and writing JSON.

use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::Row;
use sqlx::any::AnyRow;

use super::Result;
use crate::store::StoreError;

/// One row, read by column name.
pub(super) trait Columns {
    /// TEXT.
    fn text(&self, column: &str) -> Result<String>;
    /// TEXT that may be null.
    fn maybe_text(&self, column: &str) -> Result<Option<String>>;
    /// BIGINT.
    fn int(&self, column: &str) -> Result<i64>;
    /// BIGINT that may be null.
    fn maybe_int(&self, column: &str) -> Result<Option<i64>>;
    /// BYTEA.
    fn bytes(&self, column: &str) -> Result<Vec<u8>>;
    /// JSON in a TEXT column.
    fn json<T: DeserializeOwned>(&self, column: &str) -> Result<T>;
    /// JSON in a TEXT column that may be null.
    fn maybe_json<T: DeserializeOwned>(&self, column: &str) -> Result<Option<T>>;
}

impl Columns for AnyRow {
    fn text(&self, column: &str) -> Result<String> {
        Ok(self.try_get(column)?)
    }
    fn maybe_text(&self, column: &str) -> Result<Option<String>> {
        Ok(self.try_get(column)?)
    }
    fn int(&self, column: &str) -> Result<i64> {
        Ok(self.try_get(column)?)
    }
    fn maybe_int(&self, column: &str) -> Result<Option<i64>> {
        Ok(self.try_get(column)?)
    }
    fn bytes(&self, column: &str) -> Result<Vec<u8>> {
        Ok(self.try_get(column)?)
    }
    fn json<T: DeserializeOwned>(&self, column: &str) -> Result<T> {
        decode(column, self.try_get::<&str, _>(column)?)
    }
    fn maybe_json<T: DeserializeOwned>(&self, column: &str) -> Result<Option<T>> {
        self.try_get::<Option<&str>, _>(column)?
            .map(|text| decode(column, text))
            .transpose()
    }
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

/// A value of a closed set from its stored name, by the name that serde gives it.
pub(super) fn named<T: DeserializeOwned>(column: &str, name: String) -> Result<T> {
    serde_json::from_value(serde_json::Value::String(name)).map_err(|_| StoreError::Corrupt(format!("column `{column}`: unknown name")))
}

/// A count that the domain keeps unsigned.
pub(super) fn unsigned(column: &str, value: i64) -> Result<u32> {
    u32::try_from(value).map_err(|_| StoreError::Corrupt(format!("column `{column}`: {value} is out of range")))
}
