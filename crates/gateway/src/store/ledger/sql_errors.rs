//! What an error of a database means to a caller: to try again, to mend the set-up, or to set a row aside.
//!
//! An error never holds a row's content: a server's message may quote one, so it is passed on only where it speaks of the server itself.

use rusqlite::ErrorCode;
use sqlx::postgres::PgDatabaseError;

use crate::store::StoreError;

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        match &error {
            sqlx::Error::Database(inner) => match inner.try_downcast_ref::<PgDatabaseError>() {
                Some(server) => of_postgres(server.code(), server.message(), server.constraint().or(server.table())),
                None => Self::Unavailable(error.to_string()),
            },
            sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) | sqlx::Error::ColumnNotFound(_) => Self::Corrupt(error.to_string()),
            sqlx::Error::Configuration(why) => Self::Unusable(format!("the address is wrong: {why}")),
            sqlx::Error::PoolTimedOut => Self::Unavailable("no connection within the time".to_owned()),
            sqlx::Error::PoolClosed => Self::Unavailable("closed".to_owned()),
            sqlx::Error::Io(why) => Self::Unavailable(format!("no connection: {why}")),
            _ => Self::Unavailable(error.to_string()),
        }
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        let (failure, why) = match error {
            rusqlite::Error::SqliteFailure(failure, message) => (failure, message.unwrap_or_else(|| failure.to_string())),
            rusqlite::Error::SqlInputError { error, msg, .. } => (error, msg),
            other => return Self::Unavailable(other.to_string()),
        };
        match failure.code {
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => Self::Unusable(why),
            ErrorCode::ConstraintViolation => Self::Corrupt(why),
            _ => Self::Unavailable(format!("{why} (code {})", failure.extended_code)),
        }
    }
}

/// By SQLSTATE, <https://www.postgresql.org/docs/current/errcodes-appendix.html>; `object`: the constraint or table that it is about.
fn of_postgres(code: &str, message: &str, object: Option<&str>) -> StoreError {
    match (code.get(..2).unwrap_or_default(), code) {
        // Another client's statement has the name of ours, or ours is in another session.
        (_, "42P05" | "26000") => StoreError::Unavailable(format!("{POOLER} (code {code})")),
        // 25001: what a standby answers to a BEGIN that is to write, after the lock of a chat.
        (_, "25001" | "25006") => StoreError::Unavailable(format!("{message}: the server is read-only, perhaps a standby (code {code})")),
        (_, "3D000") => StoreError::Unusable(format!("{message}: create it")),
        ("28", _) => StoreError::Unusable(format!("the server refuses the user: {message}")),
        // An unknown table or column, or no right to it.
        ("42" | "3F", _) => StoreError::Unusable(format!("{message} (code {code})")),
        ("22" | "23", _) => match object {
            Some(object) => StoreError::Corrupt(format!("`{object}` refuses a value (code {code})")),
            None => StoreError::Corrupt(format!("a value is refused (code {code})")),
        },
        // Connections, transactions that met another one or waited too long, resources, the operator, the machine.
        // `0A`: what a standby answers to a transaction that is to write.
        ("08" | "0A" | "25" | "40" | "53" | "55" | "57" | "58", _) => StoreError::Unavailable(format!("{message} (code {code})")),
        _ => StoreError::Unavailable(format!("the server reports code {code}")),
    }
}

/// Did the connection break? What is tried over another one may go well.
pub(super) fn is_broken(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::Protocol(_) => true,
        // Class 08; the server is shut down or was started anew; a session that was ended for its idleness.
        sqlx::Error::Database(inner) => inner.try_downcast_ref::<PgDatabaseError>().is_some_and(|server| {
            let code = server.code();
            code.starts_with("08") || ["57P01", "57P02", "57P03", "57P05", "25P03"].contains(&code)
        }),
        _ => false,
    }
}

/// Is the file locked by another connection?
pub(super) fn is_busy(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
}

/// A pooler between us and the server.
pub(super) const POOLER: &str = "a pooler in front of PostgreSQL hands out transactions, it must hand out sessions";

#[cfg(test)]
mod tests {
    use super::*;

    /// design: an error says what the caller can do: try again, mend the set-up, or set the row aside; never what a row holds.
    #[test]
    fn postgres_errors_have_classes() {
        for code in [
            "42P05", "26000", "0A000", "40001", "40P01", "55P03", "57P01", "57P03", "57014", "53300", "53100", "08006", "25P03", "25006",
            "25001", "58030", "XX000",
        ] {
            assert!(matches!(of_postgres(code, "m", None), StoreError::Unavailable(_)), "{code}");
        }
        for code in ["28P01", "28000", "3D000", "42P01", "42703", "42501", "3F000"] {
            assert!(matches!(of_postgres(code, "m", None), StoreError::Unusable(_)), "{code}");
        }
        for code in ["23505", "23503", "22P02", "22021"] {
            let error = of_postgres(code, "Key (id)=(secret) exists", Some("turns_pkey"));
            assert!(matches!(error, StoreError::Corrupt(_)), "{code}");
            assert!(
                error.to_string().contains("turns_pkey") && !error.to_string().contains("secret"),
                "{error}"
            );
        }
        for code in ["42P05", "26000"] {
            let said = of_postgres(code, "prepared statement \"sqlx_s_1\" already exists", None).to_string();
            assert!(said.contains(POOLER), "{said}");
        }
        let standby = of_postgres("25006", "cannot execute INSERT in a read-only transaction", None).to_string();
        assert!(standby.contains("perhaps a standby"), "{standby}");
        let missing = of_postgres("3D000", "database \"x\" does not exist", None).to_string();
        assert!(missing.contains("database \"x\" does not exist: create it"), "{missing}");
    }
}
