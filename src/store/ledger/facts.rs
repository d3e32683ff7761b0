//! Small facts: the bot's identity and the like.

use sqlx::Executor;

use super::sql::Columns;
use super::{Result, Session};

impl Session {
    /// A small fact (the bot's identity, …).
    pub async fn fact(&mut self, key: &str) -> Result<Option<String>> {
        let query = sqlx::query("SELECT value FROM facts WHERE name = $1").bind(key);
        self.tx.fetch_optional(query).await?.map(|row| row.text("value")).transpose()
    }

    /// Stores a small fact.
    pub async fn set_fact(&mut self, key: &str, value: &str) -> Result<()> {
        sqlx::query(
            "INSERT INTO facts (name, value) VALUES ($1, $2)
             ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        )
        .bind(key)
        .bind(value)
        .execute(&mut *self.tx)
        .await?;
        Ok(())
    }
}
