//! A server that is a child process: started with nothing of ours around it, ended whole with its connection, and with us.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use secrecy::{ExposeSecret, SecretString};
use tokio::io::AsyncReadExt;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::domain::visible;
use crate::tools::group::Group;

/// Bytes of a line of the server's own log that are kept.
const MAX_LOG_LINE: usize = 1000;
/// Its last lines that are told when it ends, and characters of each.
const LAST_LINES: usize = 3;
const MAX_LAST_LINE: usize = 200;
/// For what it had written before it ended.
const LAST_WORDS: Duration = Duration::from_millis(300);
/// Bytes of a line of a variable's value that is taken out of these lines: a shorter one says nothing.
const MIN_SECRET: usize = 4;
/// Bytes by which a secret is known whose end is missing.
const MAX_BEGINNING: usize = 32;
/// Between the end of its input, the request to end, and the kill.
const GRACE: Duration = Duration::from_secs(1);
/// Stands in the server's group and kills it when our end of its input closes: also when we are killed.
const GUARD: &str = "read -r _; kill -KILL 0";

/// A server's process, with its group; killed when this is dropped.
#[derive(Debug)]
pub(super) struct Child {
    // First: the group must be killed before its leader can be reaped.
    group: Group,
    leader: tokio::process::Child,
    ended: CancellationToken,
    log: Arc<Log>,
    /// Ends the group with us. Its input is held open here.
    _guard: tokio::process::Child,
}

impl Child {
    /// Starts `command` with `env`, `PATH` and `HOME` as all of its environment, in `folder` or where we are.
    ///
    /// # Errors
    /// It cannot be started; why, without its environment.
    pub(super) fn start(
        command: &[String],
        env: &BTreeMap<String, SecretString>,
        folder: Option<&Path>,
    ) -> Result<(Self, ChildStdout, ChildStdin), String> {
        let (program, arguments) = command.split_first().ok_or("its command is empty")?;
        let failed = |error: io::Error| format!("its command {program:?} cannot be started: {error}");
        let broken = || format!("its command {program:?} cannot be started: it has no pipes");
        // Before there is a child, so that its end is heard however soon it comes.
        let children = signal(SignalKind::child()).map_err(failed)?;
        let mut leader = Command::new(program);
        leader
            .args(arguments)
            .env_clear()
            .envs(inherited())
            .envs(env.iter().map(|(name, value)| (name, value.expose_secret())))
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(folder) = folder {
            leader.current_dir(folder);
        }
        let mut leader = leader.spawn().map_err(failed)?;
        let group = Group::led_by(&leader).map_err(|error| error.to_string())?;
        let guard = Command::new("/bin/sh")
            .args(["-c", GUARD])
            .env_clear()
            .process_group(group.number())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(failed)?;
        let (Some(input), Some(output), Some(errors)) = (leader.stdin.take(), leader.stdout.take(), leader.stderr.take()) else {
            return Err(broken());
        };
        let log = Arc::new(Log {
            program: program.clone(),
            secrets: env.values().cloned().collect(),
            ..Log::default()
        });
        tokio::spawn(follow(errors, Arc::clone(&log)));
        // Its end is not the end of its output: what it has started may hold that open.
        let ended = CancellationToken::new();
        let (leader_ended, told) = (group.leader_ended(children), ended.clone());
        tokio::spawn(async move {
            leader_ended.await;
            told.cancel();
        });
        let child = Self {
            group,
            leader,
            ended,
            log,
            _guard: guard,
        };
        Ok((child, output, input))
    }

    /// Comes back once the program itself has ended, whatever of its group goes on.
    pub(super) async fn ended(&self) {
        self.ended.cancelled().await;
    }

    /// What it wrote last for people, without our secrets, as the end of a sentence.
    pub(super) async fn last_words(&self) -> String {
        let _ = timeout(LAST_WORDS, self.log.whole.cancelled()).await;
        let last = self.log.last.lock();
        match last.is_empty() {
            true => String::new(),
            false => format!(
                " (its last words: {})",
                last.iter().map(String::as_str).collect::<Vec<_>>().join(" / ")
            ),
        }
    }

    /// Waits for its end, after its input was closed, and helps if need be.
    pub(super) async fn end(mut self) {
        if timeout(GRACE, self.ended.cancelled()).await.is_err() {
            self.group.terminate();
            let _ = timeout(GRACE, self.ended.cancelled()).await;
        }
        // The rest of the group ends before the leader is reaped and its number is free.
        drop(self.group);
        let _ = timeout(GRACE, self.leader.wait()).await;
    }
}

/// What the server writes for people.
#[derive(Debug, Default)]
struct Log {
    program: String,
    secrets: Vec<SecretString>,
    last: Mutex<VecDeque<String>>,
    /// Nothing more will come.
    whole: CancellationToken,
}

impl Log {
    /// All of it is seen only by who asks for it: it may hold anything.
    fn line(&self, line: &[u8]) {
        let text = visible(&String::from_utf8_lossy(line));
        debug!(program = self.program, line = text, "an MCP server says");
        let mut text = text.trim().to_owned();
        for secret in self.secrets.iter().flat_map(|value| value.expose_secret().lines()) {
            mask(&mut text, secret.trim());
        }
        if text.is_empty() {
            return;
        }
        let mut last = self.last.lock();
        last.push_back(text.chars().take(MAX_LAST_LINE).collect());
        if last.len() > LAST_LINES {
            last.pop_front();
        }
    }
}

/// Takes a line of a secret out. The beginning of a long one may be all of it that is kept.
fn mask(text: &mut String, secret: &str) {
    if secret.len() < MIN_SECRET {
        return;
    }
    *text = text.replace(secret, "***");
    let beginning = &secret[..secret.floor_char_boundary(MAX_BEGINNING)];
    if let Some(at) = text.find(beginning) {
        text.truncate(at);
        text.push_str("***");
    }
}

async fn follow(mut errors: ChildStderr, log: Arc<Log>) {
    let (mut piece, mut line) = (vec![0; 8 << 10], Vec::new());
    while let Ok(length @ 1..) = errors.read(&mut piece).await {
        for byte in &piece[..length] {
            match byte {
                b'\n' => {
                    log.line(&line);
                    line.clear();
                }
                byte if line.len() < MAX_LOG_LINE => line.push(*byte),
                _ => (),
            }
        }
    }
    log.line(&line);
    log.whole.cancel();
}

/// The variables that a child process needs to find programs and its home: `PATH` and `HOME`, as this process has them.
fn inherited() -> Vec<(&'static str, OsString)> {
    let kept = ["PATH", "HOME"].into_iter();
    kept.filter_map(|name| Some((name, std::env::var_os(name)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// interface §10 M, F11 of the peers: last words hold no value of a variable: not one of several lines, nor the beginning of a long one.
    #[test]
    fn last_words_hold_no_secrets() {
        let long = "k".repeat(2 * MAX_LOG_LINE);
        let log = Log {
            secrets: ["hunter22", "-----BEGIN\nAbCdEf\n-----END", &long].map(SecretString::from).to_vec(),
            ..Log::default()
        };
        for line in [
            "login hunter22 failed, hunter22",
            "AbCdEf",
            &format!("token {}", &long[..MAX_LOG_LINE - 6]),
        ] {
            log.line(line.as_bytes());
        }
        let last = log.last.lock();
        assert_eq!(*last, ["login *** failed, ***", "***", "token ***"]);
    }
}
