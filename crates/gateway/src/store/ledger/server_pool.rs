//! Transactions over a pool of connections to a server.

use std::borrow::Cow;

use sqlx::{Any, AnyPool, AssertSqlSafe, SqlSafeStr as _, Transaction};

use super::Result;
use super::conn::{Conn, Purpose, ServerConn};
use super::sql_errors::is_broken;
use crate::store::StoreError;

/// How a transaction that writes begins: of two of a chat the second sees what the first has committed while it waited.
const WRITE: &str = "BEGIN ISOLATION LEVEL READ COMMITTED, READ WRITE";
/// How a transaction that only looks begins: what it reads is one snapshot, as on SQLite.
const SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY";

/// A transaction on a server; dropped without a commit it is rolled back.
pub(super) struct ServerTransaction {
    begun: Transaction<'static, Any>,
    /// A statement failed, or was not waited for. PostgreSQL answers COMMIT with ROLLBACK then, which the driver takes for a success.
    doubtful: bool,
}

impl ServerTransaction {
    pub(super) async fn begin(pool: &AnyPool, purpose: Purpose) -> Result<Self> {
        let begun = begin(pool, purpose).await?;
        Ok(Self { begun, doubtful: false })
    }

    /// Its connection, for a statement.
    pub(super) fn conn(&mut self) -> Conn<'_> {
        Conn::Server(ServerConn::of_transaction(&mut self.begun, &mut self.doubtful))
    }

    pub(super) async fn commit(self) -> Result<()> {
        if self.doubtful {
            return Err(StoreError::Unavailable("a statement of the transaction failed".to_owned()));
        }
        Ok(self.begun.commit().await?)
    }
}

/// Begins a transaction. Nothing was done yet when that fails, so it is tried over the next connection when one has broken:
/// after a restart of the server each of a pool's is found out once.
///
/// In a task of its own: a caller may be dropped in the middle (a call that a person interrupts, a lease that ends), and the
/// driver would give the connection back to its pool with an open transaction that nothing would end.
async fn begin(pool: &AnyPool, purpose: Purpose) -> sqlx::Result<Transaction<'static, Any>> {
    let statement: Cow<'static, str> = match purpose {
        Purpose::Write => WRITE.into(),
        // Every rule that holds between rows of one chat (a quorum, the queue of a lane, which gate is open) may be checked and then written. The
        // lock ends with the transaction, which begins with the first of the two statements. A lock that is not had in time ends it again;
        // after a BEGIN it would stay open and failed, and the driver would not know.
        Purpose::WriteChat(number) => format!("SELECT pg_advisory_xact_lock({number}); {WRITE}").into(),
        Purpose::Read => SNAPSHOT.into(),
    };
    let statement = AssertSqlSafe(statement).into_sql_str();
    let pool = pool.clone();
    let begun = tokio::spawn(async move {
        for _ in 0..pool.options().get_max_connections() {
            match pool.begin_with(statement.clone()).await {
                Err(error) if is_broken(&error) => tracing::debug!(%error, "a connection to the database broke"),
                begun => return begun,
            }
        }
        pool.begin_with(statement).await
    });
    begun.await.unwrap_or(Err(sqlx::Error::WorkerCrashed))
}
