//! Connections to either kind of database, and transactions over them.

use std::sync::Arc;

use sqlx::{Any, AnyConnection, AnyPool, Executor as _, Transaction};

use super::file_pool::{FilePool, FileTransaction};
use super::{Result, file_sql, postgres};
use crate::store::StoreError;

/// A connection that is lent to a statement.
pub(super) enum Conn<'c> {
    File(&'c mut rusqlite::Connection),
    Server(ServerConn<'c>),
}

/// A connection to a server that is lent to a statement.
pub(super) struct ServerConn<'c> {
    conn: &'c mut AnyConnection,
    /// Of a transaction: [`ServerTransaction::doubtful`].
    doubtful: Option<&'c mut bool>,
}

impl ServerConn<'_> {
    /// For a statement that begins now.
    pub(super) fn begins(&mut self) -> &mut AnyConnection {
        if let Some(doubtful) = &mut self.doubtful {
            **doubtful = true;
        }
        self.conn
    }

    /// The statement has ended: one that went well leaves no doubt.
    pub(super) fn ends<T>(self, done: sqlx::Result<T>) -> Result<T> {
        if let Some(doubtful) = self.doubtful {
            *doubtful = done.is_err();
        }
        Ok(done?)
    }
}

impl Conn<'_> {
    /// For one statement of several.
    pub(super) fn lend(&mut self) -> Conn<'_> {
        match self {
            Self::File(conn) => Conn::File(conn),
            Self::Server(server) => Conn::Server(ServerConn {
                conn: server.conn,
                doubtful: server.doubtful.as_deref_mut(),
            }),
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
        Self::Server(ServerConn { conn, doubtful: None })
    }
}

/// What a transaction is begun for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Write,
    /// To write what belongs to the chat of this number: on a server such transactions run one after another.
    WriteChat(i64),
    /// What it reads is one snapshot.
    Read,
}

/// A transaction that was begun; dropped without [`OpenTransaction::commit`] it is rolled back.
pub(super) enum OpenTransaction {
    File(FileTransaction),
    Server(ServerTransaction),
}

/// A transaction on a server; dropped without a commit it is rolled back.
pub(super) struct ServerTransaction {
    begun: Transaction<'static, Any>,
    /// A statement failed, or was not waited for. PostgreSQL answers COMMIT with ROLLBACK then, which the driver takes for a success.
    doubtful: bool,
}

impl ServerTransaction {
    async fn commit(self) -> Result<()> {
        if self.doubtful {
            return Err(StoreError::Unavailable("a statement of the transaction failed".to_owned()));
        }
        Ok(self.begun.commit().await?)
    }
}

impl OpenTransaction {
    /// Its connection, for a statement.
    pub(super) fn lend(&mut self) -> Result<Conn<'_>> {
        match self {
            Self::File(begun) => Ok(Conn::File(begun.conn()?)),
            Self::Server(server) => Ok(Conn::Server(ServerConn {
                conn: &mut server.begun,
                doubtful: Some(&mut server.doubtful),
            })),
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
#[derive(Clone, Debug)]
pub(super) enum Pool {
    File(Arc<FilePool>),
    Server(AnyPool),
}

impl Pool {
    pub(super) async fn begin(&self, purpose: Purpose) -> Result<OpenTransaction> {
        match self {
            Self::File(pool) => Ok(OpenTransaction::File(pool.begin(purpose).await?)),
            Self::Server(pool) => {
                let begun = postgres::begin(pool, purpose).await?;
                Ok(OpenTransaction::Server(ServerTransaction { begun, doubtful: false }))
            }
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
