//! The binary at a terminal, which the program `script` plays: what is typed, and what is seen.

use std::path::Path;
use std::process::Stdio;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use super::api::PATIENCE;
use super::skips::{Missing, skip};

/// Where Debian's essential package has it.
const SCRIPT: &str = "/usr/bin/script";

/// A terminal in which `countersign` runs; closed when dropped.
pub struct Terminal {
    child: Child,
    keys: ChildStdin,
    screen: ChildStdout,
    /// What was shown and not looked at yet.
    unread: Vec<u8>,
}

impl Terminal {
    /// Runs `countersign ARGS` with `TMPDIR` and `LANG`. `None` means that there is no `script`; the test is reported as skipped.
    pub fn start(folder: &Path, lang: &str, args: &str) -> Option<Self> {
        if !Path::new(SCRIPT).exists() {
            skip(Missing::Terminal, "script is not installed");
            return None;
        }
        let mut child = Command::new(SCRIPT)
            .args(["--quiet", "--flush", "--return", "--command"])
            .arg(format!("exec {} {args}", env!("CARGO_BIN_EXE_countersign")))
            .arg("/dev/null")
            .env_clear()
            .env("LANG", lang)
            .env("TMPDIR", folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        Some(Self {
            keys: child.stdin.take().unwrap(),
            screen: child.stdout.take().unwrap(),
            child,
            unread: Vec::new(),
        })
    }

    /// Types these keys.
    pub async fn types(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).await.unwrap();
    }

    /// Waits for `words`; gives what was shown before and with them, from where the last look ended.
    pub async fn shows(&mut self, words: &str) -> String {
        loop {
            let found = self.unread.windows(words.len()).position(|part| part == words.as_bytes());
            if let Some(at) = found {
                let seen: Vec<u8> = self.unread.drain(..at + words.len()).collect();
                return String::from_utf8(seen).unwrap();
            }
            let more = timeout(PATIENCE, self.screen.read_buf(&mut self.unread)).await;
            let ended = matches!(more, Ok(Ok(0)));
            let shown = String::from_utf8_lossy(&self.unread);
            assert!(more.is_ok() && !ended, "no {words:?} (ended: {ended}) in\n{shown}");
        }
    }

    /// Waits for the end of the program: its exit status, and what was shown since the last look.
    pub async fn ends(mut self) -> (i32, String) {
        let rest = async {
            self.screen.read_to_end(&mut self.unread).await.unwrap();
            self.child.wait().await.unwrap()
        };
        let status = timeout(PATIENCE, rest).await.expect("it ends");
        (status.code().unwrap_or(-1), String::from_utf8(self.unread).unwrap())
    }
}
