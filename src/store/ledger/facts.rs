//! Small facts: the bot's identity and the like.

use sqlx::{AnyConnection, Executor as _};

use super::sql::Columns;
use super::{Read, Result, Tx};

impl Read {
    /// A small fact (the bot's identity, …).
    pub async fn fact(&mut self, key: &str) -> Result<Option<String>> {
        get(&mut self.conn, key).await
    }
}

impl Tx {
    /// Stores a small fact.
    pub async fn set_fact(&mut self, key: &str, value: &str) -> Result<()> {
        set(&mut self.conn, key, value).await
    }
}

pub(in crate::store) async fn get(conn: &mut AnyConnection, key: &str) -> Result<Option<String>> {
    let query = sqlx::query("SELECT value FROM facts WHERE name = $1").bind(key);
    conn.fetch_optional(query).await?.map(|row| row.text("value")).transpose()
}

/// Stores a fact that is not there yet; false: it is.
pub(in crate::store) async fn set_first(conn: &mut AnyConnection, key: &str, value: &str) -> Result<bool> {
    let done = sqlx::query("INSERT INTO facts (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING")
        .bind(key)
        .bind(value)
        .execute(conn)
        .await?;
    Ok(done.rows_affected() > 0)
}

/// Stores a fact in place of the value that was read; false: it has another one by now. No other transaction changes it until this one ends.
pub(in crate::store) async fn replace(conn: &mut AnyConnection, key: &str, read: &str, value: &str) -> Result<bool> {
    let done = sqlx::query("UPDATE facts SET value = $1 WHERE name = $2 AND value = $3")
        .bind(value)
        .bind(key)
        .bind(read)
        .execute(conn)
        .await?;
    Ok(done.rows_affected() > 0)
}

pub(in crate::store) async fn set(conn: &mut AnyConnection, key: &str, value: &str) -> Result<()> {
    sqlx::query(
        "INSERT INTO facts (name, value) VALUES ($1, $2)
         ON CONFLICT (name) DO UPDATE SET value = excluded.value",
    )
    .bind(key)
    .bind(value)
    .execute(conn)
    .await?;
    Ok(())
}
