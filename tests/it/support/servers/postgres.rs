//! A private PostgreSQL.

use std::path::Path;
use std::process::Command;

use sqlx::{AnyConnection, Connection, Executor, Row};
use tempfile::TempDir;
use tokio::sync::OnceCell;

use super::{Guard, Port, Server, folder, own, program, unprivileged};
use crate::support::api::eventually;
use crate::support::stores::create_database;

/// `postgres` in a folder of its own.
pub struct PostgresServer {
    // Before the folder: it must not write there any more when that goes.
    server: Server,
    folder: TempDir,
    port: Port,
}

impl PostgresServer {
    /// Starts one with an empty cluster. `None` means that PostgreSQL is not installed.
    pub async fn start() -> Option<Self> {
        program("initdb")?;
        sqlx::any::install_default_drivers();
        let empty = empty_cluster().await;
        loop {
            let folder = folder();
            copy(empty, folder.path());
            let port = Port::claim();
            let server = spawn(&folder, port.number);
            let mut postgres = Self { server, folder, port };
            // Somebody else may have taken the port in between.
            if postgres.is_up().await {
                return Some(postgres);
            }
        }
    }

    /// Address of a database on it.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port.number)
    }

    /// Its port on this machine.
    pub fn port(&self) -> u16 {
        self.port.number
    }

    /// Address of a new, empty database.
    pub async fn fresh_database(&self) -> String {
        create_database(&self.url("")).await
    }

    /// Fast: sessions are cut, everything is written.
    pub async fn stop(&mut self) {
        self.server.end("INT").await;
    }

    /// Immediate: as if its machine had failed; the next start recovers.
    pub async fn kill(&mut self) {
        self.server.end("QUIT").await;
    }

    /// Starts again on the same port and data, stopped before if it still runs.
    pub async fn restart(&mut self) {
        self.stop().await;
        self.server = spawn(&self.folder, self.port.number);
        assert!(self.is_up().await, "postgres does not start again: {}", self.log());
    }

    /// SIGSTOP to all its processes: connections stay open, nothing answers.
    pub fn stall(&self) {
        self.server.stall();
    }

    /// SIGCONT.
    pub fn resume(&self) {
        self.server.resume();
    }

    /// Waits until it takes connections; false: it has ended.
    async fn is_up(&mut self) -> bool {
        let url = self.url("postgres");
        let data = self.folder.path().join("data");
        let server = tokio::sync::Mutex::new(&mut self.server);
        eventually("a postgres that answers", || async {
            if server.lock().await.has_ended() {
                return Some(false);
            }
            let mut conn = AnyConnection::connect(&url).await.ok()?;
            let row = conn.fetch_one("SHOW data_directory").await.ok()?;
            conn.close().await.ok()?;
            (Path::new(&row.get::<String, _>(0)) == data).then_some(true)
        })
        .await
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

/// A cluster as `initdb` makes it, which takes seconds: once in a test run, then it is copied.
async fn empty_cluster() -> &'static Path {
    static EMPTY: OnceCell<(TempDir, Guard)> = OnceCell::const_new();
    let make = || {
        let folder = folder();
        let guard = Guard::of(None, folder.path());
        let output = unprivileged(&program("initdb").unwrap())
            .args([
                "--username=postgres",
                "--auth=trust",
                "--encoding=UTF8",
                "--locale=C",
                "--no-sync",
                "-D",
            ])
            .arg(folder.path().join("data"))
            .output()
            .unwrap();
        assert!(output.status.success(), "initdb: {}", String::from_utf8_lossy(&output.stderr));
        (folder, guard)
    };
    let (folder, _) = EMPTY
        .get_or_init(|| async { tokio::task::spawn_blocking(make).await.unwrap() })
        .await;
    folder.path()
}

fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-a").arg(from.join("data")).arg(to).status().unwrap();
    assert!(status.success());
    own(&to.join("data"));
}

fn spawn(folder: &TempDir, port: u16) -> Server {
    let mut command = unprivileged(&program("postgres").unwrap());
    command.arg("-D").arg(folder.path().join("data")).args(["-p", &port.to_string()]);
    let settings = [
        "listen_addresses=127.0.0.1",
        "unix_socket_directories=",
        // What the tests end is the server, not the machine.
        "fsync=off",
        "max_connections=200",
    ];
    for setting in settings {
        command.args(["-c", setting]);
    }
    Server::spawn(&mut command, folder.path())
}
