//! The real binary as a child process: started, read, killed.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, prlimit};

use super::api::PATIENCE;

/// How long processes on a shared database hold a lane; long enough for a machine that is busy with other tests.
pub const LEASE_MS: &str = "2000";

/// Sends a signal by number. Through the shell, whose `kill` is built in: a bare machine has no other.
pub fn signal(process: u32, name: &str) {
    let status = Command::new("sh")
        .arg("-c")
        .arg(format!("kill -{name} {process}"))
        .status()
        .unwrap();
    assert!(status.success());
}

/// A running `countersign serve`; killed when dropped.
pub struct Process {
    child: Child,
    /// `http://127.0.0.1:PORT`.
    pub base: String,
    log: PathBuf,
}

/// How often a start is tried again because the shared database does not answer in time: a busy machine makes it slow.
pub const STARTS: usize = 5;

impl Process {
    /// Starts the binary in `folder` with these settings (`SECTION__KEY` without the prefix) and waits for its ready line.
    pub fn start(folder: &Path, settings: &[(String, String)], failpoint: Option<&str>) -> Self {
        let failpoint = failpoint.map(|point| ("COUNTERSIGN_FAILPOINT", point.to_owned()));
        Self::start_with(folder, settings, failpoint.as_slice())
    }

    /// Starts the binary with these variables in its environment. See [`Process::start`].
    pub fn start_with(folder: &Path, settings: &[(String, String)], variables: &[(&str, String)]) -> Self {
        for _ in 0..STARTS {
            match Self::try_start(folder, settings, variables) {
                Err(told) if told.contains("the server does not answer") => {}
                started => return started.unwrap_or_else(|told| panic!("{told}")),
            }
        }
        Self::try_start(folder, settings, variables).unwrap_or_else(|told| panic!("{told}"))
    }

    /// Starts the binary once. The error is what it wrote when it ended before it was ready.
    pub fn try_start(folder: &Path, settings: &[(String, String)], variables: &[(&str, String)]) -> Result<Self, String> {
        Self::try_start_program(Path::new(env!("CARGO_BIN_EXE_countersign")), folder, settings, variables)
    }

    /// Starts another program than the one under test, for example that of an earlier version.
    pub fn try_start_program(
        program: &Path,
        folder: &Path,
        settings: &[(String, String)],
        variables: &[(&str, String)],
    ) -> Result<Self, String> {
        let log = folder.join("gateway.log");
        let out = File::options().create(true).append(true).open(&log).unwrap();
        let mut command = Command::new(program);
        command
            .arg("serve")
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(out);
        for (key, value) in settings {
            command.env(format!("COUNTERSIGN__{key}"), value);
        }
        if settings
            .iter()
            .any(|(key, url)| key == "STORE__DATABASE_URL" && url.starts_with("postgres"))
        {
            // What a killed process held there is free when its lease ends, and no test waits half a minute for that.
            command.env("COUNTERSIGN_LEASE_MS", LEASE_MS);
        }
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let Some(base) = line.trim().strip_prefix("countersign ready: ") else {
            let status = child.wait().unwrap();
            let log = fs::read_to_string(&log).unwrap_or_default();
            return Err(format!("no ready line but {line:?}, then {status}; log:\n{log}"));
        };
        Ok(Self {
            base: base.trim_end_matches("/console/").to_owned(),
            child,
            log,
        })
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// `kill -9`.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// SIGTERM.
    pub fn terminate(&self) {
        signal(self.child.id(), "TERM");
    }

    /// Waits until the process has ended by itself.
    pub fn ended(&mut self, within: Duration) -> Option<ExitStatus> {
        let until = Instant::now() + within;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return Some(status);
            }
            if Instant::now() > until {
                return None;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until the process has ended by itself, while the test's other tasks go on.
    pub async fn ends(&mut self) -> ExitStatus {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.ended(Duration::ZERO) {
                return status;
            }
            assert!(Instant::now() < until, "still alive; its log: {}", self.log());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// From now on it may have so much memory of its own and no more: an allocation beyond that ends it.
    pub fn may_have(&self, bytes: u64) {
        let limit = Rlimit {
            current: Some(bytes),
            maximum: Some(bytes),
        };
        prlimit(Pid::from_raw(self.id().cast_signed()), Resource::Data, limit).unwrap();
    }

    /// Peak resident memory so far, in KiB.
    pub fn peak_kib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    /// Everything it wrote to stderr, over all starts in its folder.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
