//! `run_bash`: a command in the workspace, with nothing of ours around it and nothing of it left behind.
//!
//! The command runs as the gateway's user and may do whatever that user may: approval is what protects, not this file.
//! What is here keeps one command from harming by accident: it sees no variable of ours, it is given limits, its output is
//! bounded, and it ends whole. It is the leader of a process group of its own, which is killed when the call ends for whatever
//! reason: the command is done (also with what it left in the background), its time is up, a person stops the turn, the call
//! is dropped, or the gateway dies. Only a process that leaves the group on purpose (`setsid`) goes on.

mod capture;

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::timeout;

use capture::Capture;

use super::group::{self, Group};
use super::{BoxFuture, CallHandle, Halt, HaltReason, MAX_OUTPUT_BYTES, Tool, ToolError, ToolOutput, ToolboxError};
use crate::domain::{ArgumentSense, EffectClass, Scope, ToolSpec};

/// Where commands are looked for, and bash itself.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Between asking the group to end and killing it: a person waits a second at most for the whole stop.
const GRACE_BY_PERSON: Duration = Duration::from_millis(300);
const GRACE_BY_TIME: Duration = Duration::from_secs(2);
/// For what is still in the pipes after the group has ended; somebody who left it may hold them open for ever.
const PIPES: Duration = Duration::from_millis(300);
/// Largest file that the command may write, in KiB.
const FILE_KIB: u64 = 1 << 20;
/// How many processes (and threads) the command may add to those that the user has. Those of root are not counted.
const MORE_PROCESSES: u64 = 256;
/// Of the result: the notes and the last line.
const ROOM_FOR_NOTES: usize = 512;

/// What bash does before it becomes the command. The limits that the system does not grant are left out: they are then
/// stricter already. Of all processes the command is the one to go when memory runs out. Standard input is a pipe that ends
/// with the gateway, even a killed one; a process of the group waits for that and takes the group along. Other open files are
/// inherited from the gateway's parent and are closed.
const BEFORE: &str = r#"
{ ulimit -c 0; ulimit -f "$1"; [ "$2" = 0 ] || ulimit -u "$2"; echo 1000 >/proc/self/oom_score_adj; } 2>/dev/null
exec 9<&0 </dev/null
for fd in /proc/self/fd/*; do fd=${fd##*/}; case $fd in [0-2] | 9 | *[!0-9]*) ;; *) exec {fd}>&- ;; esac; done
( exec >/dev/null 2>&1; read -r -u 9; kill -KILL -- "-$$" ) &
exec "$BASH" --noprofile --norc -c "$3" bash 9<&-
"#;

/// The tool, for commands in `folder`.
pub fn tool(folder: &Path) -> Result<Arc<dyn Tool>, ToolboxError> {
    let bash = PATH.split(':').map(|folder| Path::new(folder).join("bash"));
    let bash = bash.into_iter().find(|bash| bash.is_file()).ok_or(ToolboxError::NoBash)?;
    // The command's home has to be absolute. That the folder is there was checked when the file tools opened it.
    let folder = folder.canonicalize().map_err(|error| ToolboxError::Workspace {
        folder: folder.display().to_string(),
        why: format!("cannot be found: {error}"),
    })?;
    Ok(Arc::new(RunBash { bash, folder }))
}

#[derive(Debug)]
struct RunBash {
    bash: PathBuf,
    folder: PathBuf,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    command: String,
}

impl Tool for RunBash {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "run_bash".to_owned(),
            description:
                "Runs a command with bash in the workspace folder and gives its output and exit code. There is no terminal and no \
                          input; what it starts in the background ends with it. Output is kept up to 64 KiB."
                    .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {"command": {"type": "string", "description": "One command or a short script, as for `bash -c`."}},
                "required": ["command"],
                "additionalProperties": false,
            })
            .into(),
            effect: EffectClass::Destructive,
            scope: Scope::argument("command", ArgumentSense::Text),
        }
    }

    fn run<'a>(&'a self, arguments: &'a Value, call: &'a CallHandle) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let Arguments { command } = super::read_arguments(arguments)?;
            self.carry_out(&command, &call.halt).await
        })
    }
}

impl RunBash {
    async fn carry_out(&self, command: &str, halt: &Halt) -> Result<ToolOutput, ToolError> {
        let started = Instant::now();
        let broken = |error: std::io::Error| ToolError::TellModel(format!("the command could not be run: {error}"));
        let processes = tokio::task::spawn_blocking(group::processes_of_our_user).await.ok().flatten();
        // Before there is a child, so that its end is heard however soon it comes.
        let children = signal(SignalKind::child()).map_err(broken)?;
        let mut child = Command::new(&self.bash)
            .args(["--noprofile", "--norc", "-c", BEFORE, "bash"])
            .arg(FILE_KIB.to_string())
            .arg(processes.map_or(0, |now| now + MORE_PROCESSES).to_string())
            .arg(command)
            .env_clear()
            .envs([("PATH", PATH), ("LANG", "C.UTF-8"), ("TERM", "dumb")])
            .env("HOME", &self.folder)
            .current_dir(&self.folder)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(broken)?;
        let group = Group::led_by(&child)?;
        // Held to the end: when it closes, the group kills itself.
        let _lifeline = child.stdin.take();
        let (out, err) = (Capture::of(child.stdout.take()), Capture::of(child.stderr.take()));
        let halted = {
            let mut ended = std::pin::pin!(group.leader_ended(children));
            let halted = tokio::select! {
                () = &mut ended => None,
                why = halt.told() => Some(why),
            };
            if let Some(why) = halted {
                group.terminate();
                let grace = match why {
                    HaltReason::ByPerson => GRACE_BY_PERSON,
                    HaltReason::ByTime => GRACE_BY_TIME,
                };
                let _ = timeout(grace, ended).await;
            }
            halted
        };
        // Before the leader is waited for: until then no other process can have its number, which is the group's.
        drop(group);
        let status = child.wait().await.map_err(broken)?;
        let pipes = tokio::time::Instant::now() + PIPES;
        let (out, err) = (out.ended_by(pipes).await, err.ended_by(pipes).await);
        Ok(report(&out, &err, status, halted, started.elapsed()))
    }
}

/// What the model hears: standard output, standard error if there is any, and how it ended if it did not end by itself.
fn report(out: &Capture, err: &Capture, status: ExitStatus, halted: Option<HaltReason>, took: Duration) -> ToolOutput {
    let room = MAX_OUTPUT_BYTES - ROOM_FOR_NOTES;
    let (out_text, err_text) = (out.text(), err.text());
    // Errors are worth as much as output where there is not room for both.
    let for_err = room.saturating_sub(out_text.len()).max(room / 2);
    let for_out = room - for_err.min(err_text.len());
    let mut text = String::new();
    let mut truncated = false;
    for (name, whole, capture, room) in [("stdout", out_text, out, for_out), ("stderr", err_text, err, for_err)] {
        let shown = &whole[..whole.floor_char_boundary(room)];
        text.push_str(shown);
        if !shown.is_empty() && !shown.ends_with('\n') {
            text.push('\n');
        }
        if shown.len() < whole.len() || capture.is_cut() {
            truncated = true;
            text.push_str(&format!("[cut: {name} had {} bytes, these are the first]\n", capture.bytes()));
        }
        if capture.is_open() {
            text.push_str(&format!("[a process that left the command's group still holds its {name}]\n"));
        }
    }
    match halted {
        Some(HaltReason::ByPerson) => text.push_str("[stopped by a person; what it did until then stays done]\n"),
        Some(HaltReason::ByTime) => text.push_str("[stopped: its time was up; what it did until then stays done]\n"),
        None => (),
    }
    // An exit code is put behind the output for every tool that has one; a signal only this one knows.
    if let Some(signal) = status.signal() {
        text.push_str(&format!("exit: killed by signal {signal} ({:.1}s)", took.as_secs_f64()));
    }
    text.truncate(text.trim_end_matches('\n').len());
    ToolOutput {
        text,
        exit_code: status.code(),
        truncated,
        ..ToolOutput::default()
    }
}
