//! A server that is a child process: started with nothing of ours around it, ended whole with its connection, and with us.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::process::Stdio;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::domain::visible;
use crate::tools::group::Group;

/// Bytes of one message of a server.
pub(super) const MAX_MESSAGE: usize = 16 << 20;
/// Bytes of a line of the server's own log that are kept.
const MAX_LOG_LINE: usize = 1000;
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
    ) -> Result<(Self, Messages<ChildStdout>, ChildStdin), String> {
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
        let (Some(input), Some(output), Some(log)) = (leader.stdin.take(), leader.stdout.take(), leader.stderr.take()) else {
            return Err(broken());
        };
        tokio::spawn(follow(log, program.clone()));
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
            _guard: guard,
        };
        Ok((child, Messages::of(output), input))
    }

    /// Comes back once the program itself has ended, whatever of its group goes on.
    pub(super) async fn ended(&self) {
        self.ended.cancelled().await;
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

/// What the server writes for people. Only who asks for it sees it: it may hold anything.
async fn follow(mut log: ChildStderr, program: String) {
    let (mut piece, mut line) = (vec![0; 8 << 10], Vec::new());
    while let Ok(length @ 1..) = log.read(&mut piece).await {
        for byte in &piece[..length] {
            match byte {
                b'\n' => {
                    debug!(program, line = visible(&String::from_utf8_lossy(&line)), "an MCP server says");
                    line.clear();
                }
                byte if line.len() < MAX_LOG_LINE => line.push(*byte),
                _ => (),
            }
        }
    }
}

/// An output of lines, none of them longer than [`MAX_MESSAGE`]: a longer one is an error, so that it is not kept in memory.
#[derive(Debug)]
pub(super) struct Messages<R> {
    output: R,
    line: usize,
}

impl<R> Messages<R> {
    fn of(output: R) -> Self {
        Self { output, line: 0 }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Messages<R> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.output).poll_read(context, buffer))?;
        let read = &buffer.filled()[before..];
        self.line = match read.iter().rposition(|byte| *byte == b'\n') {
            Some(at) => read.len() - at - 1,
            None => self.line + read.len(),
        };
        match self.line > MAX_MESSAGE {
            true => {
                // The reader was promised that an error comes alone.
                buffer.set_filled(before);
                Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, "a message is too long")))
            }
            false => Poll::Ready(Ok(())),
        }
    }
}

/// The variables that a child process needs to find programs and its home: `PATH` and `HOME`, as this process has them.
fn inherited() -> Vec<(&'static str, OsString)> {
    let kept = ["PATH", "HOME"].into_iter();
    kept.filter_map(|name| Some((name, std::env::var_os(name)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// F-T2: lines pass as they are however many there are; one without an end is an error before it fills the memory.
    #[tokio::test]
    async fn a_message_without_end_is_an_error() {
        let many = "x".repeat(1 << 20) + "\n";
        let many = many.repeat(20);
        let mut read = Vec::new();
        Messages::of(many.as_bytes()).read_to_end(&mut read).await.unwrap();
        assert_eq!(read.len(), many.len());
        let endless = tokio::io::repeat(b'x');
        let mut read = Vec::new();
        let error = Messages::of(endless).read_to_end(&mut read).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert!(read.len() <= 3 * MAX_MESSAGE, "{}", read.len());
    }
}
