//! The stores under a test: a file and nothing else, or the PostgreSQL and the Redis that `scripts/test` has started.
//!
//! `COUNTERSIGN_TEST_PAIRING` is `sqlite` (the default: SQLite, embedded look-up) or `postgres` (PostgreSQL and Redis);
//! `COUNTERSIGN_TEST_POSTGRES` and `COUNTERSIGN_TEST_REDIS` are the addresses of the two servers, without a database.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use sqlx::{AnyConnection, AssertSqlSafe, Connection, Executor};

/// Which stores a world stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairing {
    /// One file.
    Sqlite,
    /// Two servers.
    Postgres,
}

impl Pairing {
    /// The one that this run of the tests is about.
    pub fn of_this_run() -> Self {
        match std::env::var("COUNTERSIGN_TEST_PAIRING").as_deref() {
            Ok("postgres") => Self::Postgres,
            Ok("sqlite") | Err(_) => Self::Sqlite,
            Ok(other) => panic!("COUNTERSIGN_TEST_PAIRING is {other}, allowed sqlite or postgres"),
        }
    }

    /// Settings (`SECTION__KEY`) of stores that nobody else uses.
    pub async fn settings(self, folder: &Path) -> Vec<(String, String)> {
        match self {
            Self::Sqlite => vec![(
                "STORE__DATABASE_URL".to_owned(),
                format!("sqlite://{}", folder.join("countersign.db").display()),
            )],
            Self::Postgres => {
                let database = fresh_database().await.expect("COUNTERSIGN_TEST_POSTGRES is not set");
                let redis = redis().expect("COUNTERSIGN_TEST_REDIS is not set");
                vec![
                    ("STORE__DATABASE_URL".to_owned(), database),
                    ("STORE__COORDINATION".to_owned(), "redis".to_owned()),
                    ("STORE__REDIS_URL".to_owned(), redis),
                    ("STORE__REDIS_PREFIX".to_owned(), fresh_name()),
                ]
            }
        }
    }
}

/// Address of the tests' Redis.
pub fn redis() -> Option<String> {
    std::env::var("COUNTERSIGN_TEST_REDIS").ok()
}

/// A new, empty database on the tests' PostgreSQL; none: there is no such server.
pub async fn fresh_database() -> Option<String> {
    let server = std::env::var("COUNTERSIGN_TEST_POSTGRES").ok()?;
    Some(create_database(&server).await)
}

/// A new, empty database on this server.
pub async fn create_database(server: &str) -> String {
    sqlx::any::install_default_drivers();
    let server = server.trim_end_matches('/');
    let name = fresh_name();
    let mut conn = AnyConnection::connect(&format!("{server}/postgres")).await.unwrap();
    conn.execute(AssertSqlSafe(format!("CREATE DATABASE {name}"))).await.unwrap();
    conn.close().await.unwrap();
    format!("{server}/{name}")
}

/// A name that no other test of any process has.
pub fn fresh_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("t{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}
