//! The stores under a test: a file and nothing else, or the PostgreSQL and the Redis that `scripts/test` has started.
//!
//! `COUNTERSIGN_TEST_PAIRING` is `sqlite` (the default: SQLite, embedded look-up) or `postgres` (PostgreSQL and Redis);
//! `COUNTERSIGN_TEST_POSTGRES` and `COUNTERSIGN_TEST_REDIS` are the addresses of the two servers, without a database.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use countersign_gateway::store::Ledger;
use sqlx::{AnyConnection, AssertSqlSafe, Connection, Executor};
use tokio::sync::OnceCell;

use super::skips::{Missing, skip};

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

    /// Is this run about it? If not, the test that asks is told as skipped.
    pub fn runs(self) -> bool {
        let runs = self == Self::of_this_run();
        if !runs {
            skip(Missing::Pairing, &format!("it is about {self:?}"));
        }
        runs
    }

    /// Settings (`SECTION__KEY`) of stores that nobody else uses.
    pub async fn settings(self, folder: &Path) -> Vec<(String, String)> {
        match self {
            Self::Sqlite => vec![(
                "STORE__DATABASE_URL".to_owned(),
                format!("sqlite://{}", folder.join("countersign.db").display()),
            )],
            Self::Postgres => {
                let database = database_for(folder).await.expect("COUNTERSIGN_TEST_POSTGRES is not set");
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

/// Address of the tests' Redis. `None` means that there is no such server; the test is reported as skipped.
pub fn redis() -> Option<String> {
    address("COUNTERSIGN_TEST_REDIS")
}

/// Address of the tests' PostgreSQL, without a database. `None` means that there is no such server; the test is reported as skipped.
pub fn postgres() -> Option<String> {
    let server = address("COUNTERSIGN_TEST_POSTGRES")?;
    Some(server.trim_end_matches('/').to_owned())
}

fn address(variable: &str) -> Option<String> {
    let address = std::env::var(variable).ok();
    if address.is_none() {
        skip(Missing::Servers, &format!("{variable} is not set"));
    }
    address
}

/// A new, empty database on the tests' PostgreSQL. `None` means that there is no such server.
pub async fn fresh_database() -> Option<String> {
    Some(create_database(&postgres()?).await)
}

/// A new database with the ledger's tables on the tests' PostgreSQL, which goes some time after `folder` has gone.
pub async fn database_for(folder: &Path) -> Option<String> {
    /// What was made, and for which folder.
    static MADE: Mutex<Vec<(PathBuf, String)>> = Mutex::new(Vec::new());
    let server = postgres()?;
    let gone: Vec<(PathBuf, String)> = MADE.lock().unwrap().extract_if(.., |(folder, _)| !folder.exists()).collect();
    let (name, template) = (fresh_name(), template(&server).await);
    let mut conn = connect(&server).await;
    for (_, name) in gone {
        let drop = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
        conn.execute(AssertSqlSafe(drop)).await.unwrap();
    }
    let create = format!("CREATE DATABASE {name} TEMPLATE {template}");
    conn.execute(AssertSqlSafe(create)).await.unwrap();
    conn.close().await.unwrap();
    MADE.lock().unwrap().push((folder.to_owned(), name.clone()));
    Some(format!("{server}/{name}"))
}

/// A database in which nothing but the migrations has happened.
async fn template(server: &str) -> &'static str {
    static NAME: OnceCell<String> = OnceCell::const_new();
    let make = || async {
        let url = create_database(server).await;
        Ledger::migrate(&url.clone().into()).await.unwrap();
        url.rsplit_once('/').unwrap().1.to_owned()
    };
    NAME.get_or_init(make).await
}

/// A new, empty database on this server.
pub async fn create_database(server: &str) -> String {
    let server = server.trim_end_matches('/');
    let name = fresh_name();
    let mut conn = connect(server).await;
    conn.execute(AssertSqlSafe(format!("CREATE DATABASE {name}"))).await.unwrap();
    conn.close().await.unwrap();
    format!("{server}/{name}")
}

async fn connect(server: &str) -> AnyConnection {
    sqlx::any::install_default_drivers();
    AnyConnection::connect(&format!("{server}/postgres")).await.unwrap()
}

/// A name that no other test of any process has.
pub fn fresh_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("t{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}
