//! Connections to either kind of database, and transactions over them.

use std::sync::Arc;

use sqlx::{AnyPool, Executor as _};

use super::conn::{Conn, Purpose};
use super::file_pool::{FilePool, FileTransaction};
use super::server_pool::ServerTransaction;
use super::{Result, file_sql};

/// A transaction that was begun; dropped without [`OpenTransaction::commit`] it is rolled back.
pub(super) enum OpenTransaction {
    File(FileTransaction),
    Server(ServerTransaction),
}

impl OpenTransaction {
    /// Its connection, for a statement.
    pub(super) fn lend(&mut self) -> Result<Conn<'_>> {
        match self {
            Self::File(begun) => Ok(Conn::File(begun.conn()?)),
            Self::Server(begun) => Ok(begun.conn()),
        }
    }

    pub(super) async fn commit(self) -> Result<()> {
        match self {
            Self::File(begun) => begun.commit().await,
            Self::Server(begun) => begun.commit().await,
        }
    }
}

/// Connections to a database.
#[derive(Debug)]
pub(super) enum Pool {
    File(Arc<FilePool>),
    Server(AnyPool),
}

impl Pool {
    pub(super) async fn begin(&self, purpose: Purpose) -> Result<OpenTransaction> {
        match self {
            Self::File(pool) => Ok(OpenTransaction::File(pool.begin(purpose).await?)),
            Self::Server(pool) => Ok(OpenTransaction::Server(ServerTransaction::begin(pool, purpose).await?)),
        }
    }

    /// Does the database answer?
    pub(super) async fn ping(&self) -> Result<()> {
        match self {
            Self::File(pool) => {
                let mut begun = pool.begin(Purpose::Read).await?;
                file_sql::run(begun.conn()?, "SELECT 1", &[])?;
            }
            Self::Server(pool) => {
                pool.execute("SELECT 1").await?;
            }
        }
        Ok(())
    }

    pub(super) async fn close(&self) {
        match self {
            Self::File(pool) => pool.close().await,
            Self::Server(pool) => pool.close().await,
        }
    }
}
