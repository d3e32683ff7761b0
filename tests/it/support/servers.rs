//! Private servers for tests of faults: real processes on free ports, their files in a temporary folder, of which a test may
//! kill, stop and restart what it likes. They end when they are dropped, and also when the whole test run is killed.
//!
//! ```ignore
//! let Some(redis) = RedisServer::start(&["--appendonly", "yes"]).await else { return };
//! ```
//!
//! Without the programs there is none, and the test that asked is told as skipped.

mod postgres;
mod redis;

use std::io::Write;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};

use tempfile::TempDir;

use super::api::eventually;
use super::process::signal;
use super::skips::{Missing, skip};

pub use self::postgres::PostgresServer;
pub use self::redis::RedisServer;

/// `nobody` and its group, where servers run that refuse to be root.
const NOBODY: u32 = 65_534;
/// Ports for servers: below those that the system gives to outgoing connections, so that a restart finds its port free. Those from
/// 30,000 to 32,000 belong to `scripts/servers`.
const PORTS: std::ops::Range<u16> = 20_000..30_000;

/// Where a program is: in `PATH`, or where Debian keeps those of PostgreSQL; of several versions the newest.
fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut versions: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .map(|version| version.unwrap().path().join("bin"))
        .collect();
    versions.sort();
    versions.reverse();
    let found = std::env::split_paths(&path)
        .chain(versions)
        .map(|folder| folder.join(name))
        .find(|program| program.is_file());
    if found.is_none() {
        skip(Missing::Servers, &format!("{name} is not installed"));
    }
    found
}

/// Does this test run as root?
fn is_root() -> bool {
    std::fs::metadata("/proc/self").unwrap().uid() == 0
}

/// A program with these arguments, as a user that a server may be.
fn unprivileged(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null());
    if is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

/// A folder that belongs to that user.
fn folder() -> TempDir {
    // Not `TMPDIR`: root's may lie where nobody else can go.
    let parent = if is_root() { PathBuf::from("/tmp") } else { std::env::temp_dir() };
    let folder = tempfile::Builder::new().prefix("countersign-").tempdir_in(parent).unwrap();
    own(folder.path());
    folder
}

fn own(path: &Path) {
    if is_root() {
        chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
}

/// A port that belongs to one server, also while that server is down: no other test of this machine gets it meanwhile.
pub struct Port {
    pub number: u16,
    /// The claim: a name of the system that only one process can hold, and that goes with its holder.
    _claim: UnixListener,
}

impl Port {
    pub fn claim() -> Self {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        let count = PORTS.end - PORTS.start;
        let spread = u16::try_from(std::process::id() * 37 % u32::from(count)).unwrap();
        loop {
            let number = PORTS.start + (spread + NEXT.fetch_add(1, Ordering::Relaxed) % count) % count;
            let name = SocketAddr::from_abstract_name(format!("countersign-port-{number}")).unwrap();
            let Ok(claim) = UnixListener::bind_addr(&name) else { continue };
            if TcpListener::bind(("127.0.0.1", number)).is_ok() {
                return Self { number, _claim: claim };
            }
        }
    }
}

/// A server's process and what a test may do to it.
struct Server {
    child: Child,
    _guard: Guard,
}

impl Server {
    /// `folder`: what is removed with it when the test run is killed.
    fn spawn(command: &mut Command, folder: &Path) -> Self {
        let log = std::fs::File::options().create(true).append(true).open(folder.join("log")).unwrap();
        let child = command
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .process_group(0)
            .spawn()
            .unwrap();
        let guard = Guard::of(Some(child.id()), folder);
        Self { child, _guard: guard }
    }

    fn signal(&self, name: &str) {
        signal(self.child.id(), name);
    }

    /// The processes of the server, the first one first: it must not start others while they are stopped.
    fn processes(&self) -> Vec<u32> {
        let first = self.child.id();
        let children = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
            let id: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
            let parent: u32 = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
            (parent == first).then_some(id)
        });
        std::iter::once(first).chain(children).collect()
    }

    fn stall(&self) {
        self.signal("STOP");
        for process in self.processes().into_iter().skip(1) {
            signal(process, "STOP");
        }
    }

    fn resume(&self) {
        for process in self.processes().into_iter().rev() {
            signal(process, "CONT");
        }
    }

    fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Sends a signal and waits until the process is gone.
    async fn end(&mut self, name: &str) {
        if self.has_ended() {
            return;
        }
        self.signal(name);
        let child = tokio::sync::Mutex::new(&mut self.child);
        eventually("the end of a server", || async { child.lock().await.try_wait().unwrap() }).await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A PostgreSQL that loses its first process ends by itself; one that is stopped has to go on for it.
        if !self.has_ended() {
            let rest = self.processes();
            let _ = self.child.kill();
            let _ = self.child.wait();
            for process in rest.into_iter().skip(1) {
                let _ = Command::new("sh")
                    .args(["-c", "kill -KILL $0", &process.to_string()])
                    .stderr(Stdio::null())
                    .status();
            }
        }
    }
}

/// A shell that waits for the end of this process, however it comes, and then takes away what it left behind.
struct Guard {
    shell: Child,
    /// Closed by the system with this process; nobody writes to it.
    end: Option<ChildStdin>,
}

impl Guard {
    fn of(process: Option<u32>, folder: &Path) -> Self {
        let kill = process.map_or_else(|| "true".to_owned(), |id| format!("kill -KILL {id}"));
        let mut shell = Command::new("sh")
            .args(["-c", &format!("read -r word; [ -n \"$word\" ] || {{ {kill}; rm -rf \"$0\"; }}")])
            .arg(folder)
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .unwrap();
        let end = shell.stdin.take();
        Self { shell, end }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // Told that all is well: the process id may be somebody else's by now.
        if let Some(mut end) = self.end.take() {
            let _ = end.write_all(b"done\n");
        }
        let _ = self.shell.wait();
    }
}
