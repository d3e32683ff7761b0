//! Connections to either kind of database, and transactions over them.

use std::sync::Arc;

use sqlx::{Any, AnyConnection, AnyPool, Executor as _, Transaction};

use super::file_pool::{FilePool, FileTransaction};
use super::{Result, file_sql, postgres};

/// A connection that is lent to a statement.
pub(super) enum Conn<'c> {
    File(&'c mut rusqlite::Connection),
    Server(&'c mut AnyConnection),
}

impl Conn<'_> {
    /// For one statement of several.
    pub(super) fn lend(&mut self) -> Conn<'_> {
        match self {
            Self::File(conn) => Conn::File(conn),
            Self::Server(conn) => Conn::Server(conn),
        }
    }
}

impl<'c> From<&'c mut rusqlite::Connection> for Conn<'c> {
    fn from(conn: &'c mut rusqlite::Connection) -> Self {
        Self::File(conn)
    }
}

impl<'c> From<&'c mut AnyConnection> for Conn<'c> {
    fn from(conn: &'c mut AnyConnection) -> Self {
        Self::Server(conn)
    }
}

/// What a transaction is begun for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Write,
    /// What it reads is one snapshot.
    Read,
}

/// A transaction that was begun; dropped without [`OpenTransaction::commit`] it is rolled back.
pub(super) enum OpenTransaction {
    File(FileTransaction),
    Server(Transaction<'static, Any>),
}

impl OpenTransaction {
    /// Its connection, for a statement.
    pub(super) fn lend(&mut self) -> Result<Conn<'_>> {
        match self {
            Self::File(begun) => Ok(Conn::File(begun.conn()?)),
            Self::Server(begun) => Ok(Conn::Server(begun)),
        }
    }

    pub(super) async fn commit(self) -> Result<()> {
        match self {
            Self::File(begun) => begun.commit().await,
            Self::Server(begun) => Ok(begun.commit().await?),
        }
    }
}

/// Connections to a database.
#[derive(Clone, Debug)]
pub(super) enum Pool {
    File(Arc<FilePool>),
    Server(AnyPool),
}

impl Pool {
    pub(super) async fn begin(&self, purpose: Purpose) -> Result<OpenTransaction> {
        match self {
            Self::File(pool) => Ok(OpenTransaction::File(pool.begin(purpose).await?)),
            Self::Server(pool) => Ok(OpenTransaction::Server(postgres::begin(pool, purpose).await?)),
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
