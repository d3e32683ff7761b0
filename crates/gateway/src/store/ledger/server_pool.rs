//! Transactions over a pool of connections to a server.

use std::borrow::Cow;

use sqlx::{Any, AnyPool, AssertSqlSafe, SqlSafeStr as _, Transaction};

use super::Result;
use super::conn::{Conn, Purpose, ServerConn};
use super::sql_errors::is_broken;
use crate::store::StoreError;

/// How a transaction that writes begins. A transaction that waited for the lock of its chat sees what the earlier holder committed.
const WRITE: &str = "BEGIN ISOLATION LEVEL READ COMMITTED, READ WRITE";
/// How a transaction that only reads begins. It reads one snapshot, as on SQLite.
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

/// Begins a transaction. If a connection is broken, nothing was done yet, so the next one is tried. After a restart of the server every
/// connection of the pool fails once.
///
/// Runs in its own task, because the caller may be dropped half-way (a call that a person interrupts, a lease that ends). The driver would
/// then give the connection back to the pool with an open transaction that nothing would end.
async fn begin(pool: &AnyPool, purpose: Purpose) -> sqlx::Result<Transaction<'static, Any>> {
    let statement: Cow<'static, str> = match purpose {
        Purpose::Write => WRITE.into(),
        // With the lock every rule between rows of one chat (a quorum, the queue of a lane, which gate is open) may be checked and then
        // written. The lock comes first: if it times out, the server ends its implicit transaction. One that BEGIN had opened would stay
        // open and failed, unseen by the driver. After the lock BEGIN can only repeat the isolation and mode of the session.
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
