//! The binary's other commands: run to their end in a folder, with nothing of this machine's environment.

use std::path::Path;
use std::process::{Command, Stdio};

/// What a command left behind.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

/// Runs `countersign ARGS` in `folder`; `env` are settings as `SECTION__KEY`.
pub async fn run(folder: &Path, env: &[(&str, &str)], args: &[&str]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
    command.args(args).current_dir(folder).env_clear().stdin(Stdio::null());
    for (key, value) in env {
        command.env(format!("COUNTERSIGN__{key}"), value);
    }
    // The fakes that it talks to live in this runtime.
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    Ran {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// `config.yaml` of a folder.
pub fn configure(folder: &Path, yaml: &str) {
    std::fs::write(folder.join("config.yaml"), yaml).unwrap();
}
