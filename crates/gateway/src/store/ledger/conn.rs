//! Connections that are lent to statements, and what a transaction is begun for.

use sqlx::AnyConnection;

use super::Result;

/// A connection that is lent to a statement.
pub(super) enum Conn<'c> {
    File(&'c mut rusqlite::Connection),
    Server(ServerConn<'c>),
}

/// A connection to a server that is lent to a statement.
pub(super) struct ServerConn<'c> {
    conn: &'c mut AnyConnection,
    /// Set while a statement runs, and left set if it fails or is dropped. `None` outside of a transaction.
    doubtful: Option<&'c mut bool>,
}

impl<'c> ServerConn<'c> {
    /// Of a transaction, which hears in `doubtful` how its statements end.
    pub(super) fn of_transaction(conn: &'c mut AnyConnection, doubtful: &'c mut bool) -> Self {
        let doubtful = Some(doubtful);
        Self { conn, doubtful }
    }

    /// The connection, for a statement that begins now.
    pub(super) fn begin_statement(&mut self) -> &mut AnyConnection {
        if let Some(doubtful) = &mut self.doubtful {
            **doubtful = true;
        }
        self.conn
    }

    /// The statement has ended. One that went well leaves no doubt, nor does one that found no row.
    pub(super) fn note_end<T>(self, done: sqlx::Result<T>) -> Result<T> {
        if let Some(doubtful) = self.doubtful {
            *doubtful = done.as_ref().is_err_and(|error| !matches!(error, sqlx::Error::RowNotFound));
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

/// Whether a transaction reads or writes, and for whom it takes a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Write,
    /// To write what belongs to a chat. On a server transactions with the same number run one after another.
    WriteChat(i64),
    /// To read. All statements see one snapshot.
    Read,
}
